"""Generative models of Gymnasium's classic control environments, through their ``state``."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv

from lfd_gym.envs.simulator import SimulatorModel, borrowed

CLASSIC_CONTROL = (AcrobotEnv, CartPoleEnv, Continuous_MountainCarEnv, MountainCarEnv, PendulumEnv)


class ClassicControlModel(SimulatorModel):
    """A generative model of CartPole, MountainCar, MountainCarContinuous, Acrobot or Pendulum.

    States are the float64 vectors the environment keeps as ``state``, angles rather than their sines and cosines.
    """

    def __init__(self, env: Any) -> None:
        with borrowed(env, np.random.default_rng(0)):
            env.reset()
            size = len(env.state)
        super().__init__(env, gym.spaces.Box(-np.inf, np.inf, (size,), np.float64), ends=True)

    def _initial_state(self) -> Any:
        self.env.reset()
        return self.env.state

    def _next_state(self, state: Any, action: Any) -> Any | None:
        self.env.state = state
        self.env.steps_beyond_terminated = None  # CartPole warns when stepped on after an end, whatever its state
        terminated = self.env.step(action)[2]
        return None if terminated else self.env.state

    def _observation(self, state: Any) -> Any:
        self.env.state = state
        for name in ("_get_ob", "_get_obs"):  # of Acrobot, of Pendulum
            if hasattr(self.env, name):
                return getattr(self.env, name)()
        return state  # the others show their state, rounded to float32
