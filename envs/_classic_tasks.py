"""What is known of Gymnasium's classic control environments: where they start, what they show, how they step.

It holds for exactly these classes, and only as long as `CompiledTask.constants` says so of an environment.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv
from numpy.typing import NDArray

from lfd_gym.envs import _classic_kernels as kernels
from lfd_gym.validation import FloatArray

#: The methods that say what is written down here.
_METHODS = ("step", "reset", "_dsdt", "_terminal", "_get_ob", "_get_obs")

#: Plain attributes that are no constants of a kernel: they make no difference to steps, or count as `moves`.
_OTHER_NAMES = {
    *("AVAIL_TORQUE", "torque_noise_max", "actions_num", "LINK_LENGTH_2", "masscart", "np_random_seed"),
    *("SCREEN_DIM", "screen_dim", "screen_height", "screen_width"),
}

#: How many steps are compared before a class counts as known.
_N_COMPARED = 12


@dataclass(frozen=True)
class CompiledTask:
    """One of the environments.

    Attributes
    ----------
    kind
        Its class.
    size
        Of its states.
    kernel
        Its steps.
    names
        The attributes that are constants of the kernel, in its order.
    rewards
        (the environment, (n, d) states, (n,) actions, which of these steps end the episode) to the (n,) rewards.
    initial
        Between which numbers ``reset`` draws each entry of the state; those that follow are zero.
    n_angles
        How many angles the observation begins with, each as its cosine and sine; the rest follows as it is.
    choice
        An attribute that chooses between equations, and the value that the kernel takes for True.
    numbers
        The types of constants with which the environment comes to what the kernel comes to: where they meet the float32
        of an action, it matters to NumPy whether they are numbers of Python.
    """

    kind: type[Any]
    size: int
    kernel: Callable[..., int]
    names: tuple[str, ...]
    rewards: Callable[[Any, FloatArray, NDArray[Any], NDArray[np.bool_]], FloatArray]
    initial: tuple[tuple[float, float], ...]
    n_angles: int = 0
    choice: tuple[str, str] | None = None
    numbers: tuple[type, ...] = (float, int, np.float64)

    def is_untouched(self, env: Any) -> bool:
        """Whether the environment has the methods of its class, as Gymnasium wrote them."""
        return type(env) is self.kind and all(
            getattr(getattr(env, name), "__func__", None) is method for name, method in _ORIGINALS[self.kind].items()
        )

    def constants(self, env: Any) -> tuple[float, ...] | None:
        """Return what the kernel takes last, as the environment has it now; None if it has to step by itself."""
        if not self.is_untouched(env):
            return None
        constants = [getattr(env, name) for name in self.names]
        plain = constants
        if self.kind is AcrobotEnv:
            if type(env.AVAIL_TORQUE) not in (list, tuple):
                return None
            plain = [*constants, env.torque_noise_max, *env.AVAIL_TORQUE]
        if not all(type(number) in self.numbers for number in plain):
            return None
        chosen = () if self.choice is None else (getattr(env, self.choice[0]) == self.choice[1],)
        return (*chosen, *map(float, constants))

    def moves(self, env: Any, actions: NDArray[Any], states: FloatArray, rng: np.random.Generator) -> NDArray[Any]:
        """Return what the kernel takes for ``actions``: of Acrobot the torques, noise included."""
        if self.kind is not AcrobotEnv:
            return actions.reshape(len(actions))
        torques: FloatArray = np.array(env.AVAIL_TORQUE, dtype=np.float64)[actions]
        if env.torque_noise_max > 0:
            going = ~np.isnan(states[:, 0])
            torques[going] += rng.uniform(-env.torque_noise_max, env.torque_noise_max, np.count_nonzero(going))
        return torques

    def initial_states(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw ``n`` initial states, those that ``reset`` would draw one after the other."""
        low, high = np.transpose(self.initial)
        states = np.zeros((n, self.size))
        states[:, : len(low)] = rng.uniform(low, high, size=(n, len(low)))
        if self.kind is AcrobotEnv:  # it starts from float32
            states[...] = states.astype(np.float32)
        return states

    def observations(self, states: FloatArray) -> NDArray[np.float32]:
        """Return what the environment shows of each state."""
        end = 2 * self.n_angles
        observations = np.empty((len(states), self.size + self.n_angles), dtype=np.float32)
        observations[:, 0:end:2] = np.cos(states[:, : self.n_angles])
        observations[:, 1:end:2] = np.sin(states[:, : self.n_angles])
        observations[:, end:] = states[:, self.n_angles :]
        return observations

    def states(self, observations: FloatArray) -> FloatArray:
        """Return states that look like ``observations``, with angles in [−π, π]."""
        end = 2 * self.n_angles
        angles = np.arctan2(observations[:, 1:end:2], observations[:, 0:end:2])
        return np.hstack([angles, observations[:, end:]])

    def fits(self, env: Any) -> bool:
        """Whether an environment of this class is one that is known.

        Those of another Gymnasium may have other constants, make other steps or give other rewards, and NumPy 1 does
        not make a float32 of numbers of Python that meet one.
        """
        fresh = self.kind()
        plain = {name for name in dir(fresh) if type(getattr(fresh, name)) in (int, float, str, list)}
        known = {*self.names, *(self.choice or ())[:1], *_OTHER_NAMES}
        if {name for name in plain if not name.startswith("_")} - known:
            return False
        spaces = env.action_space, fresh.action_space
        if len({(type(space), space.shape, space.dtype) for space in spaces}) > 1:
            return False
        return self._agrees_with(fresh)

    def _agrees_with(self, env: Any) -> bool:
        """Whether ``env``, which is not used elsewhere, starts, looks, steps and rewards as is written down here."""
        rng = np.random.default_rng(0)
        env.np_random = np.random.default_rng(0)
        initial = self.initial_states(_N_COMPARED, rng)
        batch = initial * rng.uniform(-3.0, 3.0, size=(_N_COMPARED, 1))  # some of them end at once
        space = copy.deepcopy(env.action_space)
        space.seed(0)
        actions = np.array([space.sample() for _ in batch])
        same = True
        shown = self.observations(initial)
        for k in range(_N_COMPARED):
            look = env.reset()[0]
            same = same and np.array_equal(env.state, initial[k]) and np.allclose(look, shown[k])
        stepped, rewards = np.full_like(batch, np.nan), np.zeros(_N_COMPARED)
        for k in range(_N_COMPARED):
            env.state = batch[k].copy()
            env.steps_beyond_terminated = None
            _, rewards[k], terminated, _, _ = env.step(actions[k])
            if not terminated:
                stepped[k] = env.state
        same = same and np.allclose(
            self.rewards(env, batch, actions.reshape(_N_COMPARED), np.isnan(stepped[:, 0])), rewards
        )
        left = np.zeros(len(batch), dtype=np.bool_)
        constants = self.constants(env)
        if constants is None or self.kernel(batch, self.moves(env, actions, batch, rng), left, *constants):
            return False
        return same and np.allclose(batch, stepped, rtol=0.0, atol=1e-9, equal_nan=True)


def _acrobot_rewards(env: Any, states: FloatArray, actions: NDArray[Any], ended: NDArray[np.bool_]) -> FloatArray:
    return np.where(ended, 0.0, -1.0)


def _cart_pole_rewards(env: Any, states: FloatArray, actions: NDArray[Any], ended: NDArray[np.bool_]) -> FloatArray:
    if getattr(env, "_sutton_barto_reward", False):  # since Gymnasium 1.0
        return np.where(ended, -1.0, 0.0)
    return np.ones(len(states))


def _mountain_car_rewards(env: Any, states: FloatArray, actions: NDArray[Any], ended: NDArray[np.bool_]) -> FloatArray:
    return np.full(len(states), -1.0)


def _continuous_mountain_car_rewards(
    env: Any, states: FloatArray, actions: NDArray[Any], ended: NDArray[np.bool_]
) -> FloatArray:
    return np.where(ended, 100.0, 0.0) - actions.astype(np.float64) ** 2 * 0.1


def _pendulum_rewards(env: Any, states: FloatArray, actions: NDArray[Any], ended: NDArray[np.bool_]) -> FloatArray:
    angles = (states[:, 0] + np.pi) % (2 * np.pi) - np.pi
    torques = np.clip(actions, -env.max_torque, env.max_torque)
    return np.asarray(-(angles**2 + 0.1 * states[:, 1] ** 2 + 0.001 * torques**2))


TASKS = {
    task.kind: task
    for task in (
        CompiledTask(
            AcrobotEnv,
            4,
            kernels.step_acrobot,
            (
                *("LINK_LENGTH_1", "LINK_MASS_1", "LINK_MASS_2", "LINK_COM_POS_1", "LINK_COM_POS_2", "LINK_MOI"),
                *("MAX_VEL_1", "MAX_VEL_2", "dt"),
            ),
            _acrobot_rewards,
            initial=((-0.1, 0.1),) * 4,
            n_angles=2,
            choice=("book_or_nips", "nips"),
        ),
        CompiledTask(
            CartPoleEnv,
            4,
            kernels.step_cart_pole,
            (
                *("gravity", "masspole", "total_mass", "length", "polemass_length", "force_mag", "tau"),
                *("theta_threshold_radians", "x_threshold"),
            ),
            _cart_pole_rewards,
            initial=((-0.05, 0.05),) * 4,
            choice=("kinematics_integrator", "euler"),
        ),
        CompiledTask(
            Continuous_MountainCarEnv,
            2,
            kernels.step_mountain_car_continuous,
            (
                *("power", "min_action", "max_action", "max_speed", "min_position", "max_position"),
                *("goal_position", "goal_velocity"),
            ),
            _continuous_mountain_car_rewards,
            initial=((-0.6, -0.4),),
            numbers=(float, int),
        ),
        CompiledTask(
            MountainCarEnv,
            2,
            kernels.step_mountain_car,
            ("force", "gravity", "max_speed", "min_position", "max_position", "goal_position", "goal_velocity"),
            _mountain_car_rewards,
            initial=((-0.6, -0.4),),
        ),
        CompiledTask(
            PendulumEnv,
            2,
            kernels.step_pendulum,
            ("g", "m", "l", "dt", "max_speed", "max_torque"),
            _pendulum_rewards,
            initial=((-np.pi, np.pi), (-1.0, 1.0)),
            n_angles=1,
            numbers=(float, int),
        ),
    )
}

_ORIGINALS = {kind: {name: vars(kind)[name] for name in _METHODS if name in vars(kind)} for kind in TASKS}
