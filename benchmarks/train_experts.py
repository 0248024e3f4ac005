"""Train the experts in `experts/` with Stable-Baselines3, or say what experts and the random policy get.

Each is judged every few thousand steps by the best actions it takes in 20 episodes, and the best of these networks is
kept, in the file format of this package. One after the other on one core they take under half an hour.

    python benchmarks/train_experts.py CartPole-v1    # train some
    python benchmarks/train_experts.py                # train all
    python benchmarks/train_experts.py --evaluate     # print the table of returns
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
import tyro
from experts import FOLDER, Floats, Kind, episode_returns, has_expert, installed_id, random_and_expert_returns
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise

import lfd_gym as lfd
from lfd_gym.policies.tables import UniformPolicy

#: Episodes that judge a network during training, begun otherwise than those of the table.
JUDGING_EPISODES, JUDGING_SEED = 20, 1_000_000
KINDS: tuple[Kind, ...] = ("rule", "sb3")


@dataclass(frozen=True)
class Recipe:
    """How one expert is trained.

    Attributes
    ----------
    algorithm
        Of Stable-Baselines3.
    steps
        Of all environments together.
    judged_every
        Steps between two judgements.
    n_envs
        How many environments run side by side.
    settings
        Of the algorithm.
    hidden
        Width of the two hidden layers.
    """

    algorithm: Callable[..., BaseAlgorithm]
    steps: int
    judged_every: int
    n_envs: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    hidden: int = 64


def linear(first: float) -> Callable[[float], float]:
    """A schedule that falls from ``first`` to zero."""
    return lambda left: first * left


#: CartPole's steps are few and its updates many; InvertedPendulum is the same task with a force.
_BALANCE = {
    **{"n_steps": 32, "batch_size": 256, "n_epochs": 20, "gamma": 0.98, "gae_lambda": 0.8},
    **{"learning_rate": linear(1e-3), "clip_range": linear(0.2)},
}

#: Of what runs in MuJoCo: an update for every step, small enough to be done in half an hour each.
_RUN = {"learning_rate": 3e-4, "batch_size": 256, "gradient_steps": 4, "learning_starts": 5_000}
_FASTER = {"learning_rate": 7e-4, "batch_size": 128}

RECIPES = {
    "CartPole-v1": Recipe(PPO, 100_000, 10_000, n_envs=8, settings=_BALANCE),
    "MountainCar-v0": Recipe(
        DQN,
        *(120_000, 2_000),
        settings={
            **{"learning_rate": 4e-3, "batch_size": 128, "buffer_size": 10_000, "learning_starts": 1_000},
            **{"gamma": 0.98, "target_update_interval": 600, "train_freq": 16, "gradient_steps": 8},
            **{"exploration_fraction": 0.2, "exploration_final_eps": 0.07},
        },
        hidden=128,  # what is learned comes and goes, with 64 more so
    ),
    # The reward is far away and every push costs: unless noise swings the car up to it, doing nothing is learned. Noise
    # that remembers some 20 steps, a quarter of a swing, does. (State-dependent exploration would need another form of
    # network, which files do not keep.)
    "MountainCarContinuous-v0": Recipe(
        SAC,
        *(50_000, 2_500),
        settings={
            **{"learning_rate": 3e-4, "batch_size": 512, "buffer_size": 50_000, "learning_starts": 1_000},
            **{"gamma": 0.9999, "tau": 0.01, "train_freq": 32, "gradient_steps": 32, "ent_coef": 0.1},
            "action_noise": OrnsteinUhlenbeckActionNoise(np.zeros(1), np.full(1, 0.22), theta=0.05, dt=1.0),
        },
    ),
    "Acrobot-v1": Recipe(
        PPO,
        *(400_000, 20_000),
        n_envs=16,
        settings={"n_steps": 256, "n_epochs": 4, "gamma": 0.99, "gae_lambda": 0.94},
    ),
    "Pendulum-v1": Recipe(SAC, 20_000, 1_000, settings={"learning_rate": 1e-3}),
    "InvertedPendulum-v5": Recipe(PPO, 100_000, 10_000, n_envs=8, settings=_BALANCE),
    "InvertedDoublePendulum-v5": Recipe(SAC, 20_000, 2_000, settings={"learning_rate": 1e-3, "batch_size": 128}),
    "HalfCheetah-v5": Recipe(SAC, 80_000, 5_000, n_envs=4, settings=_RUN | _FASTER, hidden=128),
    "Hopper-v5": Recipe(SAC, 120_000, 5_000, n_envs=4, settings=_RUN, hidden=128),
}


class KeepBest(BaseCallback):
    """Judge the network now and then, and remember the best weights; among equals, those trained longest."""

    def __init__(self, env_id: str, every: int) -> None:
        super().__init__()
        self.env_id, self.every, self.due = env_id, every, every
        self.best, self.weights = -np.inf, dict[str, torch.Tensor]()

    def _on_step(self) -> bool:
        if self.num_timesteps >= self.due:
            self.due += self.every
            self.judge()
        return True

    def judge(self) -> None:
        policy = lfd.as_policy(self.model, deterministic=True)
        mean = episode_returns(self.env_id, policy, JUDGING_EPISODES, JUDGING_SEED).mean()
        if mean >= self.best:
            self.best = mean
            self.weights = {name: tensor.clone() for name, tensor in self.model.policy.state_dict().items()}
        print(f"{self.env_id}: {self.num_timesteps} steps, {mean:.1f}, best {self.best:.1f}", file=sys.stderr)


def train(env_id: str, seed: int, path: Path) -> None:
    """Train one expert and write its file."""
    recipe, start = RECIPES[env_id], time.perf_counter()
    envs = make_vec_env(installed_id(env_id), recipe.n_envs, seed=seed)
    hidden = {"net_arch": [recipe.hidden, recipe.hidden]}
    algorithm = recipe.algorithm("MlpPolicy", envs, seed=seed, device="cpu", policy_kwargs=hidden, **recipe.settings)
    best = KeepBest(env_id, recipe.judged_every)
    algorithm.learn(recipe.steps, callback=best)
    algorithm.policy.load_state_dict(best.weights)
    path.parent.mkdir(parents=True, exist_ok=True)
    lfd.save_policy(algorithm, path, overwrite=True)
    check_same_actions(env_id, algorithm, path)
    seconds, size = time.perf_counter() - start, path.stat().st_size
    print(f"{env_id}: {best.best:.1f} after {seconds:.0f} s, {path.name} has {size / 1000:.0f} kB")


def check_same_actions(env_id: str, algorithm: BaseAlgorithm, path: Path) -> None:
    """Raise if the policy in the file acts otherwise than the algorithm, on what it and a random one see."""
    kept, env = lfd.load_policy(path), gym.make(installed_id(env_id))
    players = (lfd.as_policy(kept, deterministic=True), UniformPolicy(env.action_space))
    seen = np.concatenate([lfd.collect(env, p, 5, rng=np.random.default_rng(0)).observations for p in players])
    if not np.array_equal(kept.greedy(seen), algorithm.predict(seen, deterministic=True)[0]):
        raise RuntimeError(f"{path} does not act as the network that was saved in it")


def print_returns(env_ids: Sequence[str], n_episodes: int) -> None:
    """Print mean returns with their standard errors, one row for each environment."""
    print(f"mean return ± standard error, {n_episodes} episodes")
    print(f"{'':26}" + "".join(f"{name:>18}" for name in ("random", *KINDS)))
    for env_id in env_ids:
        found = {
            kind: random_and_expert_returns(env_id, kind, n_episodes) for kind in KINDS if has_expert(env_id, kind)
        }
        columns = [_mean(next(iter(found.values())).random)]
        columns += [_mean(found[kind].expert) if kind in found else "" for kind in KINDS]
        print(f"{installed_id(env_id):26}" + "".join(f"{text:>18}" for text in columns), flush=True)


def _mean(returns: Floats) -> str:
    return f"{returns.mean():.1f} ± {returns.std(ddof=1) / np.sqrt(returns.size):.1f}"


@dataclass(frozen=True)
class Options:
    """Train experts with Stable-Baselines3, or print what experts and the random policy get."""

    env_ids: tyro.conf.Positional[tuple[str, ...]] = tuple(RECIPES)
    """Environments; all of them by default."""
    evaluate: bool = False
    """Print the table of returns; train nothing."""
    episodes: int = 100
    """How many for each number of the table."""
    seed: int = 0
    """Of networks, their exploration and the environments."""
    out: Path = FOLDER
    """Where the files of trained experts go."""


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    unknown = set(options.env_ids) - set(RECIPES)
    if unknown:
        sys.exit(f"no experts of {', '.join(sorted(unknown))}; known are {', '.join(RECIPES)}")
    torch.set_num_threads(1)  # networks this small do not gain from more
    if options.evaluate:
        print_returns(options.env_ids, options.episodes)
        return
    for env_id in options.env_ids:
        train(env_id, options.seed, options.out / f"{env_id}.npz")


if __name__ == "__main__":
    main()
