"""A point on a line that is to be brought to its middle: the smallest task that networks can learn by playing."""

import gymnasium as gym
import numpy as np

LENGTH = 20


class Slider(gym.Env):
    """x moves by a fifth of the action. Leaving [−2, 2] is the end; the reward is minus the distance from 0."""

    observation_space = gym.spaces.Box(-3.0, 3.0, (1,), np.float32)

    def __init__(self, discrete=False, reward=None, breaks_after=None):
        self.discrete, self.reward, self.breaks_after = discrete, reward, breaks_after
        self.action_space = gym.spaces.Discrete(3) if discrete else gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.n_steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-1.0, 1.0)
        return self._seen(), {}

    def step(self, action):
        push = int(action) - 1 if self.discrete else float(np.clip(action, -1, 1)[0])
        self.x += 0.2 * push
        self.n_steps += 1
        reward = -abs(self.x) if self.reward is None else self.reward
        return self._seen(), reward, bool(abs(self.x) > 2), False, {}

    def _seen(self):
        broken = self.breaks_after is not None and self.n_steps > self.breaks_after
        return np.array([np.nan if broken else self.x], dtype=np.float32)


def to_the_middle(observations):
    """Act as the expert on a slider over numbers."""
    return np.clip(-5 * observations, -1, 1).astype(np.float32)


def to_the_middle_by_steps(observations):
    """Act as the expert on a slider with three actions."""
    return np.where(np.abs(observations[:, 0]) < 0.1, 1, np.where(observations[:, 0] < 0, 2, 0))


if "lfd_gym_test/Slider-v0" not in gym.registry:
    gym.register("lfd_gym_test/Slider-v0", entry_point=Slider, max_episode_steps=LENGTH, disable_env_checker=True)
