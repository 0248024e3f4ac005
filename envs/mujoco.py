"""Generative models of Gymnasium's MuJoCo environments, through ``set_state(qpos, qvel)`` and MuJoCo's data.

After a step of MuJoCo, what it derives from positions and velocities (places of bodies, contact forces, …) lags one
substep behind them, and the constraint solver starts from its last solution. Observations and rewards may depend on
both, so the state has to hold what they depend on: those arrays of MuJoCo's data that make a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.envs.replay import Moment, agrees, play
from lfd_gym.envs.simulator import SimulatorModel, batch_of, borrowed
from lfd_gym.validation import FloatArray

#: Data that MuJoCo reads and does not derive: part of the state only where they are not as right after a reset.
_INPUTS = "act ctrl history mocap_pos mocap_quat plugin_state qfrc_applied time userdata xfrc_applied".split()  # noqa: SIM905
#: The solver's warm start, and what MuJoCo derives from the state, as far as environments may read it: all of a fixed
#: size. Contacts and constraints come and go; an environment that shows them is refused if that makes a difference.
_DERIVED = (  # noqa: SIM905 - a list would take fifty lines
    "qacc_warmstart qacc qacc_smooth xpos xquat xmat xipos ximat xanchor xaxis geom_xpos geom_xmat site_xpos site_xmat "
    "cam_xpos cam_xmat light_xpos light_xdir subtree_com subtree_linvel subtree_angmom cdof cinert cvel cdof_dot cacc "
    "cfrc_int cfrc_ext ten_length ten_velocity actuator_length actuator_velocity actuator_force act_dot qfrc_bias "
    "qfrc_spring qfrc_damper qfrc_gravcomp qfrc_fluid qfrc_passive qfrc_actuator qfrc_smooth qfrc_constraint "
    "qfrc_inverse sensordata energy"
).split()


#: Environments of Gymnasium that only a time limit cuts.
_NEVER_END = ("HalfCheetahEnv", "PusherEnv", "ReacherEnv", "SwimmerEnv")


class MujocoModel(SimulatorModel):
    """A generative model of a MuJoCo environment of Gymnasium, v4 or v5.

    A state begins with ``qpos`` and ``qvel``. Where what follows depends on more of MuJoCo's data, such as the warm
    start of the constraint solver, the places of bodies or contact forces, it goes on with these arrays, see `fields`.
    They are found by changing them, at the states of two short episodes, and seeing whether the environment shows or
    does something else. An environment that does not go on from the restored states exactly as before, since its
    observations, rewards or ends depend on what is kept elsewhere, is refused. What these episodes do not meet is not
    seen: if they have no contacts and reach no limits of joints, the solver's warm start is not part of the state, and
    transitions with such agree with those of the environment up to the tolerance of the solver.

    Attributes
    ----------
    fields
        The names of the arrays of ``env.data`` that make up a state.
    states_of
        (n, d) observations to states, where observations are the states.
    """

    def __init__(self, env: Any) -> None:
        import mujoco  # an environment with MuJoCo's data is there, so the module is

        self._mujoco = mujoco
        self.env = env
        self._saved_data = mujoco.MjData(env.model)
        self.fields: tuple[str, ...] = ("qpos", "qvel")
        with self._borrow(np.random.default_rng(0)):
            moments = self._find_fields()
        size = sum(np.size(getattr(env.data, name)) for name in self.fields)
        super().__init__(env, gym.spaces.Box(-np.inf, np.inf, (size,), np.float64), ends=True)
        kind = type(env)
        self.never_ends = kind.__module__.startswith("gymnasium.") and kind.__name__ in _NEVER_END
        if all(np.array_equal(moment.state, moment.observation) for moment in moments):
            self.states_of = self._states_of

    def _states_of(self, observations: ArrayLike) -> FloatArray:
        return batch_of("observations", observations, self.observation_space, nan_rows=True).astype(np.float64)

    @contextmanager
    def _borrow(self, stream: Any) -> Iterator[None]:
        self._mujoco.mj_copyData(self._saved_data, self.env.model, self.env.data)
        try:
            with borrowed(self.env, stream):
                yield
        finally:
            self._mujoco.mj_copyData(self.env.data, self.env.model, self._saved_data)

    def current_state(self) -> FloatArray:
        """Return the state that the environment itself is in."""
        return np.array(self._state(), dtype=np.float64)

    def _initial_state(self) -> Any:
        self.env.reset()
        return self._state()

    def _next_state(self, state: Any, action: Any) -> Any | None:
        return self._rewarded_next_state(state, action)[0]

    def _rewarded_next_state(self, state: Any, action: Any) -> tuple[Any | None, float]:
        _, reward, terminated, _, _ = self._step_from(state, action)
        return (None if terminated else self._state()), reward

    def _step_from(self, state: Any, action: Any) -> Any:
        self._put_into(state)
        return self.env.step(action)

    def _observation(self, state: Any) -> Any:
        self._put_into(state)
        return self.env._get_obs()

    def _put_into(self, state: Any) -> None:
        data = self.env.data
        self._mujoco.mj_resetData(self.env.model, data)
        parts = self._split(state)
        self.env.set_state(parts["qpos"], parts["qvel"])
        for name in self.fields[2:]:  # after what set_state derives
            _write(data, name, parts[name])

    def _state(self) -> Any:
        return np.concatenate([np.ravel(getattr(self.env.data, name)) for name in self.fields])

    def _split(self, state: Any) -> dict[str, Any]:
        sizes = [np.size(getattr(self.env.data, name)) for name in self.fields]
        return dict(zip(self.fields, np.split(state, np.cumsum(sizes)[:-1]), strict=True))

    # -- what the state has to hold -----------------------------------------------------------------------------------

    def _find_fields(self) -> list[Moment]:
        """Set `fields`, and return moments of random play with such states."""
        self.env.reset()
        self.fields = ("qpos", "qvel", *(n for n in _INPUTS + _DERIVED if np.size(getattr(self.env.data, n, ()))))
        moments = play(self)
        self._require_agreement(moments)
        parts = [self._split(moment.state) for moment in moments]
        fresh = self._mujoco.MjData(self.env.model)
        extra = [
            name
            for name in self.fields[2:]
            if name not in _INPUTS or any((part[name] != np.ravel(getattr(fresh, name))).any() for part in parts)
        ]
        self.fields = ("qpos", "qvel", *self._that_matter(extra, moments))
        states = [np.concatenate([part[name] for name in self.fields]) for part in parts]
        moments = [replace(moment, state=state) for moment, state in zip(moments, states, strict=True)]
        self._require_agreement(moments)
        return moments

    def _that_matter(self, names: Sequence[str], moments: list[Moment]) -> list[str]:
        """Return which of the arrays ``names``, all of them part of the state, make a difference, by halving."""
        rng = np.random.default_rng(0)
        changed = np.concatenate(
            [np.full(part.size, name in names) for name, part in self._split(moments[0].state).items()]
        )
        others = [replace(m, state=m.state + changed * rng.standard_normal(m.state.size)) for m in moments]
        if not names or agrees(self, others):
            return []
        if len(names) == 1:
            return list(names)
        half = len(names) // 2
        return self._that_matter(names[:half], moments) + self._that_matter(names[half:], moments)

    def _require_agreement(self, moments: list[Moment]) -> None:
        if not agrees(self, moments):
            raise TypeError(
                f"{self.env}, put into a state, does not go on as it did from there: its observations, rewards or ends "
                "are random or depend on more than MuJoCo's data, so only episodes can be played in it"
            )


def _write(data: Any, name: str, values: Any) -> None:
    if name == "time":
        data.time = values[0]
    else:
        array = getattr(data, name)
        array[...] = values.reshape(array.shape)
