"""Φ and Ψ of the relaxed problem: features of occupancy measures and of values, finite and over observations."""

from lfd_gym.features.observation_features import RadialBasisFeatures, RandomFourierFeatures, TileValueFeatures
from lfd_gym.features.occupancy_features import (
    EmpiricalOccupancyFeatures,
    FiniteOccupancyFeatures,
    NoPolicyError,
    OccupancyFeatures,
    TabularOccupancyFeatures,
    TileOccupancyFeatures,
    aggregated_occupancies,
    policy_occupancies,
    rollout_occupancies,
    soft_occupancies,
)
from lfd_gym.features.value_features import (
    FiniteValueFeatures,
    LinearValues,
    TabularValueFeatures,
    ValueFeatures,
    aggregated_values,
    optimal_values,
    policy_values,
    soft_values,
)
from lfd_gym.policies.tiles import TileGrid, TilePolicy

__all__ = [
    "EmpiricalOccupancyFeatures",
    "FiniteOccupancyFeatures",
    "FiniteValueFeatures",
    "LinearValues",
    "NoPolicyError",
    "OccupancyFeatures",
    "RadialBasisFeatures",
    "RandomFourierFeatures",
    "TabularOccupancyFeatures",
    "TabularValueFeatures",
    "TileGrid",
    "TileOccupancyFeatures",
    "TilePolicy",
    "TileValueFeatures",
    "ValueFeatures",
    "aggregated_occupancies",
    "aggregated_values",
    "optimal_values",
    "policy_occupancies",
    "policy_values",
    "rollout_occupancies",
    "soft_occupancies",
    "soft_values",
]
