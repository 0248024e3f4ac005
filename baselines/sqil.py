"""SQIL (Reddy et al. 2020): soft Q-learning in which demonstrated steps are paid 1 and played ones 0, half each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from lfd_gym.task import Task

try:
    import stable_baselines3 as sb3
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

    from lfd_gym.baselines.neural.buffer import DemonstratedSteps, MixedReplayBuffer
    from lfd_gym.baselines.neural.envs import ScaledVecEnv
    from lfd_gym.baselines.neural.replaying import Replaying
except ImportError as error:
    raise ImportError(f"this learner needs the 'sb3' extra: pip install 'lfd-gym[sb3]' ({error})") from error


@dataclass(frozen=True)
class Sqil(Replaying):
    """SQIL with SAC, or with DQN for finitely many actions; half of a batch is demonstrated. See `Replaying`."""

    def player(
        self, task: Task, envs: ScaledVecEnv, steps: DemonstratedSteps, settings: dict[str, Any]
    ) -> OffPolicyAlgorithm:
        """Return SAC or DQN with a replay that pays the demonstrations."""
        settings |= {
            "gamma": min(task.discount, 0.999),
            "replay_buffer_class": MixedReplayBuffer,
            "replay_buffer_kwargs": {"demonstrations": steps, "share": 0.5, "paid": 1.0},
        }
        if isinstance(task.action_space, gym.spaces.Box):
            return sb3.SAC("MlpPolicy", envs, **settings)
        return sb3.DQN("MlpPolicy", envs, tau=0.005, target_update_interval=1, exploration_fraction=0.2, **settings)

    def acting(self, player: OffPolicyAlgorithm) -> Any:
        """Return the policy of the algorithm."""
        return player.policy
