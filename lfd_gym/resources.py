"""What was used: data, simulator, time and memory by learning; the versions of what did it."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_PACKAGES = (
    "lfd-gym",
    "numpy",
    "scipy",
    "numba",
    "gymnasium",
    "torch",
    "stable-baselines3",
    "imitation",
    "joblib",
    "ray",
)


@dataclass(frozen=True)
class Resources:
    """What was used to learn a policy.

    Attributes
    ----------
    n_demonstrations
        Trajectories given.
    env_steps
        Steps of an environment, one after the other within an episode.
    oracle_calls
        Draws of a next state from a generative model.
    expert_queries
        States in which the expert was asked for an action during learning.
    uses_model
        Whether the transition probabilities themselves were used.
    wall_seconds, cpu_seconds
        Elapsed time, and processor time over all threads of the process.
    peak_memory_mb
        Largest resident memory of the process up to the end of learning, what came before included; None where the
        platform does not say.
    """

    n_demonstrations: int = 0
    env_steps: int = 0
    oracle_calls: int = 0
    expert_queries: int = 0
    uses_model: bool = False
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_mb: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        used = [f"{self.n_demonstrations} demonstrations"]
        for name in ("env_steps", "oracle_calls", "expert_queries"):
            if (count := getattr(self, name)) > 0:
                used.append(f"{count} {name.replace('_', ' ')}")
        if self.uses_model:
            used.append("the model")
        if self.peak_memory_mb is not None:
            used.append(f"{self.peak_memory_mb:.0f} MB")
        return ", ".join(used) + f", in {self.wall_seconds:.2f} s ({self.cpu_seconds:.2f} s of processor time)"


@dataclass
class Stopwatch:
    """Time spent within a `measuring` block, filled in at its end."""

    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0


@contextmanager
def measuring() -> Iterator[Stopwatch]:
    """Measure the elapsed and the processor time of a block."""
    stopwatch = Stopwatch()
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield stopwatch
    finally:
        stopwatch.wall_seconds = time.perf_counter() - wall
        stopwatch.cpu_seconds = time.process_time() - cpu


def peak_memory_mb() -> float | None:
    """Return the largest resident memory of this process so far, in megabytes; None where the platform cannot say."""
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)  # bytes on macOS, kilobytes elsewhere


@cache
def versions() -> dict[str, str]:
    """Return the versions of the packages that matter, as far as they are installed."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def machine() -> str:
    """Return the system, the processor and the version of Python."""
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
