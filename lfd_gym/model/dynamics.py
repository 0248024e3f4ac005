"""Finite dynamics: what states follow which pairs, and where episodes begin and end. No discount, no cost.

The pair (x, a) is row ``x * A + a`` of every array over pairs. Transitions have one form: an (S·A, S) CSR matrix whose
row x·A + a is P(·|x, a).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from lfd_gym.model.wrappers import unwrap_states
from lfd_gym.validation import FloatArray, checked_sparse, distribution, finite_array

#: Gymnasium's toy_text table: ``P[s][a] = [(probability, next_state, reward, terminated), …]``.
TransitionTable = Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]]

_ROUNDING = 1e-8
#: Where the classes are that step by their tables.
_WITH_TABLES = ("gymnasium.envs.toy_text.", "lfd_gym.envs.")


@dataclass(frozen=True, eq=False)
class FiniteDynamics:
    """Transitions and the distribution of the first state.

    Parameters
    ----------
    transitions
        (S·A, S) sparse or dense array, or a dense (S, A, S) array. Stored as CSR in canonical form; rows are rescaled
        to sum to one to rounding.
    initial_distribution
        (S,) distribution of the first state.
    absorbing_state
        The state that stands for "the episode has ended", if there is one. Every action must keep it in place.
        Costs there must be zero by convention; ``from_env`` adds it as the last state.
    """

    transitions: sp.csr_array
    initial_distribution: FloatArray
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
        if self.absorbing_state is not None:
            self._set("absorbing_state", operator.index(self.absorbing_state))
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

    def occupancy(self, policy: FloatArray, step_weights: FloatArray) -> FloatArray:
        """Σ_t step_weights[t] P[x_t, a_t], (S, A): how often ``policy``, (S, A), takes each pair in its first steps."""
        states, visits = self.initial_distribution, np.zeros(self.n_states)
        back = self.transitions.T
        for weight in step_weights:
            visits += weight * states
            states = back @ (states[:, None] * policy).ravel()
        return np.asarray(visits[:, None] * policy)

    @classmethod
    def from_table(cls, table: TransitionTable, initial_distribution: ArrayLike) -> FiniteDynamics:
        """Build from Gymnasium's toy_text table, ``P[s][a] = [(probability, next_state, reward, terminated), …]``.

        Duplicate successors are summed. A transition flagged ``terminated`` leads to one absorbing state, added as the
        last state if there is any such transition: in Taxi and CliffWalking the table itself goes on after the end.
        """
        transitions, ends = table_transitions(table)
        n_states = transitions.shape[1] - int(ends)
        initial = finite_array("initial_distribution", initial_distribution, (n_states,))
        if ends:
            initial = np.append(initial, 0.0)
        return cls(transitions, initial, absorbing_state=n_states if ends else None)

    @classmethod
    def from_env(cls, env: gym.Env[Any, Any]) -> FiniteDynamics:
        """Build from a tabular environment: one of ours, or one with toy_text's ``P`` and ``initial_state_distrib``.

        Time limits are not part of the dynamics: they cut what is recorded, they do not end the process. Other wrappers
        may change the states or the actions: they are refused, except where they are known to leave both alone.
        """
        source: Any = unwrap_states(env)
        changed = changed_method(source)
        if changed is not None:
            raise TypeError(
                f"env {env} has a `{changed}` of its own, which need not follow the table of transitions that it "
                "inherits: give the FiniteMDP that it is, or play episodes in it"
            )
        found = getattr(source, "dynamics", None)
        if isinstance(found, FiniteDynamics):
            return found
        if hasattr(source, "transitions") and hasattr(source, "initial_distribution"):
            return cls(source.transitions, source.initial_distribution, getattr(source, "absorbing_state", None))
        if hasattr(source, "P") and hasattr(source, "initial_state_distrib"):
            if getattr(source, "fickle_passenger", False):
                raise ValueError(
                    f"env {env} has fickle passengers, who change their minds outside its transition table"
                )
            return cls.from_table(source.P, source.initial_state_distrib)
        raise TypeError(
            f"env {env} has no transition table: a tabular environment offers `transitions` and `initial_distribution` "
            "(as lfd_gym's environments do) or `P` and `initial_state_distrib` (as Gymnasium's toy_text does). "
            "For environments without one, use lfd_gym.as_generative_model."
        )

    @staticmethod
    def known_of(env: gym.Env[Any, Any]) -> bool:
        """Whether ``env``, with its wrappers, shows its transitions."""
        try:
            source = unwrap_states(env)
        except TypeError:
            return False
        pairs = (("transitions", "initial_distribution"), ("P", "initial_state_distrib"))
        has_table = any(all(hasattr(source, name) for name in pair) for pair in pairs)
        return has_table and changed_method(source) is None


def changed_method(source: Any) -> str | None:
    """Return which of the methods that follow a table a subclass of a known environment has changed, None if none.

    The class that is known made the table. A class that brings both, table and methods, is taken at its word.
    """
    known = next((kind for kind in type(source).__mro__ if kind.__module__.startswith(_WITH_TABLES)), None)
    for name in ("step", "reset", "_draw_initial", "_draw_next"):
        method = getattr(known, name, None)
        left_open = method is None or getattr(method, "__isabstractmethod__", False)
        if not left_open and getattr(type(source), name) is not method:
            return name
    return None


def table_transitions(table: TransitionTable) -> tuple[sp.csr_array, bool]:
    """Turn a toy_text table into transitions, and say whether an absorbing last state was added.

    It is added if any transition is flagged ``terminated``; all of these lead there.
    """
    n_states = len(table)
    if n_states == 0:
        raise ValueError("table must have at least one state")
    for state in range(n_states):
        if state not in table:
            raise ValueError(f"table must have the states 0 to {n_states - 1}, but state {state} is missing")
        if sorted(table[state]) != list(range(len(table[0]))):
            raise ValueError(f"table: state {state} has actions {sorted(table[state])}, state 0 has {sorted(table[0])}")
    n_actions = len(table[0])
    ends = any(end for actions in table.values() for outcomes in actions.values() for *_, end in outcomes)
    rows, columns, probabilities = [], [], []
    for state in range(n_states):
        for action in range(n_actions):
            for probability, successor, _, terminated in table[state][action]:
                if not (terminated or 0 <= successor < n_states):
                    raise ValueError(
                        f"table: state {state}, action {action} leads to {successor}, which is no state in "
                        f"[0, {n_states})"
                    )
                rows.append(state * n_actions + action)
                columns.append(n_states if terminated else int(successor))
                probabilities.append(float(probability))
    if ends:
        rows.extend(range(n_states * n_actions, (n_states + 1) * n_actions))
        columns.extend([n_states] * n_actions)
        probabilities.extend([1.0] * n_actions)
    total = n_states + int(ends)
    return sp.csr_array((probabilities, (rows, columns)), shape=(total * n_actions, total)), ends


def canonical_transitions(transitions: Any) -> sp.csr_array:
    """Check a transition array and return it as CSR: no duplicates or explicit zeros, sorted, rows summing to one."""
    if not sp.issparse(transitions):
        transitions = np.asarray(transitions, dtype=np.float64)
        if transitions.ndim == 3 and transitions.shape[0] == transitions.shape[2]:
            transitions = transitions.reshape(-1, transitions.shape[2])
        if transitions.ndim != 2:
            raise ValueError(f"transitions must have shape (S*A, S) or (S, A, S), got {transitions.shape}")
    matrix = sp.csr_array(checked_sparse("transitions", transitions), dtype=np.float64, copy=True)
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
