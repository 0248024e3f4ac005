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
from numpy.typing import ArrayLike

from lfd_gym.envs.replay import agrees, play
from lfd_gym.envs.simulator import SimulatorModel, batch_of, borrowed
from lfd_gym.validation import FloatArray

CLASSIC_CONTROL = (AcrobotEnv, CartPoleEnv, Continuous_MountainCarEnv, MountainCarEnv, PendulumEnv)

#: How many angles the observation begins with, each as its cosine and sine; the rest of the state follows as it is.
_N_ANGLES = {AcrobotEnv: 2, CartPoleEnv: 0, Continuous_MountainCarEnv: 0, MountainCarEnv: 0, PendulumEnv: 1}

#: Of states and observations that environments keep as float32.
_ROUNDING = 1e-5


class ClassicControlModel(SimulatorModel):
    """A generative model of CartPole, MountainCar, MountainCarContinuous, Acrobot or Pendulum.

    States are the float64 vectors the environment keeps as ``state``, angles rather than their sines and cosines.

    Attributes
    ----------
    states_of
        (n, …) observations to (n, d) states, up to rounding to float32; angles lie in [−π, π]. Subclasses of these
        environments do not have it, for they may show something else.
    """

    def __init__(self, env: Any) -> None:
        with borrowed(env, np.random.default_rng(0)):
            env.reset()
            size = len(env.state)
        super().__init__(env, gym.spaces.Box(-np.inf, np.inf, (size,), np.float64), ends=True)
        self.never_ends = type(env) is PendulumEnv
        if type(env) in _N_ANGLES:
            self.states_of = self._states_of
        else:
            self._check_subclass()

    def _states_of(self, observations: ArrayLike) -> FloatArray:
        batch = batch_of("observations", observations, self.observation_space, nan_rows=True).astype(np.float64)
        n_angles = _N_ANGLES[type(self.env)]
        angles = np.arctan2(batch[:, 1 : 2 * n_angles : 2], batch[:, 0 : 2 * n_angles : 2])
        return np.hstack([angles, batch[:, 2 * n_angles :]])

    def _check_subclass(self) -> None:
        """Refuse a subclass whose observations, rewards or ends depend on more than ``state``."""
        with self._borrow(np.random.default_rng(0)):
            if not agrees(self, play(self), tolerance=_ROUNDING):
                raise TypeError(
                    f"{self.env}, put into a state, does not go on as it did from there: its observations, rewards or "
                    "ends are random or depend on more than its `state`, so only episodes can be played in it"
                )

    def _initial_state(self) -> Any:
        self.env.reset()
        return self.env.state

    def _next_state(self, state: Any, action: Any) -> Any | None:
        terminated = self._step_from(state, action)[2]
        return None if terminated else self.env.state

    def _step_from(self, state: Any, action: Any) -> Any:
        self.env.state = state
        self.env.steps_beyond_terminated = None  # CartPole warns when stepped on after an end, whatever its state
        return self.env.step(action)

    def _state(self) -> Any:
        return np.array(self.env.state, dtype=np.float64)

    def _observation(self, state: Any) -> Any:
        self.env.state = state
        for name in ("_get_ob", "_get_obs"):  # of Acrobot, of Pendulum
            if hasattr(self.env, name):
                return getattr(self.env, name)()
        return state  # the others show their state, rounded to float32
