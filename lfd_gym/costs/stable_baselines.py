"""A recovered cost as the reward of Stable-Baselines3's vector environments. Importing this module imports torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym.costs.recovered import RecoveredCost
from lfd_gym.spaces import to_array

try:
    from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
except ImportError as error:
    raise ImportError(
        "vector environments of Stable-Baselines3 need the 'sb3' extra: pip install 'lfd-gym[sb3]'"
    ) from error


class RecoveredRewardVecEnv(VecEnvWrapper):
    """Environments whose reward is minus a cost; their own rewards are in each ``info["original_reward"]``.

    An environment that has ended starts again by itself, and shows the first observation of the new episode: the cost
    of its next step is that of this observation. What is inside, such as a `Monitor`, goes on counting the original
    rewards; the cost must be given the observations that it was made for, so normalise them outside.

    Parameters
    ----------
    venv
        Any `VecEnv`; `Dict` observations are flattened for the cost.
    cost
        A function of batches of observations and actions.
    """

    def __init__(self, venv: VecEnv, cost: RecoveredCost) -> None:
        if not isinstance(venv, VecEnv):
            raise TypeError(
                f"venv must be a VecEnv of Stable-Baselines3, as make_vec_env makes, got {venv!r:.80}; for a single "
                "environment there is reward_wrapper"
            )
        super().__init__(venv)
        self.cost = cost
        self._seen: NDArray[Any] | None = None
        self._rewards = np.zeros(venv.num_envs, dtype=np.float32)

    def reset(self) -> Any:
        """Begin an episode in each environment."""
        observations = self.venv.reset()
        self._seen = self._remembered(observations)
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Begin a step, and pay for where it is taken."""
        if self._seen is None:
            raise RuntimeError("call reset before the first step")
        done = to_array(self.action_space, actions, self.num_envs)
        self._rewards = (0.0 - self.cost(self._seen, done)).astype(np.float32)
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        """Finish the step."""
        observations, originals, dones, infos = self.venv.step_wait()
        self._seen = self._remembered(observations)
        for info, original in zip(infos, originals, strict=True):
            info["original_reward"] = float(original)
        return observations, self._rewards, dones, infos

    def _remembered(self, observations: Any) -> NDArray[Any]:
        return to_array(self.observation_space, observations, self.num_envs).copy()  # the next step may overwrite them
