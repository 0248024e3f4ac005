"""Replay that pays by the game's current weights, and remembers the demonstrations. Importing this imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples

from lfd_gym.baselines.neural.envs import CostVecEnv


@dataclass(frozen=True, eq=False)
class DemonstratedSteps:
    """Demonstrated transitions as a replay buffer holds them: observations scaled, actions in [−1, 1] or integers.

    Attributes
    ----------
    observations, actions, next_observations, dones
        (N, …) tensors; ``dones`` is (N, 1), one where the process ended.
    rows
        (N, n_c) their costs.
    """

    observations: th.Tensor
    actions: th.Tensor
    next_observations: th.Tensor
    dones: th.Tensor
    rows: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.observations)

    def some(self, n: int) -> th.Tensor:
        """Draw indices."""
        return th.randint(len(self), (n,))


class CostReplayBuffer(ReplayBuffer):
    """Keeps the costs of every step, and gives rewards −⟨w, costs⟩ for the game's current w.

    Parameters
    ----------
    *args, **kwargs
        Of `ReplayBuffer`.
    envs
        Where the steps come from: it knows their costs.
    demonstrations
        Mixed into every batch, if there are any.
    share
        Of the demonstrations in a batch.
    """

    def __init__(
        self,
        *args: Any,
        envs: CostVecEnv,
        demonstrations: DemonstratedSteps | None = None,
        share: float = 0.25,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._envs, self._demonstrations = envs, demonstrations
        self._share = share if demonstrations is not None else 0.0
        self._rows: NDArray[np.float32] = np.zeros((self.buffer_size, *envs.rows.shape), dtype=np.float32)
        self.pay_again()

    def add(self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: Any) -> None:
        """Keep the costs beside the step."""
        self._rows[self.pos] = self._envs.rows
        super().add(obs, next_obs, action, reward, done, infos)

    def pay_again(self) -> None:
        """Give all rewards anew, after the weights have moved."""
        weights, n = self._envs.game.weights, self.size()
        self.rewards[:n] = -(self._rows[:n] @ weights)
        if self._demonstrations is not None:
            self._paid = th.as_tensor(-(self._demonstrations.rows @ weights), device=self.device)[:, None]

    def sample(self, batch_size: int, env: Any = None) -> ReplayBufferSamples:
        """Draw a batch: of the replay, and of the demonstrations."""
        n_demonstrated = int(self._share * batch_size)
        played = super().sample(batch_size - n_demonstrated, env)
        if not n_demonstrated:
            return played
        steps = self._demonstrations
        assert steps is not None
        chosen = steps.some(n_demonstrated)
        shown = (steps.observations, steps.actions, steps.next_observations, steps.dones, self._paid)
        return played._replace(
            **{
                name: th.cat([getattr(played, name), part[chosen].to(getattr(played, name).dtype)])
                for name, part in zip(_PARTS, shown, strict=True)
            }
        )


_PARTS = ("observations", "actions", "next_observations", "dones", "rewards")
