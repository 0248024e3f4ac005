"""The command ``certify``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

from lfd_gym.assessment.certificate import certify
from lfd_gym.commands.demonstrations import read_demonstrations
from lfd_gym.commands.training import FRESH, Imports, check_run_environment, make_task
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.envs.named import import_modules
from lfd_gym.files import replacing_file
from lfd_gym.plots import draw_certificate, save_figure
from lfd_gym.policies.files import load_policy
from lfd_gym.task import Task
from lfd_gym.training.run_folder import read_config, read_policy


@dataclass(frozen=True)
class Certify:
    """Say how much worse than the expert a policy can be, and what that rests on.

    Examples: lfd-gym certify runs/one; lfd-gym certify policy.npz --env CartPole-v1 --demonstrations demos.npz
    """

    source: tyro.conf.Positional[Path]
    """The folder that `lfd-gym train` wrote, or a policy file (.npz)."""
    env: str | None = None
    """What gymnasium.make takes; that of the run if not given. "none": there is no environment, and --held-out
    demonstrations of a deterministic expert tell all."""
    demonstrations: str | None = None
    """Those that the policy was learned from; those of the run if not given."""
    held_out: str | None = None
    """Others of the same expert, that were neither learned from nor looked at."""
    discount: float | None = None
    """Of the costs; that of the run if not given, else 0.9."""
    cost_features: Path | None = None
    """As for train; those of the run if not given."""
    env_kwargs: tuple[str, ...] = ()
    """Arguments of the environment as NAME=JSON; those of the run if not given."""
    delta: float = 0.05
    """Each statement is true with probability 1 - delta."""
    rollouts: int | None = None
    """How many episodes of the policy, where the model is not known: more make the bound tighter."""
    expert: Literal["any", "deterministic"] = "any"
    """Whether the expert is known to do the same whenever it is in the same state."""
    deterministic: bool = False
    """Certify the policy's most probable actions instead of drawn ones."""
    wanted: float | None = None
    """Say how many demonstrations and rollouts a bound of this size would take."""
    seed: int = 0
    """Of the rollouts; not one that learning used."""
    out: Path | None = None
    """Where to write the certificate as JSON; it is printed in any case."""
    picture: Path | None = None
    """Where to draw the bound over the number of demonstrations or rollouts, with what it consists of (.png)."""
    force: bool = False
    """Replace what is there."""
    imports: Imports = ()
    """Modules of yours that the environment comes from; what the folder of a run names is not imported."""

    def run(self) -> None:
        """Certify, print, write."""
        for path in (self.out, self.picture):
            if path is not None and path.exists() and not self.force:
                raise FileExistsError(f"{path} exists already; --force replaces it")
        import_modules(self.imports)
        config: dict[str, Any] = read_config(self.source) if self.source.is_dir() else {}
        policy = read_policy(self.source) if self.source.is_dir() else load_policy(self.source)
        task, held_out = self._task(config)
        certificate = certify(
            policy,
            task,
            delta=self.delta,
            rng=np.random.default_rng([self.seed, FRESH]),
            deterministic=self.deterministic,
            n_rollouts=self.rollouts,
            held_out=held_out,
            expert=self.expert,
        )
        print(certificate)
        if self.wanted is not None:
            needed = str(certificate.needed(self.wanted))
            print(needed[0].upper() + needed[1:] + ".")
        if self.out is not None:
            with replacing_file(self.out, self.force) as unfinished:
                text = json.dumps(certificate.to_dict(), indent=2, allow_nan=False)
                unfinished.write_text(text + "\n", encoding="utf-8")
            print(f"written to {self.out}")
        if self.picture is not None:
            with replacing_file(self.picture, self.force) as unfinished:
                save_figure(draw_certificate(certificate), unfinished)
            print(f"picture: {self.picture}")

    def _task(self, config: dict[str, Any]) -> tuple[Task, Demonstrations | None]:
        check_run_environment(self.source, self.env, self.env_kwargs, config, self.imports)
        env = self.env or config.get("env")
        place = self.demonstrations or config.get("demonstrations")
        if env is None:
            raise ValueError("--env must be given to certify a policy file: the file does not say its environment")
        if place is None and self.held_out is None:
            raise ValueError("--demonstrations or --held-out must be given: there is no expert to compare with")
        kwargs = self.env_kwargs or tuple(config.get("env_kwargs", ()))
        known = None if env == "none" else env
        held_out = None if self.held_out is None else read_demonstrations(self.held_out, known, kwargs)
        shown = None if place is None else read_demonstrations(place, known, kwargs)
        discount = self.discount if self.discount is not None else config.get("discount", 0.9)
        costs = self.cost_features or config.get("cost_features")
        if known is None:
            return Task(None, shown if shown is not None else held_out, discount=discount), held_out
        return make_task(known, kwargs, discount, None if costs is None else Path(costs), shown), held_out
