"""Small matrix games by the primal simplex method, warm-started when rows are added.

    value = min over λ in the simplex of max_i (Dᵀλ)_i,     D: (K, n), row k is one pure strategy of the minimiser.

As a linear program: min ε subject to Dᵀλ − ε1 + s = 0, Σλ = 1, λ ≥ 0, s ≥ 0. A basis holds ε and n other variables. A
new row of D is a new column of the program: the last optimal basis stays primal feasible, so a few pivots mend it. The
mixture λ is feasible whenever the method stops, so its value is an upper bound even if a pivot limit is reached.
"""

from __future__ import annotations

import numpy as np

from lfd_gym._jit import jit
from lfd_gym.validation import FloatArray, IntArray

_REDUCED_COST = 1e-13
_SMALLEST_PIVOT = 1e-11
_EPSILON = -1  # the index of ε; slack s_i has index i, weight λ_k has index n + k


def initial_basis(row: FloatArray, index: int = 0) -> IntArray:
    """Return the basis with all of the weight on the row of this ``index``, and no slack at its largest entry."""
    size = row.size
    tight = int(np.argmax(row))
    slacks = [i for i in range(size) if i != tight]
    return np.array([_EPSILON, *slacks, size + index], dtype=np.int64)


@jit
def solve_game(rows: FloatArray, basis: IntArray, max_pivots: int) -> FloatArray:
    """Return an optimal mixture λ, (K,), and leave the optimal basis in ``basis``.

    Entering variables are chosen by the most negative reduced cost; after a degenerate pivot, by the smallest index
    (Bland), which cannot cycle.
    """
    n_rows, size = rows.shape
    order = size + 1
    matrix = np.zeros((order, order))
    values = np.zeros(order)
    degenerate = False
    for _ in range(max_pivots):
        _basis_matrix(rows, basis, matrix)
        inverse = np.linalg.inv(matrix)
        values = inverse[:, size].copy()  # the right-hand side is the last unit vector
        prices = inverse[0].copy()  # the cost vector is the unit vector of ε, basis position 0
        entering = _entering(rows, basis, prices, degenerate)
        if entering < 0:
            break
        column = np.zeros(order)
        _fill_column(rows, entering, column)
        direction = inverse @ column
        leaving = -1
        step = np.inf
        for position in range(1, order):
            if direction[position] > _SMALLEST_PIVOT:
                ratio = max(values[position], 0.0) / direction[position]
                if ratio < step or (ratio == step and basis[position] < basis[leaving]):
                    step = ratio
                    leaving = position
        if leaving < 0:
            break
        degenerate = step <= 1e-15
        basis[leaving] = entering
    mixture = np.zeros(n_rows)
    for position in range(1, order):
        if basis[position] >= size:
            mixture[basis[position] - size] = max(values[position], 0.0)
    return np.asarray(mixture / mixture.sum())


def game_prices(rows: FloatArray, basis: IntArray) -> FloatArray:
    """Return the mixture of the columns, (n,), that the maximiser plays at an optimal ``basis``."""
    matrix = np.zeros((basis.size, basis.size))
    _basis_matrix(rows, basis, matrix)
    prices = np.maximum(-np.linalg.inv(matrix)[0, : rows.shape[1]], 0.0)
    return np.asarray(prices / prices.sum())


@jit
def _fill_column(rows: FloatArray, variable: int, column: FloatArray) -> None:
    size = rows.shape[1]
    column[:] = 0.0
    if variable == _EPSILON:
        column[:size] = -1.0
    elif variable < size:
        column[variable] = 1.0
    else:
        column[:size] = rows[variable - size]
        column[size] = 1.0


@jit
def _basis_matrix(rows: FloatArray, basis: IntArray, matrix: FloatArray) -> None:
    for position in range(basis.size):
        _fill_column(rows, basis[position], matrix[:, position])


@jit
def _entering(rows: FloatArray, basis: IntArray, prices: FloatArray, smallest_index: bool) -> int:
    """Return the variable to enter, or −1 at the optimum; reduced costs are −prices·column."""
    n_rows, size = rows.shape
    best = -_REDUCED_COST
    entering = -1
    for variable in range(size + n_rows):
        if variable < size:
            reduced = -prices[variable]
        else:
            reduced = -prices[size]
            for i in range(size):
                reduced -= prices[i] * rows[variable - size, i]
        if reduced < best and not (basis == variable).any():
            if smallest_index:
                return variable
            best = reduced
            entering = variable
    return entering
