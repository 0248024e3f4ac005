"""Generative models of Gymnasium's MuJoCo environments, through ``set_state(qpos, qvel)``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np

from lfd_gym.envs.simulator import SimulatorModel, borrowed
from lfd_gym.validation import LfdGymWarning

_PROBES = 20


class MujocoModel(SimulatorModel):
    """A generative model of a MuJoCo environment of Gymnasium, v4 or v5.

    A state is the concatenation of ``qpos`` and ``qvel``. Each step starts from cleared simulation data, so the
    constraint solver starts cold: from the second step on, an episode of the environment itself, which starts the
    solver from its last solution, agrees up to the tolerance of that solver.

    Observations are those of the environment right after it has been put into the state. Contact and actuator forces
    and inertias in the observations of `step` also depend on the way to the state; a warning says so where it matters.
    """

    def __init__(self, env: Any) -> None:
        import mujoco  # an environment with MuJoCo's data is there, so the module is

        self._mujoco = mujoco
        model = env.model
        beyond_time = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS.value) - 1
        if beyond_time != model.nq + model.nv or model.nmocap:
            raise TypeError(
                f"the state of {env} is more than (qpos, qvel): its MuJoCo model has actuator activations, delays, "
                "plugins or mocap bodies"
            )
        self._saved_data = mujoco.MjData(model)
        super().__init__(env, gym.spaces.Box(-np.inf, np.inf, (model.nq + model.nv,), np.float64), ends=True)
        self._warn_of_hidden_observations()

    @contextmanager
    def _borrow(self, stream: Any) -> Iterator[None]:
        self._mujoco.mj_copyData(self._saved_data, self.env.model, self.env.data)
        try:
            with borrowed(self.env, stream):
                yield
        finally:
            self._mujoco.mj_copyData(self.env.data, self.env.model, self._saved_data)

    def _initial_state(self) -> Any:
        self.env.reset()
        return self._state()

    def _next_state(self, state: Any, action: Any) -> Any | None:
        self._put_into(state)
        terminated = self.env.step(action)[2]
        return None if terminated else self._state()

    def _observation(self, state: Any) -> Any:
        self._put_into(state)
        return self.env._get_obs()

    def _put_into(self, state: Any) -> None:
        self._mujoco.mj_resetData(self.env.model, self.env.data)
        self.env.set_state(*np.split(state, [self.env.model.nq]))

    def _state(self) -> Any:
        return np.concatenate([self.env.data.qpos, self.env.data.qvel])

    def _warn_of_hidden_observations(self) -> None:
        rng = np.random.default_rng(0)
        low, high = self.env.action_space.low, self.env.action_space.high
        differ = np.zeros(self.observation_space.shape or (), dtype=np.bool_)
        with self._borrow(rng):
            state = self._initial_state()
            for _ in range(_PROBES):
                self._put_into(state)
                shown = self.env.step(rng.uniform(low, high))[0]
                state = self._state()
                differ |= shown != self._observation(state)
        if differ.any():
            warnings.warn(
                f"{differ.sum()} of the {differ.size} entries of the observations of {self.env} (the first is "
                f"{np.flatnonzero(differ)[0]}) depend on more than its state (qpos, qvel): observe(states) returns "
                "them as right after a reset into the state",
                LfdGymWarning,
                stacklevel=2,
            )
