"""Where the work of a command happens."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from lfd_gym.engines import Engine, ProcessEngine, RayEngine


@dataclass(frozen=True)
class Workers:
    """Processes or a Ray cluster."""

    engine: Literal["processes", "ray"] = "processes"
    """Processes of this machine (joblib), or a Ray cluster."""
    workers: int | None = None
    """How many at a time on this machine; what is found does not depend on it. By default as many as there are
    processors; but evaluate and certify play in their own process if nothing is said."""
    address: str | None = None
    """Of a running Ray cluster, e.g. auto; without it Ray is started on this machine."""

    @property
    def asked_for(self) -> bool:
        """Whether anything was given."""
        return self != Workers()

    @property
    def count(self) -> int:
        """How many at a time on this machine; one for each processor if not given."""
        return (os.cpu_count() or 1) if self.workers is None else self.workers

    def make(self) -> Engine:
        """Return the engine."""
        if self.address is not None and self.engine != "ray":
            raise ValueError("--address is that of a Ray cluster: it needs --engine ray")
        if self.count < 1:
            raise ValueError(f"--workers must be at least 1, got {self.workers}")
        return RayEngine(self.address, self.count) if self.engine == "ray" else ProcessEngine(self.count)
