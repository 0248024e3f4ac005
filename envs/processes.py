"""Batches of a generative model that steps pair after pair, spread over processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator
from contextlib import closing
from multiprocessing.connection import Connection, wait
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from lfd_gym._splitmix import draw_seeds
from lfd_gym.model.generative_model import GenerativeModel, batch_size, check_generator
from lfd_gym.validation import IntArray

#: Into how many pieces a batch is cut, whatever the machine: what is drawn is then the same everywhere.
_N_PIECES = 64
#: The start of processes, some ten milliseconds, is not worth it for fewer pairs.
_SMALLEST_BATCH = 256

#: Draws the next states of the piece with a given number.
_Draw: TypeAlias = Callable[[int], NDArray[Any]]
#: Pieces with their numbers, in any order.
_Drawn: TypeAlias = Generator[tuple[int, NDArray[Any]], None, None]


class PieceError(Exception):
    """Where in a process something was raised: the text of its traceback, which ends with the process."""


def sample_next_in_processes(
    model: GenerativeModel,
    states: ArrayLike,
    actions: ArrayLike,
    rng: np.random.Generator,
    n_processes: int | None = None,
) -> NDArray[Any]:
    """Draw one next state for each pair, as ``model.sample_next`` does, in several processes.

    This is for models that step one pair after the other: those of MuJoCo, of seals, your own in Python. Finite models
    and classic control are compiled, and faster without. The batch is cut into 64 pieces, each with a generator seeded
    from ``rng``. So what is drawn depends on ``rng`` and not on the number of processes; it is not what
    ``model.sample_next`` draws from the same ``rng``, unless the model is deterministic.

    Parameters
    ----------
    model
        The model. The processes are forked: they use copies of it as it is at the time of the call, it need not be
        picklable, and it stays as it is. All that they do is to call its ``sample_next``. A model that computes in
        threads of its own or on a GPU, such as one with a network of torch in it, may wait forever in a forked process
        for threads that are not there: use one process.
    states, actions
        The batch.
    rng
        Where the seeds of the pieces come from.
    n_processes
        At most this many, by default as many as this process may use processors. With one, for small batches, outside
        of the main thread, in daemonic processes and on other systems than Linux, where a fork is not safe, the same
        pieces are drawn in this process.

    Returns
    -------
    ndarray
        The next states.

    Raises
    ------
    Exception
        What ``model.sample_next`` raises; if that was in another process, caused by a `PieceError` that says where.
        What cannot be pickled becomes a RuntimeError. So does a process that dies.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> from lfd_gym.envs.processes import sample_next_in_processes
    >>> model, rng = lfd.as_generative_model(gym.make("CartPole-v1")), np.random.default_rng(0)
    >>> states = model.sample_initial(100, rng)
    >>> sample_next_in_processes(model, states, np.zeros(100, dtype=int), rng).shape
    (100, 4)
    """
    batch, moves = np.asarray(states), np.asarray(actions)
    if batch.shape[:1] != moves.shape[:1]:
        raise ValueError(f"states and actions must have the same length, got shapes {batch.shape} and {moves.shape}")
    n_processes = _n_processors() if n_processes is None else batch_size("n_processes", n_processes)
    if n_processes == 0:
        raise ValueError("n_processes must be positive, got 0")
    check_generator("rng", rng)
    if batch.size == 0:
        return model.sample_next(batch, moves, rng)
    pieces = np.array_split(np.arange(len(batch)), min(_N_PIECES, len(batch)))
    # Not rng.spawn: its children depend on how many there were before, which the state of a generator does not tell.
    seeds = draw_seeds(len(pieces), rng)

    def draw(k: int) -> NDArray[Any]:
        return model.sample_next(batch[pieces[k]], moves[pieces[k]], np.random.default_rng(seeds[k]))

    alone = n_processes == 1 or len(batch) < _SMALLEST_BATCH or not _can_fork()
    drawn = _drawn_here(draw, len(pieces)) if alone else _drawn_there(draw, pieces, n_processes)
    successors: list[Any] = [None] * len(pieces)
    with closing(drawn), tqdm(total=len(batch), unit=" pairs", delay=1, disable=None, leave=False) as bar:
        for k, piece in drawn:
            successors[k] = piece
            bar.update(len(piece))
    return np.concatenate(successors)


def _drawn_here(draw: _Draw, n_pieces: int) -> _Drawn:
    for k in range(n_pieces):
        yield k, draw(k)


def _drawn_there(draw: _Draw, pieces: list[IntArray], n_processes: int) -> _Drawn:
    """Yield the pieces as they come from processes; none of these is left when this has ended or was closed."""
    context = multiprocessing.get_context("fork")
    workers: dict[Any, Any] = {}  # by the ends of their pipes
    shares = [range(first, len(pieces), n_processes) for first in range(min(n_processes, len(pieces)))]
    try:
        for share in shares:
            receiver, sender = context.Pipe(duplex=False)
            worker = context.Process(target=_work, args=(draw, share, sender), daemon=True)
            worker.start()
            workers[receiver] = worker
            sender.close()  # so that the end of the process is the end of the pipe
        going: set[Any] = set(workers)
        while going:
            for ready in wait(going):
                receiver = cast(Connection, ready)
                try:
                    k, result = receiver.recv()
                except EOFError:
                    going.remove(receiver)
                    workers[receiver].join()
                    if code := workers[receiver].exitcode:
                        raise RuntimeError(f"a process that draws next states has died with exit code {code}") from None
                    continue
                if isinstance(result, tuple):
                    error, text = result
                    rows = f"rows {pieces[k][0]} to {pieces[k][-1]} of the batch"
                    raise error from PieceError(f"in {rows}, which it counts from 0\n\n{text}")
                yield k, result
    finally:
        for receiver, worker in workers.items():
            worker.kill()  # does nothing to one that has ended
            worker.join()
            worker.close()
            receiver.close()


def _work(draw: _Draw, numbers: range, sender: Connection) -> None:
    """Draw pieces in a forked process, and send them or what goes wrong."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes; the first one ends the others
    for k in numbers:
        try:
            sender.send((k, draw(k)))
        except Exception as error:
            sender.send((k, (_picklable(error), traceback.format_exc())))
            return


def _picklable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever its class does there
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _n_processors() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _can_fork() -> bool:
    """Whether a copy of this process can be expected to work.

    Other threads are not copied, and what they were at stays half done; the caller's own is that of the main thread.
    Daemonic processes, such as those of a pool, may not have children.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    return sys.platform == "linux" and in_main_thread and not multiprocessing.current_process().daemon
