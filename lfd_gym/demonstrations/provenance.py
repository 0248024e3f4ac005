"""Where demonstrations come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any


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
        try:
            text = json.dumps(dict(self.env_kwargs), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"env_kwargs must hold JSON values only, got {self.env_kwargs}: {error}") from None
        object.__setattr__(self, "env_kwargs", MappingProxyType(json.loads(text)))

    def to_dict(self) -> dict[str, Any]:
        """Return the parts as JSON values."""
        return {part.name: getattr(self, part.name) for part in fields(self)} | {"env_kwargs": dict(self.env_kwargs)}
