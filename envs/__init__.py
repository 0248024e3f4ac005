"""Gymnasium environments over finite state spaces, registered with Gymnasium when this package is imported."""

import gymnasium as gym

from lfd_gym.envs.acrobot_repair import repair_acrobot
from lfd_gym.envs.garnet import GarnetEnv, garnet
from lfd_gym.envs.gridworld import StochasticGridworldEnv, gridworld_transitions
from lfd_gym.envs.rendering import render_grid
from lfd_gym.envs.tabular import TabularEnv
from lfd_gym.envs.vector import FiniteVectorEnv

__all__ = [
    "FiniteVectorEnv",
    "GarnetEnv",
    "StochasticGridworldEnv",
    "TabularEnv",
    "garnet",
    "gridworld_transitions",
    "register_envs",
    "render_grid",
]


def register_envs() -> None:
    """Register the environments of this package with Gymnasium; those already registered stay as they are."""
    for env_id, entry_point, vector_entry_point in (
        ("lfd_gym/Garnet-v0", "garnet:GarnetEnv", "garnet:garnets"),
        ("lfd_gym/StochasticGridworld-v0", "gridworld:StochasticGridworldEnv", "gridworld:stochastic_gridworlds"),
    ):
        if env_id not in gym.registry:
            gym.register(
                env_id,
                entry_point=f"lfd_gym.envs.{entry_point}",
                vector_entry_point=f"lfd_gym.envs.{vector_entry_point}",
                max_episode_steps=200,
            )


register_envs()
repair_acrobot()
