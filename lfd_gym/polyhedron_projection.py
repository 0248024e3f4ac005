"""Small dense projections, all by one active-set method for nonnegative least squares (Lawson & Hanson).

- ``nonnegative_least_squares``: min ‖Ex − f‖₂ over x ≥ 0;
- ``min_norm_weights``: the point of least norm in the convex hull of points p_k. With E = [pᵀ; 1ᵀ] and f = (0, 1) the
  minimiser is x = λ/(1 + ‖p_λ‖²), λ the weights wanted: for a fixed sum t of x the objective is
  t²‖p_λ‖² + (t − 1)², and its minimum over t, ‖p_λ‖²/(1 + ‖p_λ‖²), grows with ‖p_λ‖;
- ``least_distance``: the shortest y with Gy ≥ h. With E = [Gᵀ; hᵀ] and f = (0, 1), the residual r = f − Ex of the
  minimiser gives y = −r_{1:n}/r_{n+1}.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lfd_gym._jit import jit
from lfd_gym.validation import FloatArray

_TOLERANCE = 1e-14


@jit
def nonnegative_least_squares(matrix: FloatArray, target: FloatArray) -> FloatArray:
    """Minimise ‖matrix·x − target‖₂ over x ≥ 0; columns should have comparable norms."""
    n_columns = matrix.shape[1]
    solution = np.zeros(n_columns)
    passive = np.zeros(n_columns, dtype=np.bool_)
    refused = np.zeros(n_columns, dtype=np.bool_)
    for _ in range(10 * (n_columns + matrix.shape[0])):
        gradient = matrix.T @ (target - matrix @ solution)
        entering = -1
        steepest = _TOLERANCE
        for column in range(n_columns):
            if not passive[column] and not refused[column] and gradient[column] > steepest:
                steepest = gradient[column]
                entering = column
        if entering < 0:
            break
        passive[entering] = True
        _settle(matrix, target, solution, passive)
        if passive[entering]:
            refused[:] = False
        else:  # rounding: the column looked useful but its coefficient is not positive
            refused[entering] = True
    return solution


@jit
def _settle(matrix: FloatArray, target: FloatArray, solution: FloatArray, passive: NDArray[np.bool_]) -> None:
    """Move to the least-squares solution of the passive columns, dropping those that would become nonpositive."""
    while True:
        columns = np.flatnonzero(passive)
        if columns.size == 0:
            return
        free = np.linalg.lstsq(np.ascontiguousarray(matrix[:, columns]), target)[0]
        step = 1.0
        for position in range(columns.size):
            current = solution[columns[position]]
            if free[position] <= 0.0:
                step = min(step, current / (current - free[position]) if current > 0.0 else 0.0)
        blocked = False
        for position in range(columns.size):
            column = columns[position]
            solution[column] += step * (free[position] - solution[column])
            if free[position] <= 0.0 and solution[column] <= _TOLERANCE:
                solution[column] = 0.0
                passive[column] = False
                blocked = True
        if not blocked:
            return


@jit
def min_norm_weights(points: FloatArray) -> FloatArray:
    """Return the weights, (K,), of the point of least norm in the convex hull of the rows of ``points``, (K, n)."""
    n_points, size = points.shape
    matrix = np.ones((size + 1, n_points))
    matrix[:size] = points.T
    target = np.zeros(size + 1)
    target[size] = 1.0
    weights = nonnegative_least_squares(matrix, target)
    return np.asarray(weights / weights.sum())


@jit
def least_distance(normals: FloatArray, offsets: FloatArray) -> FloatArray:
    """Return the shortest y with normals·y ≥ offsets, the rows of ``normals`` of unit norm; zeros if y = 0 will do.

    NaN if there is no such y.
    """
    size = normals.shape[1]
    scale = offsets.max()
    if scale <= 0.0:
        return np.zeros(size)
    matrix = np.empty((size + 1, offsets.size))
    matrix[:size] = normals.T
    matrix[size] = offsets / scale
    target = np.zeros(size + 1)
    target[size] = 1.0
    residual = target - matrix @ nonnegative_least_squares(matrix, target)
    if residual[size] <= _TOLERANCE:
        return np.full(size, np.nan)
    return np.asarray(residual[:size] * (-scale / residual[size]))
