"""Spaces of Gymnasium as plain data: a JSON value, and the bounds of a Box as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.validation import check_space


def space_to_data(name: str, space: gym.Space[Any]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return ``{"discrete": n}`` or ``{"box": dtype}``, and the arrays ``NAME_low`` and ``NAME_high`` of a Box."""
    check_space(f"{name}_space", space)
    if isinstance(space, gym.spaces.Discrete):
        return {"discrete": int(space.n)}, {}
    assert isinstance(space, gym.spaces.Box)
    return {"box": np.dtype(space.dtype).str}, {f"{name}_low": space.low, f"{name}_high": space.high}


def space_from_data(name: str, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> gym.Space[Any]:
    """Return the space that `space_to_data` described."""
    if "discrete" in data:
        return gym.spaces.Discrete(int(data["discrete"]))
    kind: Any = np.dtype(data["box"]).type
    return gym.spaces.Box(arrays[f"{name}_low"], arrays[f"{name}_high"], dtype=kind)
