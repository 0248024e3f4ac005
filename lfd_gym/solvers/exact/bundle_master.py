"""The small problems between planner calls of the cutting-plane method.

g(w) = min_π ⟨w, ρ(π) − ρ⟩ is concave and piecewise linear in the n_c weights. Each planner call at w yields a policy
and with it a *cut*: the row d = ρ(π) − ρ, an upper bound ⟨w', d⟩ ≥ g(w') for every w'. With the cuts D, (K, n_c):

- the model ĝ(w) = min_k ⟨w, d_k⟩ is maximised over the class; its maximum is the least distance max_w ⟨w, Dᵀλ⟩ of a
  mixture λ of the policies, an upper bound of α* that the mixture attains (minimax);
- at weights w_k that were queried, ĝ(w_k) is g(w_k) itself if the policy found there is optimal. The largest of these
  is taken for a lower bound of α*, and its weights for the best, until the planner certifies them;
- the next weights are the point nearest to the best ones among those with ĝ(w) ≥ level (the level bundle method): the
  model's maximiser alone jumps about and needs several times as many calls. Over the simplex, where `curvature` can
  be trusted, they are the point nearest to the peak of the quadratic model instead, in its own metric. Over sets of
  which only the support function is known, they lie on the way from the best ones to the model's maximiser.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import singledispatch

import numpy as np

from lfd_gym._jit import jit
from lfd_gym.costs.sets import Ball, ConvexSet, Simplex
from lfd_gym.solvers.exact.curvature import QuadraticModel, Trust, fit_curvature
from lfd_gym.solvers.exact.matrix_game import game_prices, initial_basis, solve_game
from lfd_gym.solvers.exact.polyhedron_projection import least_distance, min_norm_weights
from lfd_gym.validation import FloatArray

_MAX_PIVOTS = 10_000
_BISECTIONS = 10
# The level, as a share of the gap. With a quadratic model: a little more than it predicts, but not too much, because
# it is the cuts around the maximum that lower the upper bound.
_LEVEL = 0.55
_LEVEL_ABOVE_PEAK = 0.1
_HIGHEST_CURVED_LEVEL = 0.4
# With 20 weights curvature saves no calls any more; with 100, to fit it takes as long as the planner at 64² states.
_MOST_CURVED_WEIGHTS = 20
# For sets known by their support function: how often weights are added to a game, and how little they may change its
# value, as a share of the gap and absolutely, to be left out.
_MAX_ROUNDS = 100
_ROUND_SHARE = 0.3
_ROUNDING = 1e-12


class BundleMaster(ABC):
    """The model of g over one set of weights.

    Parameters
    ----------
    first_weights
        Where to begin.
    floor
        What max g is known to be at least: 0 if w = 0 belongs to the set, for there g is 0.

    Attributes
    ----------
    upper_bound
        The maximum of the model.
    mixture
        λ, (K,): how to mix the policies of the cuts to attain it.
    best_weights
        The weights with the largest model value among those that were queried; before, where to begin.
    """

    def __init__(self, first_weights: FloatArray, floor: float = -np.inf) -> None:
        self.floor = floor
        self.upper_bound = np.inf
        self.mixture = np.empty(0)
        self.best_weights = first_weights
        self._cuts = _Rows(first_weights.size)
        self._queried = _Rows(first_weights.size)
        self._values = np.empty(0)

    def add(self, weights: FloatArray, cut: FloatArray) -> None:
        """Take in the row ρ(π) − ρ of the policy π found at ``weights``."""
        self._cuts.append(cut)
        others = np.minimum(self._values, self._queried.rows @ cut)
        self._queried.append(weights)
        self._values = np.append(others, (self._cuts.rows @ weights).min())
        self._best = int(self._values.argmax())
        self.best_weights = self._queried.rows[self._best].copy()
        self.upper_bound, self.mixture = self._best_mixture()

    @property
    def lower_bound(self) -> float:
        """An estimate of max g from below: the model value of the best weights, if it is more than the floor."""
        return max(float(self._values[self._best]), self.floor) if self._values.size else self.floor

    @property
    def gap(self) -> float:
        """upper_bound − lower_bound."""
        return self.upper_bound - self.lower_bound

    @abstractmethod
    def next_weights(self) -> FloatArray:
        """Return where to call the planner next; not finite if floating point does not allow better."""

    @abstractmethod
    def _best_mixture(self) -> tuple[float, FloatArray]:
        """Return the maximum of the model and the mixture that attains it."""


class _Rows:
    """Rows in an array that doubles when it is full."""

    def __init__(self, size: int) -> None:
        self._storage = np.empty((32, size))
        self._count = 0

    def append(self, row: FloatArray) -> None:
        if self._count == len(self._storage):
            self._storage = np.concatenate([self._storage, np.empty_like(self._storage)])
        self._storage[self._count] = row
        self._count += 1

    @property
    def rows(self) -> FloatArray:
        return self._storage[: self._count]


class SimplexMaster(BundleMaster):
    """w in the simplex: the mixture is a matrix game, the next weights a projection onto a polyhedron."""

    def __init__(self, n_costs: int) -> None:
        super().__init__(np.full(n_costs, 1 / n_costs))
        self._basis = np.empty(0, dtype=np.int64)
        # Columns: an orthonormal basis of the directions that keep the sum of the weights.
        basis = np.linalg.qr(np.eye(n_costs) - 1 / n_costs)[0]
        self._plane = np.ascontiguousarray(basis[:, : n_costs - 1])
        self._quadratic: QuadraticModel | None = None
        self._trust = Trust()

    def add(self, weights: FloatArray, cut: FloatArray) -> None:
        """Take in a new cut, and judge the quadratic model by it."""
        if self._basis.size == 0:
            self._basis = initial_basis(cut)
        if self._quadratic is not None:
            cut_model = float((self._cuts.rows @ weights).min())
            self._trust.judge(self._quadratic(weights), cut_model, float(cut @ weights))
        super().add(weights, cut)
        if 1 < weights.size <= _MOST_CURVED_WEIGHTS:
            self._quadratic = fit_curvature(
                self._queried.rows, self._cuts.rows, self._best, self.lower_bound, self._plane
            )

    def _best_mixture(self) -> tuple[float, FloatArray]:
        """Solve the matrix game of the cuts."""
        mixture = solve_game(self._cuts.rows, self._basis, _MAX_PIVOTS)
        return float((mixture @ self._cuts.rows).max()), mixture

    def next_weights(self) -> FloatArray:
        """Project the best weights, or the peak of the quadratic model, onto the weights above the level."""
        if self._values.size == 0 or self.best_weights.size == 1:
            return self.best_weights
        if self._quadratic is not None and self._trust:
            weights = self._curved_step(self._quadratic)
            if weights is not None:
                return weights
        return self._above(self.lower_bound + _LEVEL * self.gap, self.best_weights, self._plane)

    def _curved_step(self, quadratic: QuadraticModel) -> FloatArray | None:
        """Return the weights above a level that are nearest to the peak, or nothing if rounding does not allow it."""
        peak = quadratic.peak
        if (self._cuts.rows @ peak).min() < self.lower_bound:  # the cuts know better
            peak = quadratic.centre
        predicted = min(quadratic.rise / self.gap, 1.0)
        share = min(predicted + _LEVEL_ABOVE_PEAK * (1 - predicted), _HIGHEST_CURVED_LEVEL)
        level = self.lower_bound + share * self.gap
        weights = self._above(level, peak, quadratic.directions / np.abs(quadratic.directions).max())
        reached = float((self._cuts.rows @ weights).min())
        return weights if reached - self.lower_bound >= 0.5 * (level - self.lower_bound) else None

    def _above(self, level: float, point: FloatArray, directions: FloatArray) -> FloatArray:
        """Return the weights with a model value of at least ``level`` that are nearest to ``point``."""
        weights = np.maximum(_project_in_simplex(point, directions, self._cuts.rows, level), 0.0)
        total = weights.sum()
        return weights / total if total > 0 else np.full_like(weights, np.nan)


class BallMaster(BundleMaster):
    """w in the unit l2 ball: the mixture is the point of least norm in the hull of the cuts (Abbeel & Ng).

    g is positively homogeneous, so every query can be made at norm one; at w = 0 it is 0, without a query.
    """

    def __init__(self, n_costs: int) -> None:
        super().__init__(np.full(n_costs, 1 / np.sqrt(n_costs)), floor=0.0)

    def _best_mixture(self) -> tuple[float, FloatArray]:
        """Find the point of least norm in the hull of the cuts."""
        mixture = min_norm_weights(self._cuts.rows)
        return float(np.linalg.norm(mixture @ self._cuts.rows)), mixture

    def next_weights(self) -> FloatArray:
        """Project the best weights onto the weights of the ball above the level; scale to norm 1."""
        if self._values.size == 0:
            return self.best_weights
        centre = self.best_weights if self._values[self._best] > 0 else np.zeros_like(self.best_weights)
        weights = _project_in_ball(centre, self._cuts.rows, self.lower_bound + _LEVEL * self.gap)
        return np.asarray(weights / np.linalg.norm(weights))


class HullMaster(BundleMaster):
    """w in any convex set of which the support function and its maximisers are known.

    The mixture is a matrix game against the maximisers found so far, and one more, until another would not change its
    value (a double oracle). Next weights lie between the best ones and those that the game answers with.
    """

    def __init__(self, weights: ConvexSet, n_costs: int) -> None:
        centre = weights.centre(n_costs)
        first = centre if centre.any() else weights.maximiser(np.ones(n_costs))
        super().__init__(first, floor=-np.inf if weights.project(np.zeros(n_costs)).any() else 0.0)
        self._set = weights
        self._rounding = _ROUNDING * max(1.0, weights.radius(n_costs))
        self._generators = first[None]
        self._answer = first
        self._expected = np.inf
        self._step = _LEVEL

    def add(self, weights: FloatArray, cut: FloatArray) -> None:
        """Take in a new cut; where it is no news to the model, the model's maximiser is worth a call."""
        self._step = 1.0 if float(cut @ weights) >= self._expected - self._rounding else _LEVEL
        super().add(weights, cut)

    def _best_mixture(self) -> tuple[float, FloatArray]:
        cuts = self._cuts.rows
        best, mixture = np.inf, np.empty(0)
        for _ in range(_MAX_ROUNDS):
            game = cuts @ self._generators.T
            first = int(game.max(axis=1).argmin())
            basis = initial_basis(game[first], first)
            weights = solve_game(game, basis, _MAX_PIVOTS)
            difference = weights @ cuts
            upper, value = float(self._set.support(difference)), float((weights @ game).max())
            if upper < best:
                best, mixture = upper, weights
            if upper - value <= max(_ROUND_SHARE * (value - self.lower_bound), self._rounding):
                break
            self._generators = np.vstack([self._generators, self._set.maximiser(difference)])
        prices = game_prices(game, basis)
        self._answer = prices @ self._generators[: prices.size]
        self._generators = self._generators[: prices.size][prices > 0]  # the others are found again when they matter
        return best, mixture

    def next_weights(self) -> FloatArray:
        """Go from the best weights to the model's maximiser, most of the way or all of it."""
        if self._values.size == 0:
            return self.best_weights
        weights = self.best_weights + self._step * (self._answer - self.best_weights)
        self._expected = float((self._cuts.rows @ weights).min())
        return weights


@singledispatch
def bundle_master(weights: ConvexSet, n_costs: int) -> BundleMaster:
    """Return the master of a set of weights."""
    return HullMaster(weights, n_costs)


@bundle_master.register
def _(weights: Simplex, n_costs: int) -> BundleMaster:
    return SimplexMaster(n_costs)


@bundle_master.register
def _(weights: Ball, n_costs: int) -> BundleMaster:
    return BallMaster(n_costs) if weights == Ball() else HullMaster(weights, n_costs)


@jit
def _project_in_simplex(centre: FloatArray, directions: FloatArray, cuts: FloatArray, level: float) -> FloatArray:
    """Project onto {w ≥ 0, Σw = 1, cuts·w ≥ level}, as w = centre + directions·y."""
    normals = np.concatenate((directions, cuts @ directions))
    offsets = np.concatenate((-centre, level - cuts @ centre))
    _normalise(normals, offsets)
    return centre + directions @ least_distance(normals, offsets)


@jit
def _project_in_ball(centre: FloatArray, cuts: FloatArray, level: float) -> FloatArray:
    """Project onto {‖w‖ ≤ 1, cuts·w ≥ level}.

    By the multiplier of the norm, the projection is the point of the polyhedron nearest to t·centre for the largest t
    in [0, 1] that keeps its norm at most one. The weights only say where to call the planner: a rough t will do.
    """
    nearest = _nearest_above(centre, cuts, level)
    if np.linalg.norm(nearest) <= 1.0:
        return nearest
    nearest = _nearest_above(np.zeros_like(centre), cuts, level)
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        candidate = _nearest_above(middle * centre, cuts, level)
        if np.linalg.norm(candidate) <= 1.0:
            nearest = candidate
            low = middle
        else:
            high = middle
    return nearest


@jit
def _nearest_above(point: FloatArray, cuts: FloatArray, level: float) -> FloatArray:
    """Project onto {cuts·w ≥ level}."""
    normals = cuts.copy()
    offsets = level - cuts @ point
    _normalise(normals, offsets)
    return point + least_distance(normals, offsets)


@jit
def _normalise(normals: FloatArray, offsets: FloatArray) -> None:
    """Scale the rows of normals·y ≥ offsets to norm one; rows that are zero to rounding constrain nothing."""
    for row in range(offsets.size):
        norm = np.linalg.norm(normals[row])
        if norm > 1e-14:
            normals[row] /= norm
            offsets[row] /= norm
        else:
            normals[row] = 0.0
            offsets[row] = 0.0
