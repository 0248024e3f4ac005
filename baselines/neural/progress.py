"""A bar while an algorithm of Stable-Baselines3 learns."""

from __future__ import annotations

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from tqdm import tqdm

from lfd_gym.baselines.neural.envs import ScaledVecEnv


class Bar(BaseCallback):
    """Shows steps, and the return of the latest episodes."""

    def __init__(self, envs: ScaledVecEnv, budget: int, shown: bool) -> None:
        super().__init__()
        self._envs, disable = envs, None if shown else True
        self._bar = tqdm(total=budget, unit=" steps", delay=1, disable=disable, leave=False, desc="playing")

    def _on_step(self) -> bool:
        self._bar.update(min(self.num_timesteps, self._bar.total) - self._bar.n)
        if self._envs.returns:
            self._bar.set_postfix({"return": f"{np.mean(self._envs.returns):.4g}"}, refresh=False)
        return True

    def _on_training_end(self) -> None:
        self._bar.close()
