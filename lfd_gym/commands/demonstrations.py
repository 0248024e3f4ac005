"""The commands ``collect``, ``inspect`` and ``convert``.

Demonstrations are found at a *place*: a ``.npz`` file, a folder that `imitation` saved, or ``minari:ID``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import gymnasium as gym
import numpy as np
import tyro

from lfd_gym.commands.arguments import MINARI, choose_environment, make_env, parse_kwargs, read_demonstrations
from lfd_gym.commands.experts import Acting, check_target, make_expert
from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.environments import time_limit
from lfd_gym.demonstrations.sb3_expert import Algorithm
from lfd_gym.demonstrations.summary import summary_lines
from lfd_gym.envs.tabular import FiniteEnv
from lfd_gym.plots import save_visit_map

Format = Literal["npz", "imitation", "minari"]

_COPIES = 16
#: The time limit where the environment has none.
_HORIZON = 200


@dataclass(frozen=True)
class Collect:
    """Record demonstrations of an expert, and draw where it has been."""

    env: str
    """What gymnasium.make takes, e.g. CartPole-v1; MODULE:ID for one that a module of yours registers."""
    out: str
    """Where to write: a file (npz), a folder (imitation), or the id of a dataset such as grid/expert-v0 (minari)."""
    acting: Annotated[Acting, tyro.conf.arg(name="")] = field(default_factory=Acting)
    train_expert: Algorithm | None = None
    """Train an expert with Stable-Baselines3 on the environment's reward first, and keep it where --expert says, as
    policy:PATH.npz or as sb3:PATH.zip to go on with it there; by default beside the demonstrations."""
    steps: int = 50_000
    """With --train-expert: for how many steps of the environment."""
    trajectories: int = 10
    """How many."""
    horizon: int | None = None
    """The largest number of actions in each, instead of the environment's own time limit; 200 where there is none."""
    seed: int = 0
    """Of everything that is drawn."""
    format: Format = "npz"
    """The format to write."""
    force: bool = False
    """Replace what is there."""
    env_kwargs: tuple[str, ...] = ()
    """Arguments of the environment as NAME=VALUE, e.g. size=8 is_slippery=False."""
    picture: Path | None = None
    """The heat map of visits; by default beside the demonstrations (minari: in the current folder)."""

    def run(self) -> None:
        """Collect, write, and print a summary."""
        picture = self.picture or self._beside(".visits.png")
        who = self._who()
        self._check(picture, who)
        env_id, kwargs = choose_environment(self.env, self.env_kwargs, recorded=(None, {}), where="", imports=())
        env = self._make(kwargs, {"render_mode": "human"} if who == "human" else {})
        horizon = time_limit(env)
        assert horizon is not None
        rng = np.random.default_rng(self.seed)
        if who == "human":
            from lfd_gym.demonstrations.human_expert import collect_from_keyboard

            demos = collect_from_keyboard(env, self.trajectories, horizon, rng)
        else:
            if self.train_expert is not None:
                make_expert(env, self.train_expert, self.steps, self.seed, who, self.force)
            n_envs = None if isinstance(env.unwrapped, FiniteEnv) else min(self.trajectories, _COPIES)
            policy = self.acting.policy(who, env, rng)
            settings: dict[str, Any] = {"deterministic": self.acting.deterministic, "n_envs": n_envs}
            demos = collect(env, policy, self.trajectories, horizon, rng, **settings)
        # The spec of the environment has forgotten the module that registered it.
        demos = demos.with_provenance(seed=self.seed, policy=self._named(who), env_id=env_id)
        write_demonstrations(demos, self.out, self.format, self.force)
        save_visit_map(demos, picture, env)
        env.close()  # type: ignore[no-untyped-call]
        print("\n".join(summary_lines(demos, self.acting.discount)))
        print(f"\nwritten to {self.out} ({self.format}); visits drawn in {picture}")

    def _who(self) -> str:
        if self.acting.expert is not None:
            return self.acting.expert
        return "optimal" if self.train_expert is None else str(self._beside(".expert.npz"))

    def _named(self, who: str) -> str:
        """Return who acted, for the file."""
        return self.acting.described(who) if self.train_expert is None else f"{self.train_expert} ({self.steps} steps)"

    def _check(self, picture: Path, who: str) -> None:
        """Refuse what could not be done, before anything is done."""
        check_free(self.out, self.format, self.force)
        if picture.exists() and not self.force:
            raise FileExistsError(f"{picture} exists already; --force replaces it")
        for name in ("trajectories", "steps", "horizon"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if self.train_expert is not None:
            check_target(who, self.force)
        if who == "human":
            from lfd_gym.demonstrations.human_expert import check_screen

            check_screen()

    def _make(self, kwargs: Mapping[str, Any], settings: Mapping[str, Any]) -> gym.Env[Any, Any]:
        limit = {} if self.horizon is None else {"max_episode_steps": self.horizon}
        env = make_env(self.env, kwargs, **limit, **settings)
        if time_limit(env) is None:
            env = make_env(self.env, kwargs, max_episode_steps=_HORIZON, **settings)
        return env

    def _beside(self, ending: str) -> Path:
        if self.format == "minari":
            return Path(self.out.replace("/", "-") + ending)
        return Path(self.out.removesuffix(".npz") + ending)


@dataclass(frozen=True)
class Inspect:
    """Show what a file, a folder or a Minari dataset of demonstrations holds."""

    place: tyro.conf.Positional[str]
    """A .npz file, a folder that imitation saved, minari:ID, or minari: alone to list the local datasets."""
    env: str | None = None
    """The environment of a folder that imitation saved, which does not say its spaces."""
    env_kwargs: tuple[str, ...] = ()
    """Arguments of that environment as NAME=VALUE."""
    discount: float | None = None
    """Show the mean discounted cost as well."""

    def run(self) -> None:
        """Print the summary."""
        if self.place == MINARI:
            from lfd_gym.demonstrations.interop_minari import list_datasets

            for name, metadata in list_datasets().items():
                print(f"{name:40} {metadata['total_episodes']} episodes, {metadata['total_steps']} steps")
            return
        demos = read_demonstrations(self.place, self.env, parse_kwargs(self.env_kwargs))
        print("\n".join(summary_lines(demos, self.discount)))


@dataclass(frozen=True)
class Convert:
    """Write demonstrations in another format."""

    place: tyro.conf.Positional[str]
    """A .npz file, a folder that imitation saved, or minari:ID."""
    out: str
    """Where to write: a file (npz), a folder (imitation), or the id of a dataset such as grid/expert-v0 (minari)."""
    format: Format
    """The format to write."""
    force: bool = False
    """Replace what is there."""
    env: str | None = None
    """The environment of a folder that imitation saved, which does not say its spaces."""
    env_kwargs: tuple[str, ...] = ()
    """Arguments of that environment as NAME=VALUE."""

    def run(self) -> None:
        """Read, write, and say so."""
        demos = read_demonstrations(self.place, self.env, parse_kwargs(self.env_kwargs))
        write_demonstrations(demos, self.out, self.format, self.force)
        print(f"{demos}: written to {self.out} ({self.format})")


def check_free(out: str, kind: Format, force: bool) -> None:
    """Refuse early, before anything is computed, to write over what is there or to a name that does not fit."""
    if kind == "minari":
        if not force and dataset_exists(out):
            raise FileExistsError(f"there is a Minari dataset {out} already; --force replaces it")
        return
    if kind == "npz" and Path(out).suffix != ".npz":
        raise ValueError(f"out must end in .npz for the format npz, got {out}")
    if Path(out).exists() and not force:
        raise FileExistsError(f"{out} exists already; --force replaces it")
    if not Path(out).parent.is_dir():
        raise FileNotFoundError(f"cannot write {out}: the folder {Path(out).parent} does not exist")


def dataset_exists(dataset_id: str) -> bool:
    """Whether there is a local Minari dataset of that name."""
    from lfd_gym.demonstrations.interop_minari import dataset_path

    return dataset_path(dataset_id).exists()


def write_demonstrations(demonstrations: Demonstrations, out: str, kind: Format, force: bool) -> None:
    """Write demonstrations in one of the formats."""
    check_free(out, kind, force)
    if kind == "npz":
        demonstrations.save(out, overwrite=force)
    elif kind == "imitation":
        demonstrations.save_imitation(out, overwrite=force)
    else:
        demonstrations.to_minari(out, overwrite=force)
