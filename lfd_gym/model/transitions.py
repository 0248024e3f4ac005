"""The one form in which transitions are stored: an (S·A, S) CSR matrix whose row x·A + a is P(·|x, a)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

#: Gymnasium's toy_text table: ``P[s][a] = [(probability, next_state, reward, terminated), …]``.
TransitionTable = Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]]

_ROUNDING = 1e-8


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
