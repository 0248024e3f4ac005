"""Environments of every kind, and recovered costs for them."""

import gymnasium as gym
import numpy as np

import lfd_gym as lfd
from lfd_gym.costs.recovered import RecoveredCost


class InADict(gym.ObservationWrapper):
    """CartPole's observation as places and speeds by name."""

    def __init__(self, env):
        super().__init__(env)
        low, high = env.observation_space.low, env.observation_space.high
        self.observation_space = gym.spaces.Dict(
            {name: gym.spaces.Box(low[i::2], high[i::2]) for i, name in enumerate(("place", "speed"))}
        )

    def observation(self, observation):
        return {"place": observation[::2], "speed": observation[1::2]}


def _cut(env_id, **kwargs):
    """Make an environment with episodes of 20 steps at most, so that tests see several."""
    return gym.make(env_id, max_episode_steps=20, **kwargs)


REWARD_CASES = {
    "CartPole": lambda: _cut("CartPole-v1"),
    "Pendulum": lambda: _cut("Pendulum-v1"),
    "a Dict": lambda: InADict(_cut("CartPole-v1")),
    "the gridworld": lambda: _cut("lfd_gym/StochasticGridworld-v0", size=5),
    "FrozenLake": lambda: _cut("FrozenLake-v1"),
}


def recovered_cost(env):
    """Return costs with random weights: the table of a finite environment, else Fourier costs of random play."""
    rng = np.random.default_rng(0)
    if isinstance(env.observation_space, gym.spaces.Discrete):
        costs = lfd.Task(env, discount=0.9).costs
        return RecoveredCost(costs, rng.dirichlet(np.ones(costs.n_costs)))
    costs = lfd.FourierCosts.from_samples(
        *_random_play(env), env.observation_space, env.action_space, chosen_from_demonstrations=False
    )
    return RecoveredCost(costs, costs.weights.project(rng.normal(size=costs.n_costs)))


def _random_play(env):
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    seen, done = [], []
    for _ in range(50):
        seen.append(gym.spaces.flatten(env.observation_space, observation))
        done.append(env.action_space.sample())
        observation, _, terminated, truncated, _ = env.step(done[-1])
        if terminated or truncated:
            observation, _ = env.reset()
    return seen, done
