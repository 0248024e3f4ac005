"""Value features Ψ: functions of the state whose combinations u_λ = Ψλ replace the value function.

Every column ψ_k is bounded by one in sup norm. What a solver needs of Ψ is the row ψ_x of a visited state
(`ValueFeatures`); over finite spaces the rows are a CSR matrix, (S, n_u), and the products Ψλ (``function``) and Ψᵀf
(``inner``) are available.

Functions of a continuous state take *observations* (what ``model.observe`` returns). The absorbing state is observed as
a row of NaN and has the zero row: its value is zero under every cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from lfd_gym.arguments import checked
from lfd_gym.costs.costs import Costs, model_costs
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.validation import (
    LARGEST_UNIT,
    FloatArray,
    IntArray,
    check_type,
    checked_sparse,
    finite_array,
    indices_below,
)

#: u_λ: one number for each state of a finite space, or a function of observations.
Values: TypeAlias = FloatArray | Callable[[ArrayLike], FloatArray]


class ValueFeatures(ABC):
    """Functions of the state. A class of your own defines ``n_features`` and ``evaluate``.

    Attributes
    ----------
    n_features
        n_u, the number of columns.
    """

    n_features: int
    #: Whether the space of states is finite, and the features are a `FiniteValueFeatures`.
    is_finite: ClassVar[bool] = False

    @property
    def row_l1_bound(self) -> float:
        """Upper bound of ‖ψ_x‖₁ over the states: |u_λ(x)| ≤ row_l1_bound·max_k |λ_k|."""
        return float(self.n_features)

    @abstractmethod
    def evaluate(self, observations: ArrayLike) -> FloatArray:
        """Return the rows ψ_x of a batch, (n, n_u)."""

    def rows(self, observations: ArrayLike) -> Any:
        """Return the rows ψ_x of a batch, sparse over finite spaces."""
        return self.evaluate(observations)

    def row_sum(self, observations: ArrayLike) -> FloatArray:
        """Σ ψ_x over a batch, (n_u,)."""
        return np.asarray(self.evaluate(observations).sum(axis=0))

    def function(self, weights: FloatArray) -> Values:
        """u_λ = Ψλ: an (S,) array over a finite space, else a function of observations."""
        return LinearValues(self, weights)


@dataclass(frozen=True, eq=False, repr=False)
class LinearValues:
    """The function u_λ = Σ_k λ_k ψ_k of observations."""

    features: ValueFeatures
    weights: FloatArray

    def __call__(self, observations: ArrayLike) -> FloatArray:
        """Return the values of a batch, (n,)."""
        return np.asarray(self.features.evaluate(observations) @ self.weights)

    def __repr__(self) -> str:
        return f"LinearValues({self.features})"


class FiniteValueFeatures(ValueFeatures):
    """Ψ over a finite space, given as numbers.

    Parameters
    ----------
    matrix
        (S, n_u) dense or sparse, entries in [−1, 1]; row x is ψ_x. Stored as CSR.
    """

    is_finite: ClassVar[bool] = True
    #: Whether Ψ = I.
    is_tabular: ClassVar[bool] = False
    n_states: int

    @checked
    def __init__(self, matrix: Any) -> None:
        rows: sp.csr_array = sp.csr_array(checked_sparse("matrix", matrix), dtype=np.float64, copy=True)
        if rows.ndim != 2 or rows.shape[1] == 0:
            raise ValueError(f"matrix must have shape (S, n_features) with at least one feature, got {rows.shape}")
        rows.sum_duplicates()
        rows.eliminate_zeros()
        if not np.isfinite(rows.data).all():
            raise ValueError("matrix must be finite")
        if rows.nnz and np.abs(rows.data).max() > LARGEST_UNIT:
            column = int(rows.indices[np.argmax(np.abs(rows.data))])
            raise ValueError(f"matrix must lie in [-1, 1], but column {column} reaches {np.abs(rows.data).max()}")
        self._matrix = rows
        self.n_states, self.n_features = rows.shape

    @property
    def matrix(self) -> sp.csr_array:
        """Ψ, (S, n_u)."""
        return self._matrix

    @property
    def row_l1_bound(self) -> float:
        """max_x ‖ψ_x‖₁, exact."""
        return float(abs(self.matrix).sum(axis=1).max())

    @checked
    def evaluate(self, observations: ArrayLike) -> FloatArray:
        """Return the rows of the given states, dense."""
        return np.asarray(self.rows(observations).toarray())

    def rows(self, observations: ArrayLike) -> sp.csr_array:
        """Return the rows of the given states, sparse."""
        return self.matrix[indices_below("observations", observations, self.n_states)]

    def row_sum(self, observations: ArrayLike) -> FloatArray:
        """Σ ψ_x over a batch of states, (n_u,)."""
        states = indices_below("observations", observations, self.n_states)
        return self.inner(np.bincount(states, minlength=self.n_states).astype(np.float64))

    def function(self, weights: FloatArray) -> FloatArray:
        """u_λ = Ψλ, (S,)."""
        return np.asarray(self.matrix @ weights)

    def inner(self, state_values: FloatArray) -> FloatArray:
        """Ψᵀf, (n_u,), of a function or measure on the states."""
        return np.asarray(self.matrix.T @ state_values)

    def __repr__(self) -> str:
        return f"FiniteValueFeatures(n_features={self.n_features}, n_states={self.n_states})"


class TabularValueFeatures(FiniteValueFeatures):
    """Ψ = I: feature x is the indicator of state x, so λ is the value function itself. Never materialised."""

    is_tabular: ClassVar[bool] = True
    row_l1_bound = 1.0

    @checked
    def __init__(self, n_states: int) -> None:
        self.n_states = n_states
        self.n_features = n_states

    @property
    def matrix(self) -> sp.csr_array:
        """The sparse identity, built when asked for."""
        return sp.eye_array(self.n_states, format="csr")

    @checked
    def evaluate(self, observations: ArrayLike) -> FloatArray:
        """Return one-hot rows, dense."""
        states = indices_below("observations", observations, self.n_states)
        if states.ndim != 1:
            raise ValueError(f"observations must be a batch of states, got shape {states.shape}")
        rows = np.zeros((states.size, self.n_states))
        rows[np.arange(states.size), states] = 1.0
        return rows

    def function(self, weights: FloatArray) -> FloatArray:
        """Return ``weights`` itself."""
        return weights

    def inner(self, state_values: FloatArray) -> FloatArray:
        """Return ``state_values`` itself."""
        return state_values

    def __repr__(self) -> str:
        return f"TabularValueFeatures(n_states={self.n_states})"


@checked
def aggregated_values(cells: ArrayLike) -> FiniteValueFeatures:
    """Return the indicators of a partition: ψ_k(x) = 1 if ``cells[x] == k``. Values are constant on cells."""
    labels = cell_labels("cells", cells)
    states = np.arange(labels.size)
    shape = (labels.size, int(labels.max()) + 1)
    return FiniteValueFeatures(sp.csr_array((np.ones(labels.size), (states, labels)), shape=shape))


@checked
def soft_values(memberships: ArrayLike) -> FiniteValueFeatures:
    """Soft aggregation: ψ_k(x) is the share of state x in cell k, from nonnegative (S, n_u) ``memberships``."""
    shares = finite_array("memberships", memberships, (None, None))
    totals = shares.sum(axis=1, keepdims=True)
    if (shares < 0).any() or (totals <= 0).any():
        raise ValueError("memberships must be nonnegative, with a positive entry in every row")
    return FiniteValueFeatures(shares / totals)


@checked
def optimal_values(mdp: FiniteMDP, cost_features: Costs | ArrayLike) -> FiniteValueFeatures:
    """Columns V*_{c_i}, one for each cost: realizable when the expert is optimal for one of them."""
    check_type("mdp", mdp, FiniteMDP)
    costs = model_costs("cost_features", cost_features, mdp.dynamics)
    columns = [mdp.plan(cost).values for cost in costs.table.T]
    return FiniteValueFeatures(np.clip(np.stack(columns, axis=1), -1, 1))


@checked
def policy_values(
    mdp: FiniteMDP, policies: Sequence[ArrayLike], cost_features: Costs | ArrayLike
) -> FiniteValueFeatures:
    """Columns V^π_{c_i}: for each of the (S, A) policies, one for each cost (policies vary slowest)."""
    check_type("mdp", mdp, FiniteMDP)
    costs = model_costs("cost_features", cost_features, mdp.dynamics)
    if len(policies) == 0:
        raise ValueError("policies must hold at least one policy")
    columns = [mdp.value_function(policy, cost) for policy in policies for cost in costs.table.T]
    return FiniteValueFeatures(np.clip(np.stack(columns, axis=1), -1, 1))


def cell_labels(name: str, cells: ArrayLike) -> IntArray:
    """Check a partition given as one cell number per state; every cell from 0 to the largest must be used."""
    labels = np.asarray(cells)
    if labels.ndim != 1 or labels.size == 0 or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"{name} must be a vector of integers, one per state")
    used = np.unique(labels)
    if used[0] != 0 or used[-1] != used.size - 1:
        raise ValueError(f"{name} must use every number from 0 to its largest, got {used}")
    return labels.astype(np.int64)
