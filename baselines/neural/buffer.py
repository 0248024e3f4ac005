"""Replay that remembers the demonstrations, and pays by the game's current weights. Importing this imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples

from lfd_gym.baselines.neural.envs import CostVecEnv, Scaling
from lfd_gym.task import Task

_PARTS = ("observations", "actions", "next_observations", "dones")


@dataclass(frozen=True, eq=False)
class DemonstratedSteps:
    """Demonstrated transitions as a replay buffer holds them: observations scaled, actions in [−1, 1] or integers.

    Attributes
    ----------
    observations, actions, next_observations, dones
        (N, …) tensors; ``dones`` is (N, 1), one where the process ended.
    """

    observations: th.Tensor
    actions: th.Tensor
    next_observations: th.Tensor
    dones: th.Tensor

    @classmethod
    def of(cls, task: Task, scaling: Scaling | None, device: str) -> DemonstratedSteps | None:
        """Return the demonstrations of a task as networks see them; None if their actions are not known."""
        demonstrations = task.demonstrations
        if demonstrations.actions is None:
            return None
        before = np.arange(demonstrations.n_transitions) + demonstrations.trajectory_indices
        seen = [demonstrations.observations[which] for which in (before, before + 1)]
        seen = [part.reshape(len(part), -1) if scaling is None else scaling(part) for part in seen]
        actions = np.asarray(demonstrations.actions).reshape(len(before), -1)
        space = task.action_space
        if isinstance(space, gym.spaces.Box) and space.is_bounded():
            low, high = space.low.ravel(), space.high.ravel()
            actions = (2 * (actions - low) / (high - low) - 1).astype(np.float32)
        dones = np.zeros((len(before), 1), dtype=np.float32)
        dones[demonstrations.offsets[1:][demonstrations.terminated & (demonstrations.lengths > 0)] - 1] = 1.0
        return cls(*(th.as_tensor(np.array(part), device=device) for part in (seen[0], actions, seen[1], dones)))

    def __len__(self) -> int:
        return len(self.observations)

    def some(self, n: int) -> th.Tensor:
        """Draw indices."""
        return th.randint(len(self), (n,))


class MixedReplayBuffer(ReplayBuffer):
    """Mixes demonstrations into every batch.

    Parameters
    ----------
    *args, **kwargs
        Of `ReplayBuffer`.
    demonstrations
        None if their actions are not known: then there is replay alone.
    share
        Of the demonstrations in a batch.
    paid
        The reward of a demonstrated step.
    """

    def __init__(
        self, *args: Any, demonstrations: DemonstratedSteps | None, share: float, paid: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.demonstrations = demonstrations
        self._share = share if demonstrations is not None else 0.0
        n = 0 if demonstrations is None else len(demonstrations)
        self._paid = th.full((n, 1), paid, device=self.device)

    def sample(self, batch_size: int, env: Any = None) -> ReplayBufferSamples:
        """Draw a batch: of the replay, and of the demonstrations."""
        n_demonstrated = int(self._share * batch_size)
        played = super().sample(batch_size - n_demonstrated, env)
        if not n_demonstrated:
            return played
        steps = self.demonstrations
        assert steps is not None
        chosen = steps.some(n_demonstrated)
        shown = {**{name: getattr(steps, name) for name in _PARTS}, "rewards": self._paid}
        return played._replace(
            **{
                name: th.cat([getattr(played, name), part[chosen].to(getattr(played, name).dtype)])
                for name, part in shown.items()
            }
        )


class CostReplayBuffer(MixedReplayBuffer):
    """Keeps the costs of every step, and gives rewards −⟨w, costs⟩ for the game's current w.

    Parameters
    ----------
    *args, **kwargs
        Of `MixedReplayBuffer`.
    envs
        Where the steps come from: it knows their costs.
    """

    def __init__(self, *args: Any, envs: CostVecEnv, share: float = 0.25, **kwargs: Any) -> None:
        super().__init__(*args, share=share, **kwargs)
        self._envs = envs
        self.rows: NDArray[np.float32] = np.zeros((self.buffer_size, *envs.rows.shape), dtype=np.float32)
        self.pay_again()

    def add(self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: Any) -> None:
        """Keep the costs beside the step."""
        self.rows[self.pos] = self._envs.rows
        super().add(obs, next_obs, action, reward, done, infos)

    def pay_again(self) -> None:
        """Give all rewards anew, after the weights have moved."""
        weights, n = self._envs.game.weights, self.size()
        self.rewards[:n] = -(self.rows[:n] @ weights)
        if self.demonstrations is not None:
            self._paid = th.as_tensor(-(self._envs.game.rows @ weights), device=self.device)[:, None]
