"""Running many independent pieces of work in processes, surviving those that fail, hang or die.

An engine takes items and a function and yields ``(item, Outcome)`` as they end. An exception, a time limit or the death
of a worker process ends one item, never the others.
"""

from __future__ import annotations

import concurrent.futures as cf
import logging
import os
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

Item = TypeVar("Item")

#: Workers share the machine: one thread each.
SINGLE_THREADED = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
#: Seconds that the preparation of an item may take, if its own limit is not larger.
PREPARATION_LIMIT = 600.0
#: How often a worker looks whether its parent is still there.
_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True)
class Outcome:
    """How one item ended.

    Attributes
    ----------
    value
        What the function returned; None if it failed.
    error
        Empty if all went well, else what happened.
    """

    value: Any = None
    error: str = ""


#: Called with an item before its clock starts.
Prepare: TypeAlias = Callable[[Any], None]


def nothing(item: Any) -> None:
    """Prepare nothing."""


@dataclass(frozen=True)
class _Work:
    """What is done with every item."""

    function: Callable[[Any], Any]
    prepare: Prepare
    time_limit: float


class Engine(Protocol):
    """Something that runs items in parallel."""

    def run(
        self, function: Callable[[Item], Any], items: Sequence[Item], time_limit: float, prepare: Prepare = nothing
    ) -> Iterator[tuple[Item, Outcome]]:
        """Yield each item with its outcome, in the order in which they end.

        ``prepare`` is called with an item before its clock starts: what it imports and compiles is no part of the
        work. It has a limit of its own.
        """
        ...


class ProcessEngine:
    """Processes of this machine, through joblib's loky.

    When a worker of loky dies, the whole pool breaks. So each worker notes in a file what it is at, and since when: an
    item past its time limit is recorded as such, and what was under way beside it is run again. When a worker dies for
    another reason (say, out of memory), all that was under way is run again one by one, which shows who is to blame.

    Parameters
    ----------
    n_workers
        How many processes.
    """

    def __init__(self, n_workers: int) -> None:
        if n_workers < 1:
            raise ValueError(f"n_workers must be at least 1, got {n_workers}")
        self.n_workers = n_workers

    def run(
        self, function: Callable[[Item], Any], items: Sequence[Item], time_limit: float, prepare: Prepare = nothing
    ) -> Iterator[tuple[Item, Outcome]]:
        """Yield each item with its outcome, in the order in which they end."""
        pending = dict(enumerate(items))
        suspects: list[int] = []
        while pending:
            batch = {index: pending[index] for index in (suspects[:1] or pending)}
            interrupted = []
            work = _Work(function, prepare, time_limit)
            for index, outcome in _run_pool(work, batch, 1 if suspects else self.n_workers):
                if outcome is None:
                    interrupted.append(index)
                else:
                    yield pending.pop(index), outcome
            if suspects and interrupted:  # it was alone: there is nobody else to blame
                yield pending.pop(suspects[0]), Outcome(error="the worker process died (out of memory?)")
                interrupted = []
            suspects = [index for index in (*suspects[1:], *interrupted) if index in pending]


def _run_pool(work: _Work, items: dict[int, Item], n_workers: int) -> Iterator[tuple[int, Outcome | None]]:
    """Run items in one pool until all are done or it breaks; None marks those under way when another worker died."""
    from joblib.externals.loky import ProcessPoolExecutor

    with tempfile.TemporaryDirectory(prefix="lfd-gym-") as folder:
        notes = Path(folder)
        pool = ProcessPoolExecutor(max_workers=n_workers, env=SINGLE_THREADED)
        completed = False
        try:
            indices = {pool.submit(_noted, work, item, notes / str(i), os.getpid()): i for i, item in items.items()}
            for future in cf.as_completed(indices):
                if future.exception() is not None:
                    break
                yield indices[future], future.result()
            else:
                completed = True
        finally:
            with nullcontext() if completed else _quiet_threads():
                pool.shutdown(wait=True, kill_workers=not completed)
        under_way = {int(note.name): float(note.read_text()) for note in notes.iterdir() if not note.suffix}
        too_long = {index for index, deadline in under_way.items() if time.time() >= deadline}
        for index in under_way:
            if index in too_long:
                yield index, Outcome(error=f"stopped after the time limit of {work.time_limit:g} s")
            elif not too_long:
                yield index, None


@contextmanager
def _quiet_threads() -> Iterator[None]:
    """Keep threads from printing what they raise: that of a pool stumbles over the work that is taken from it."""
    before = threading.excepthook
    threading.excepthook = lambda raised: None
    try:
        yield
    finally:
        threading.excepthook = before


def _noted(work: _Work, item: Any, note: Path, parent: int) -> Outcome:
    """Run an item in a worker, with a note of when it has to end for as long as it lasts."""
    _end_with(parent)

    def start_clock(seconds: float) -> None:
        new = note.with_suffix(".new")
        new.write_text(str(time.time() + seconds))
        new.rename(note)

    outcome = _timed(work, item, start_clock)
    note.unlink()
    return outcome


@cache
def _end_with(parent: int) -> None:
    """End this process soon after its ``parent`` has gone, however that ended: nobody would take what it finds."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="watches the parent").start()


class RayEngine:
    """A Ray cluster, or a Ray started on this machine.

    Parameters
    ----------
    address
        Of a running cluster, e.g. ``"auto"``; None starts a local one for the duration of the run.
    n_workers
        CPUs of a local one; all if None.
    """

    def __init__(self, address: str | None = None, n_workers: int | None = None) -> None:
        self.address = address
        self.n_workers = n_workers

    def run(
        self, function: Callable[[Item], Any], items: Sequence[Item], time_limit: float, prepare: Prepare = nothing
    ) -> Iterator[tuple[Item, Outcome]]:
        """Yield each item with its outcome, in the order in which they end."""
        try:
            import ray
        except ImportError:
            raise ImportError("the ray engine needs the 'ray' extra: pip install 'lfd-gym[ray]'") from None
        n_cpus = None if self.address is not None else self.n_workers
        ray.init(
            address=self.address,
            num_cpus=n_cpus,
            include_dashboard=None if self.address is not None else False,
            runtime_env={"env_vars": SINGLE_THREADED},
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
        try:
            task = ray.remote(num_cpus=1, max_retries=0)(_timed)
            work = _Work(function, prepare, time_limit)
            references = {task.remote(work, item): item for item in items}
            waiting = list(references)
            while waiting:
                done, waiting = ray.wait(waiting, num_returns=1)
                for reference in done:
                    try:
                        outcome = ray.get(reference)
                    except ray.exceptions.RayError as error:
                        outcome = Outcome(error=f"the worker process died (out of memory or time limit): {error}")
                    yield references[reference], outcome
        finally:
            ray.shutdown()


def _timed(work: _Work, item: Any, start_clock: Callable[[float], None] = nothing) -> Outcome:
    """Do the work on an item in a worker, turning an exception into an outcome.

    Past the limit the timer's signal ends the process, even inside a compiled kernel.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    try:
        for step, limit in ((work.prepare, max(work.time_limit, PREPARATION_LIMIT)), (work.function, work.time_limit)):
            start_clock(limit)
            signal.setitimer(signal.ITIMER_REAL, limit)
            value = step(item)
        return Outcome(value)
    except Exception as error:
        where = "".join(traceback.format_tb(error.__traceback__)[-2:])
        return Outcome(error=f"{type(error).__name__}: {error}\n{where}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
