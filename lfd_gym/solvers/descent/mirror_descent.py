"""Algorithm 1: stochastic primal-dual mirror descent for the saddle-point problem, from draws of a generative model.

In round n, at θ_n, λ_n and w_n, independent draws give unbiased estimates of the gradients of the empirical Lagrangian;
θ and w (over the simplex) take multiplicative steps, λ and w (over other sets) projected ones. Averages of the iterates
approach a saddle point: with N rounds the residual falls like 1/√N. See `step_sizes` for the two schedules and
`_kernels` for the rounds.

With ``anytime=True`` nobody has to know N beforehand. Rounds come in epochs that double the number of rounds done, each
with the steps of its own end. Between epochs θ and w are raised to the power η_new/η_old: this is dual averaging,
θ_n ∝ exp(−η Σ g), with a smaller η, whose regret is that of the best fixed η up to a constant. What a run has done
after n rounds does not depend on how far it will go, so it can be continued any time.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from lfd_gym.arguments import checked
from lfd_gym.features.occupancy_features import NoPolicyError
from lfd_gym.files import refusing
from lfd_gym.model.generative_model import GenerativeModel, TabularModel, check_generator, check_model
from lfd_gym.model.generative_model import batch_size as check_size
from lfd_gym.solvers.descent.descent_run import Descent, DescentRun, Steps
from lfd_gym.solvers.descent.finite_descent import COMPILED_SETS, FiniteDescent, FiniteOracle
from lfd_gym.solvers.descent.gradient_norms import N_DRAWS, estimate_gradient_norms
from lfd_gym.solvers.descent.simulated_descent import SimulatedDescent
from lfd_gym.solvers.descent.solver_checkpoint import (
    check_same_run,
    fingerprint,
    load_checkpoint,
    require,
    save_checkpoint,
)
from lfd_gym.solvers.descent.step_sizes import GradientNorms, Schedule, check_schedule
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.solvers.solution import SaddlePointSolution, Status
from lfd_gym.validation import FloatArray, check_type

_SECONDS_BETWEEN_LOOKS = 0.25


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MirrorDescentSolution(SaddlePointSolution):
    """An approximate saddle point found by Algorithm 1: ``point`` holds the averages θ̂, λ̂ and ŵ over all iterations.

    Without a known model ``residual`` is None; a sampled certificate then bounds it. The status is ``"interrupted"`` if
    a signal ended the run and its handler came back. ``oracle_calls`` count draws of a next state that entered a
    gradient, those of the first estimate of the practical steps included.

    Attributes
    ----------
    policy_weights
        The θ of the policy: θ̂ for the paper's schedule, the average over the last half for the practical one.
    initial_draws
        Draws of an initial state.
    residual_history
        (iterations, residuals) of the averages on the way, if the model is known.
    schedule
        The schedule of the steps.
    seconds
        Time it took, that of continued runs added up.
    """

    policy_weights: FloatArray
    initial_draws: int
    residual_history: tuple[tuple[int, float], ...]
    schedule: Schedule
    seconds: float


@dataclass(frozen=True)
class _Options:
    """What is asked of a run; see `solve_mirror_descent`."""

    n_iterations: int
    schedule: Schedule
    anytime: bool
    batch_size: int
    tolerance: float
    checkpoint: Path | None = None
    checkpoint_seconds: float = 300.0
    progress: bool = False

    def __post_init__(self) -> None:
        check_schedule("schedule", self.schedule)
        for name in ("n_iterations", "batch_size"):
            size = check_size(name, getattr(self, name))
            if size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}")
            object.__setattr__(self, name, size)
        for name in ("tolerance", "checkpoint_seconds"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.checkpoint is not None and not self.checkpoint.parent.is_dir():
            raise ValueError(f"checkpoint must be a file in a folder that exists, got {self.checkpoint}")


@checked
def solve_mirror_descent(
    problem: SaddlePointProblem,
    model: GenerativeModel,
    n_iterations: int,
    rng: np.random.Generator,
    *,
    schedule: Schedule = "practical",
    anytime: bool = False,
    batch_size: int = 64,
    tolerance: float = 0.0,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 300.0,
    progress: bool = True,
) -> MirrorDescentSolution:
    """Run Algorithm 1 on ``problem`` with draws of ``model``.

    Parameters
    ----------
    problem
        The saddle-point problem.
    model
        The generative model. A `TabularModel` with finite features, and costs with weights in the simplex or the unit
        ball, is solved by a compiled loop of single draws, some hundred nanoseconds an iteration; anything else by
        mini-batches of ``sample_next``.
    n_iterations
        N, the number of iterates that are averaged.
    rng
        Drives all draws.
    schedule
        ``"practical"`` or, literally Algorithm 1 with the constants of Theorem 1, ``"paper"``.
    anytime
        Choose the steps by doubling epochs instead of by ``n_iterations``, so that the run can be extended.
    batch_size
        Draws per iteration where there are mini-batches.
    tolerance
        Stop early when the residual, looked at now and then, is at most this. Needs a known model.
    checkpoint
        A file to keep the state of the run in. If it exists, the run continues from it, with the draws it would have
        made without the interruption (``rng`` is then not used). It is written every ``checkpoint_seconds``, at the
        end, and, in the main thread, on Ctrl-C and SIGTERM before they take effect.
    checkpoint_seconds
        Seconds between checkpoints.
    progress
        Show a progress bar with the last residual for runs of more than a second.

    Examples
    --------
    >>> import numpy as np
    >>> import lfd_gym as lfd
    >>> stay_or_go = np.array([[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.0, 1.0]]])  # (S, A, S)
    >>> mdp = lfd.FiniteMDP(stay_or_go, initial_distribution=[1.0, 0.0], discount=0.5)
    >>> costs = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.5], [0.0, 0.5]])
    >>> expert = costs.T @ mdp.occupancy(mdp.optimal_policy(costs[:, 0])).ravel()
    >>> problem = lfd.SaddlePointProblem.tabular(mdp, costs, expert)
    >>> model = lfd.as_generative_model(mdp)
    >>> solution = lfd.solve_mirror_descent(problem, model, 100_000, np.random.default_rng(0))
    >>> bool(solution.residual < 0.05), solution.oracle_calls
    (True, 201024)
    >>> solution.policy[0].round(1)  # the expert leaves state 0
    array([0., 1.])
    """
    path = None if checkpoint is None else Path(checkpoint)
    options = _Options(n_iterations, schedule, anytime, batch_size, tolerance, path, checkpoint_seconds, progress)
    _check_world(problem, model)
    check_generator("rng", rng)
    return _solve(problem, model, _finite_oracle(problem, model), rng, options)


@checked
def solve_mirror_descent_many(
    problem: SaddlePointProblem,
    model: GenerativeModel,
    n_iterations: int,
    rngs: Sequence[np.random.Generator],
    *,
    schedule: Schedule = "practical",
    anytime: bool = False,
    batch_size: int = 64,
    tolerance: float = 0.0,
    max_workers: int | None = None,
) -> list[MirrorDescentSolution]:
    """Run `solve_mirror_descent` once for each of ``rngs``; on a finite model side by side, in threads.

    The compiled loop lets go of Python's lock, so threads are as good as processes and share the tables of the model.
    Other models are run one after the other: their simulators need not be safe to share.

    Parameters
    ----------
    problem, model, n_iterations, schedule, anytime, batch_size, tolerance
        As for `solve_mirror_descent`.
    rngs
        One generator for each run, for example ``rng.spawn(8)``.
    max_workers
        Threads to use; by default as many as the machine has processors.

    Examples
    --------
    >>> import numpy as np
    >>> import lfd_gym as lfd
    >>> mdp = lfd.FiniteMDP(np.full((2, 2, 2), 0.5), initial_distribution=[0.5, 0.5], discount=0.5)
    >>> problem = lfd.SaddlePointProblem.tabular(mdp, np.eye(4)[:, :2], [0.25, 0.25])
    >>> runs = solve_mirror_descent_many(
    ...     problem, lfd.as_generative_model(mdp), 10_000, np.random.default_rng(0).spawn(3)
    ... )
    >>> len(runs), len({run.residual for run in runs})
    (3, 3)
    """
    options = _Options(n_iterations, schedule, anytime, batch_size, tolerance)
    _check_world(problem, model)
    for rng in rngs:
        check_generator("rngs", rng)
    oracle = _finite_oracle(problem, model)
    with ThreadPoolExecutor((max_workers or os.cpu_count()) if oracle is not None else 1) as pool:
        return list(pool.map(lambda rng: _solve(problem, model, oracle, rng, options), rngs))


def _check_world(problem: Any, model: Any) -> None:
    check_type("problem", problem, SaddlePointProblem)
    check_model("model", model)


def _finite_oracle(problem: SaddlePointProblem, model: GenerativeModel) -> FiniteOracle | None:
    """Return the oracle of the compiled loop, or None for models that need mini-batches."""
    finite = problem.occupancy_features.is_finite and problem.costs.table is not None
    if finite and problem.costs.weights in COMPILED_SETS and isinstance(model, TabularModel):
        return FiniteOracle(problem, model)
    return None


def _solve(
    problem: SaddlePointProblem,
    model: GenerativeModel,
    oracle: FiniteOracle | None,
    rng: np.random.Generator,
    options: _Options,
) -> MirrorDescentSolution:
    if options.tolerance > 0 and problem.mdp is None:
        raise ValueError("tolerance needs a problem whose mdp is known, to compute residuals")
    problem.costs.check_ends("cost_features", model)
    started = time.perf_counter()
    description, run, seconds_before = _start(problem, model, oracle, rng, options)
    if run.iteration > options.n_iterations:
        raise ValueError(
            f"n_iterations must be at least the {run.iteration} done in the checkpoint, got {options.n_iterations}"
        )

    def save() -> None:
        if options.checkpoint is not None:
            seconds = seconds_before + time.perf_counter() - started
            save_checkpoint(options.checkpoint, {**description, "seconds": seconds}, run.arrays())

    with _held_signals(options.checkpoint is not None) as signals:
        try:
            _iterate(run, options, signals, save)
        finally:  # also if the simulator fails: the rounds before are not lost
            if run.is_whole:
                save()
    return _solution(run, options, seconds_before + time.perf_counter() - started)


def _start(
    problem: SaddlePointProblem,
    model: GenerativeModel,
    oracle: FiniteOracle | None,
    rng: np.random.Generator,
    options: _Options,
) -> tuple[dict[str, Any], DescentRun, float]:
    """Begin a run or take it up from its checkpoint; return its description, the run, and seconds spent before."""
    horizon = None if options.anytime else options.n_iterations
    batch_size = 1 if oracle is not None else options.batch_size
    description: dict[str, Any] = {}
    stored: dict[str, Any] | None = None
    arrays: dict[str, NDArray[Any]] = {}
    if options.checkpoint is not None:
        description = {
            "fingerprint": fingerprint(problem, model),
            "schedule": options.schedule,
            "anytime": options.anytime,
            "horizon": horizon,
            "batch_size": batch_size,
        }
        if options.checkpoint.exists():
            stored, arrays = load_checkpoint(options.checkpoint)
            check_same_run(options.checkpoint, stored, description)
    norms = None
    if options.schedule == "practical":
        if stored:
            norms = _stored_norms(options.checkpoint, stored)
        else:
            norms = estimate_gradient_norms(problem, model, batch_size, rng)
        description["norms"] = [norms.value, norms.cost]
    steps = Steps(problem, norms, batch_size)
    first = steps(horizon if horizon is not None else steps.epoch_end(0))
    descent: Descent
    if oracle is not None:
        descent = FiniteDescent(oracle, first, rng)
    else:
        descent = SimulatedDescent(problem, model, batch_size, first, rng)
    run = DescentRun(problem, descent, steps, horizon)
    if stored is None:
        return description, run, 0.0
    with refusing(f"checkpoint {options.checkpoint}", "cannot be continued"):
        run.restore(arrays)
        seconds = float(stored["seconds"])
        require(0 <= seconds < math.inf, "seconds must be finite and not negative")
    return description, run, seconds


def _stored_norms(path: Path | None, stored: dict[str, Any]) -> GradientNorms:
    with refusing(f"checkpoint {path}", "cannot be continued"):
        value, cost = stored["norms"]
        require(all(0 <= float(norm) < math.inf for norm in (value, cost)), "norms must be finite and not negative")
        return GradientNorms(float(value), float(cost))


def _iterate(run: DescentRun, options: _Options, signals: list[int], save: Any) -> None:
    """Advance to the end, the tolerance or a signal, in pieces of a fraction of a second."""
    piece = 1  # signals and checkpoints wait for a piece to end, and a simulator may be slow
    saved = time.perf_counter()
    bar = tqdm(
        total=options.n_iterations,
        initial=run.iteration,
        desc="mirror descent",
        unit="it",
        unit_scale=True,
        delay=1.0,
        disable=not options.progress,
    )
    with bar:
        while run.iteration < options.n_iterations and not signals and not _converged(run, options):
            before, begun, looks = run.iteration, time.perf_counter(), len(run.history)
            run.advance(min(piece, run.next_stop(options.n_iterations) - before))
            done, now = run.iteration - before, time.perf_counter()
            piece = max(1, min(int(done * _SECONDS_BETWEEN_LOOKS / max(now - begun, 1e-9)), 4 * piece))
            if len(run.history) > looks:
                bar.set_postfix(residual=f"{run.history[-1][1]:.3g}", refresh=False)
            bar.update(done)
            if now - saved > options.checkpoint_seconds:
                save()
                saved = time.perf_counter()


def _converged(run: DescentRun, options: _Options) -> bool:
    return bool(run.history) and run.history[-1][0] == run.iteration and run.history[-1][1] <= options.tolerance


@contextmanager
def _held_signals(active: bool) -> Iterator[list[int]]:
    """Note SIGINT and SIGTERM, and act on them in the end. Only the main thread can."""
    received: list[int] = []
    if not active or threading.current_thread() is not threading.main_thread():
        yield received
        return
    held = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.signal(number, lambda number, frame: received.append(number)) for number in held]
    try:
        yield received
    finally:
        for number, handler in zip(held, handlers, strict=True):
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


def _solution(run: DescentRun, options: _Options, seconds: float) -> MirrorDescentSolution:
    problem, point = run.problem, run.averages()
    residual = None if problem.mdp is None else problem.saddle_point_residual(point)
    policy_weights = point.occupancy_weights if options.schedule == "paper" else run.tail_average()
    try:
        policy = problem.policy(policy_weights)
    except NoPolicyError:
        policy = None
    first_draws = N_DRAWS if options.schedule == "practical" else 0
    return MirrorDescentSolution(
        policy=policy,
        cost_weights=point.cost_weights,
        values=problem.value_features.function(point.value_weights),
        status=_status(run, options, residual),
        oracle_calls=run.iteration * run.descent.oracle_calls_per_iteration + first_draws,
        point=point,
        residual=residual,
        n_iterations=run.iteration,
        policy_weights=policy_weights,
        initial_draws=run.iteration * run.descent.initial_draws_per_iteration + first_draws,
        residual_history=tuple(run.history),
        schedule=options.schedule,
        seconds=seconds,
    )


def _status(run: DescentRun, options: _Options, residual: float | None) -> Status:
    if residual is not None and residual <= options.tolerance:
        return "optimal"
    return "iteration_limit" if run.iteration == options.n_iterations else "interrupted"
