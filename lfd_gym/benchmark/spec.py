"""A benchmark as data: environments × learners × numbers of demonstrations × seeds.

A spec is immutable and made of *cells*. A cell's id is readable and is all its randomness depends on, so a result
depends neither on the order in which cells run nor on how many workers run them; and every learner of one environment,
number of demonstrations and seed is given the same demonstrations, because their stream is named without the learner.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from lfd_gym.validation import all_at_once, discount_factor

#: Experts that a spec may name, beside ``"optimal"``: what stands before the colon, and what comes behind it.
EXPERTS = {
    "policy": "a file of lfd_gym.save_policy",
    "sb3": "a model that Stable-Baselines3 saved",
    "trained": "ppo, dqn or sac, and for how many steps, as in trained:sac:20000",
    "demonstrations": "a file of Demonstrations.save",
    "data": "a name in lfd_gym.datasets.names()",
}
#: What `trained` may name.
TRAINED_BY = ("ppo", "dqn", "sac")
#: How many wrong entries of a list are shown.
_SHOWN = 5


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
        ``trained:ALGORITHM:STEPS``, ``demonstrations:FILE`` or ``data:NAME``, see `EXPERTS`. Of demonstrations that are
        there, each seed is shown others; networks take their best actions.
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
        for axis in ("learners", "n_demonstrations"):
            object.__setattr__(self, axis, _tuple(getattr(self, axis)))
        with all_at_once() as each:
            with each():
                _check_label("label of an environment", self.label)
            whose = f"of environment {self.label}"
            with each():
                check_kind(f"env_id {whose}", self.env_id, str, "a text")
            with each():
                discount_factor(f"discount {whose}", self.discount)
            with each():
                _check_counts(f"horizon {whose}", () if self.horizon is None else (self.horizon,))
            with each():
                check_kind(f"kwargs {whose}", self.kwargs, Mapping, "a table of names and values")
            with each():
                _check_expert(whose, self.expert)
            with each():
                _check_counts(f"n_demonstrations {whose}", self.n_demonstrations)
            with each():
                check_kind(f"learners {whose}", self.learners, tuple, "a list of labels")


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
        with all_at_once() as each:
            with each():
                check_kind("name of a learner", self.name, str, "a text")
                if not self.label:
                    object.__setattr__(self, "label", self.name.rpartition(":")[2])
            with each():
                _check_label("label of a learner", self.label)
            with each():
                check_kind(f"budget of learner {self.label}", self.budget, int | None, "an integer")
            with each():
                check_kind(f"settings of learner {self.label}", self.settings, Mapping, "a table of names and values")


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

    def checkpoint_stream(self, purpose: str) -> np.random.Generator:
        """Return the generator of the episodes that checkpoints are judged by, for one purpose."""
        return named_stream(f"{purpose} checkpoints of {self.task_id}")

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
        axes = ("environments", "learners", "n_demonstrations", "seeds")
        for axis in axes:
            object.__setattr__(self, axis, _tuple(getattr(self, axis)))
        with all_at_once() as each:
            for axis in axes:
                with each():
                    _check_axis(axis, getattr(self, axis))
            with each():
                _check_counts("n_demonstrations", self.n_demonstrations)
            with each():
                _check_counts("seeds", self.seeds, least=0)
            labels = {learner.label for learner in self.learners}
            for environment in self.environments:
                for label in environment.learners:
                    with each():
                        _check_known(f"environment {environment.label} names", label, labels)
            with each():
                if not (_is_number(self.time_limit) and self.time_limit > 0):
                    raise ValueError(f"time_limit must be a positive number, got {self.time_limit!r}")

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


def check_kind(what: str, value: Any, kind: Any, words: str) -> None:
    """Refuse a value of another kind; ``words`` say what it must be."""
    if not isinstance(value, kind):
        raise TypeError(f"{what} must be {words}, got {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_counts(what: str, counts: Any, least: int = 1) -> None:
    check_kind(what, counts, tuple, "a list of integers")
    wrong = [n for n in counts if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < least]
    if wrong:
        raise ValueError(f"{what} must be integers from {least} on, got {', '.join(map(repr, wrong[:_SHOWN]))}")


def _check_axis(axis: str, values: Any) -> None:
    """Refuse an axis of a benchmark that is empty or has something twice."""
    check_kind(axis, values, tuple, "a list")
    if not values:
        raise ValueError(f"{axis} must not be empty")
    counts = Counter(getattr(value, "label", value) for value in values)
    repeated = [str(key) for key, count in counts.items() if count > 1]
    if repeated:
        raise ValueError(f"{axis} must be distinct, but {', '.join(repeated)} occurs more than once")


def _check_known(what: str, label: str, labels: set[str]) -> None:
    if label not in labels:
        raise ValueError(f"{what} {label!r}, which is no learner's label")


def _check_expert(whose: str, expert: Any) -> None:
    kind, _, which = str(expert).partition(":")
    if expert != "optimal" and not (isinstance(expert, str) and kind in EXPERTS and which):
        known = ", ".join(f"{name}:… ({what})" for name, what in EXPERTS.items())
        raise ValueError(f"expert {whose} must be optimal, {known}, got {expert!r}")
    algorithm, _, steps = which.partition(":")
    if kind == "trained" and not (algorithm in TRAINED_BY and steps.isdecimal() and int(steps) > 0):
        raise ValueError(f"expert {whose} must be trained by {EXPERTS[kind]}, got {expert!r}")


def _tuple(values: Any) -> Any:
    """Return a list as a tuple, and anything else as it is."""
    return tuple(values) if isinstance(values, Sequence) and not isinstance(values, str) else values


def _check_label(what: str, label: str) -> None:
    if not isinstance(label, str) or not label or any(character in label for character in "/= \t\n"):
        raise ValueError(f"{what} must be a word without '/', '=' or spaces, got {label!r}")
