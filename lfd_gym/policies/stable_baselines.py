"""A policy of this package in the shape of Stable-Baselines3. Importing this module imports torch.

It works wherever Stable-Baselines3 and `imitation` take a policy; one that keeps something for an episode, such as a
mixture, wherever recurrent ones are taken. Two things differ from networks on purpose: actions are drawn with the
policy's own generator, not torch's global one, and `save` writes a file that can be read without running any code from
it.
"""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from lfd_gym.policies.conversion import PolicyLike, as_policy
from lfd_gym.policies.files import load_policy, save_policy
from lfd_gym.policies.policy import Policy

try:
    import torch as th
    from stable_baselines3.common.policies import BasePolicy
except ImportError as error:
    raise ImportError("policies for Stable-Baselines3 need the 'sb3' extra: pip install 'lfd-gym[sb3]'") from error


class StableBaselinesPolicy(BasePolicy):
    """Any policy of this package, as a `BasePolicy`.

    Parameters
    ----------
    policy
        What decides; it is kept as ``inner``.
    observation_space, action_space
        Of the environment; those of the policy if not given.
    rng
        Seeds the generator with which actions are drawn; that of the policy if not given.

    Examples
    --------
    >>> import numpy as np
    >>> policy = StableBaselinesPolicy(np.array([[1.0, 0.0], [0.25, 0.75]]), rng=np.random.default_rng(0))
    >>> policy.predict(np.array([0, 1, 1]), deterministic=True)[0]
    array([0, 1, 1])
    """

    def __init__(
        self,
        policy: PolicyLike,
        observation_space: gym.Space[Any] | None = None,
        action_space: gym.Space[Any] | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        inner = copy(as_policy(policy))  # its spaces and its generator are set here, not those of the one given
        if observation_space is not None:
            inner.take_observations_of(observation_space)
        if action_space is not None:
            inner.action_space = action_space
        for name in ("observation_space", "action_space"):
            if getattr(inner, name) is None:
                raise ValueError(f"{name} must be given: {inner} does not know it")
        super().__init__(inner.outer_observation_space or inner.observation_space, inner.action_space)
        if rng is not None:
            inner.rng = np.random.default_rng(rng.integers(2**63))
        self.inner: Policy = inner
        self.register_buffer("_device", th.empty(0))  # says where the policy is

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """Ask the policy; numbers are clipped to the action space, as Stable-Baselines3 does."""
        actions, state = self.inner.predict(observation, state, episode_start, deterministic)
        if isinstance(self.action_space, gym.spaces.Box):
            actions = np.clip(actions, self.action_space.low, self.action_space.high)
        return actions, state

    def _predict(self, observation: Any, deterministic: bool = False) -> th.Tensor:
        if isinstance(observation, dict):
            seen: Any = {key: part.cpu().numpy() for key, part in observation.items()}
        else:
            seen = observation.cpu().numpy()
        return th.as_tensor(self.predict(seen, deterministic=deterministic)[0])

    def forward(self, observation: Any, deterministic: bool = False) -> th.Tensor:
        """Return actions for a batch of observations."""
        return self._predict(observation, deterministic)

    def save(self, path: str | Path) -> None:
        """Write what `lfd_gym.save_policy` writes, in place of an older file."""
        save_policy(self.inner, path, overwrite=True)

    @classmethod
    def load(cls, path: str | Path, device: Any = "cpu") -> StableBaselinesPolicy:
        """Read what `save` wrote: the same probabilities, and the same actions drawn from there on."""
        return cls(load_policy(path)).to(device)
