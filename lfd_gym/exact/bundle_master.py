"""The small problems between planner calls of the cutting-plane method.

g(w) = min_π ⟨w, ρ(π) − ρ⟩ is concave and piecewise linear in the n_c weights. Each planner call at w yields a policy
and with it a *cut*: the row d = ρ(π) − ρ, an upper bound ⟨w', d⟩ ≥ g(w') for every w'. With the cuts D, (K, n_c):

- the model ĝ(w) = min_k ⟨w, d_k⟩ is maximised over the class; its maximum is the least distance max_w ⟨w, Dᵀλ⟩ of a
  mixture λ of the policies, an upper bound of α* that the mixture attains (minimax);
- the next weights are the point nearest to the best weights so far among those with ĝ(w) ≥ level (the level bundle
  method): the model's maximiser alone jumps about and needs several times as many calls.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from lfd_gym._jit import jit
from lfd_gym.costs import CostClass
from lfd_gym.exact.matrix_game import initial_basis, solve_game
from lfd_gym.exact.polyhedron_projection import least_distance, min_norm_weights
from lfd_gym.validation import FloatArray

_MAX_PIVOTS = 10_000
_BISECTIONS = 10


class BundleMaster(Protocol):
    """The model of g over one cost class."""

    #: Where to call the planner first.
    first_weights: FloatArray
    #: A lower bound of max g that needs no planner: 0 over the ball, by w = 0.
    known_lower_bound: float

    def add(self, cut: FloatArray) -> None:
        """Take the row ρ(π) − ρ of a new policy π into the model."""
        ...

    def best_mixture(self) -> tuple[float, FloatArray]:
        """Return the maximum of the model and the mixture λ, (K,), of policies that attains it."""
        ...

    def next_weights(self, centre: FloatArray, level: float) -> FloatArray:
        """Return weights near ``centre`` whose model value is at least ``level`` (below the maximum)."""
        ...


def bundle_master(cost_class: CostClass, n_costs: int) -> BundleMaster:
    """Return the master of a cost class."""
    return SimplexMaster(n_costs) if cost_class == "simplex" else BallMaster(n_costs)


class _Cuts:
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


class SimplexMaster:
    """w in the simplex: the mixture is a matrix game, the next weights a projection onto a polyhedron."""

    def __init__(self, n_costs: int) -> None:
        self.first_weights = np.full(n_costs, 1 / n_costs)
        self.known_lower_bound = -np.inf
        self._cuts = _Cuts(n_costs)
        self._basis = np.empty(0, dtype=np.int64)
        # Columns: an orthonormal basis of the directions that keep the sum of the weights.
        basis = np.linalg.qr(np.eye(n_costs) - 1 / n_costs)[0]
        self._directions = np.ascontiguousarray(basis[:, : n_costs - 1])

    def add(self, cut: FloatArray) -> None:
        """Take a new cut into the model."""
        if self._basis.size == 0:
            self._basis = initial_basis(cut)
        self._cuts.append(cut)

    def best_mixture(self) -> tuple[float, FloatArray]:
        """Solve the matrix game of the cuts."""
        mixture = solve_game(self._cuts.rows, self._basis, _MAX_PIVOTS)
        return float((mixture @ self._cuts.rows).max()), mixture

    def next_weights(self, centre: FloatArray, level: float) -> FloatArray:
        """Project ``centre`` onto the weights of the simplex whose model value is at least ``level``."""
        if centre.size == 1:
            return centre
        weights = np.maximum(_project_in_simplex(centre, self._directions, self._cuts.rows, level), 0.0)
        return np.asarray(weights / weights.sum())


class BallMaster:
    """w in the unit l2 ball: the mixture is the point of least norm in the hull of the cuts (Abbeel & Ng).

    g is positively homogeneous, so every query can be made at norm one.
    """

    def __init__(self, n_costs: int) -> None:
        self.first_weights = np.full(n_costs, 1 / np.sqrt(n_costs))
        self.known_lower_bound = 0.0
        self._cuts = _Cuts(n_costs)

    def add(self, cut: FloatArray) -> None:
        """Take a new cut into the model."""
        self._cuts.append(cut)

    def best_mixture(self) -> tuple[float, FloatArray]:
        """Find the point of least norm in the hull of the cuts."""
        mixture = min_norm_weights(self._cuts.rows)
        return float(np.linalg.norm(mixture @ self._cuts.rows)), mixture

    def next_weights(self, centre: FloatArray, level: float) -> FloatArray:
        """Project ``centre`` onto the weights of the ball with a model value of at least ``level``; scale to norm 1."""
        weights = _project_in_ball(centre, self._cuts.rows, level)
        return np.asarray(weights / np.linalg.norm(weights))


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
