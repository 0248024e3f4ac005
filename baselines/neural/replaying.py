"""What learners share that play with an algorithm of Stable-Baselines3 and replay. Importing this imports torch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from lfd_gym.baselines.learner import Checkpoint, Learner, LearningResult, checkpoints_at
from lfd_gym.baselines.neural.buffer import DemonstratedSteps
from lfd_gym.baselines.neural.envs import ScaledVecEnv, Scaling, training_envs
from lfd_gym.baselines.neural.fitting import check_played_task
from lfd_gym.baselines.neural.plain import plain_policy
from lfd_gym.baselines.neural.progress import Bar
from lfd_gym.baselines.neural.seeding import SeededTorch
from lfd_gym.policies.policy import Policy
from lfd_gym.resources import Resources
from lfd_gym.task import Access, Task

#: Copies of the environment that are played side by side, and updates for each step of one.
_N_ENVS, _UPDATES_PER_STEP = 4, 0.5
_BEFORE_UPDATES, _MOST_REPLAYED = 500, 200_000

Own = TypeVar("Own", bound="Networked")


@dataclass(frozen=True)
class Networked(Learner):
    """Settings of learners with networks.

    Attributes
    ----------
    hidden_sizes, learning_rate, batch_size
        Of the networks, which are those of ``primal_dual_rl``.
    progress
        Whether a bar is shown, on a terminal.
    """

    hidden_sizes: tuple[int, ...] = (128, 128)
    learning_rate: float = 5e-4
    batch_size: int = 128
    progress: bool = True

    needs_actions: ClassVar[bool] = True

    def quiet(self: Own) -> Own:
        """Return the same learner without its bar."""
        return replace(self, progress=False)


@dataclass(frozen=True)
class Replaying(Networked):
    """A learner that plays; the budget is a number of environment steps."""

    needs: ClassVar[Access] = "episodes"
    budget_unit: ClassVar[str] = "environment steps"
    default_budget: ClassVar[int] = 30_000

    @abstractmethod
    def player(
        self, task: Task, envs: ScaledVecEnv, steps: DemonstratedSteps, settings: dict[str, Any]
    ) -> OffPolicyAlgorithm:
        """Return the algorithm, with these settings and its own."""

    @abstractmethod
    def acting(self, player: OffPolicyAlgorithm) -> Any:
        """Return the network that acts, whose best actions are kept."""

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Play and update by turns."""
        check_played_task(self.name, task)
        with SeededTorch(rng):
            scaling = Scaling.for_playing(task, rng)
            venv = training_envs(task, _N_ENVS)
            envs = ScaledVecEnv(venv, task, scaling)
            player = self.player(task, envs, demonstrated(task, scaling), self._settings(envs, budget))
            player.set_random_seed(int(rng.integers(2**31 - _N_ENVS)))
            on_the_way = _OnTheWay(budget, lambda: kept(self.acting(player), task, scaling))
            try:
                watching = CallbackList([Bar(envs, budget, self.progress), on_the_way])
                player.learn(budget, watching, log_interval=None)  # type: ignore[arg-type]
            finally:
                if venv is not task.env:
                    venv.close()
            facts = {"algorithm": type(player).__name__, "n_updates": int(player._n_updates)}
            return LearningResult(
                kept(self.acting(player), task, scaling),
                resources=Resources(env_steps=envs.n_steps),
                facts=facts,
                checkpoints=tuple(on_the_way.found),
            )

    def _settings(self, envs: ScaledVecEnv, budget: int) -> dict[str, Any]:
        return {
            "learning_rate": self.learning_rate,
            "batch_size": self.batch_size,
            "policy_kwargs": {"net_arch": list(self.hidden_sizes)},
            "buffer_size": min(budget, _MOST_REPLAYED),
            "learning_starts": min(_BEFORE_UPDATES, budget // 10),
            "train_freq": 1,
            "gradient_steps": max(1, round(_UPDATES_PER_STEP * envs.num_envs)),
            "device": "cpu",
        }


class _OnTheWay(BaseCallback):
    """Keeps the policy from time to time."""

    def __init__(self, budget: int, policy_of: Callable[[], Policy]) -> None:
        super().__init__()
        self.found: list[Checkpoint] = []
        self._due, self._policy_of = checkpoints_at(budget), policy_of

    def _on_step(self) -> bool:
        if self._due and self.num_timesteps >= self._due[0]:
            self._due = [each for each in self._due if each > self.num_timesteps]
            self.found.append(Checkpoint(self.num_timesteps, self._policy_of()))
        return True


def demonstrated(task: Task, scaling: Scaling | None) -> DemonstratedSteps:
    """Return the demonstrated steps as networks see them."""
    steps = DemonstratedSteps.of(task, scaling, "cpu")
    assert steps is not None  # the learner needs actions
    return steps


def kept(network: Any, task: Task, scaling: Scaling | None) -> Policy:
    """Return the best actions of a network as a policy over observations as they are."""
    return plain_policy(network, scaling, task.demonstrations.observation_space, task.action_space)
