"""SQIL (Reddy et al. 2020): soft Q-learning in which demonstrated steps are paid 1 and played ones 0, half each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.baselines.neural.fitting import check_played_task
from lfd_gym.resources import Resources
from lfd_gym.task import Access, Task

try:
    import stable_baselines3 as sb3
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

    from lfd_gym.baselines.neural.buffer import DemonstratedSteps, MixedReplayBuffer
    from lfd_gym.baselines.neural.envs import ScaledVecEnv, Scaling, training_envs
    from lfd_gym.baselines.neural.plain import plain_policy
    from lfd_gym.baselines.neural.progress import learn_with_bar
    from lfd_gym.baselines.neural.seeding import SeededTorch
except ImportError as error:
    raise ImportError(f"this learner needs the 'sb3' extra: pip install 'lfd-gym[sb3]' ({error})") from error

_N_ENVS, _UPDATES_PER_STEP = 4, 0.5
_BEFORE_UPDATES, _MOST_REPLAYED = 500, 200_000


@dataclass(frozen=True)
class Sqil(Learner):
    """SQIL with SAC, or with DQN for finitely many actions; the budget is a number of environment steps.

    Attributes
    ----------
    hidden_sizes, learning_rate, batch_size
        Of the networks; half of a batch is demonstrated.
    progress
        Whether a bar is shown, on a terminal.
    """

    hidden_sizes: tuple[int, ...] = (128, 128)
    learning_rate: float = 5e-4
    batch_size: int = 128
    progress: bool = True

    needs: ClassVar[Access] = "episodes"
    needs_actions: ClassVar[bool] = True
    budget_unit: ClassVar[str] = "environment steps"
    default_budget: ClassVar[int] = 30_000

    def quiet(self) -> Sqil:
        """Return the same learner without its bar."""
        return replace(self, progress=False)

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Play and update by turns."""
        check_played_task(self.name, task)
        with SeededTorch(rng):
            scaling = Scaling.for_playing(task, rng)
            venv = training_envs(task, _N_ENVS)
            envs = ScaledVecEnv(venv, task, scaling)
            model = self._player(task, envs, DemonstratedSteps.of(task, scaling, "cpu"), budget)
            model.set_random_seed(int(rng.integers(2**31 - _N_ENVS)))
            try:
                learn_with_bar(model, envs, budget, self.progress)
            finally:
                if venv is not task.env:
                    venv.close()
            policy = plain_policy(model.policy, scaling, task.demonstrations.observation_space, task.action_space)
            facts = {"algorithm": type(model).__name__, "n_updates": int(model._n_updates)}
            return LearningResult(policy, resources=Resources(env_steps=envs.n_steps), facts=facts)

    def _player(
        self, task: Task, envs: ScaledVecEnv, steps: DemonstratedSteps | None, budget: int
    ) -> OffPolicyAlgorithm:
        settings: dict[str, Any] = {
            "learning_rate": self.learning_rate,
            "batch_size": self.batch_size,
            "policy_kwargs": {"net_arch": list(self.hidden_sizes)},
            "gamma": min(task.discount, 0.999),
            "buffer_size": min(budget, _MOST_REPLAYED),
            "learning_starts": min(_BEFORE_UPDATES, budget // 10),
            "train_freq": 1,
            "gradient_steps": max(1, round(_UPDATES_PER_STEP * envs.num_envs)),
            "replay_buffer_class": MixedReplayBuffer,
            "replay_buffer_kwargs": {"demonstrations": steps, "share": 0.5, "paid": 1.0},
            "device": "cpu",
        }
        if isinstance(task.action_space, gym.spaces.Box):
            return sb3.SAC("MlpPolicy", envs, **settings)
        return sb3.DQN("MlpPolicy", envs, tau=0.005, target_update_interval=1, exploration_fraction=0.2, **settings)
