"""The warning category of the package, and checks that turn bad input into errors naming the argument."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_ROUNDING = 1e-8
#: Averages of numbers in [−1, 1] may come out as large as this by rounding.
LARGEST_UNIT = 1 + 1e-12


class LfdGymWarning(UserWarning):
    """Something is allowed but probably not what was meant."""


@contextmanager
def all_at_once() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Say all that is wrong in one error at the end: what is raised within each of the contexts that this yields."""
    mistakes: list[str] = []

    @contextmanager
    def each() -> Iterator[None]:
        try:
            yield
        except (TypeError, ValueError) as error:
            mistakes.append(str(error))

    yield each
    if mistakes:
        raise ValueError("; ".join(mistakes))


def finite_array(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> FloatArray:
    """Return ``values`` as a float array of the given shape (``None``: any length), or say what is wrong with it."""
    array = _floats(name, values)
    if array.ndim != len(shape) or any(want not in (None, got) for want, got in zip(shape, array.shape, strict=True)):
        wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name} must be finite, got {array[where]} at index {where}")
    return array


def vectors(name: str, values: ArrayLike) -> FloatArray:
    """Return ``values`` as a finite float array (…, n) of vectors with at least one entry each."""
    array = _floats(name, values)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"{name} must have shape (..., n) with n at least 1, got {array.shape}")
    return finite_array(name, array, array.shape)


def _floats(name: str, values: ArrayLike) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} must be an array of numbers, got {values!r:.80}") from error


def numbers(name: str, values: Any) -> NDArray[Any]:
    """Return ``values`` as an array of numbers, of whatever kind and shape; they may be NaN."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise ValueError(f"{name} must be an array of numbers, got {values!r:.80}") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be an array of numbers, got dtype {array.dtype}")
    return array


def batch_of_numbers(name: str, values: ArrayLike, size: int | None = None) -> NDArray[Any]:
    """Return ``values`` as an array of numbers with one row for each of ``size``; they may be NaN."""
    array = numbers(name, values)
    if array.ndim == 0 or size not in (None, len(array)):
        raise ValueError(f"{name} must be a batch of {'any size' if size is None else size}, got shape {array.shape}")
    return array


def distribution(name: str, values: ArrayLike, size: int) -> FloatArray:
    """Return ``values`` as a probability vector of length ``size``, rescaled to sum to one to rounding."""
    array = finite_array(name, values, (size,))
    if (array < 0).any():
        where = int(np.argmin(array))
        raise ValueError(f"{name} must be nonnegative, got {array[where]} at index {where}")
    total = float(array.sum())
    if abs(total - 1) > _ROUNDING:
        raise ValueError(f"{name} must sum to 1, got {total}")
    return array / total


def policy_array(name: str, policy: ArrayLike, n_states: int, n_actions: int) -> FloatArray:
    """Return ``policy`` as an (S, A) array whose rows are distributions over actions."""
    array = finite_array(name, policy, (n_states, n_actions))
    if (array < 0).any():
        state, action = (int(i) for i in np.argwhere(array < 0)[0])
        raise ValueError(f"{name} must be nonnegative, got {array[state, action]} at state {state}, action {action}")
    totals = array.sum(axis=1)
    worst = int(np.argmax(np.abs(totals - 1)))
    if abs(totals[worst] - 1) > _ROUNDING:
        raise ValueError(f"{name} must have rows that sum to 1, got {totals[worst]} at state {worst}")
    return array


def check_delta(delta: float) -> None:
    """Refuse a probability of failure that is not strictly between 0 and 1."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}")


def number(name: str, value: Any) -> float:
    """Return ``value`` as a float, or say that it is no number."""
    if isinstance(value, bool) or not isinstance(value, Real | np.ndarray) or getattr(value, "ndim", 0) > 0:
        raise TypeError(f"{name} must be a number, got {value!r:.80}")
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        raise ValueError(f"{name} must be a number that fits a float, got {value!r:.80}") from None


def discount_factor(name: str, value: Any) -> float:
    """Return ``value`` as a discount strictly between 0 and 1."""
    discount = number(name, value)
    if not 0 < discount < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}")
    return discount


def count(name: str, value: Any, at_least: int = 1) -> int:
    """Return ``value`` as an integer of at least ``at_least``, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r:.80}")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value}")
    return int(value)


def check_type(name: str, value: Any, kinds: type | tuple[type, ...], what: str | None = None) -> None:
    """Refuse an argument that is of none of ``kinds``, by its name; ``what`` says them in words."""
    if not isinstance(value, kinds):
        names = [kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,))]
        raise TypeError(f"{name} must be a {what or ' or '.join(names)}, got {value!r:.80}")


def indices_below(name: str, values: ArrayLike, size: int) -> IntArray:
    """Return ``values`` as integers in [0, size), of whatever kind they are given, or say what is wrong with them."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise ValueError(f"{name} must be integers, got {values!r:.80}") from None
    if array.size == 0:  # an empty list is an array of floats
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, got dtype {array.dtype}")
    if array.min() < 0 or array.max() >= size:
        wrong = array[(array < 0) | (array >= size)].flat[0]
        raise ValueError(f"{name} must lie in [0, {size}), got {wrong}")
    return array.astype(np.int64, copy=False)


def checked_sparse(name: str, matrix: Any) -> Any:
    """Return ``matrix`` if its indices stay inside it: SciPy's own routines follow them without looking.

    What is not sparse is returned as an array of floats; rare formats as coordinates.
    """
    if sp.issparse(matrix):
        return _checked_indices(name, matrix)
    array = _floats(name, matrix)
    if array.ndim != 2:
        raise ValueError(f"{name} must have two axes, got shape {array.shape}")
    return array


def _checked_indices(name: str, matrix: Any) -> Any:
    if matrix.format not in ("csr", "csc", "bsr", "coo"):
        matrix = matrix.tocoo()
    if matrix.ndim != 2:
        raise ValueError(f"{name} must have two axes, got shape {matrix.shape}")
    if matrix.format == "coo":
        if not matrix.row.size == matrix.col.size == matrix.data.size:
            raise ValueError(f"{name} must have as many rows and columns as entries")
        for part, size in ((matrix.row, matrix.shape[0]), (matrix.col, matrix.shape[1])):
            indices_below(f"indices of {name}", part, size)
        return matrix
    sizes = matrix.shape if matrix.format != "csc" else matrix.shape[::-1]
    blocks = matrix.blocksize if matrix.format == "bsr" else (1, 1)
    n_rows, n_columns = sizes[0] // blocks[0], sizes[1] // blocks[1]
    offsets = indices_below(f"offsets of {name}", matrix.indptr, len(matrix.indices) + 1)
    if offsets.shape != (n_rows + 1,) or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise ValueError(f"offsets of {name} must be {n_rows + 1} numbers that start at 0 and never fall")
    if len(matrix.data) != len(matrix.indices):
        raise ValueError(f"{name} must have as many indices as entries")
    indices_below(f"indices of {name}", matrix.indices[: offsets[-1]], n_columns)
    return matrix
