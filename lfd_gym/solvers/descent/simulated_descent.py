"""Algorithm 1 on any generative model: mini-batches of draws, with features and costs evaluated where the draws fall.

One iteration draws a batch of B rounds (see `_kernels`) at the same iterates, and steps along the mean gradient.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.solvers.descent.solver_checkpoint import require, restored
from lfd_gym.solvers.descent.step_sizes import StepSizes
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.solvers.solution import SaddlePoint
from lfd_gym.validation import FloatArray, IntArray

#: exp(−_LOWEST) is as good as zero; deeper weights are kept here, so that they can still come back.
_LOWEST = 650.0


class SimulatedDescent:
    """A run of Algorithm 1 by batches of ``sample_next``. One iteration is one batch."""

    def __init__(
        self,
        problem: SaddlePointProblem,
        model: GenerativeModel,
        batch_size: int,
        steps: StepSizes,
        rng: np.random.Generator,
    ) -> None:
        self.problem, self.model, self.batch_size = problem, model, batch_size
        self.oracle_calls_per_iteration = 2 * batch_size
        self.initial_draws_per_iteration = batch_size
        self._steps = steps
        self._rng = np.random.default_rng(rng.integers(2**63, size=4))  # of a known kind, whose state is plain numbers
        self._counter = np.zeros(1, np.int64)
        self._log_theta = np.zeros(problem.n_occupancy_features)
        self._lambda = np.zeros(problem.n_value_features)
        self._w = problem.costs.weights.centre(problem.n_costs)
        self._sums = SaddlePoint(*(np.zeros_like(part) for part in (self._log_theta, self._lambda, self._w)))

    @property
    def iteration(self) -> int:
        """Batches done."""
        return int(self._counter[0])

    def set_steps(self, steps: StepSizes) -> None:
        """Use other steps from now on."""
        self._steps = steps

    def advance(self, n_iterations: int) -> None:
        """Do so many iterations."""
        for _ in range(n_iterations):
            self._iterate()

    def _iterate(self) -> None:
        before = self._rng.bit_generator.state
        try:
            self._round()
        except (
            BaseException
        ):  # a round is done or not begun: what a simulator breaks can be continued from a checkpoint
            self._rng.bit_generator.state = before
            raise

    def _round(self) -> None:
        """Draw everything that a round needs, then change what it changes."""
        theta, lam, w = self.current()
        problem, steps, size = self.problem, self._steps, self.batch_size
        indices = self._rng.choice(theta.size, size=(2, size), p=theta)
        columns = np.concatenate([self._rng.integers(theta.size, size=size), indices[0]])
        costs, slopes = self._draw(columns)  # of i, then of j
        advantages = costs @ w - slopes @ lam
        gradient = self._theta_gradient(columns, advantages, theta)
        starts = problem.value_features.evaluate(self.model.observe(self.model.sample_initial(size, self._rng)))
        states, actions = problem.occupancy_features.sample(indices[1], self._rng)
        costs = problem.costs.rows(self.model.observe(states), actions, self.model.is_absorbing(states))
        new_w = problem.costs.weights.mirror_step(w, steps.cost * (costs.mean(axis=0) - problem.expert_features))
        value_step = steps.value / sqrt(self.iteration + 1) if steps.value_decays else steps.value
        new_lambda = problem.value_set.project(lam + value_step * (starts - slopes[size:]).mean(axis=0))

        for total, weights in zip(self._sums, (theta, lam, w), strict=True):
            total += weights
        self._counter += 1
        self._log_theta -= steps.occupancy * gradient
        self._log_theta -= self._log_theta.max()
        np.maximum(self._log_theta, -_LOWEST, out=self._log_theta)
        self._lambda, self._w = new_lambda, new_w

    def _draw(self, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Draw (x, a) from the columns of Φ and y ~ P(·|x, a); return c(x, a) and (ψ_x − γψ_y)/(1−γ)."""
        problem = self.problem
        states, actions = problem.occupancy_features.sample(columns, self._rng)
        successors = self.model.sample_next(states, actions, self._rng)
        here = self.model.observe(states)
        rows = problem.value_features.evaluate(here)
        next_rows = problem.value_features.evaluate(self.model.observe(successors))
        slopes = (rows - problem.discount * next_rows) / (1 - problem.discount)
        return problem.costs.rows(here, actions, self.model.is_absorbing(states)), slopes

    def _theta_gradient(self, columns: IntArray, advantages: FloatArray, theta: FloatArray) -> FloatArray:
        size = self.batch_size
        if self._steps.balanced:
            values = advantages / (1 / theta.size + theta[columns])
        else:
            columns, values = columns[:size], theta.size * (advantages[:size] + self._steps.shift)
        return np.bincount(columns, weights=values, minlength=theta.size) / size

    def temper(self, power: float) -> None:
        """Raise θ and, over the simplex, w to ``power`` and normalise: dual averaging with a smaller step."""
        self._log_theta *= power
        self._w = self.problem.costs.weights.temper(self._w, power)

    def current(self) -> SaddlePoint:
        """Return the iterates θ, λ and w."""
        theta = np.exp(self._log_theta)
        return SaddlePoint(theta / theta.sum(), self._lambda.copy(), self._w.copy())

    def sums(self) -> SaddlePoint:
        """Return the sums of the iterates θ_n, λ_n and w_n so far."""
        return SaddlePoint(*(total.copy() for total in self._sums))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays that a checkpoint needs."""
        generator = json.dumps(self._rng.bit_generator.state)
        return {
            "counter": self._counter,
            "log_theta": self._log_theta,
            "lambda": self._lambda,
            "w": self._w,
            "theta_sum": self._sums.occupancy_weights,
            "lambda_sum": self._sums.value_weights,
            "w_sum": self._sums.cost_weights,
            "generator": np.array(generator),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the arrays of a checkpoint of the same problem."""
        own = {name: array for name, array in self.arrays().items() if name != "generator"}
        found = {name: restored(name, arrays[name], array) for name, array in own.items()}
        require(found["counter"] >= 0, "counter must not be negative")
        require((found["log_theta"] <= 0) & (found["log_theta"] >= -_LOWEST), f"log θ must lie in [{-_LOWEST}, 0]")
        total, iteration = float(found["theta_sum"].sum()), int(found["counter"][0])
        require(abs(total - iteration) <= 1e-6 * max(iteration, 1), "averages of θ must be those of its batches")
        self._rng.bit_generator.state = json.loads(str(arrays["generator"]))
        for name, array in own.items():
            array[...] = found[name]
