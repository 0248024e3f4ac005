"""IQ-Learn: the function Q whose soft-optimal policy is the expert's; see `lfd_gym.baselines.neural.soft_q`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from tqdm import trange

from lfd_gym.baselines.learner import Checkpoint, LearningResult, checkpoints_at
from lfd_gym.baselines.neural.fitting import check_cloned_task
from lfd_gym.task import Access, Task

try:
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

    from lfd_gym.baselines.neural.buffer import DemonstratedSteps
    from lfd_gym.baselines.neural.envs import ScaledVecEnv, Scaling
    from lfd_gym.baselines.neural.networks import BoxNetworks, DiscreteNetworks, Networks
    from lfd_gym.baselines.neural.replaying import Networked, Replaying, demonstrated, kept
    from lfd_gym.baselines.neural.seeding import SeededTorch
    from lfd_gym.baselines.neural.soft_q import InverseSoftQ, Steps
except ImportError as error:
    raise ImportError(f"this learner needs the 'sb3' extra: pip install 'lfd-gym[sb3]' ({error})") from error


@dataclass(frozen=True)
class _Settings(Networked):
    """What both ways share; a batch has as many demonstrated as played steps.

    Attributes
    ----------
    temperature
        τ, of the soft values.
    regularisation
        α, of the χ² term: the smaller, the nearer the recovered reward is to zero.
    """

    temperature: float = 0.003
    regularisation: float = 0.5

    def _soft_q(self, networks: Networks, task: Task) -> InverseSoftQ:
        return InverseSoftQ(
            networks,
            discount=min(task.discount, 0.999),
            learning_rate=self.learning_rate,
            temperature=self.temperature,
            regularisation=self.regularisation,
        )


@dataclass(frozen=True)
class IqLearn(_Settings, Replaying):
    """IQ-Learn that plays. See `_Settings` and `Replaying` for what can be set."""

    def player(
        self, task: Task, envs: ScaledVecEnv, steps: DemonstratedSteps, settings: dict[str, Any]
    ) -> OffPolicyAlgorithm:
        """Return what plays with the actor."""
        player = _Player(_networks(task), envs, **settings)
        player.shown, player.soft_q = steps, self._soft_q(player.policy, task)
        return player

    def acting(self, player: OffPolicyAlgorithm) -> Any:
        """Return the running average of the actor."""
        networks: Any = player.policy
        return networks.averaged


@dataclass(frozen=True)
class IqLearnOffline(_Settings):
    """IQ-Learn from the demonstrations alone; the budget is a number of updates."""

    needs: ClassVar[Access] = "demonstrations"
    budget_unit: ClassVar[str] = "updates"
    default_budget: ClassVar[int] = 15_000

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Update by the demonstrated steps."""
        check_cloned_task(self.name, task)
        with SeededTorch(rng):
            in_numbers = isinstance(task.observation_space, gym.spaces.Box)
            scaling = Scaling.of(task.demonstrations.acted_on, None) if in_numbers else None
            seen: Any = task.demonstrations.observation_space
            if scaling is not None:
                seen = gym.spaces.Box(-np.inf, np.inf, scaling.centre.shape, np.float32)
            networks = _networks(task)(seen, task.action_space, lambda _: 0.0, list(self.hidden_sizes))
            soft_q, shown = self._soft_q(networks, task), demonstrated(task, scaling)
            due, on_the_way = set(checkpoints_at(budget)), []
            for k in trange(budget, desc="updating", delay=1, disable=None if self.progress else True, leave=False):
                if k in due:
                    on_the_way.append(Checkpoint(k, kept(networks.averaged, task, scaling)))
                soft_q.update(_some(shown, self.batch_size), left=1 - k / budget)
            return LearningResult(kept(networks.averaged, task, scaling), checkpoints=tuple(on_the_way))


class _Player(OffPolicyAlgorithm):
    """Explores with the actor; every update takes as many demonstrated as played steps."""

    policy: Networks
    shown: DemonstratedSteps
    soft_q: InverseSoftQ

    def __init__(self, networks: type[Networks], envs: ScaledVecEnv, **settings: Any) -> None:
        spaces: Any = (gym.spaces.Box, gym.spaces.Discrete)
        super().__init__(
            networks, envs, sde_support=False, support_multi_env=True, supported_action_spaces=spaces, **settings
        )
        self._setup_model()

    def train(self, gradient_steps: int, batch_size: int) -> None:
        """Update by demonstrated and played steps."""
        for _ in range(gradient_steps):
            self._n_updates += 1
            batch = self.replay_buffer.sample(batch_size)  # type: ignore[union-attr]
            played = Steps(batch.observations, batch.actions, batch.next_observations, batch.dones)
            self.soft_q.update(_some(self.shown, batch_size), played, self._current_progress_remaining)


def _networks(task: Task) -> type[Networks]:
    return BoxNetworks if isinstance(task.action_space, gym.spaces.Box) else DiscreteNetworks


def _some(steps: DemonstratedSteps, n: int) -> Steps:
    chosen = steps.some(n)
    parts = (steps.observations, steps.actions, steps.next_observations, steps.dones)
    return Steps(*(part[chosen] for part in parts))
