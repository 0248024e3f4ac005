"""What surrounds the rounds of Algorithm 1: epochs and their steps, averages over the tail, residuals on the way."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lfd_gym.solvers.descent.solver_checkpoint import require, restored
from lfd_gym.solvers.descent.step_sizes import GradientNorms, StepSizes, paper_steps, practical_steps
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.solvers.solution import SaddlePoint
from lfd_gym.validation import FloatArray, finite_array

#: An anytime run begins with an epoch of so many rounds, or of so many draws per occupancy feature if that is more.
_FIRST_ROUNDS = 256
_FIRST_DRAWS_PER_COLUMN = 16
#: Residuals are computed from so many rounds per occupancy feature on, at rounds that grow by a factor of √2.
_ROUNDS_PER_COLUMN = 16


class Descent(Protocol):
    """Rounds on one kind of model: `FiniteDescent` or `SimulatedDescent`."""

    oracle_calls_per_iteration: int
    initial_draws_per_iteration: int

    @property
    def iteration(self) -> int: ...  # noqa: D102

    def set_steps(self, steps: StepSizes) -> None: ...  # noqa: D102

    def advance(self, n_iterations: int) -> None: ...  # noqa: D102

    def temper(self, power: float) -> None: ...  # noqa: D102

    def sums(self) -> SaddlePoint: ...  # noqa: D102

    def arrays(self) -> dict[str, NDArray[Any]]: ...  # noqa: D102

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None: ...  # noqa: D102


class Steps:
    """The step sizes of a run, by horizon: practical if the norms of the gradients are given, else the paper's."""

    def __init__(self, problem: SaddlePointProblem, norms: GradientNorms | None, batch_size: int) -> None:
        self._problem, self._norms, self._batch_size = problem, norms, batch_size

    def __call__(self, horizon: int) -> StepSizes:
        """Return the steps that are right for so many rounds."""
        if self._norms is None:
            return paper_steps(self._problem, horizon)
        return practical_steps(self._problem, horizon, self._norms, self._batch_size)

    def epoch_end(self, iteration: int) -> int:
        """Return the end of the epoch that holds round ``iteration`` (from zero) of an anytime run."""
        end = max(_FIRST_ROUNDS, _FIRST_DRAWS_PER_COLUMN * self._problem.n_occupancy_features // self._batch_size)
        while end <= iteration:
            end *= 2
        return end


class DescentRun:
    """A run with all that happens between its rounds. Where it is cut into pieces makes no difference to it.

    Parameters
    ----------
    problem
        What is solved.
    descent
        The rounds, at their start, with the steps of the first epoch.
    steps
        Step sizes by horizon.
    horizon
        N, or None for an anytime run.
    """

    def __init__(self, problem: SaddlePointProblem, descent: Descent, steps: Steps, horizon: int | None) -> None:
        self.problem, self.descent, self.horizon = problem, descent, horizon
        self._steps = steps
        #: Rounds and residuals at which the averages were looked at.
        self.history: list[tuple[int, float]] = []
        #: Whether all is done that was due: what can be continued.
        self.is_whole = True
        # Sums of θ up to the start of the tail, and up to the start of the epoch before the next tail.
        self._marks = np.zeros((1 if horizon is not None else 2, problem.n_occupancy_features))

    @property
    def iteration(self) -> int:
        """Rounds done."""
        return self.descent.iteration

    def next_stop(self, limit: int) -> int:
        """Return the round after which something is due next: an epoch, the tail, a residual, or the end."""
        return min(limit, self._next_mark(), self._next_look())

    def _next_mark(self) -> int:
        if self.horizon is None:
            return self._steps.epoch_end(self.iteration)
        half = self.horizon // 2
        return half if self.iteration < half else self.horizon

    def _next_look(self) -> int:
        first = _ROUNDS_PER_COLUMN * self.problem.n_occupancy_features
        k = 0
        while (look := int(first * sqrt(2.0**k))) <= self.iteration:
            k += 1
        return look

    def advance(self, n_iterations: int) -> None:
        """Do so many rounds, not beyond `next_stop`, and what is due after them."""
        mark, look = self._next_mark(), self._next_look()
        self.descent.advance(n_iterations)
        self.is_whole = False
        if self.iteration == mark and mark != self.horizon:
            self._marks[:-1] = self._marks[1:]
            self._marks[-1] = self.descent.sums()[0]
            if self.horizon is None:
                self._start_epoch()
        if self.iteration == look and self.problem.mdp is not None:
            self.history.append((self.iteration, self.residual()))
        self.is_whole = True

    def _start_epoch(self) -> None:
        old, new = self._steps(self.iteration), self._steps(self._steps.epoch_end(self.iteration))
        self.descent.set_steps(new)
        if old.occupancy > 0:
            self.descent.temper(new.occupancy / old.occupancy)

    def averages(self) -> SaddlePoint:
        """Return θ̂, λ̂ and ŵ, averages over all rounds."""
        theta, lam, w = self.descent.sums()
        return SaddlePoint(
            theta / theta.sum(), lam / self.iteration, self.problem.costs.weights.average(w, self.iteration)
        )

    def tail_average(self) -> FloatArray:
        """Return the average of θ over the later rounds: the last half, or the last one or two epochs."""
        tail = self.descent.sums()[0]
        tail -= self._marks[0]
        np.maximum(tail, 0.0, out=tail)
        tail /= tail.sum()
        return tail

    def residual(self) -> float:
        """Return the saddle-point residual of the averages; needs the model."""
        return self.problem.saddle_point_residual(self.averages())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays that a checkpoint needs."""
        history = np.array(self.history, dtype=np.float64).reshape(-1, 2)
        return {"run_marks": self._marks, "run_history": history, **self.descent.arrays()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the arrays of a checkpoint of the same run."""
        marks = restored("run_marks", arrays["run_marks"], self._marks)
        require(marks >= 0, "marks must not be negative")
        history = finite_array("run_history", arrays["run_history"], (None, 2))
        self.descent.restore(arrays)
        rounds = history[:, 0]
        require(np.diff(rounds, prepend=0.0) > 0, "history must be of rounds that grow")
        require((rounds == np.floor(rounds)) & (rounds <= self.iteration), "history must be of rounds that were done")
        self._marks[...] = marks
        self.history = [(int(n), float(residual)) for n, residual in history]
        if self.horizon is None:
            self.descent.set_steps(self._steps(self._steps.epoch_end(self.iteration)))
