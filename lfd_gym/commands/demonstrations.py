"""The commands ``collect``, ``inspect`` and ``convert``.

Demonstrations are found at a *place*: a ``.npz`` file, a folder that `imitation` saved, or ``minari:ID``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import tyro

from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.optimal_expert import optimal_policy
from lfd_gym.demonstrations.summary import summary_lines
from lfd_gym.envs.env_costs import reward_cost
from lfd_gym.envs.tabular import FiniteEnv
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.plots import save_visit_map
from lfd_gym.policies.experts import noisy_policy, soft_optimal_policy

Format = Literal["npz", "imitation", "minari"]

_MINARI = "minari:"
_COPIES = 16


@dataclass(frozen=True)
class Collect:
    """Record demonstrations of an expert, and draw where it has been."""

    env: str
    """What gymnasium.make takes, e.g. lfd_gym/StochasticGridworld-v0."""
    out: str
    """Where to write: a file (npz), a folder (imitation), or the id of a dataset such as grid/expert-v0 (minari)."""
    expert: str = "optimal"
    """optimal, noisy, soft, random, human, or ppo:PATH for a network saved by Stable-Baselines3. optimal plans in
    tabular environments and, on a grid, in simulators such as classic control; noisy and soft need a table."""
    trajectories: int = 10
    """How many."""
    horizon: int = 200
    """The largest number of actions in each; it replaces the environment's own time limit."""
    seed: int = 0
    """Of everything that is drawn."""
    format: Format = "npz"
    """The format to write."""
    force: bool = False
    """Replace what is there."""
    env_kwargs: tuple[str, ...] = ()
    """Arguments of the environment as NAME=JSON, e.g. size=8 cost_seed=1."""
    discount: float = 0.9
    """What optimal, noisy and soft experts plan with, and the discount of the costs in the summary. A reward that is a
    hundred steps away needs 0.99 or more."""
    epsilon: float = 0.1
    """How often a noisy expert acts at random."""
    temperature: float = 0.1
    """Of a soft expert, in the units of the cost."""
    train_ppo: int | None = None
    """With ppo:PATH: train the network for so many steps first, and save it to PATH."""
    deterministic: bool = False
    """With ppo:PATH: take the network's most probable actions instead of drawing them."""
    picture: Path | None = None
    """The heat map of visits; by default beside the demonstrations (minari: in the current folder)."""

    def run(self) -> None:
        """Collect, write, and print a summary."""
        picture = self.picture or self._beside()
        check_free(self.out, self.format, self.force)
        if picture.exists() and not self.force:
            raise FileExistsError(f"{picture} exists already; --force replaces it")
        kwargs = parse_kwargs(self.env_kwargs)
        if self.expert == "human":
            kwargs["render_mode"] = "human"
        env = gym.make(self.env, max_episode_steps=self.horizon, **kwargs)
        rng = np.random.default_rng(self.seed)
        if self.expert == "human":
            from lfd_gym.demonstrations.human_expert import collect_from_keyboard

            demos = collect_from_keyboard(env, self.trajectories, self.horizon, rng)
        else:
            n_envs = None if isinstance(env.unwrapped, FiniteEnv) else min(self.trajectories, _COPIES)
            policy = self._policy(env, rng)
            demos = collect(
                env, policy, self.trajectories, self.horizon, rng, deterministic=self.deterministic, n_envs=n_envs
            )
        demos = demos.with_provenance(seed=self.seed, policy=self._expert_name())
        write_demonstrations(demos, self.out, self.format, self.force)
        save_visit_map(demos, picture, env)
        env.close()  # type: ignore[no-untyped-call]
        print("\n".join(summary_lines(demos, self.discount)))
        print(f"\nwritten to {self.out} ({self.format}); visits drawn in {picture}")

    def _policy(self, env: gym.Env[Any, Any], rng: np.random.Generator) -> Any:
        if self.expert == "random":
            env.action_space.seed(int(rng.integers(2**31)))
            return lambda observations: np.stack([np.asarray(env.action_space.sample()) for _ in observations])
        if self.expert.startswith("ppo:"):
            return self._ppo(env, Path(self.expert.removeprefix("ppo:")))
        if self.expert not in ("optimal", "noisy", "soft"):
            raise ValueError(f"expert must be optimal, noisy, soft, random, human or ppo:PATH, got {self.expert!r}")
        if self.expert == "optimal":
            try:
                return optimal_policy(env, self.discount, rng=rng)
            except TypeError as error:
                raise ValueError(f"the expert optimal needs a table or a simulator: {error}") from error
        try:
            mdp, cost = FiniteMDP.from_env(env, self.discount), reward_cost(env)
        except TypeError as error:
            raise ValueError(f"the expert {self.expert} needs a tabular environment: {error}") from error
        if self.expert == "soft":
            return soft_optimal_policy(mdp, cost, self.temperature)
        return noisy_policy(mdp.optimal_policy(cost), self.epsilon)

    def _ppo(self, env: gym.Env[Any, Any], path: Path) -> Any:
        from lfd_gym.demonstrations.ppo_expert import load_ppo, save_ppo, train_ppo

        if self.train_ppo is not None:
            if path.exists() and not self.force:
                raise FileExistsError(f"{path} exists already; --force trains and saves it anew")
            save_ppo(train_ppo(env, self.train_ppo, self.seed), path, overwrite=self.force)
        return load_ppo(path, env.observation_space, env.action_space)

    def _beside(self) -> Path:
        if self.format == "minari":
            return Path(self.out.replace("/", "-") + ".visits.png")
        return Path(self.out.removesuffix(".npz") + ".visits.png")

    def _expert_name(self) -> str:
        detail = {"noisy": f" (epsilon={self.epsilon:g})", "soft": f" (temperature={self.temperature:g})"}
        return self.expert + detail.get(self.expert, "")


@dataclass(frozen=True)
class Inspect:
    """Show what a file, a folder or a Minari dataset of demonstrations holds."""

    place: tyro.conf.Positional[str]
    """A .npz file, a folder that imitation saved, minari:ID, or minari: alone to list the local datasets."""
    env: str | None = None
    """The environment of a folder that imitation saved, which does not say its spaces."""
    env_kwargs: tuple[str, ...] = ()
    """Arguments of that environment as NAME=JSON."""
    discount: float | None = None
    """Show the mean discounted cost as well."""

    def run(self) -> None:
        """Print the summary."""
        if self.place == _MINARI:
            from lfd_gym.demonstrations.interop_minari import list_datasets

            for name, metadata in list_datasets().items():
                print(f"{name:40} {metadata['total_episodes']} episodes, {metadata['total_steps']} steps")
            return
        demos = read_demonstrations(self.place, self.env, self.env_kwargs)
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
    """Arguments of that environment as NAME=JSON."""

    def run(self) -> None:
        """Read, write, and say so."""
        demos = read_demonstrations(self.place, self.env, self.env_kwargs)
        write_demonstrations(demos, self.out, self.format, self.force)
        print(f"{demos}: written to {self.out} ({self.format})")


def parse_kwargs(words: Sequence[str]) -> dict[str, Any]:
    """Read NAME=JSON words; what is no JSON is taken as a string."""
    kwargs: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"env_kwargs must be NAME=JSON, got {word!r}")
        try:
            kwargs[name] = json.loads(text)
        except ValueError:
            kwargs[name] = text
    return kwargs


def read_demonstrations(place: str, env_id: str | None = None, env_kwargs: Sequence[str] = ()) -> Demonstrations:
    """Read demonstrations from a place; the environment is needed for folders of `imitation` only."""
    if place.startswith(_MINARI):
        return Demonstrations.from_minari(place.removeprefix(_MINARI))
    if not Path(place).is_dir():
        return Demonstrations.load(place)
    if env_id is None:
        raise ValueError(f"{place} is a folder as imitation saves it, which does not say its spaces: give --env")
    env = gym.make(env_id, **parse_kwargs(env_kwargs))
    return Demonstrations.from_imitation(place, env.observation_space, env.action_space)


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
