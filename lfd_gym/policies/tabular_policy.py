"""Shim."""

# mypy: ignore-errors
from lfd_gym.policies.stable_baselines import StableBaselinesPolicy
from lfd_gym.policies.tiles import TilePolicy


def TabularPolicy(observation_space, action_space, probabilities, rng, grid=None):
    return StableBaselinesPolicy(
        probabilities if grid is None else TilePolicy(grid, probabilities), observation_space, action_space, rng
    )
