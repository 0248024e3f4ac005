"""Where demonstrations come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np
from gymnasium.envs.registration import EnvSpec


@dataclass(frozen=True)
class Provenance:
    """Where demonstrations come from; every part may be unknown (None).

    Attributes
    ----------
    env_id
        What `gymnasium.make` was called with.
    env_kwargs
        The environment's own arguments; JSON values only.
    seed
        Of the generator that drew the trajectories.
    policy
        The expert's name.
    """

    env_id: str | None = None
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    policy: str | None = None

    def __post_init__(self) -> None:
        for name, kind, article in (("env_id", str, "a text"), ("seed", int, "an integer"), ("policy", str, "a text")):
            if not isinstance(getattr(self, name), kind | None):
                raise TypeError(f"{name} must be {article} or None, got {getattr(self, name)!r}")
        if not isinstance(self.env_kwargs, Mapping):
            raise TypeError(f"env_kwargs must be a mapping, got {self.env_kwargs!r}")
        try:
            kwargs = as_json(dict(self.env_kwargs))
        except ValueError as error:
            raise ValueError(f"env_kwargs must hold JSON values only, got {self.env_kwargs}: {error}") from None
        object.__setattr__(self, "env_kwargs", MappingProxyType(kwargs))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by the parts: a read-only view of a mapping cannot be."""
        return type(self), (self.env_id, dict(self.env_kwargs), self.seed, self.policy)

    def to_dict(self) -> dict[str, Any]:
        """Return the parts as JSON values."""
        return {part.name: getattr(self, part.name) for part in fields(self)} | {"env_kwargs": dict(self.env_kwargs)}


#: Arguments of `gymnasium.make` and `make_vec` that are not about what happens in an environment.
NOT_COMPARED = frozenset(
    {"render_mode", "max_episode_steps", "num_envs", "vectorization_mode", "vector_kwargs", "wrappers"}
)


def identity(spec: EnvSpec | None) -> dict[str, Any]:
    """Return the id of an environment and its arguments, as far as JSON can say them, as parts of a `Provenance`."""
    if spec is None:
        return {}
    kwargs = {}
    for name, value in spec.kwargs.items():  # in their order: the same environment gives the same file
        if name not in NOT_COMPARED:
            with suppress(ValueError):
                kwargs[name] = as_json(value)
    return {"env_id": spec.id, "env_kwargs": kwargs}


def as_json(value: Any) -> Any:
    """Return ``value`` as a file gives it back: numbers and arrays of NumPy as plain ones, tuples as lists."""
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_plain))
    except TypeError as error:
        raise ValueError(str(error)) from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no JSON value")
