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

from lfd_gym._jit import jit
from lfd_gym.validation import FloatArray, IntArray

_TOLERANCE = 1e-14


@jit
def nonnegative_least_squares(columns: FloatArray, target: FloatArray) -> FloatArray:
    """Minimise ‖columnsᵀx − target‖₂ over x ≥ 0; ``columns`` is Eᵀ, (K, n), with rows of comparable norms.

    The columns with positive coefficients, the *passive* ones, are kept in a QR factorisation: row k of ``basis`` is
    the k-th orthonormal vector, ``triangle`` the upper triangle.
    """
    n_columns, size = columns.shape
    solution = np.zeros(n_columns)
    passive = np.empty(size, dtype=np.int64)
    n_passive = 0
    basis = np.zeros((size, size))
    triangle = np.zeros((size, size))
    refused = np.zeros(n_columns, dtype=np.bool_)
    for _ in range(10 * (n_columns + size)):
        gradient = columns @ (target - solution @ columns)
        gradient[passive[:n_passive]] = 0.0
        gradient[refused] = 0.0
        entering = np.argmax(gradient)
        if gradient[entering] <= _TOLERANCE:
            break
        if n_passive == size or not _append(columns[entering], basis, triangle, n_passive):
            refused[entering] = True  # to rounding a combination of the passive columns
            continue
        passive[n_passive] = entering
        n_passive = _settle(columns, target, solution, passive, n_passive + 1, basis, triangle)
        if solution[entering] > 0.0:
            refused[:] = False
        else:
            refused[entering] = True
    return solution


@jit
def _append(column: FloatArray, basis: FloatArray, triangle: FloatArray, count: int) -> bool:
    """Orthogonalise ``column`` against the first ``count`` basis vectors, twice; False if nothing is left of it."""
    rest = column.copy()
    triangle[:, count] = 0.0
    for _ in range(2):
        for k in range(count):
            product = np.dot(basis[k], rest)
            triangle[k, count] += product
            rest -= product * basis[k]
    norm = np.linalg.norm(rest)
    if norm <= 1e-13 * np.linalg.norm(column):
        return False
    basis[count] = rest / norm
    triangle[count, count] = norm
    return True


@jit
def _settle(
    columns: FloatArray,
    target: FloatArray,
    solution: FloatArray,
    passive: IntArray,
    n_passive: int,
    basis: FloatArray,
    triangle: FloatArray,
) -> int:
    """Move to the least-squares solution of the passive columns, dropping those that would become nonpositive.

    Returns how many remain.
    """
    while n_passive > 0:
        free = _solve_triangle(triangle, basis[:n_passive] @ target)
        step = 1.0
        blocking = -1
        for k in range(n_passive):
            if free[k] <= 0.0:
                current = solution[passive[k]]
                share = current / (current - free[k]) if current > 0.0 else 0.0
                if share < step or blocking < 0:
                    step = share
                    blocking = k
        for k in range(n_passive):
            solution[passive[k]] += step * (free[k] - solution[passive[k]])
        if blocking < 0:
            break
        solution[passive[blocking]] = 0.0
        for k in range(blocking, n_passive - 1):
            passive[k] = passive[k + 1]
        n_passive -= 1
        for k in range(blocking, n_passive):
            _append(columns[passive[k]], basis, triangle, k)
    return n_passive


@jit
def _solve_triangle(triangle: FloatArray, target: FloatArray) -> FloatArray:
    solution = target.copy()
    for k in range(target.size - 1, -1, -1):
        for j in range(k + 1, target.size):
            solution[k] -= triangle[k, j] * solution[j]
        solution[k] /= triangle[k, k]
    return solution


@jit
def min_norm_weights(points: FloatArray) -> FloatArray:
    """Return the weights, (K,), of the point of least norm in the convex hull of the rows of ``points``, (K, n)."""
    n_points, size = points.shape
    columns = np.ones((n_points, size + 1))
    columns[:, :size] = points
    target = np.zeros(size + 1)
    target[size] = 1.0
    weights = nonnegative_least_squares(columns, target)
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
    columns = np.empty((offsets.size, size + 1))
    columns[:, :size] = normals
    columns[:, size] = offsets / scale
    target = np.zeros(size + 1)
    target[size] = 1.0
    residual = target - nonnegative_least_squares(columns, target) @ columns
    if residual[size] <= _TOLERANCE:
        return np.full(size, np.nan)
    return np.asarray(residual[:size] * (-scale / residual[size]))
