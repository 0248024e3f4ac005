"""A high-confidence upper bound on the saddle-point residual, from draws of a generative model alone.

The residual (see `SaddlePointProblem.saddle_point_residual`) needs four expectations: the slope Ψᵀ(ν₀ − T_γ μ_θ), the
excess Cᵀμ_θ − ρ̂, the mean ⟨φ_i, c_w − T_γ* u_λ⟩ under every column of Φ, and ⟨ν₀, u_λ⟩. Each is estimated by sample
means and moved by a concentration radius in the direction that makes the residual larger:

- vectors in the 2-norm: ‖mean − expectation‖₂ ≤ B(1 + √(2 ln 1/δ))/√n for independent draws of norm at most B
  (McDiarmid's inequality for the norm, whose expectation is at most B/√n);
- the columns, all at once: the empirical Bernstein bound of Maurer & Pontil (2009), which follows the sample variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.solvers.saddle.saddle_point import PointLike, SaddlePointProblem
from lfd_gym.solvers.solution import SaddlePoint
from lfd_gym.validation import FloatArray, IntArray, check_delta

_BATCH = 100_000


@dataclass(frozen=True)
class SampledResidual:
    """What draws say about the empirical saddle-point residual.

    Attributes
    ----------
    estimate
        The residual with sample means in place of expectations.
    bound
        With probability at least 1 − δ the residual is at most this.
    oracle_calls
        Draws of next states.
    """

    estimate: float
    bound: float
    oracle_calls: int


def sample_residual(
    problem: SaddlePointProblem,
    model: GenerativeModel,
    point: PointLike,
    *,
    n_samples: int,
    n_per_column: int,
    delta: float,
    rng: np.random.Generator,
) -> SampledResidual:
    """Bound the empirical residual of a point that was chosen before these draws.

    Parameters
    ----------
    problem, model
        The problem, and fresh draws of its dynamics.
    point
        θ, λ, w in their domains.
    n_samples
        Draws for the quantities that θ averages.
    n_per_column
        Draws for each of the n_μ columns of Φ, at least 2.
    delta
        Probability of failure, strictly between 0 and 1.
    rng
        Drives all draws; it must not be the one whose draws made the point.
    """
    if n_samples < 1 or n_per_column < 2:
        raise ValueError(f"n_samples must be >= 1 and n_per_column >= 2, got {n_samples} and {n_per_column}")
    check_delta(delta)
    problem.costs.check_ends("cost_features", model)
    sampler = _Sampler(problem, model, problem.check_point(point), rng)
    slope, excess, initial_value = sampler.averages(n_samples)
    means, variances = sampler.columns(n_per_column)
    level = log(4 / delta)  # four events
    column_level = log(2 * 4 * problem.n_occupancy_features / delta)
    column_radii = np.sqrt(2 * variances * column_level / n_per_column) + (
        7 * sampler.advantage_range * column_level / (3 * (n_per_column - 1))
    )
    lower = float((means - column_radii).min())
    fixed = initial_value - float(sampler.point.cost_weights @ problem.expert_features)
    largest = float(problem.value_set.support(slope)) + float(problem.costs.weights.support(excess))
    estimate = largest - float(means.min()) - fixed
    radii = _value_radius(problem, n_samples, level)
    radii += problem.costs.weights.deviation(problem.n_costs, n_samples, delta / 4)
    radii += sampler.value_range * sqrt(level / (2 * n_samples))
    return SampledResidual(
        estimate=estimate,
        bound=estimate + radii + float(means.min()) - lower,
        oracle_calls=n_samples + n_per_column * problem.n_occupancy_features,
    )


def _value_radius(problem: SaddlePointProblem, n_samples: int, level: float) -> float:
    """Radius of max_λ⟨slope, λ⟩; one draw of the slope is ψ_x' − (ψ_x − γψ_y)/(1−γ).

    The maximum is at most R times the 2-norm, R the largest ‖λ‖₂, and at most b times the 1-norm, b the largest |λ_k|.
    By the first its deviation is small in expectation; by the lesser of the two no draw moves it far from that.
    """
    n_features, domain = problem.n_value_features, problem.value_set
    row_l1 = min(problem.value_features.row_l1_bound, n_features)
    spread = 2 / (1 - problem.discount)
    expected = domain.radius(n_features) * spread * sqrt(row_l1)  # entries are at most one, so ‖ψ‖₂² ≤ ‖ψ‖₁
    most = min(expected, domain.bound * spread * row_l1)
    return (expected + most * sqrt(2 * level)) / sqrt(n_samples)


class _Sampler:
    """Draws of one problem at one point, in batches."""

    def __init__(
        self, problem: SaddlePointProblem, model: GenerativeModel, point: SaddlePoint, rng: np.random.Generator
    ) -> None:
        self.problem, self.model, self.point, self.rng = problem, model, point, rng
        function: Any = problem.value_features.function(point.value_weights)
        finite = problem.value_features.is_finite
        self._function = function.__getitem__ if finite else function
        self.value_range = float(np.ptp(function)) if finite else 2 * problem.value_bound
        discount = problem.discount
        self.advantage_range = 2 * problem.cost_bound + (1 + discount) * self.value_range / (1 - discount)

    def values(self, states: NDArray[Any]) -> FloatArray:
        """u_λ of a batch of states."""
        return np.asarray(self._function(self.model.observe(states)))

    def row_sum(self, states: NDArray[Any]) -> FloatArray:
        """Σ ψ_x over a batch of states, (n_u,)."""
        return self.problem.value_features.row_sum(self.model.observe(states))

    def pairs(self, columns: IntArray) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
        """Draw a pair from each column and its successor; return both states and the costs."""
        states, actions = self.problem.occupancy_features.sample(columns, self.rng)
        after = self.model.sample_next(states, actions, self.rng)
        costs = self.problem.costs.rows(self.model.observe(states), actions, self.model.is_absorbing(states))
        return states, after, costs

    def averages(self, n_samples: int) -> tuple[FloatArray, FloatArray, float]:
        """Sample means of the slope, of Cᵀμ_θ − ρ̂, and of ⟨ν₀, u_λ⟩."""
        discount, theta = self.problem.discount, self.point.occupancy_weights
        slope = np.zeros(self.problem.n_value_features)
        costs = np.zeros(self.problem.n_costs)
        value = 0.0
        for size in _batches(n_samples):
            first = self.model.sample_initial(size, self.rng)
            states, after, pair_costs = self.pairs(self.rng.choice(theta.size, size=size, p=theta))
            slope += self.row_sum(first) - (self.row_sum(states) - discount * self.row_sum(after)) / (1 - discount)
            costs += pair_costs.sum(axis=0)
            value += float(self.values(first).sum())
        excess = costs / n_samples - self.problem.expert_features
        return slope / n_samples, excess, value / n_samples

    def columns(self, n_per_column: int) -> tuple[FloatArray, FloatArray]:
        """Sample mean and variance of c_w − (u(x) − γu(y))/(1−γ) under every column of Φ."""
        discount = self.problem.discount
        n_columns = self.problem.n_occupancy_features
        means, variances = np.empty(n_columns), np.empty(n_columns)
        per_batch = max(1, _BATCH // n_per_column)
        for start in range(0, n_columns, per_batch):
            block = np.arange(start, min(start + per_batch, n_columns))
            states, after, pair_costs = self.pairs(np.repeat(block, n_per_column))
            drop = (self.values(states) - discount * self.values(after)) / (1 - discount)
            draws = (pair_costs @ self.point.cost_weights - drop).reshape(block.size, n_per_column)
            means[block] = draws.mean(axis=1)
            variances[block] = draws.var(axis=1, ddof=1)
        return means, variances


def _batches(total: int) -> list[int]:
    full, rest = divmod(total, _BATCH)
    return [_BATCH] * full + ([rest] if rest else [])
