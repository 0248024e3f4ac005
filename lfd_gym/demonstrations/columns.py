"""Read-only columns of demonstrations, and the checks they pass."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.spaces import check_space


def box_or_discrete_column(name: str, values: Any, length: int, space: gym.Space[Any]) -> NDArray[Any]:
    """Return ``length`` elements of ``space``. Rows of a Box are not compared with its bounds."""
    check_space(f"{name[:-1]}_space", space)
    column = frozen(values)
    if column.shape != (length, *(space.shape or ())):
        raise ValueError(f"{name} must have shape {(length, *(space.shape or ()))}, got {column.shape}")
    if isinstance(space, gym.spaces.Discrete):
        if column.size == 0:  # an empty list is an array of floats
            return column if np.issubdtype(column.dtype, np.integer) else read_only(column.astype(np.int64))
        if not np.issubdtype(column.dtype, np.integer):
            raise ValueError(f"{name} must be integers, got {column.dtype}")
        if column.min() < 0 or column.max() >= space.n:
            wrong = int(np.argmax((column < 0) | (column >= space.n)))
            raise ValueError(f"{name} must lie in [0, {space.n}), got {column[wrong]} at index {wrong}")
    elif not np.issubdtype(column.dtype, np.number):
        raise ValueError(f"{name} must be numbers, got {column.dtype}")
    return column


def flag_column(name: str, values: Any, length: int) -> NDArray[np.bool_]:
    """Return ``length`` booleans."""
    flags = frozen(values)
    if flags.shape != (length,) or (length and flags.dtype != np.bool_):
        raise ValueError(f"{name} must be {length} booleans, got shape {flags.shape} and dtype {flags.dtype}")
    return flags.astype(np.bool_, copy=False)


def reward_column(values: Any, length: int) -> NDArray[Any] | None:
    """Return ``length`` floats, or None for None."""
    if values is None:
        return None
    rewards = frozen(values)
    if rewards.shape != (length,) or not np.issubdtype(rewards.dtype, np.floating):
        raise ValueError(f"rewards must be {length} floats, got shape {rewards.shape} and dtype {rewards.dtype}")
    return rewards


def frozen(values: Any, dtype: Any = None) -> NDArray[Any]:
    """Return a read-only array that nobody else can write to; what is one already is not copied."""
    array = np.asarray(values, dtype=dtype)
    if array.flags.writeable or array.base is not None:
        array = array.copy()
    return read_only(array)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Mark ``array`` itself as read-only."""
    array.flags.writeable = False
    return array


def same(one: Any, other: Any) -> bool:
    """Whether two columns agree bit by bit (so NaN equals NaN), or two other values are equal."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        if type(one) is not type(other):
            return False
        same_form = one.dtype == other.dtype and one.shape == other.shape
        return same_form and np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()
    return bool(one == other)
