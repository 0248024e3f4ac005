"""Linear systems of a Markov chain: (I − W) x = r, with W = γP_π for values or its transpose for distributions.

W has nonnegative entries, in CSR arrays ``offsets``, ``successors`` (both unsigned: numba then leaves out its test for
negative indices, which costs 40% of a product) and ``weights``. The size of a residual is the sum of its absolute
entries for distributions and its span, highest − lowest entry, for values: a constant residual k is known to ask for
the correction k/(1−γ), without any work.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from lfd_gym._jit import jit, jit_inline
from lfd_gym.model.basins import Basins, approximate_solution, find_basins, no_basins
from lfd_gym.validation import FloatArray

Indices = NDArray[Any]
_Scalar = TypeVar("_Scalar", bound=np.generic)

_DIRECT_STATES = 1000
_MAX_PRODUCTS = 5000
# Basins are worth finding at discounts above the first number and where fixed-point steps would need more than the
# second. Measured on gridworlds: at γ = 0.95 they make the exact solver a sixth slower, and occupancies of a million
# states by two thirds; at 0.99 it takes half as long again without them, plans for a far goal twice as long, and their
# occupancies 14 times as long (80 times at 0.999); with 400 instead of 100 steps, a quarter longer.
_FAR_SIGHTED = 0.98
_LONG = 100

# Fixed-point steps go on while one shrinks the residual to this fraction or less; otherwise BiCGStab takes over.
# Measured: on random transitions to five (three) states a step shrinks it to 0.6 (0.75), whatever the discount, and
# BiCGStab, which costs more a product, does not need fewer products there; on gridworlds a step soon shrinks it to γ
# only.
FAST_STEP = 0.9
# BiCGStab's recursive residual parts from the true one by rounding, relative to the largest size it has had.
MOST_GROWTH = 1e8


def frozen(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return a read-only view, so that kernels are compiled for one type of array only."""
    view = array.view()
    view.flags.writeable = False
    return view


class ChainSolver:
    """Approximate solutions x of (I − W) x = r for W = γP_π, or its transpose (``transposed``).

    Attributes
    ----------
    slow
        Whether fixed-point steps were too slow for the last one.
    """

    def __init__(self, discount: float, n_states: int, transposed: bool) -> None:
        self.discount = discount
        self.transposed = transposed
        self.work = np.empty((10, n_states))
        self.slow = False

    def solve(
        self,
        offsets: Indices,
        successors: Indices,
        weights: FloatArray,
        residual: FloatArray,
        target: float,
    ) -> FloatArray:
        """Return x whose residual has size ``target``, or as good as the budgets allow; overwrite ``residual``."""
        chain = (frozen(offsets), frozen(successors), frozen(weights))
        total, part, *_ = self.work
        total[:] = 0.0
        size = fixed_point_steps(*chain, residual, total, part, target, self.transposed)
        self.slow = size > target
        if not self.slow:
            return total
        # Fixed-point steps are sure to get there with this many products: no method may use more.
        n_steps = math.ceil(math.log(target / size) / math.log(self.discount))
        budget = min(2 + 2 * n_steps, _MAX_PRODUCTS)
        worth_it = self.discount > _FAR_SIGHTED and n_steps > _LONG
        found = find_basins(*chain, self.transposed) if worth_it else None
        if found is None:
            basins, in_order = no_basins(residual.size), chain
        else:
            basins, (new_offsets, new_successors, new_weights) = found
            in_order = (frozen(new_offsets), frozen(new_successors), frozen(new_weights))
        work = self.work[2:]
        size_reached = bicgstab(*in_order, basins, residual, part, work, target, budget, self.transposed)
        if size_reached > target:
            if residual.size <= _DIRECT_STATES or offsets[-1] <= residual.size:
                part[:] = _solve_directly(*chain, residual)
            else:
                if size_reached >= size:
                    part[:] = 0.0
                gauss_seidel(*chain, residual, part, target, budget, self.transposed)
        total += part
        return total


def _solve_directly(
    offsets: Indices,
    successors: Indices,
    weights: FloatArray,
    residual: FloatArray,
) -> FloatArray:
    n_states, n_nonzeros = residual.size, int(offsets[-1])
    chain = sp.csr_array((weights[:n_nonzeros], successors[:n_nonzeros], offsets), shape=(n_states, n_states))
    return np.asarray(splu(sp.csc_array(sp.eye_array(n_states) - chain)).solve(residual))


@jit
def chain_residual(
    offsets: Indices, successors: Indices, weights: FloatArray, offset: FloatArray, x: FloatArray, residual: FloatArray
) -> None:
    """Write offset + W x − x, with compensated sums: rows may be as long as the number of states."""
    for row in range(x.size):
        total, lost = offset[row], 0.0
        for k in range(offsets[row], offsets[row + 1]):
            term = weights[k] * x[successors[k]]
            new = total + term
            part = new - total
            lost += (total - (new - part)) + (term - part)
            total = new
        residual[row] = (total - x[row]) + lost


@jit_inline
def _size(lowest: float, highest: float, total: float, transposed: bool) -> float:
    return total if transposed else highest - lowest


@jit
def fixed_point_steps(
    offsets: Indices,
    successors: Indices,
    weights: FloatArray,
    residual: FloatArray,
    correction: FloatArray,
    scratch: FloatArray,
    target: float,
    transposed: bool,
) -> float:
    """Add r + Wr + W²r + … to ``correction`` until what is left is at most ``target`` or shrinks too slowly.

    Leaves the remaining residual in ``residual`` and returns its size.
    """
    n_states = residual.size
    lowest, highest, total = np.inf, -np.inf, 0.0
    for row in range(n_states):
        total += abs(residual[row])
        lowest = min(lowest, residual[row])
        highest = max(highest, residual[row])
    size = _size(lowest, highest, total, transposed)
    fast = True
    current, following = residual, scratch
    n_steps = 0
    while fast and size > target:
        lowest, highest, total = np.inf, -np.inf, 0.0
        for row in range(n_states):
            after = 0.0
            for k in range(offsets[row], offsets[row + 1]):
                after += weights[k] * current[successors[k]]
            correction[row] += current[row]
            following[row] = after
            total += abs(after)
            lowest = min(lowest, after)
            highest = max(highest, after)
        before, size = size, _size(lowest, highest, total, transposed)
        fast = size < FAST_STEP * before
        current, following = following, current
        n_steps += 1
    if n_steps % 2 == 1:
        residual[:] = scratch
    return size


@jit
def bicgstab(
    offsets: Indices,
    successors: Indices,
    weights: FloatArray,
    basins: Basins,
    residual: FloatArray,
    correction: FloatArray,
    work: FloatArray,
    target: float,
    max_products: int,
    transposed: bool,
) -> float:
    """Solve (I − W) correction = residual by van der Vorst's BiCGStab, from zero, until the size is ``target``.

    Preconditioned by basins from the right: residuals are those of the system itself. W and the eight vectors of
    ``work`` are in the order of ``basins``, ``residual`` and ``correction`` are not. Returns the size of the
    recursively updated residual, infinite after a breakdown, where ``correction`` is of no use.
    """
    chain = (offsets, successors, weights)
    alone = basins.starts.size == 1
    left, solution, shadow, direction = work[0], work[1], work[2], work[3]
    step, image, second_step, second_image = work[4], work[5], work[6], work[7]
    rho, largest = 0.0, 0.0
    for row in range(left.size):
        value = residual[basins.order[row]]
        solution[row], left[row], shadow[row], direction[row] = 0.0, value, value, value
        rho += value * value
        largest = max(largest, abs(value))
    limit = MOST_GROWTH * largest * (left.size if transposed else 1)
    size = np.inf
    for _ in range(max_products // 2):
        if alone:
            step = direction
        else:
            approximate_solution(*chain, basins, direction, step, transposed)
        along = _product(*chain, step, image, shadow)
        alpha = rho / along if along != 0 else np.inf
        if not np.isfinite(alpha):
            return np.inf
        size = _shrink(left, image, alpha, transposed)
        if size <= target:
            for row in range(left.size):
                solution[row] += alpha * step[row]
            break
        if alone:
            second_step = left
        else:
            approximate_solution(*chain, basins, left, second_step, transposed)
        overlap, norm, before, after = _product_with_sums(*chain, second_step, second_image, left, shadow)
        omega = overlap / norm if norm > 0 else 0.0
        rho_next = before - omega * after
        beta = (rho_next / rho) * (alpha / omega) if omega != 0 else np.inf
        lowest, highest, total = np.inf, -np.inf, 0.0
        for row in range(left.size):  # one pass: these vectors do not fit into the cache
            solution[row] += alpha * step[row] + omega * second_step[row]
            value = left[row] - omega * second_image[row]
            direction[row] = value + beta * (direction[row] - omega * image[row])
            left[row] = value
            total += abs(value)
            lowest = min(lowest, value)
            highest = max(highest, value)
        size = _size(lowest, highest, total, transposed)
        if size <= target:
            break
        if not np.isfinite(beta) or rho_next == 0 or size > limit:
            return np.inf
        rho = rho_next
    for row in range(left.size):
        correction[basins.order[row]] = solution[row]
    return size


@jit
def _product(
    offsets: Indices,
    successors: Indices,
    weights: FloatArray,
    vector: FloatArray,
    image: FloatArray,
    shadow: FloatArray,
) -> float:
    """Write image = (I − W) vector; return ⟨image, shadow⟩."""
    along = 0.0
    for row in range(vector.size):
        value = vector[row]
        for k in range(offsets[row], offsets[row + 1]):
            value -= weights[k] * vector[successors[k]]
        image[row] = value
        along += value * shadow[row]
    return along


@jit
def _product_with_sums(
    offsets: Indices,
    successors: Indices,
    weights: FloatArray,
    vector: FloatArray,
    image: FloatArray,
    left: FloatArray,
    shadow: FloatArray,
) -> tuple[float, float, float, float]:
    """Write image = (I − W) vector; return ⟨image, left⟩, ⟨image, image⟩, ⟨shadow, left⟩, ⟨shadow, image⟩."""
    overlap, norm, before, after = 0.0, 0.0, 0.0, 0.0
    for row in range(vector.size):
        value = vector[row]
        for k in range(offsets[row], offsets[row + 1]):
            value -= weights[k] * vector[successors[k]]
        image[row] = value
        overlap += value * left[row]
        norm += value * value
        before += shadow[row] * left[row]
        after += shadow[row] * value
    return overlap, norm, before, after


@jit
def _shrink(left: FloatArray, image: FloatArray, length: float, transposed: bool) -> float:
    """Take ``length`` times ``image`` from ``left``; return the size of what is left."""
    lowest, highest, total = np.inf, -np.inf, 0.0
    for row in range(left.size):
        value = left[row] - length * image[row]
        left[row] = value
        total += abs(value)
        lowest = min(lowest, value)
        highest = max(highest, value)
    return _size(lowest, highest, total, transposed)


@jit
def gauss_seidel(
    offsets: Indices,
    successors: Indices,
    weights: FloatArray,
    offset: FloatArray,
    correction: FloatArray,
    target: float,
    max_sweeps: int,
    transposed: bool,
) -> None:
    """Sweep correction = offset + W correction in place, forwards and backwards in turn.

    Each sweep shrinks the error at least by γ, in the sup norm for γP_π and in l1 for its transpose. What a sweep
    changes bounds the residual it leaves, so it stops when that is at most ``target``.
    """
    n_states = offset.size
    for n_sweeps in range(max_sweeps):
        largest, total = 0.0, 0.0
        for step in range(n_states):
            row = n_states - 1 - step if n_sweeps % 2 == 1 else step
            value = offset[row]
            for k in range(offsets[row], offsets[row + 1]):
                value += weights[k] * correction[successors[k]]
            change = abs(value - correction[row])
            correction[row] = value
            total += change
            largest = max(largest, change)
        if (total if transposed else 2 * largest) <= target:
            return
