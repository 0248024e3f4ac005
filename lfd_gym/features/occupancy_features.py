"""Occupancy features Φ: distributions over state-action pairs whose mixtures μ_θ = Φθ replace the occupancy measure.

Every column φ_i is a probability distribution over pairs, so μ_θ is one for every θ in the simplex. What a solver needs
of Φ is a way to *draw* a pair from a named column (`OccupancyFeatures`); over finite spaces the columns are also known
as numbers, (S·A, n_μ), and the products Φθ (``combine``) and Φᵀf (``inner``) are available.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from lfd_gym.arguments import checked
from lfd_gym.features.value_features import cell_labels
from lfd_gym.model.generative_model import AliasTable
from lfd_gym.model.mdp import FiniteMDP, policy_from_occupancy
from lfd_gym.policies.tiles import TileGrid, TilePolicy
from lfd_gym.validation import (
    FloatArray,
    IntArray,
    batch_of_numbers,
    check_type,
    checked_sparse,
    count,
    discount_factor,
    finite_array,
    indices_below,
)

_ROUNDING = 1e-8
#: Divided by less than this, numbers overflow.
_SMALLEST = np.finfo(float).tiny


class NoPolicyError(TypeError):
    """Features that can be drawn from, but do not say π_θ(a|x)."""


class OccupancyFeatures(ABC):
    """Distributions over pairs. A class of your own defines ``n_features``, ``sample`` and, if it can, ``policy``.

    Attributes
    ----------
    n_features
        n_μ, the number of columns.
    """

    n_features: int
    #: Whether states and actions are finitely many, and the features are a `FiniteOccupancyFeatures`.
    is_finite: ClassVar[bool] = False

    @abstractmethod
    def sample(self, indices: IntArray, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw one pair from each of the columns named by ``indices``: batches of states and of actions."""

    def policy(self, weights: FloatArray) -> Any:
        """π_θ(a|x) ∝ μ_θ(x, a): an (S, A) array over finite spaces, else a policy of observations."""
        raise NoPolicyError(f"{self} can only be drawn from, so the policy of their mixtures is not known")


class FiniteOccupancyFeatures(OccupancyFeatures):
    """Φ over a finite space, given as numbers.

    Parameters
    ----------
    matrix
        (S·A, n_μ) dense or sparse; every column is a probability distribution over pairs (x, a), row ``x * A + a``.
        Stored as CSC; columns are rescaled to sum to one to rounding.
    n_actions
        A.

    Examples
    --------
    >>> import numpy as np
    >>> features = FiniteOccupancyFeatures(np.array([[0.5, 0.0], [0.5, 0.0], [0.0, 1.0], [0.0, 0.0]]), n_actions=2)
    >>> features.combine(np.array([0.5, 0.5]))
    array([[0.25, 0.25],
           [0.5 , 0.  ]])
    """

    is_finite: ClassVar[bool] = True
    #: Whether Φ = I.
    is_tabular: ClassVar[bool] = False
    n_states: int
    n_actions: int

    @checked
    def __init__(self, matrix: Any, n_actions: int) -> None:
        self._matrix = _distribution_columns("matrix", matrix)
        n_pairs, self.n_features = self._matrix.shape
        if n_actions < 1 or n_pairs % n_actions != 0:
            raise ValueError(f"matrix must have S*A rows with A = n_actions = {n_actions}, got {n_pairs} rows")
        self.n_actions = n_actions
        self.n_states = n_pairs // n_actions

    @property
    def matrix(self) -> sp.csc_array:
        """Φ, (S·A, n_μ)."""
        return self._matrix

    @cached_property
    def table(self) -> AliasTable:
        """Alias table with one row per column of Φ; its outcomes are pairs x·A + a. For solver kernels."""
        return AliasTable(self.matrix.indptr, self.matrix.indices, self.matrix.data)

    @checked
    def sample(self, indices: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw one pair from each named column."""
        pairs = self.table.sample(indices_below("indices", indices, self.n_features), rng)
        return pairs // self.n_actions, pairs % self.n_actions

    def combine(self, weights: FloatArray) -> FloatArray:
        """μ_θ = Φθ, (S, A)."""
        return np.asarray(self.matrix @ weights).reshape(self.n_states, self.n_actions)

    def inner(self, pair_values: FloatArray) -> FloatArray:
        """Φᵀf: the mean under every column of ``pair_values``, (S·A,) or (S·A, k)."""
        return np.asarray(self.matrix.T @ pair_values)

    def policy(self, weights: FloatArray) -> FloatArray:
        """π_θ(a|x) ∝ μ_θ(x, a), (S, A); uniform where μ_θ vanishes."""
        return policy_from_occupancy(self.combine(weights))

    def __repr__(self) -> str:
        return f"FiniteOccupancyFeatures(n_features={self.n_features}, n_states={self.n_states})"


class TabularOccupancyFeatures(FiniteOccupancyFeatures):
    """Φ = I: column x·A + a is the point mass on the pair (x, a), so θ is the occupancy itself. Never materialised."""

    is_tabular: ClassVar[bool] = True

    @checked
    def __init__(self, n_states: int, n_actions: int) -> None:
        self.n_states = n_states
        self.n_actions = n_actions
        self.n_features = n_states * n_actions

    @property
    def matrix(self) -> sp.csc_array:
        """The sparse identity, built when asked for."""
        return sp.eye_array(self.n_features, format="csc")

    @checked
    def sample(self, indices: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return the pairs themselves; ``rng`` is not used."""
        pairs = indices_below("indices", indices, self.n_features)
        return pairs // self.n_actions, pairs % self.n_actions

    def combine(self, weights: FloatArray) -> FloatArray:
        """θ as an (S, A) array."""
        return weights.reshape(self.n_states, self.n_actions)

    def inner(self, pair_values: FloatArray) -> FloatArray:
        """Return ``pair_values`` itself."""
        return pair_values

    def __repr__(self) -> str:
        return f"TabularOccupancyFeatures(n_states={self.n_states}, n_actions={self.n_actions})"


class EmpiricalOccupancyFeatures(OccupancyFeatures):
    """Φ whose columns are weighted empirical distributions: pairs drawn with replacement from pools of samples.

    Works over any state space: only draws are needed. Column i gives the pair ``(states[i][k], actions[i][k])`` the
    probability ``weights[i][k]``.

    Parameters
    ----------
    states, actions
        One batch of states and one of actions for every column.
    weights
        One nonnegative vector for every column, rescaled to sum to one; uniform if not given. For a rollout, γ^t makes
        the column an estimate of the discounted occupancy measure.
    """

    @checked
    def __init__(
        self,
        states: Sequence[ArrayLike],
        actions: Sequence[ArrayLike],
        weights: Sequence[ArrayLike] | None = None,
    ) -> None:
        sizes = [np.size(batch) and len(np.atleast_1d(batch)) for batch in states]
        if not sizes or min(sizes) == 0:
            raise ValueError("states must hold at least one column, and every column at least one pair")
        if min(map(np.ndim, [*states, *actions])) == 0:
            raise ValueError("states and actions must hold batches, got single numbers")
        if weights is not None and len(weights) != len(sizes):
            raise ValueError(f"weights must hold {len(sizes)} columns, as states do, got {len(weights)}")
        if [len(np.asarray(batch)) for batch in actions] != sizes:
            raise ValueError(f"actions must hold batches of the same sizes as states, {sizes}")
        self.states = np.concatenate([np.asarray(batch) for batch in states])
        self.actions = np.concatenate([np.asarray(batch) for batch in actions])
        for name, pairs in (("states", self.states), ("actions", self.actions)):
            if batch_of_numbers(name, pairs).dtype.kind == "f" and np.isnan(pairs).any():
                raise ValueError(f"{name} must be finite, got nan")
        self.n_features = len(sizes)
        masses = [_column_weights(i, size, weights) for i, size in enumerate(sizes)]
        self.offsets = np.concatenate([[0], np.cumsum(sizes)])
        self.weights = np.concatenate(masses)
        self._table = AliasTable(self.offsets, np.arange(self.offsets[-1]), self.weights)

    @checked
    def sample(self, indices: IntArray, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw one stored pair from each named column."""
        drawn = self._table.sample(indices_below("indices", indices, self.n_features), rng)
        return self.states[drawn], self.actions[drawn]

    def to_finite(self, n_states: int, n_actions: int) -> FiniteOccupancyFeatures:
        """Over a finite space: the same columns as numbers."""
        columns = np.repeat(np.arange(self.n_features), np.diff(self.offsets))
        states = indices_below("states", self.states, n_states)
        rows = states * n_actions + indices_below("actions", self.actions, n_actions)
        shape = (n_states * n_actions, self.n_features)
        return FiniteOccupancyFeatures(sp.csc_array((self.weights, (rows, columns)), shape=shape), n_actions)

    def __repr__(self) -> str:
        return f"EmpiricalOccupancyFeatures(n_features={self.n_features}, n_pairs={self.offsets[-1]})"


class TileOccupancyFeatures(OccupancyFeatures):
    """Φ over a box of states and finitely many actions: column g·A + a is uniform over tile g, with action a.

    The density of μ_θ is constant on tiles, so the policy π_θ is a table over tiles.

    Parameters
    ----------
    grid
        The tiles, over *states* of the generative model.
    n_actions
        A.
    absorbing
        Whether episodes can end. Then one more column, the last, is the point mass on the absorbing state (a row of
        NaN, action 0): occupancy measures put the discounted time after the end there.
    """

    @checked
    def __init__(self, grid: TileGrid, n_actions: int, absorbing: bool) -> None:
        self.grid = grid
        self.n_actions = n_actions
        self.absorbing = absorbing
        self.n_features = grid.n_tiles * n_actions + int(absorbing)

    @checked
    def sample(self, indices: IntArray, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Draw one pair from each named column."""
        chosen = indices_below("indices", indices, self.n_features)
        ended = chosen == self.grid.n_tiles * self.n_actions
        columns = np.where(ended, 0, chosen)
        states = self.grid.sample(columns // self.n_actions, rng)
        states[ended] = np.nan
        return states, columns % self.n_actions

    def policy(self, weights: FloatArray) -> TilePolicy:
        """π_θ(a|x) ∝ μ_θ(x, a); uniform where μ_θ vanishes."""
        masses = weights[: self.grid.n_tiles * self.n_actions].reshape(-1, self.n_actions)
        return TilePolicy(self.grid, policy_from_occupancy(masses))

    def __repr__(self) -> str:
        return f"TileOccupancyFeatures(n_features={self.n_features}, n_actions={self.n_actions})"


@checked
def policy_occupancies(mdp: FiniteMDP, policies: Sequence[ArrayLike]) -> FiniteOccupancyFeatures:
    """Columns μ_π of the given (S, A) policies, exact; their mixtures satisfy the Bellman flow constraints."""
    check_type("mdp", mdp, FiniteMDP)
    if len(policies) == 0:
        raise ValueError("policies must hold at least one policy")
    columns = [mdp.occupancy(policy).ravel() for policy in policies]
    return FiniteOccupancyFeatures(np.stack(columns, axis=1), mdp.n_actions)


@checked
def rollout_occupancies(
    state_rollouts: Sequence[Sequence[ArrayLike]], action_rollouts: Sequence[Sequence[ArrayLike]], discount: float
) -> EmpiricalOccupancyFeatures:
    """Return one column for each group of rollouts: the empirical discounted occupancy, step t weighted by γ^t.

    Parameters
    ----------
    state_rollouts, action_rollouts
        For each column a sequence of trajectories; each is a batch of states (or actions) in the order of time, as
        many states as actions.
    discount
        γ. A rollout of horizon h leaves out the mass γ^h; the column is rescaled to sum to one.
    """
    discount_factor("discount", discount)
    if [len(group) for group in state_rollouts] != [len(group) for group in action_rollouts]:
        raise ValueError("action_rollouts must hold as many columns and trajectories as state_rollouts")
    for state_group, action_group in zip(state_rollouts, action_rollouts, strict=True):
        if [np.shape(batch)[:1] for batch in state_group] != [np.shape(batch)[:1] for batch in action_group]:
            raise ValueError("action_rollouts must hold as many actions in every trajectory as state_rollouts states")
    weights = [
        np.concatenate([discount ** np.arange(len(np.asarray(actions))) for actions in group])
        for group in action_rollouts
    ]
    states = [np.concatenate([np.asarray(batch) for batch in group]) for group in state_rollouts]
    actions = [np.concatenate([np.asarray(batch) for batch in group]) for group in action_rollouts]
    return EmpiricalOccupancyFeatures(states, actions, weights)


@checked
def aggregated_occupancies(cells: ArrayLike, n_actions: int) -> FiniteOccupancyFeatures:
    """State aggregation: column k·A + a is uniform over the states of cell k, with action a."""
    labels = cell_labels("cells", cells)
    memberships = sp.csc_array((np.ones(labels.size), (np.arange(labels.size), labels)))
    return soft_occupancies(memberships, n_actions)


@checked
def soft_occupancies(memberships: Any, n_actions: int) -> FiniteOccupancyFeatures:
    """Soft aggregation: column k·A + a draws the state in proportion to ``memberships[:, k]`` and takes action a.

    ``memberships``: (S, K) nonnegative, dense or sparse; columns are rescaled to sum to one.
    """
    masses: sp.csc_array = sp.csc_array(checked_sparse("memberships", memberships), dtype=np.float64)
    totals = np.asarray(masses.sum(axis=0)).ravel()
    if (masses.data < 0).any() or not (np.isfinite(totals).all() and (totals >= _SMALLEST).all()):
        raise ValueError("memberships must be nonnegative and finite, with a positive entry in every column")
    count("n_actions", n_actions)
    states = masses @ sp.diags_array(1 / totals)
    return FiniteOccupancyFeatures(sp.kron(states, sp.eye_array(n_actions), format="csc"), n_actions)


def _column_weights(column: int, size: int, weights: Sequence[ArrayLike] | None) -> FloatArray:
    if weights is None:
        return np.full(size, 1 / size)
    masses = finite_array(f"weights[{column}]", weights[column], (size,))
    if (masses < 0).any() or masses.sum() <= 0:
        raise ValueError(f"weights[{column}] must be nonnegative and not all zero")
    return np.asarray(masses / masses.sum())


def _distribution_columns(name: str, matrix: Any) -> sp.csc_array:
    columns: sp.csc_array = sp.csc_array(checked_sparse(name, matrix), dtype=np.float64, copy=True)
    if columns.ndim != 2 or columns.shape[1] == 0:
        raise ValueError(f"{name} must have shape (S*A, n_features) with at least one feature, got {columns.shape}")
    columns.sum_duplicates()
    if not np.isfinite(columns.data).all():
        raise ValueError(f"{name} must be finite")
    if (columns.data < 0).any():
        raise ValueError(f"{name} must be nonnegative, got {columns.data.min()}")
    totals = np.asarray(columns.sum(axis=0)).ravel()
    worst = int(np.argmax(np.abs(totals - 1)))
    if abs(totals[worst] - 1) > _ROUNDING:
        raise ValueError(f"{name} must have columns that sum to 1, got {totals[worst]} in column {worst}")
    columns.eliminate_zeros()
    columns.data /= np.repeat(totals, np.diff(columns.indptr))
    return columns
