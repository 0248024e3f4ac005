"""Gymnasium environments and generative models."""

import gymnasium as gym

from lfd_gym.envs.gridworld import StochasticGridworldEnv, gridworld_transitions
from lfd_gym.envs.tabular import TabularEnv


def register_envs() -> None:
    """Register the environments of this package with Gymnasium; those already registered stay as they are."""
    if "lfd_gym/StochasticGridworld-v0" not in gym.registry:
        gym.register(
            "lfd_gym/StochasticGridworld-v0",
            entry_point="lfd_gym.envs.gridworld:StochasticGridworldEnv",
            max_episode_steps=200,
        )


register_envs()

__all__ = ["StochasticGridworldEnv", "TabularEnv", "gridworld_transitions", "register_envs"]
