"""A benchmark as data: environments × learners × numbers of demonstrations × seeds.

A spec is immutable and made of *cells*. A cell's id is readable and is all its randomness depends on, so a result
depends neither on the order in which cells run nor on how many workers run them; and every learner of one environment,
number of demonstrations and seed is given the same demonstrations, because their stream is named without the learner.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from lfd_gym.envs.named import check_named_environment, check_named_learner
from lfd_gym.files import refusing
from lfd_gym.validation import discount_factor

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


#: Experts that a spec may name, beside ``"optimal"``: what stands before the colon, and what comes behind it.
EXPERTS = {
    "policy": "a file of lfd_gym.save_policy",
    "sb3": "a file of Stable-Baselines3's PPO or A2C with networks of the default form",
    "demonstrations": "a file of Demonstrations.save",
    "data": "a name in lfd_gym.datasets.names()",
}


@dataclass(frozen=True)
class EnvironmentSpec:
    """One environment of a benchmark, and who demonstrates in it.

    Attributes
    ----------
    label
        The short name used in cell ids, tables and pictures.
    env_id
        What `gymnasium.make` takes; ``module:id`` for an environment that ``module`` registers.
    discount
        γ of the comparison.
    horizon
        With a table of transitions: the number of actions in each demonstration, which must be given. Elsewhere
        demonstrations are whole episodes, and the first so many steps count; by default all to the time limit.
    kwargs
        Keyword arguments of `gymnasium.make`.
    expert
        ``"optimal"`` plans for the reward, on a table or on a grid over a simulator. Or ``policy:FILE``, ``sb3:FILE``,
        ``demonstrations:FILE`` or ``data:NAME``, see `EXPERTS`. Of demonstrations that are there, each seed is shown
        others; networks take their best actions.
    learners, n_demonstrations
        What is compared here, if not all of the benchmark: labels of learners, numbers of demonstrations.
    """

    label: str
    env_id: str
    discount: float
    horizon: int | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    expert: str = "optimal"
    learners: tuple[str, ...] = ()
    n_demonstrations: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _check_label("label of an environment", self.label)
        discount_factor(f"discount of environment {self.label}", self.discount)
        if self.horizon is not None and self.horizon < 1:
            raise ValueError(f"horizon of environment {self.label} must be at least 1, got {self.horizon}")
        kind, _, which = self.expert.partition(":")
        if self.expert != "optimal" and not (kind in EXPERTS and which):
            known = ", ".join(f"{name}:… ({what})" for name, what in EXPERTS.items())
            raise ValueError(f"expert of environment {self.label} must be optimal, {known}, got {self.expert!r}")
        for axis in ("learners", "n_demonstrations"):
            object.__setattr__(self, axis, tuple(getattr(self, axis)))
        _check_counts(f"n_demonstrations of environment {self.label}", self.n_demonstrations)


@dataclass(frozen=True)
class LearnerSpec:
    """One learner of a benchmark: a name in the registry of `lfd_gym.baselines` and its settings.

    Attributes
    ----------
    name
        The registered name; ``module:name`` imports the module that registers it first, as `gymnasium.make` does with
        environments.
    label
        The name shown; the registered name if not given. Two settings of one learner need two labels.
    budget
        In the learner's own unit; its default if None.
    settings
        Keyword arguments of the learner.
    """

    name: str
    label: str = ""
    budget: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", self.name.rpartition(":")[2])
        _check_label("label of a learner", self.label)


@dataclass(frozen=True)
class Cell:
    """One run: a learner on an environment with some demonstrations and a seed."""

    environment: EnvironmentSpec
    learner: LearnerSpec
    n_demonstrations: int
    seed: int

    @property
    def id(self) -> str:
        """E.g. ``gridworld16/bc/m=10/seed=0``."""
        return f"{self.environment.label}/{self.learner.label}/m={self.n_demonstrations}/seed={self.seed}"

    @property
    def task_id(self) -> str:
        """What all learners that are compared with each other share, e.g. ``gridworld16/m=10/seed=0``."""
        return f"{self.environment.label}/m={self.n_demonstrations}/seed={self.seed}"

    def demonstration_stream(self) -> np.random.Generator:
        """Return the generator of the demonstrations: the same for every learner."""
        return named_stream(f"demonstrations of {self.task_id}")

    def judging_stream(self) -> np.random.Generator:
        """Return the generator of the episodes that policies are judged by: the same for every learner."""
        return named_stream(f"judging of {self.task_id}")

    def learner_stream(self) -> np.random.Generator:
        """Return the generator of the learner's own randomness."""
        return named_stream(f"learning of {self.id}")


def named_stream(name: str) -> np.random.Generator:
    """Return a generator that depends on ``name`` alone."""
    words = np.frombuffer(hashlib.sha256(name.encode()).digest(), dtype="<u4")
    return np.random.default_rng(np.random.SeedSequence(words.tolist()))


@dataclass(frozen=True)
class BenchmarkSpec:
    """Everything a benchmark runs.

    Attributes
    ----------
    environments, learners, n_demonstrations, seeds
        The axes; a cell for each combination, but for what an environment leaves out.
    time_limit
        Seconds a cell may take before it is ended and recorded as failed.
    """

    environments: tuple[EnvironmentSpec, ...]
    learners: tuple[LearnerSpec, ...]
    n_demonstrations: tuple[int, ...]
    seeds: tuple[int, ...]
    time_limit: float = 3600.0

    def __post_init__(self) -> None:
        for axis in ("environments", "learners", "n_demonstrations", "seeds"):
            values = tuple(getattr(self, axis))
            object.__setattr__(self, axis, values)
            keys = [getattr(value, "label", value) for value in values]
            if not keys:
                raise ValueError(f"{axis} must not be empty")
            repeated = next((key for key, count in Counter(keys).items() if count > 1), None)
            if repeated is not None:
                raise ValueError(f"{axis} must be distinct, but {repeated} occurs more than once")
        _check_counts("n_demonstrations", self.n_demonstrations)
        labels = {learner.label for learner in self.learners}
        for environment in self.environments:
            unknown = [label for label in environment.learners if label not in labels]
            if unknown:
                raise ValueError(f"environment {environment.label} names {unknown[0]!r}, which is no learner's label")
        if min(self.seeds) < 0:
            raise ValueError(f"seeds must be nonnegative, got {min(self.seeds)}")
        if not self.time_limit > 0:
            raise ValueError(f"time_limit must be positive, got {self.time_limit}")

    def cells(self) -> list[Cell]:
        """List all cells, in the order of the axes."""
        return [
            Cell(environment, learner, count, seed)
            for environment in self.environments
            for count in environment.n_demonstrations or self.n_demonstrations
            for seed in self.seeds
            for learner in self.learners
            if not environment.learners or learner.label in environment.learners
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as plain JSON data."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=dict))
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BenchmarkSpec:
        """Build from plain data, refusing keys that mean nothing."""
        mistakes = _mistakes("benchmark", data, cls)
        parts = {key: value for key, value in data.items() if key in {part.name for part in fields(cls)}}
        for axis, part in (("environments", EnvironmentSpec), ("learners", LearnerSpec)):
            made = []
            for k, entry in enumerate(parts.get(axis, ())):
                wrong = _mistakes(f"{axis}[{k}]", entry, part)
                try:
                    made += [] if wrong else [part(**entry)]
                except (TypeError, ValueError) as error:
                    wrong = [str(error)]
                mistakes += wrong
            parts[axis] = tuple(made)
        complete = all(_has_default(part) or parts.get(part.name) for part in fields(cls))
        if complete or not mistakes:  # else what is wrong with the rest cannot be told
            try:
                spec = cls(**parts)
            except (TypeError, ValueError) as error:
                mistakes.append(str(error))
        if mistakes:
            raise ValueError("; ".join(mistakes))
        return spec

    @classmethod
    def from_file(cls, path: str | Path, imported: Sequence[str] | None = ()) -> BenchmarkSpec:
        """Read a spec from a TOML file (``[[environments]]``, ``[[learners]]`` and the rest) or a ``spec.json``.

        Parameters
        ----------
        path
            The file.
        imported
            Modules that the environments and learners in it may come from, beside Gymnasium and this package; others
            are refused. None if nothing is to be made of what is read.
        """
        file = Path(path)
        reader = json if file.suffix == ".json" else tomllib
        with refusing(file, f"is not a {file.suffix[1:].upper()} file of a benchmark"):
            spec = cls.from_dict(reader.loads(file.read_text(encoding="utf-8")))
        if imported is not None:
            for environment in spec.environments:
                check_named_environment(str(file), environment.env_id, environment.kwargs, imported)
            for learner in spec.learners:
                check_named_learner(str(file), learner.name, imported)
        return spec


def _mistakes(where: str, data: Mapping[str, Any], part: Any) -> list[str]:
    """Return what is wrong with the keys of an entry: all of it."""
    known = [f.name for f in fields(part)]
    unknown = [f"{where} has no setting {key!r}; it takes {', '.join(known)}" for key in data if key not in known]
    missing = [f.name for f in fields(part) if f.name not in data and not _has_default(f)]
    return unknown + [f"{where} lacks the setting {name!r}" for name in missing]


def _has_default(part: Any) -> bool:
    return part.default is not MISSING or part.default_factory is not MISSING


def _check_counts(where: str, counts: Sequence[int]) -> None:
    if counts and min(counts) < 1:
        raise ValueError(f"{where} must be at least 1, got {min(counts)}")


def _check_label(what: str, label: str) -> None:
    if not label or any(character in label for character in "/= \t\n"):
        raise ValueError(f"{what} must be a word without '/', '=' or spaces, got {label!r}")
