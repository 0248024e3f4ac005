"""Spaces of Gymnasium: as arrays inside the package, and as plain data in files.

Inside, observations and actions are arrays whose first axis is the batch. `Box`, `Discrete`, `MultiDiscrete` and
`MultiBinary` are arrays as they are. `Dict` and `Tuple` are flattened by Gymnasium's own functions, here and nowhere
else: `array_space` says what they become, `to_array` and `from_array` go there and back. Everything else is refused.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from numpy.typing import NDArray

#: Pairs are numbered by 64-bit integers; one more action per state may follow for an absorbing state.
_MOST_PAIRS = 2**62
_ARRAYS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


def check_space(name: str, space: Any) -> None:
    """Refuse spaces whose elements are not arrays as they are, and such as do not count from 0."""
    if not isinstance(space, _ARRAYS):
        raise ValueError(f"{name} must be a Box, Discrete, MultiDiscrete or MultiBinary space, got {space}")
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) and np.any(space.start):
        raise ValueError(f"{name} must count from 0, got {space}")


def check_pairs(observation_space: Any, action_space: Any) -> None:
    """Refuse discrete spaces of so many states and actions that their pairs, x·A + a, cannot be numbered.

    The number would overflow, and name another pair.
    """
    if isinstance(observation_space, spaces.Discrete) and isinstance(action_space, spaces.Discrete):
        n_pairs = int(observation_space.n) * int(action_space.n)
        if n_pairs > _MOST_PAIRS:
            raise ValueError(
                f"observation_space and action_space must have at most {_MOST_PAIRS} pairs of a state and an action, "
                f"got {n_pairs} of {observation_space} and {action_space}"
            )


def array_space(name: str, space: gym.Space[Any]) -> gym.Space[Any]:
    """Return the space of arrays that stands for ``space`` inside the package: itself, or a flat `Box`.

    Examples
    --------
    >>> space = spaces.Dict({"goal": spaces.Discrete(3), "speed": spaces.Box(-1, 1, (2,))})
    >>> array_space("observation_space", space).low
    array([ 0.,  0.,  0., -1., -1.])
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        flat = spaces.flatten_space(space)
        if not isinstance(flat, spaces.Box):
            raise ValueError(f"{name} has parts of no fixed size, which no flat array can hold: {space}")
        return flat
    check_space(name, space)
    return space


def to_array(space: gym.Space[Any], batch: Any, size: int) -> NDArray[Any]:
    """Return a batch of ``size`` elements of ``space``, as a vector environment gives them, as one array."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        elements = iterate(batch_space(space, size), batch)
        return np.stack([np.asarray(spaces.flatten(space, element)) for element in elements])
    return np.asarray(batch)


def from_array(space: gym.Space[Any], array: NDArray[Any]) -> Any:
    """Return the batch, as a vector environment takes it, that `to_array` made ``array`` from."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        elements = [spaces.unflatten(space, row) for row in array]
        return concatenate(space, elements, create_empty_array(space, len(elements)))
    return array


def batch_size(space: gym.Space[Any], observation: Any) -> int | None:
    """Return how many elements of a `Dict` or `Tuple` space a batch holds; None for a single element.

    Examples
    --------
    >>> space = spaces.Dict({"goal": spaces.Discrete(3), "speed": spaces.Box(-1, 1, (2,))})
    >>> batch_size(space, {"goal": 2, "speed": np.zeros(2)}) is None
    True
    >>> batch_size(space, {"goal": np.array([2, 0]), "speed": np.zeros((2, 2))})
    2
    """
    while isinstance(space, spaces.Dict | spaces.Tuple):
        first: Any = next(iter(space.spaces)) if isinstance(space, spaces.Dict) else 0
        space, observation = space[first], observation[first]
    return len(observation) if np.ndim(observation) > len(space.shape or ()) else None


def space_to_data(name: str, space: gym.Space[Any]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a space as JSON values and, of each Box in it, two arrays with names that begin with ``NAME``.

    ``{"discrete": n}``, ``{"multi_discrete": nvec}``, ``{"multi_binary": n}`` or ``{"box": dtype}``; of spaces made of
    others ``{"dict": [[key, data], …]}`` or ``{"tuple": [data, …]}``, whose order counts when they are flattened.
    """
    if isinstance(space, spaces.Dict | spaces.Tuple):
        inner = list(space.spaces.values()) if isinstance(space, spaces.Dict) else list(space.spaces)
        parts = [space_to_data(f"{name}.{i}", part) for i, part in enumerate(inner)]
        bounds = {key: array for _, arrays in parts for key, array in arrays.items()}
        if isinstance(space, spaces.Dict):
            return {"dict": [[key, data] for key, (data, _) in zip(space.spaces, parts, strict=True)]}, bounds
        return {"tuple": [data for data, _ in parts]}, bounds
    check_space(f"{name}_space", space)
    if isinstance(space, spaces.Discrete):
        return {"discrete": int(space.n)}, {}
    if isinstance(space, spaces.MultiDiscrete):
        return {"multi_discrete": space.nvec.tolist()}, {}
    if isinstance(space, spaces.MultiBinary):
        return {"multi_binary": list(space.n) if isinstance(space.n, tuple) else int(space.n)}, {}
    assert isinstance(space, spaces.Box)
    return {"box": np.dtype(space.dtype).str}, {f"{name}_low": space.low, f"{name}_high": space.high}


def space_from_data(name: str, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> gym.Space[Any]:
    """Return the space that `space_to_data` described."""
    if "dict" in data:
        parts = [(key, space_from_data(f"{name}.{i}", part, arrays)) for i, (key, part) in enumerate(data["dict"])]
        return spaces.Dict(OrderedDict(parts))  # a plain dict would be sorted by its keys
    if "tuple" in data:
        return spaces.Tuple([space_from_data(f"{name}.{i}", part, arrays) for i, part in enumerate(data["tuple"])])
    if "discrete" in data:
        return spaces.Discrete(int(data["discrete"]))
    if "multi_discrete" in data:
        return spaces.MultiDiscrete(data["multi_discrete"])
    if "multi_binary" in data:
        return spaces.MultiBinary(data["multi_binary"])
    kind: Any = np.dtype(data["box"]).type
    return spaces.Box(arrays[f"{name}_low"], arrays[f"{name}_high"], dtype=kind)
