"""Read-only columns of demonstrations, and the checks they pass."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.spaces import check_space


def space_column(name: str, values: Any, length: int, space: Any) -> NDArray[Any]:
    """Return ``length`` elements of ``space``. Rows of a Box are not compared with its bounds."""
    check_space(f"{name[:-1]}_space", space)
    column = frozen(values)
    if column.shape != (length, *(space.shape or ())):
        raise ValueError(f"{name} must have shape {(length, *(space.shape or ()))}, got {column.shape}")
    if isinstance(space, gym.spaces.Box):
        if column.dtype.kind not in "iufb":
            raise ValueError(f"{name} must be numbers, got {column.dtype}")
        return column
    if column.size == 0:  # an empty list is an array of floats
        return column if column.dtype.kind in "iu" else read_only(column.astype(space.dtype))
    if isinstance(space, gym.spaces.MultiBinary) and column.dtype.kind == "b":
        column = read_only(column.astype(np.int8))
    if column.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, got {column.dtype}")
    outside = (column < 0) | (column >= _sizes(space))
    if outside.any():
        where = np.argwhere(outside)[0].tolist()
        index = where[0] if len(where) == 1 else tuple(where)
        limit = np.broadcast_to(_sizes(space), column.shape)[tuple(where)]
        raise ValueError(f"{name} must lie in [0, {limit}), got {column[tuple(where)]} at index {index}")
    return column


def _sizes(space: Any) -> Any:
    """How many values there are, from 0 on, for each entry of an element of a space of integers."""
    if isinstance(space, gym.spaces.Discrete):
        return int(space.n)
    return space.nvec if isinstance(space, gym.spaces.MultiDiscrete) else 2


def state_column(values: Any, length: int) -> NDArray[Any] | None:
    """Return ``length`` states of a simulator, numbers of any shape, or None for None."""
    if values is None:
        return None
    states = frozen(values)
    if states.ndim == 0 or len(states) != length or states.dtype.kind not in "iufb":
        found = f"shape {states.shape} and dtype {states.dtype}"
        raise ValueError(f"initial_states must be {length} arrays of numbers, one for each trajectory, got {found}")
    return states


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
    if not np.isfinite(rewards).all():
        raise ValueError(
            f"rewards must be finite, got {rewards[~np.isfinite(rewards)][0]}; None says that there are none"
        )
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
