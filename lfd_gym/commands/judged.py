"""What `evaluate` and `certify` have in common: a policy, and the task that it is judged on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from lfd_gym.commands.arguments import Imports, choose_environment, make_task, read_demonstrations
from lfd_gym.commands.experts import Trust, named_policy
from lfd_gym.commands.workers import Workers
from lfd_gym.engines import Engine
from lfd_gym.files import replacing_file
from lfd_gym.policies.policy import Policy
from lfd_gym.task import Task
from lfd_gym.training.run_folder import read_config

#: Beside the seed of a command: what rollouts that judge a policy are drawn from, and no learner.
FRESH = 19


@dataclass(frozen=True)
class Judged:
    """A policy, and the task that it is judged on."""

    source: tyro.conf.Positional[str]
    """The folder that `lfd-gym train` wrote; or a policy file (.npz), sb3:PATH or MODULE:NAME as for collect, with
    --env and --demonstrations."""
    env: str | None = None
    """What gymnasium.make takes; that of the run if not given."""
    demonstrations: str | None = None
    """To compare with, those that the policy was learned from; those of the run if not given."""
    discount: float | None = None
    """Of the costs; that of the run if not given, else 0.9."""
    horizon: int | None = None
    """Only the first so many steps count; as in the run if not given, else all do."""
    cost_features: Path | None = None
    """As for train; those of the run if not given."""
    env_kwargs: tuple[str, ...] = ()
    """Arguments of the environment as NAME=VALUE; without --env they override those of the run."""
    allow_mismatch: bool = False
    """Whether demonstrations may be of another environment, or of one made with other arguments."""
    deterministic: bool = False
    """Take the policy's most probable actions instead of drawing them."""
    rollouts: int | None = None
    """How many episodes of the policy, where the model is not known."""
    trust: Trust = False
    seed: int = 0
    """Of the rollouts; not one that learning used."""
    out: Path | None = None
    """Where to write what is found as JSON; it is printed in any case."""
    force: bool = False
    """Replace what is there."""
    imports: Imports = ()
    """Modules of yours that the environment comes from; what the folder of a run names is not imported."""
    where: Annotated[Workers, tyro.conf.arg(name="")] = field(default_factory=Workers)

    @property
    def folder(self) -> Path | None:
        """The folder of a run, if that is the source."""
        path = Path(self.source)
        return path if path.is_dir() else None

    @cached_property
    def config(self) -> dict[str, Any]:
        """What the run was asked for; nothing if there is no run."""
        return {} if self.folder is None else read_config(self.folder)

    def check_source(self) -> None:
        """Refuse a place where nothing is."""
        if ":" not in str(self.source) and not Path(self.source).exists():
            raise FileNotFoundError(f"there is no file or folder {self.source}")

    def policy(self, env: Any) -> Policy:
        """Return what is judged."""
        return named_policy(str(self.source), env, self.trust)

    def rng(self) -> np.random.Generator:
        """Return the generator of the rollouts."""
        return np.random.default_rng([self.seed, FRESH])

    def engine(self) -> Engine | None:
        """Return what plays the rollouts, None for this process."""
        return self.where.make() if self.where.asked_for else None

    def task(self, held_out: str | None = None) -> tuple[Task, Any]:
        """Return the task, and the demonstrations at another place, if there is one."""
        env_id, kwargs = choose_environment(
            self.env,
            self.env_kwargs,
            recorded=(self.config.get("env"), self.config.get("env_kwargs", ())),
            where=str(Path(self.source) / "config.json"),
            imports=self.imports,
        )
        if env_id is None:
            self.check_source()
            raise ValueError(f"--env must be given for {self.source}, which does not say its environment")
        place = self.demonstrations or self.config.get("demonstrations")
        known = None if env_id == "none" else env_id
        shown, other = (
            None if each is None else read_demonstrations(each, known, kwargs) for each in (place, held_out)
        )
        discount = self.discount if self.discount is not None else self.config.get("discount", 0.9)
        horizon = self.horizon if self.horizon is not None else self.config.get("horizon")
        if known is None:
            if shown is None:
                raise ValueError(
                    "--demonstrations must be given with --env none: those that the policy was learned from, of which "
                    "none may be among the --held-out ones"
                )
            return Task(None, shown, discount=discount, horizon=horizon), other
        costs = self.cost_features or self.config.get("cost_features")
        allowed = self.allow_mismatch or bool(self.config.get("allow_mismatch", False))
        file = None if costs is None else Path(costs)
        return make_task(known, kwargs, discount, file, shown, horizon=horizon, allow_mismatch=allowed), other

    def write_json(self, path: Path, content: Mapping[str, Any]) -> None:
        """Write what was found, and say where it is."""
        with replacing_file(path, self.force) as unfinished:
            unfinished.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        print(f"written to {path}")
