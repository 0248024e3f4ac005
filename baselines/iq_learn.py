"""IQ-Learn: the function Q whose soft-optimal policy is the expert's; see `lfd_gym.baselines.neural.soft_q`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from tqdm import trange

from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.baselines.neural.fitting import check_cloned_task, check_played_task
from lfd_gym.policies.policy import Policy
from lfd_gym.resources import Resources
from lfd_gym.task import Access, Task

try:
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

    from lfd_gym.baselines.neural.buffer import DemonstratedSteps
    from lfd_gym.baselines.neural.envs import ScaledVecEnv, Scaling, training_envs
    from lfd_gym.baselines.neural.networks import BoxNetworks, DiscreteNetworks, Networks
    from lfd_gym.baselines.neural.plain import plain_policy
    from lfd_gym.baselines.neural.progress import learn_with_bar
    from lfd_gym.baselines.neural.seeding import SeededTorch
    from lfd_gym.baselines.neural.soft_q import InverseSoftQ, Steps
except ImportError as error:
    raise ImportError(f"this learner needs the 'sb3' extra: pip install 'lfd-gym[sb3]' ({error})") from error

#: Copies of the environment that are played side by side, and updates for each step of one.
_N_ENVS, _UPDATES_PER_STEP = 4, 0.5
_BEFORE_UPDATES, _MOST_REPLAYED = 500, 200_000


@dataclass(frozen=True)
class _Settings:
    """What both ways share.

    Attributes
    ----------
    hidden_sizes, learning_rate, batch_size
        Of the networks, which are those of ``primal_dual_rl``; a batch has as many demonstrated steps.
    temperature
        τ, of the soft values.
    regularisation
        α, of the χ² term: the smaller, the nearer the recovered reward is to zero.
    progress
        Whether a bar is shown, on a terminal.
    """

    hidden_sizes: tuple[int, ...] = (128, 128)
    learning_rate: float = 5e-4
    batch_size: int = 128
    temperature: float = 0.01
    regularisation: float = 0.5
    progress: bool = True

    def _soft_q(self, networks: Networks, task: Task) -> InverseSoftQ:
        return InverseSoftQ(
            networks,
            discount=min(task.discount, 0.999),
            learning_rate=self.learning_rate,
            temperature=self.temperature,
            regularisation=self.regularisation,
        )


@dataclass(frozen=True)
class IqLearn(_Settings, Learner):
    """IQ-Learn that plays; the budget is a number of environment steps. See `_Settings` for what can be set."""

    needs: ClassVar[Access] = "episodes"
    needs_actions: ClassVar[bool] = True
    budget_unit: ClassVar[str] = "environment steps"
    default_budget: ClassVar[int] = 30_000

    def quiet(self) -> IqLearn:
        """Return the same learner without its bar."""
        return replace(self, progress=False)

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Play and update by turns."""
        check_played_task(self.name, task)
        with SeededTorch(rng):
            scaling = Scaling.for_playing(task, rng)
            venv = training_envs(task, _N_ENVS)
            envs = ScaledVecEnv(venv, task, scaling)
            player = _Player(self, task, envs, budget, int(rng.integers(2**31 - _N_ENVS)))
            player.shown = _demonstrated(task, scaling)
            try:
                learn_with_bar(player, envs, budget, self.progress)
            finally:
                if venv is not task.env:
                    venv.close()
            facts = {"n_updates": player._n_updates}
            return LearningResult(
                _kept(player.policy, task, scaling), resources=Resources(env_steps=envs.n_steps), facts=facts
            )


@dataclass(frozen=True)
class IqLearnOffline(_Settings, Learner):
    """IQ-Learn from the demonstrations alone; the budget is a number of updates."""

    needs: ClassVar[Access] = "demonstrations"
    needs_actions: ClassVar[bool] = True
    budget_unit: ClassVar[str] = "updates"
    default_budget: ClassVar[int] = 15_000

    def quiet(self) -> IqLearnOffline:
        """Return the same learner without its bar."""
        return replace(self, progress=False)

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Update by the demonstrated steps."""
        check_cloned_task(self.name, task)
        with SeededTorch(rng):
            scaling = Scaling.of(task.demonstrations.acted_on, None) if _is_box(task) else None
            seen: Any = task.demonstrations.observation_space
            if scaling is not None:
                seen = gym.spaces.Box(-np.inf, np.inf, scaling.centre.shape, np.float32)
            networks = _networks(task)(seen, task.action_space, lambda _: 0.0, list(self.hidden_sizes))
            soft_q, shown = self._soft_q(networks, task), _demonstrated(task, scaling)
            for _ in trange(budget, desc="updating", delay=1, disable=None if self.progress else True, leave=False):
                soft_q.update(_some(shown, self.batch_size))
            return LearningResult(_kept(networks, task, scaling))


class _Player(OffPolicyAlgorithm):
    """Explores with the actor; every update takes as many demonstrated as played steps."""

    policy: Networks
    shown: DemonstratedSteps

    def __init__(self, settings: IqLearn, task: Task, envs: ScaledVecEnv, budget: int, seed: int) -> None:
        super().__init__(
            _networks(task),
            envs,
            learning_rate=settings.learning_rate,
            policy_kwargs={"net_arch": list(settings.hidden_sizes)},
            buffer_size=min(budget, _MOST_REPLAYED),
            learning_starts=min(_BEFORE_UPDATES, budget // 10),
            batch_size=settings.batch_size,
            train_freq=1,
            gradient_steps=max(1, round(_UPDATES_PER_STEP * envs.num_envs)),
            seed=seed,
            device="cpu",
            sde_support=False,
            support_multi_env=True,
            supported_action_spaces=(gym.spaces.Box, gym.spaces.Discrete),
        )
        self._setup_model()
        self._soft_q = settings._soft_q(self.policy, task)

    def train(self, gradient_steps: int, batch_size: int) -> None:
        """Update by demonstrated and played steps."""
        for _ in range(gradient_steps):
            self._n_updates += 1
            batch = self.replay_buffer.sample(batch_size)  # type: ignore[union-attr]
            played = Steps(batch.observations, batch.actions, batch.next_observations, batch.dones)
            self._soft_q.update(_some(self.shown, batch_size), played)


def _is_box(task: Task) -> bool:
    return isinstance(task.observation_space, gym.spaces.Box)


def _networks(task: Task) -> type[Networks]:
    return BoxNetworks if isinstance(task.action_space, gym.spaces.Box) else DiscreteNetworks


def _demonstrated(task: Task, scaling: Scaling | None) -> DemonstratedSteps:
    steps = DemonstratedSteps.of(task, scaling, "cpu")
    assert steps is not None  # the learner needs actions
    return steps


def _some(steps: DemonstratedSteps, n: int) -> Steps:
    chosen = steps.some(n)
    parts = (steps.observations, steps.actions, steps.next_observations, steps.dones)
    return Steps(*(part[chosen] for part in parts))


def _kept(networks: Networks, task: Task, scaling: Scaling | None) -> Policy:
    return plain_policy(networks.actor, scaling, task.demonstrations.observation_space, task.action_space)
