"""Generative models of Gymnasium's classic control environments, through their ``state``."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control.pendulum import PendulumEnv
from numpy.typing import ArrayLike, NDArray

from lfd_gym.envs._classic_kernels import nan_rows_are_whole
from lfd_gym.envs._classic_tasks import TASKS
from lfd_gym.envs.replay import agrees, play
from lfd_gym.envs.simulator import SimulatorModel, batch_of, borrowed
from lfd_gym.model.generative_model import batch_size, check_generator
from lfd_gym.validation import FloatArray

CLASSIC_CONTROL = tuple(TASKS)

#: Of states and observations that environments keep as float32.
_ROUNDING = 1e-5


class ClassicControlModel(SimulatorModel):
    """A generative model of CartPole, MountainCar, MountainCarContinuous, Acrobot or Pendulum.

    States are the float64 vectors the environment keeps as ``state``, angles rather than their sines and cosines.

    Batches are stepped in compiled code, with the constants that the environment has at the time of the call. Where
    that might not give what the environment gives, it steps by itself, pair after pair: subclasses, environments with
    replaced methods or with constants that are not plain numbers, and those of a Gymnasium that steps otherwise.

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
        task = TASKS.get(type(env))
        self._task = task if task is not None and task.fits(env) else None
        if task is not None:
            self.states_of = self._states_of
        else:
            self._check_subclass()

    def sample_initial(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw ``n`` independent initial states."""
        if self._task is None or not self._task.is_untouched(self.env):
            return super().sample_initial(n, rng)
        return self._task.initial_states(batch_size("n", n), check_generator("rng", rng))

    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """Draw one next state for each pair."""
        constants = self._constants()
        if self._task is None or constants is None:
            return super().sample_next(states, actions, rng)
        batch = self._batch(states)
        choices = batch_of("actions", actions, self.action_space)
        if len(batch) != len(choices):
            raise ValueError(f"states and actions must have the same length, got {len(batch)} and {len(choices)}")
        moves = self._task.moves(self.env, choices, batch, check_generator("rng", rng))
        left = np.zeros(len(batch), dtype=np.bool_)
        if self._task.kernel(batch, moves, left, *constants):
            batch[left] = super().sample_next(batch[left], choices[left], rng)
        return batch

    def sample_rewarded(
        self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator
    ) -> tuple[NDArray[Any], FloatArray]:
        """Draw one next state for each pair, as `sample_next` does, and return the rewards of these steps too."""
        if self._task is None or self._constants() is None:
            return super().sample_rewarded(states, actions, rng)
        successors = self.sample_next(states, actions, rng)
        before = self._batch(states)
        going = ~np.isnan(before[:, 0])
        rewards = np.zeros(len(before))
        done = np.asarray(actions, dtype=self.action_space.dtype).reshape(len(before))
        ended = np.isnan(successors[going, 0])
        rewards[going] = self._task.rewards(self.env, before[going], done[going], ended)
        return successors, rewards

    def _constants(self) -> tuple[float, ...] | None:
        """Return the constants of the compiled steps; None if the environment has to step by itself."""
        if self._task is None or self.env.action_space is not self.action_space:
            return None
        return self._task.constants(self.env)

    def observe(self, states: ArrayLike) -> NDArray[Any]:
        """Return what a policy sees of each state."""
        if self._task is None or not self._task.is_untouched(self.env):
            return super().observe(states)
        return self._task.observations(self._batch(states))

    def is_absorbing(self, states: ArrayLike) -> NDArray[np.bool_]:
        """Say which states stand for "the episode has ended"."""
        return np.isnan(self._batch(states)[:, 0])

    def _batch(self, states: ArrayLike) -> FloatArray:
        """Return what `batch_of` returns; most batches need none of its many passes through the memory."""
        array = states
        if isinstance(array, np.ndarray) and array.dtype == np.float64 and array.shape[1:] == self.state_space.shape:
            batch = array.copy(order="C")
            if nan_rows_are_whole(batch):
                return batch
        return batch_of("states", array, self.state_space, nan_rows=True)

    def _states_of(self, observations: ArrayLike) -> FloatArray:
        batch = batch_of("observations", observations, self.observation_space, nan_rows=True)
        return TASKS[type(self.env)].states(batch.astype(np.float64))

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
        return self._rewarded_next_state(state, action)[0]

    def _rewarded_next_state(self, state: Any, action: Any) -> tuple[Any | None, float]:
        _, reward, terminated, _, _ = self._step_from(state, action)
        return (None if terminated else self.env.state), reward

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
