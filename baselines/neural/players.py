"""The policy player: algorithms of Stable-Baselines3 that measure themselves as they play. Importing imports torch.

In every second episode an environment is played by the averaged policy, which takes its best actions: these episodes
are what the cost player hears of, and they are replayed like all others.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from lfd_gym.baselines.neural.buffer import CostReplayBuffer, DemonstratedSteps
from lfd_gym.baselines.neural.envs import CostVecEnv
from lfd_gym.baselines.neural.game import Game
from lfd_gym.baselines.neural.networks import BoxNetworks, DiscreteNetworks, Networks

#: Of running averages of weights, for each update, and of that which is measured: the policy it is to smooth may fail
#: and come back within a few hundred updates.
_AVERAGING, _AVERAGING_MEASURED = 0.005, 0.001
#: How the cloning term weighs at first, if cloning were perfect, and in the end as a share of that. It rises with the
#: fourth power of how much farther the policy is than cloning was, up to a factor.
_CLONING, _CLONING_LEFT, _CLONING_POWER, _CLONING_MOST = 10.0, 0.03, 4, 100.0
#: What it weighs besides, also where cloning is worth nothing.
_CLONING_LEAST = 0.3
#: Cloning that comes within this share of the expert's own size is worth staying near, also where nothing was shown.
_NEAR = 0.5
#: The actor waits for the critics at first, for this share of all updates, and then learns at every second one.
_CRITICS_ALONE, _DELAY = 1 / 6, 2
_FIRST_TEMPERATURE = 0.02


def averaging(part: Any, averaged: Any, n_updates: int, each: float = _AVERAGING) -> None:
    """Move the running average towards the weights that ``n_updates`` updates have led to, by a share for each."""
    share = 1 - (1 - each) ** n_updates
    with th.no_grad():
        for now, mean in zip(part.parameters(), averaged.parameters(), strict=True):
            mean.lerp_(now, share)


class CloningActorCritic(OffPolicyAlgorithm):
    """SAC, or its like for finitely many actions, held by the demonstrations.

    The critics' pull is scaled to a mean slope of one, so that the weight of the cloning term does not depend on the
    size of the costs.

    Attributes
    ----------
    distance_of_cloning
        From the demonstrations; it is judged before the game.
    worth_of_cloning
        The share of random play's distance that cloning takes away: a clone that is no better does not hold the actor.

    Parameters
    ----------
    envs
        Where it plays.
    demonstrations
        None if their actions are not known: then nothing is cloned.
    total_updates
        That the budget allows.
    settings
        Of `OffPolicyAlgorithm`.
    """

    policy: Networks
    replay_buffer: CostReplayBuffer

    def __init__(
        self,
        envs: CostVecEnv,
        demonstrations: DemonstratedSteps | None,
        hidden_sizes: list[int],
        total_updates: int,
        **settings: Any,
    ) -> None:
        box = isinstance(envs.action_space, gym.spaces.Box)
        super().__init__(
            BoxNetworks if box else DiscreteNetworks,
            envs,
            policy_kwargs={"net_arch": hidden_sizes},
            replay_buffer_class=CostReplayBuffer,
            replay_buffer_kwargs={"envs": envs, "demonstrations": demonstrations},
            sde_support=False,
            support_multi_env=True,
            supported_action_spaces=(gym.spaces.Box, gym.spaces.Discrete),
            **settings,
        )
        self.envs, self.game, self.demonstrations = envs, envs.game, demonstrations
        self.n_critics_alone = int(_CRITICS_ALONE * total_updates)
        self.distance_of_cloning = float("nan")
        self.worth_of_cloning = 1.0
        self.log_temperature = math.log(_FIRST_TEMPERATURE)
        self.slope: float | None = None
        self._setup_model()

    def _setup_model(self) -> None:
        super()._setup_model()
        rate = self.lr_schedule(1)
        self.actor_optimizer = th.optim.Adam(self.policy.actor.parameters(), rate, fused=True)
        self.critic_optimizer = th.optim.Adam(self.policy.critic.parameters(), rate, fused=True)

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "actor_optimizer", "critic_optimizer"], []

    # -- cloning ------------------------------------------------------------------------------------------------------

    def clone(self, n_steps: int, batch_size: int, learning_rate: float) -> None:
        """Train the actor on the demonstrations alone."""
        if self.demonstrations is None:
            return
        self.policy.begin_cloning()
        optimizer = th.optim.Adam(self.policy.actor.parameters(), learning_rate, fused=True)
        for _ in range(n_steps):
            optimise(optimizer, self._cloning_loss(batch_size))
        self.policy.keep_cloned()

    def _cloning_loss(self, batch_size: int) -> th.Tensor:
        steps = self.demonstrations
        assert steps is not None
        chosen = steps.some(batch_size)
        return self.policy.cloning_loss(steps.observations[chosen], steps.actions[chosen])

    @property
    def cloning_weight(self) -> float:
        """How strongly the demonstrated actions hold the actor now."""
        if self.demonstrations is None:
            return 0.0
        farther = self.game.distance / self.distance_of_cloning
        raised = min(max(1.0, farther) ** _CLONING_POWER, _CLONING_MOST) if math.isfinite(farther) else 1.0
        falling = _CLONING_LEFT ** (1 - self._current_progress_remaining)
        return float(_CLONING_LEAST + _CLONING * self.worth_of_cloning * falling * raised)

    @property
    def stays_near(self) -> bool:
        """Whether the cloned actor is held on to where it was not shown anything."""
        return self.distance_of_cloning < _NEAR * self.game.distance_of(np.zeros_like(self.game.expert))

    # -- playing ------------------------------------------------------------------------------------------------------

    def _sample_action(self, learning_starts: int, action_noise: Any = None, n_envs: int = 1) -> Any:
        """Explore with the actor, measure the averaged one."""
        if self.demonstrations is None and self.num_timesteps < learning_starts:
            drawn = np.array([self.action_space.sample() for _ in range(n_envs)])
            return drawn, self.policy.scale_action(drawn) if isinstance(self.action_space, gym.spaces.Box) else drawn
        with th.no_grad():
            seen: Any = self.policy.obs_to_tensor(self._last_obs)[0]  # type: ignore[arg-type]
            kept = self.policy.action_of(self.policy.actor, seen, greedy=False).cpu().numpy()
            best = self.policy.action_of(self.policy.averaged, seen, greedy=True).cpu().numpy()
        measured = self.envs.measured.reshape(-1, *(1,) * (kept.ndim - 1))
        kept = np.where(measured, best, kept)
        if not isinstance(self.action_space, gym.spaces.Box):
            return kept, kept
        kept = kept.reshape(n_envs, *self.action_space.shape)
        return self.policy.unscale_action(kept), kept

    # -- learning -----------------------------------------------------------------------------------------------------

    def train(self, gradient_steps: int, batch_size: int) -> None:
        """Update the critics, now and then the actor, and the averages of both."""
        self._update_learning_rate([self.actor_optimizer, self.critic_optimizer])
        networks = self.policy
        for _ in range(gradient_steps):
            self._n_updates += 1
            batch = self.replay_buffer.sample(batch_size)
            with th.no_grad():
                targets = batch.rewards + (1 - batch.dones) * self.gamma * networks.next_values(batch.next_observations)
            values = networks.values_of(batch.observations, batch.actions)
            optimise(self.critic_optimizer, 2 * ((values - targets) ** 2).mean())
            with th.no_grad():
                for now, slow in zip(networks.critic.parameters(), networks.critic_target.parameters(), strict=True):
                    slow.lerp_(now, self.tau)
            if self._n_updates > self.n_critics_alone and self._n_updates % _DELAY == 0:
                self._improve(batch.observations)
        averaging(networks.actor, networks.averaged, gradient_steps, _AVERAGING_MEASURED)

    def _improve(self, observations: th.Tensor) -> None:
        loss, slope, entropy = self.policy.improvement(observations, math.exp(self.log_temperature))
        self.slope = slope if self.slope is None else 0.99 * self.slope + 0.01 * slope
        loss = loss * (self.game.trust / max(self.slope, 1e-4))
        weight = self.cloning_weight
        if weight:
            held = self._cloning_loss(len(observations))
            if self.stays_near:
                held = held + self.policy.drift(observations)
            loss = loss + weight * held
        optimise(self.actor_optimizer, loss)
        rate = self.actor_optimizer.param_groups[0]["lr"]
        self.log_temperature += rate if entropy < self.policy.least_entropy else -rate


def optimise(optimizer: th.optim.Optimizer, loss: th.Tensor) -> None:
    """Take one step down the loss."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


class Measured(OffPolicyAlgorithm):
    """Mixed into an off-policy algorithm: the averaged policy plays the episodes that are measured."""

    averaged: Any

    def _setup_model(self) -> None:
        super()._setup_model()
        self.averaged = copy.deepcopy(self.policy)

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        networks, tensors = super()._get_torch_save_params()
        return [*networks, "averaged"], tensors

    def _sample_action(self, learning_starts: int, action_noise: Any = None, n_envs: int = 1) -> Any:
        actions, kept = super()._sample_action(learning_starts, action_noise, n_envs)
        envs: Any = self.env
        measured = np.flatnonzero(envs.measured)
        if measured.size:
            seen: Any = self._last_obs
            best, _ = self.averaged.predict(seen[measured], deterministic=True)
            actions, kept = np.array(actions), np.array(kept)
            actions[measured] = best
            box = isinstance(self.action_space, gym.spaces.Box)
            kept[measured] = self.policy.scale_action(best) if box else best
        return actions, kept


def measured_player(algorithm: type[OffPolicyAlgorithm]) -> type[OffPolicyAlgorithm]:
    """Return an off-policy algorithm of Stable-Baselines3 that measures itself."""
    return type(algorithm.__name__, (Measured, algorithm), {})


__all__ = ["CloningActorCritic", "Game", "averaging", "measured_player"]
