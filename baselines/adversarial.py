"""Adversarial imitation, GAIL and AIRL, by `imitation` with a PPO generator."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np

from lfd_gym.baselines.behavioral_cloning import PairBatches
from lfd_gym.baselines.learner import Checkpoint, Learner, LearningResult, checkpoints_at
from lfd_gym.baselines.neural.seeding import SeededTorch
from lfd_gym.baselines.playing import network_arch, padded_demonstrations, quiet_logger, training_envs
from lfd_gym.policies.conversion import as_policy
from lfd_gym.resources import Resources
from lfd_gym.task import Access, Task

try:
    import torch as th
    from imitation.algorithms.adversarial.airl import AIRL
    from imitation.algorithms.adversarial.gail import GAIL
    from imitation.rewards.reward_nets import BasicRewardNet, RewardNet
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError("this learner needs the 'imitation' extra: pip install 'lfd-gym[imitation]'") from error


class PairRewardNet(RewardNet):
    """A reward (or a discriminator's logit) of its own for every pair of a state and an action."""

    def __init__(self, observation_space: gym.spaces.Discrete, action_space: gym.spaces.Discrete) -> None:
        super().__init__(observation_space, action_space)
        self.logits = th.nn.Parameter(th.zeros(int(observation_space.n), int(action_space.n)))

    def forward(self, state: th.Tensor, action: th.Tensor, next_state: th.Tensor, done: th.Tensor) -> th.Tensor:
        """Look up; ``state`` and ``action`` are one-hot."""
        return ((state @ self.logits) * action).sum(dim=1)


#: Settings for finitely many states and actions, where tables take the place of networks, and for everything else.
_TABLES: dict[str, Any] = {
    "n_envs": 256,
    "n_steps": 20,
    "learning_rate": 0.1,
    "batch_size": 1280,
    "gae_lambda": 0.2,
    "hidden_sizes": (),
    "reward_learning_rate": 0.05,
}
_NETWORKS: dict[str, Any] = {
    "n_envs": 8,
    "n_steps": 512,
    "learning_rate": 5e-4,
    "batch_size": 256,
    "gae_lambda": 0.95,
    "hidden_sizes": (64, 64),
    "reward_learning_rate": 1e-3,
}


@dataclass(frozen=True)
class Adversarial(Learner):
    """Settings that GAIL and AIRL share; the budget is a number of environment steps.

    Where the default is None it depends on the task: over finitely many states and actions the generator and the
    discriminator are tables (chosen on the 16-by-16 gridworld at γ = 0.9), elsewhere networks.

    Attributes
    ----------
    n_envs, n_steps
        The generator learns from ``n_envs`` × ``n_steps`` steps at a time.
    learning_rate, n_epochs, batch_size, entropy_weight, gae_lambda, clip_range
        Of PPO. The learning rate falls linearly to a twentieth over the budget.
    hidden_sizes
        Of the generator's networks; none: a table of logits for finitely many states.
    reward_learning_rate, reward_batch_size, n_reward_updates
        Of the discriminator: Adam's step, expert pairs in a batch, batches in a round.
    replay_rounds
        The discriminator sees generated steps of so many last rounds.
    """

    n_envs: int | None = None
    n_steps: int | None = None
    learning_rate: float | None = None
    n_epochs: int = 5
    batch_size: int | None = None
    entropy_weight: float = 0.0
    gae_lambda: float | None = None
    clip_range: float = 0.2
    hidden_sizes: tuple[int, ...] | None = None
    reward_learning_rate: float | None = None
    reward_batch_size: int = 2048
    n_reward_updates: int = 4
    replay_rounds: int = 5

    needs: ClassVar[Access] = "episodes"
    needs_actions: ClassVar[bool] = True
    budget_unit: ClassVar[str] = "environment steps"
    default_budget: ClassVar[int] = 1_000_000
    kind: ClassVar[Literal["gail", "airl"]] = "gail"

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Alternate between the generator and the discriminator until the budget is spent."""
        settings = self.settings_for(task)
        a_round = settings["n_envs"] * settings["n_steps"]
        if budget < a_round:
            raise ValueError(f"budget must be at least one round, n_envs * n_steps = {a_round} steps, got {budget}")
        n_rounds = budget // a_round
        due, on_the_way = set(checkpoints_at(n_rounds)), []
        with SeededTorch(rng):
            trainer = self.trainer(task, n_rounds, rng)
            for k in range(n_rounds):
                if k in due:
                    on_the_way.append(Checkpoint(k * a_round, as_policy(copy.deepcopy(trainer.policy))))
                trainer.train_gen()
                for _ in range(self.n_reward_updates):
                    trainer.train_disc()
        return LearningResult(
            as_policy(trainer.policy),
            resources=Resources(env_steps=n_rounds * a_round),
            facts={"n_rounds": n_rounds},
            checkpoints=tuple(on_the_way),
        )

    def settings_for(self, task: Task) -> dict[str, Any]:
        """Return the settings with those that depend on the task filled in."""
        own = {part.name: getattr(self, part.name) for part in fields(self)}
        filled = _NETWORKS if task.dynamics is None else _TABLES
        return {name: filled[name] if value is None else value for name, value in own.items()}

    def trainer(self, task: Task, n_rounds: int, rng: np.random.Generator) -> GAIL | AIRL:
        """Return `imitation`'s trainer with these settings."""
        settings = self.settings_for(task)
        venv = training_envs(task, settings["n_envs"], rng)
        demonstrations = padded_demonstrations(task, rng)
        algorithm: type[GAIL] | type[AIRL] = GAIL if self.kind == "gail" else AIRL
        return algorithm(
            demonstrations=PairBatches(demonstrations, self.reward_batch_size, rng),
            demo_batch_size=self.reward_batch_size,
            venv=venv,
            gen_algo=self._generator(venv, settings, task.discount, n_rounds, int(rng.integers(2**31))),
            reward_net=self._reward_net(venv, task),
            n_disc_updates_per_round=self.n_reward_updates,
            disc_opt_kwargs={"lr": settings["reward_learning_rate"]},
            gen_replay_buffer_capacity=settings["n_envs"] * settings["n_steps"] * self.replay_rounds,
            custom_logger=quiet_logger(),
            allow_variable_horizon=task.dynamics is None,
        )

    def _generator(self, venv: VecEnv, settings: dict[str, Any], discount: float, n_rounds: int, seed: int) -> PPO:
        rounds_begun = itertools.count()

        def falling(_: float) -> float:
            # Every round is a call of `learn`, which starts Stable-Baselines3's own progress anew. PPO asks for the
            # learning rate once when it is made (for the first round's optimiser) and once in every round.
            return float(settings["learning_rate"] * max(1 - next(rounds_begun) / n_rounds, 0.05))

        return PPO(
            "MlpPolicy",
            venv,
            learning_rate=falling,
            n_steps=settings["n_steps"],
            batch_size=settings["batch_size"],
            n_epochs=self.n_epochs,
            gamma=discount,
            gae_lambda=settings["gae_lambda"],
            clip_range=self.clip_range,
            ent_coef=self.entropy_weight,
            policy_kwargs={"net_arch": network_arch(settings["hidden_sizes"])},
            seed=seed,
            device="cpu",
        )

    def _reward_net(self, venv: VecEnv, task: Task) -> RewardNet:
        observations: Any = venv.observation_space
        actions: Any = venv.action_space
        if task.dynamics is not None:
            return PairRewardNet(observations, actions)
        return BasicRewardNet(observations, actions, hid_sizes=(32, 32))


@dataclass(frozen=True)
class Gail(Adversarial):
    """Generative adversarial imitation learning (Ho & Ermon)."""

    kind: ClassVar[Literal["gail", "airl"]] = "gail"


@dataclass(frozen=True)
class Airl(Adversarial):
    """Adversarial inverse reinforcement learning (Fu, Luo & Levine)."""

    kind: ClassVar[Literal["gail", "airl"]] = "airl"
