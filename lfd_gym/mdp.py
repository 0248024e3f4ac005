"""Finite Markov decision processes and the operators of the paper's Section 2.

Notation (S states, A actions; the pair (x, a) is row ``x * A + a`` of every array over pairs):

- P, ``transitions``: (S·A, S), row (x, a) is the distribution of the next state;
- ν₀, ``initial_distribution``: (S,); γ, ``discount``;
- B: (S·A, S), ``B[(x, a), y] = 1`` if x = y, else 0;
- T_γ μ = (B − γP)ᵀμ / (1−γ), ``bellman_flow``; its adjoint T_γ* u = (B − γP)u / (1−γ), ``bellman_adjoint``;
- V^π_c = (1−γ) E[Σ γ^t c(x_t, a_t)], ``value_function``; μ_π = (1−γ) Σ γ^t P[x_t, a_t], ``occupancy``;
- ρ_c(π) = ⟨μ_π, c⟩ = ⟨ν₀, V^π_c⟩, ``expected_cost``.

Every quantity carries the factor (1−γ), so values of a cost in [−1, 1] lie in [−1, 1] and occupancies sum to one.
This module and the planner it calls are the only places where that normalisation is written down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from lfd_gym import planning
from lfd_gym.planning import Plan
from lfd_gym.validation import FloatArray, discount_factor, distribution, finite_array, policy_array

_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """A finite MDP without a cost: transitions, initial distribution and discount.

    Parameters
    ----------
    transitions
        (S·A, S) sparse or dense array, or a dense (S, A, S) array. Stored as CSR in canonical form; rows are rescaled
        to sum to one to rounding.
    initial_distribution
        (S,) distribution of the first state.
    discount
        γ in (0, 1).
    absorbing_state
        The state that stands for "the episode has ended", if there is one. Every action must keep it in place.
        Costs there must be zero by convention; ``from_env`` adds it as the last state.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym import FiniteMDP
    >>> stay_or_go = np.array([[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.0, 1.0]]])  # (S, A, S)
    >>> mdp = FiniteMDP(stay_or_go, initial_distribution=[1.0, 0.0], discount=0.5)
    >>> cost = np.array([1.0, 1.0, 0.0, 0.0])  # state 0 is costly, state 1 is free
    >>> mdp.optimal_policy(cost)[0]
    array([0., 1.])
    >>> round(mdp.expected_cost(mdp.optimal_policy(cost), cost), 6)
    0.555556
    """

    transitions: sp.csr_array
    initial_distribution: FloatArray
    discount: float
    absorbing_state: int | None = None
    n_states: int = field(init=False)
    n_actions: int = field(init=False)

    def __post_init__(self) -> None:
        transitions = canonical_transitions(self.transitions)
        n_pairs, n_states = transitions.shape
        initial = distribution("initial_distribution", self.initial_distribution, n_states)
        initial.flags.writeable = False
        self._set("transitions", transitions)
        self._set("n_states", n_states)
        self._set("n_actions", n_pairs // n_states)
        self._set("initial_distribution", initial)
        self._set("discount", discount_factor("discount", self.discount))
        if self.absorbing_state is not None:
            self._check_absorbing(self.absorbing_state)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_absorbing(self, state: int) -> None:
        if not 0 <= state < self.n_states:
            raise ValueError(f"absorbing_state must be a state in [0, {self.n_states}), got {state}")
        for action in range(self.n_actions):
            row = self.transitions[[state * self.n_actions + action], :]
            if row.nnz != 1 or row.indices[0] != state:
                raise ValueError(f"absorbing_state {state} must stay in place, but action {action} can leave it")

    # -- construction -------------------------------------------------------------------------------------------------

    @classmethod
    def from_dict(
        cls,
        table: Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]],
        initial_distribution: ArrayLike,
        discount: float,
    ) -> FiniteMDP:
        """Build from Gymnasium's toy_text table, ``P[s][a] = [(probability, next_state, reward, terminated), …]``.

        Duplicate successors are summed. A transition flagged ``terminated`` leads to one absorbing state, added as the
        last state if there is any such transition: in Taxi and CliffWalking the table itself goes on after the end.
        """
        n_states = len(table)
        n_actions = len(table[0])
        ends = any(end for actions in table.values() for outcomes in actions.values() for *_, end in outcomes)
        rows, columns, probabilities = [], [], []
        for state in range(n_states):
            if len(table[state]) != n_actions:
                raise ValueError(f"table: state {state} has {len(table[state])} actions, state 0 has {n_actions}")
            for action in range(n_actions):
                for probability, successor, _, terminated in table[state][action]:
                    rows.append(state * n_actions + action)
                    columns.append(n_states if terminated else int(successor))
                    probabilities.append(float(probability))
        initial = finite_array("initial_distribution", initial_distribution, (n_states,))
        if ends:
            rows.extend(range(n_states * n_actions, (n_states + 1) * n_actions))
            columns.extend([n_states] * n_actions)
            probabilities.extend([1.0] * n_actions)
            initial = np.append(initial, 0.0)
        total = n_states + int(ends)
        transitions = sp.csr_array((probabilities, (rows, columns)), shape=(total * n_actions, total))
        return cls(transitions, initial, discount, absorbing_state=n_states if ends else None)

    @classmethod
    def from_env(cls, env: gym.Env[Any, Any], discount: float) -> FiniteMDP:
        """Build from a tabular environment: one of ours, or one with toy_text's ``P`` and ``initial_state_distrib``.

        Time limits are not part of the model: they cut what is recorded, they do not end the process.
        """
        source: Any = env.unwrapped
        if hasattr(source, "transitions") and hasattr(source, "initial_distribution"):
            return cls(
                source.transitions, source.initial_distribution, discount, getattr(source, "absorbing_state", None)
            )
        if hasattr(source, "P") and hasattr(source, "initial_state_distrib"):
            if getattr(source, "fickle_passenger", False):
                raise ValueError(
                    f"env {env} has fickle passengers, who change their minds outside its transition table"
                )
            return cls.from_dict(source.P, source.initial_state_distrib, discount)
        raise TypeError(
            f"env {env} has no transition table: a tabular environment offers `transitions` and `initial_distribution` "
            "(as lfd_gym's environments do) or `P` and `initial_state_distrib` (as Gymnasium's toy_text does). "
            "For environments without one, use lfd_gym.as_generative_model."
        )

    # -- operators ----------------------------------------------------------------------------------------------------

    def bellman_flow(self, occupancy: ArrayLike) -> FloatArray:
        """T_γ μ: the (S,) net flow out of each state; equals ``initial_distribution`` iff μ is an occupancy measure."""
        pairs = finite_array("occupancy", occupancy, (self.n_states, self.n_actions))
        flow = pairs.sum(axis=1) - self.discount * (self.transitions.T @ pairs.ravel())
        return np.asarray(flow / (1 - self.discount))

    def bellman_adjoint(self, values: ArrayLike) -> FloatArray:
        """T_γ* u: (S, A), with ⟨T_γ μ, u⟩ = ⟨μ, T_γ* u⟩; c − T_γ* V is the advantage of c over V."""
        state_values = finite_array("values", values, (self.n_states,))
        after = (self.transitions @ state_values).reshape(self.n_states, self.n_actions)
        return np.asarray((state_values[:, None] - self.discount * after) / (1 - self.discount))

    # -- policies -----------------------------------------------------------------------------------------------------

    def occupancy(self, policy: ArrayLike, tolerance: float = 1e-12) -> FloatArray:
        """μ_π, (S, A): the discounted visitation frequencies of ``policy``, summing to one.

        The l1 error is at most ``tolerance``.
        """
        probabilities = policy_array("policy", policy, self.n_states, self.n_actions)
        states = planning.state_occupancy(
            self.transitions, probabilities, self.initial_distribution, self.discount, tolerance
        )
        return np.asarray(states[:, None] * probabilities)

    def value_function(self, policy: ArrayLike, cost: ArrayLike, tolerance: float = 1e-12) -> FloatArray:
        """V^π_c, (S,), normalised by (1−γ), with sup-norm error at most ``tolerance``."""
        probabilities = policy_array("policy", policy, self.n_states, self.n_actions)
        return planning.policy_values(self.transitions, probabilities, self.pair_cost(cost), self.discount, tolerance)

    def expected_cost(self, policy: ArrayLike, cost: ArrayLike) -> float:
        """ρ_c(π) = ⟨ν₀, V^π_c⟩, in [−1, 1] for costs in [−1, 1]."""
        return float(self.initial_distribution @ self.value_function(policy, cost))

    def plan(self, cost: ArrayLike, tolerance: float = 1e-10, initial_values: ArrayLike | None = None) -> Plan:
        """Solve the MDP for ``cost``; the plan certifies how far it can be from optimal.

        Parameters
        ----------
        cost
            (S·A,) or (S, A).
        tolerance
            Largest certified sup-norm distance of the plan's values, and of its policy's values, from V*.
        initial_values
            (S,) warm start, e.g. the values of a similar cost.
        """
        start = None if initial_values is None else finite_array("initial_values", initial_values, (self.n_states,))
        return planning.plan(self.transitions, self.pair_cost(cost), self.discount, tolerance, start)

    def optimal_policy(self, cost: ArrayLike, tolerance: float = 1e-10) -> FloatArray:
        """Return an (S, A) deterministic policy, optimal for ``cost`` up to ``tolerance`` from every state."""
        return one_hot(self.plan(cost, tolerance).actions, self.n_actions)

    def pair_cost(self, cost: ArrayLike) -> FloatArray:
        """Check a cost given as (S·A,) or (S, A) and return it as (S, A)."""
        array = np.asarray(cost, dtype=np.float64)
        if array.shape == (self.n_states * self.n_actions,):
            array = array.reshape(self.n_states, self.n_actions)
        elif array.shape != (self.n_states, self.n_actions):
            raise ValueError(
                f"cost must have shape {(self.n_states * self.n_actions,)} or {(self.n_states, self.n_actions)}, "
                f"got {array.shape}"
            )
        return finite_array("cost", array, (self.n_states, self.n_actions))

    def __repr__(self) -> str:
        return (
            f"FiniteMDP(n_states={self.n_states}, n_actions={self.n_actions}, discount={self.discount}, "
            f"nonzeros={self.transitions.nnz})"
        )


def policy_from_occupancy(occupancy: ArrayLike, fallback: ArrayLike | None = None) -> FloatArray:
    """π_μ(a|x) = μ(x, a) / Σ_a' μ(x, a') (Proposition 1), for any nonnegative (S, A) array μ.

    In states where μ is zero every choice induces the same μ; there ``fallback`` (an (S, A) policy) decides, and the
    uniform distribution if none is given.
    """
    pairs = np.asarray(occupancy, dtype=np.float64)
    if pairs.ndim != 2:
        raise ValueError(f"occupancy must have shape (S, A), got {pairs.shape}")
    pairs = finite_array("occupancy", pairs, pairs.shape)
    if (pairs < 0).any():
        state, action = (int(i) for i in np.argwhere(pairs < 0)[0])
        raise ValueError(f"occupancy must be nonnegative, got {pairs[state, action]} at state {state}, action {action}")
    n_states, n_actions = pairs.shape
    if fallback is None:
        policy = np.full((n_states, n_actions), 1 / n_actions)
    else:
        policy = policy_array("fallback", fallback, n_states, n_actions).copy()
    # Scaling by the largest entry first keeps subnormal rows from rounding to rows that do not sum to one.
    largest = pairs.max(axis=1)
    visited = largest > 0
    scaled = pairs[visited] / largest[visited, None]
    policy[visited] = scaled / scaled.sum(axis=1, keepdims=True)
    return policy


def one_hot(actions: ArrayLike, n_actions: int) -> FloatArray:
    """Return the (S, A) array of the deterministic policy that takes ``actions[x]`` in state x."""
    chosen = np.asarray(actions)
    policy = np.zeros((chosen.size, n_actions))
    policy[np.arange(chosen.size), chosen] = 1.0
    return policy


def canonical_transitions(transitions: Any) -> sp.csr_array:
    """Check a transition array and return it as CSR: no duplicates or explicit zeros, sorted, rows summing to one."""
    if not sp.issparse(transitions):
        transitions = np.asarray(transitions, dtype=np.float64)
        if transitions.ndim == 3:
            transitions = transitions.reshape(-1, transitions.shape[2])
        if transitions.ndim != 2:
            raise ValueError(f"transitions must have shape (S*A, S) or (S, A, S), got {transitions.shape}")
    matrix = sp.csr_array(transitions, dtype=np.float64, copy=True)
    n_pairs, n_states = matrix.shape
    if n_states == 0 or n_pairs == 0 or n_pairs % n_states != 0:
        raise ValueError(f"transitions must have shape (S*A, S) with S, A >= 1, got {matrix.shape}")
    n_actions = n_pairs // n_states
    matrix.sum_duplicates()
    _check_rows(matrix, n_actions)
    matrix.eliminate_zeros()
    if matrix.nnz < np.iinfo(np.int32).max:
        matrix.indices = matrix.indices.astype(np.int32, copy=False)
        matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
    lengths = np.diff(matrix.indptr)
    matrix.data /= np.repeat(np.add.reduceat(matrix.data, matrix.indptr[:-1]), lengths)
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    return matrix


def _check_rows(matrix: sp.csr_array, n_actions: int) -> None:
    def pair(row: int) -> str:
        return f"row {row} (state {row // n_actions}, action {row % n_actions})"

    for condition, what in ((~np.isfinite(matrix.data), "finite"), (matrix.data < 0, "nonnegative")):
        if condition.any():
            entry = int(np.argmax(condition))
            row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
            raise ValueError(f"transitions must be {what}, got {matrix.data[entry]} in {pair(row)}")
    totals = np.asarray(matrix.sum(axis=1)).ravel()
    worst = int(np.argmax(np.abs(totals - 1)))
    if abs(totals[worst] - 1) > _ROUNDING:
        raise ValueError(f"transitions must have rows that sum to 1, got {totals[worst]} in {pair(worst)}")
