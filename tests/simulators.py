"""Simulators of one's own, for tests: environments that are generative models too, and rules that are experts in them.

They have nothing but the methods of `lfd_gym.GenerativeModel` and ``states_of``, and those of an environment.
"""

from typing import Any

import gymnasium as gym
import numpy as np

from lfd_gym.envs.simulator import SimulatorModel


class Simulator(gym.Env):
    """An environment that plays its own generative model; absorbing states are rows of NaN."""

    state_space: gym.Space

    def sample_initial(self, n, rng):
        raise NotImplementedError

    def sample_next(self, states, actions, rng):
        raise NotImplementedError

    def reward(self, state):
        return -1.0

    def observe(self, states):
        return np.array(states, dtype=float)

    def states_of(self, observations):
        return np.array(observations, dtype=float)

    def is_absorbing(self, states):
        return np.isnan(states).all(axis=1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.state = self.sample_initial(1, self.np_random)[0]
        return self.observe(self.state[None])[0], {}

    def step(self, action):
        before = self.state
        self.state = self.sample_next(before[None], np.asarray(action)[None], self.np_random)[0]
        ended = bool(np.isnan(self.state).all())
        if ended:
            self.state = before
        return self.observe(self.state[None])[0], self.reward(self.state), ended, False, {}


class Line(Simulator):
    """A point is pushed left or right along a line; where it is beyond ``end``, the episode ends."""

    def __init__(self, push=0.1, noise=0.0, end=np.inf, n_dimensions=1, action_space=None):
        self.state_space = gym.spaces.Box(-np.inf, np.inf, (n_dimensions,), np.float64)
        self.observation_space = self.state_space
        self.action_space = gym.spaces.Discrete(2) if action_space is None else action_space
        self.push, self.noise, self.end, self.never_ends = push, noise, end, end == np.inf
        self.n_steps = 0

    def sample_initial(self, n, rng):
        return rng.uniform(-0.1, 0.1, (n, *self.state_space.shape))

    def sample_next(self, states, actions, rng):
        after, force = np.array(states, dtype=float), np.asarray(actions, dtype=float)
        self.n_steps += len(after)
        force = 2 * force - 1 if force.ndim == 1 else force[:, 0]
        after += self.push * force[:, None] + self.noise * rng.standard_normal(after.shape)
        after[np.abs(after).max(axis=1) > self.end] = np.nan
        return after


def to_the_right(observations):
    """Push to 0.5 and stay there."""
    return np.where(observations[:, 0] < 0.5, 1, 0)


class DubinsCar(Simulator):
    """A car that goes on at the same speed and steers, until it is at the origin; it shows its heading as a vector."""

    def __init__(self):
        ends = np.array([4.0, 4.0, np.inf])
        self.state_space = gym.spaces.Box(-ends, ends, dtype=np.float64)
        shown = np.array([4.0, 4.0, 1.0, 1.0])
        self.observation_space = gym.spaces.Box(-shown, shown, dtype=np.float64)
        self.action_space = gym.spaces.Discrete(3)

    def sample_initial(self, n, rng):
        direction, heading = rng.uniform(-np.pi, np.pi, (2, n))
        return np.stack([2 * np.cos(direction), 2 * np.sin(direction), heading], axis=1)

    def sample_next(self, states, actions, rng):
        x, y, heading = np.asarray(states, dtype=float).T
        heading = heading + 0.25 * (np.asarray(actions) - 1)
        x, y = x + 0.15 * np.cos(heading), y + 0.15 * np.sin(heading)
        after = np.stack([np.clip(x, -4, 4), np.clip(y, -4, 4), heading], axis=1)
        after[np.hypot(x, y) < 0.3] = np.nan
        return after

    def observe(self, states):
        x, y, heading = np.asarray(states, dtype=float).T
        return np.stack([x, y, np.cos(heading), np.sin(heading)], axis=1)

    def states_of(self, observations):
        x, y, cosine, sine = np.asarray(observations, dtype=float).T
        return np.stack([x, y, np.arctan2(sine, cosine)], axis=1)


def steer(observations):
    """Turn towards the origin."""
    x, y, cosine, sine = observations.T
    off = np.arctan2(-y, -x) - np.arctan2(sine, cosine)
    off = (off + np.pi) % (2 * np.pi) - np.pi
    return np.where(off > 0.125, 2, np.where(off < -0.125, 0, 1))


class CoupledTanks(Simulator):
    """Water is pumped into the first of two tanks, flows to the second and out; its level should be one."""

    never_ends = True

    def __init__(self):
        self.state_space = self.observation_space = gym.spaces.Box(0.0, 2.0, (2,), np.float64)
        self.action_space = gym.spaces.Box(0.0, 1.0, (1,))

    def sample_initial(self, n, rng):
        return rng.uniform(0.1, 1.5, (n, 2))

    def sample_next(self, states, actions, rng):
        first, second = np.asarray(states, dtype=float).T
        across = 0.3 * np.sign(first - second) * np.sqrt(np.abs(first - second))
        first = first + 0.5 * (np.asarray(actions, dtype=float)[:, 0] - across)
        second = second + 0.5 * (across - 0.25 * np.sqrt(second))
        return np.clip(np.stack([first, second], axis=1), 0.0, 2.0)

    def reward(self, state):
        return -abs(state[1] - 1.0)


def fill(observations):
    """Pump what flows out at the wanted level, more if there is less."""
    first, second = observations.T
    return np.clip(0.25 + (1 - second) + 0.2 * (1.7 - first), 0.0, 1.0)[:, None]


class OneByOne(SimulatorModel):
    """The generative model of one of these that steps its environment for each pair, as those of MuJoCo do."""

    def __init__(self, env):
        super().__init__(env, env.state_space, ends=not getattr(env, "never_ends", False))
        self.states_of = env.states_of
        self.n_steps = 0

    def _initial_state(self):
        self.env.reset()
        return self.env.state

    def _next_state(self, state, action):
        return self._rewarded_next_state(state, action)[0]

    def _rewarded_next_state(self, state, action):
        self.n_steps += 1
        self.env.state = state
        _, reward, ended, _, _ = self.env.step(action)
        return (None if ended else self.env.state), reward

    def _observation(self, state):
        return self.env.observe(state[None])[0]
