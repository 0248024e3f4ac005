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
from numpy.typing import ArrayLike, NDArray

from lfd_gym.costs.costs import check_sampled_costs, cost_distance
from lfd_gym.features.value_features import FiniteValueFeatures, TabularValueFeatures
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
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
    occupancy_weights: ArrayLike,
    value_weights: ArrayLike,
    cost_weights: ArrayLike,
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
    occupancy_weights, value_weights, cost_weights
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
    if not callable(problem.cost_features):
        check_sampled_costs("cost_features", problem.cost_features, model)
    theta, lam, w = problem.check_point(occupancy_weights, value_weights, cost_weights)
    sampler = _Sampler(problem, model, lam, w, rng)
    slope, excess, initial_value = sampler.averages(theta, n_samples)
    means, variances = sampler.columns(n_per_column)
    level = log(4 / delta)  # four events
    column_level = log(2 * 4 * problem.n_occupancy_features / delta)
    column_radii = np.sqrt(2 * variances * column_level / n_per_column) + (
        7 * sampler.advantage_range * column_level / (3 * (n_per_column - 1))
    )
    lower = float((means - column_radii).min())
    fixed = initial_value - float(sampler.cost_weights @ problem.expert_features)
    estimate = (
        problem.largest_value_gain(slope) + cost_distance(excess, problem.cost_class) - float(means.min()) - fixed
    )
    radii = _value_radius(problem, n_samples, level) + _cost_radius(problem, n_samples, delta / 4)
    radii += sampler.value_range * sqrt(level / (2 * n_samples))
    return SampledResidual(
        estimate=estimate,
        bound=estimate + radii + float(means.min()) - lower,
        oracle_calls=n_samples + n_per_column * problem.n_occupancy_features,
    )


def _value_radius(problem: SaddlePointProblem, n_samples: int, level: float) -> float:
    """Radius of max_λ⟨slope, λ⟩; one draw of the slope is ψ_x' − (ψ_x − γψ_y)/(1−γ)."""
    n_features = problem.n_value_features
    row_l1 = min(problem.value_features.row_l1_bound, n_features)
    spread = 2 / (1 - problem.discount)
    draw_l2 = spread * sqrt(row_l1)  # entries are at most one, so ‖ψ‖₂² ≤ ‖ψ‖₁
    if problem.value_domain == "ball":
        return problem.value_radius / sqrt(n_features) * draw_l2 * (1 + sqrt(2 * level)) / sqrt(n_samples)
    # In the 1-norm the expectation of the deviation is at most √n_u times that of the 2-norm.
    draw_l1 = spread * row_l1
    return problem.value_radius * (sqrt(n_features) * draw_l2 + draw_l1 * sqrt(2 * level)) / sqrt(n_samples)


def _cost_radius(problem: SaddlePointProblem, n_samples: int, delta: float) -> float:
    if problem.cost_class == "simplex":
        return sqrt(2 * log(problem.n_costs / delta) / n_samples)
    return sqrt(problem.n_costs) * (1 + sqrt(2 * log(1 / delta))) / sqrt(n_samples)


class _Sampler:
    """Draws of one problem at one (λ, w), in batches."""

    def __init__(
        self,
        problem: SaddlePointProblem,
        model: GenerativeModel,
        value_weights: FloatArray,
        cost_weights: FloatArray,
        rng: np.random.Generator,
    ) -> None:
        self.problem = problem
        self.model = model
        self.value_weights = value_weights
        self.cost_weights = cost_weights
        self.rng = rng
        features = problem.value_features
        self.finite = features if isinstance(features, FiniteValueFeatures | TabularValueFeatures) else None
        self.table = None if self.finite is None else self.finite.combine(value_weights)
        bound = 2 * problem.value_bound
        self.value_range = bound if self.table is None else float(np.ptp(self.table))
        discount = problem.discount
        self.advantage_range = 2 * problem.cost_bound + (1 + discount) * self.value_range / (1 - discount)

    def values(self, states: NDArray[Any]) -> FloatArray:
        """u_λ of a batch of states."""
        if self.table is not None:
            return np.asarray(self.table[states])
        rows = self.problem.value_features.evaluate(self.model.observe(states))
        return np.asarray(rows @ self.value_weights)

    def row_sum(self, states: NDArray[Any]) -> FloatArray:
        """Σ ψ_x over a batch of states, (n_u,)."""
        if self.finite is not None:
            return self.finite.inner(np.bincount(states, minlength=self.finite.n_states).astype(np.float64))
        return np.asarray(self.problem.value_features.evaluate(self.model.observe(states)).sum(axis=0))

    def pairs(self, columns: IntArray) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], FloatArray]:
        """Draw a pair from each column, its successor, and its costs."""
        states, actions = self.problem.occupancy_features.sample(columns, self.rng)
        after = self.model.sample_next(states, actions, self.rng)
        ended = self.model.is_absorbing(states)
        return states, actions, after, self.problem.pair_costs(self.model.observe(states), actions, ended)

    def averages(self, theta: FloatArray, n_samples: int) -> tuple[FloatArray, FloatArray, float]:
        """Sample means of the slope, of Cᵀμ_θ − ρ̂, and of ⟨ν₀, u_λ⟩."""
        discount = self.problem.discount
        slope = np.zeros(self.problem.n_value_features)
        costs = np.zeros(self.problem.n_costs)
        value = 0.0
        for size in _batches(n_samples):
            first = self.model.sample_initial(size, self.rng)
            states, _, after, pair_costs = self.pairs(self.rng.choice(theta.size, size=size, p=theta))
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
            states, _, after, pair_costs = self.pairs(np.repeat(block, n_per_column))
            drop = (self.values(states) - discount * self.values(after)) / (1 - discount)
            draws = (pair_costs @ self.cost_weights - drop).reshape(block.size, n_per_column)
            means[block] = draws.mean(axis=1)
            variances[block] = draws.var(axis=1, ddof=1)
        return means, variances


def _batches(total: int) -> list[int]:
    full, rest = divmod(total, _BATCH)
    return [_BATCH] * full + ([rest] if rest else [])
