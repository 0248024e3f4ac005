"""Learning from demonstrations with guarantees, inside Gymnasium.

Importing this package registers its environments. It imports neither torch nor matplotlib.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lfd_gym import envs, testing
from lfd_gym.assessment.certificate import Certificate, certify, certify_from_samples
from lfd_gym.assessment.evaluation import Evaluation, evaluate
from lfd_gym.assessment.policy_certificate import certify_policy
from lfd_gym.costs.costs import normalise_costs
from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.estimation import (
    FeatureExpectations,
    feature_expectations,
    required_horizon,
    required_trajectories,
)
from lfd_gym.demonstrations.provenance import Provenance
from lfd_gym.envs.adapters import as_generative_model
from lfd_gym.envs.toy_text import reward_cost
from lfd_gym.features.observation_features import RadialBasisFeatures, RandomFourierFeatures, TileValueFeatures
from lfd_gym.features.occupancy_features import (
    EmpiricalOccupancyFeatures,
    FiniteOccupancyFeatures,
    OccupancyFeatures,
    TabularOccupancyFeatures,
    TileOccupancyFeatures,
    TilePolicy,
    aggregated_occupancies,
    policy_occupancies,
    rollout_occupancies,
    soft_occupancies,
)
from lfd_gym.features.tiles import TileGrid
from lfd_gym.features.value_features import (
    FiniteValueFeatures,
    TabularValueFeatures,
    ValueFeatures,
    aggregated_values,
    optimal_values,
    policy_values,
    soft_values,
)
from lfd_gym.model.generative_model import GenerativeModel, TabularModel
from lfd_gym.model.mdp import FiniteMDP, one_hot, policy_from_occupancy
from lfd_gym.model.planning import Plan
from lfd_gym.policies.experts import mixture_policy, noisy_policy, soft_optimal_policy
from lfd_gym.solvers.descent.mirror_descent import (
    MirrorDescentSolution,
    solve_mirror_descent,
    solve_mirror_descent_many,
)
from lfd_gym.solvers.exact.cutting_plane import solve_cutting_plane
from lfd_gym.solvers.exact.exact_solution import ExactSolution
from lfd_gym.solvers.exact.explanation import ExplainingWeights, Explanation, explaining_weights, explains
from lfd_gym.solvers.exact.highs import LinearProgramError
from lfd_gym.solvers.exact.linear_program import LinearProgramSolution, solve_linear_program
from lfd_gym.solvers.exact.plug_in import PlugInSolution, solve_plug_in
from lfd_gym.solvers.saddle.primal_dual_hybrid import HybridSolution, solve_primal_dual_hybrid
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.validation import LfdGymWarning

if TYPE_CHECKING:
    from lfd_gym.policies.tabular_policy import TabularPolicy as TabularPolicy
    from lfd_gym.training.trainer import PrimalDualTrainer as PrimalDualTrainer

__version__ = "0.1.0"

#: Names whose modules import torch: they are imported when first used, and not part of ``__all__``.
_LATER = {"PrimalDualTrainer": "lfd_gym.training.trainer", "TabularPolicy": "lfd_gym.policies.tabular_policy"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'lfd_gym' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


__all__ = [
    "Certificate",
    "Demonstrations",
    "EmpiricalOccupancyFeatures",
    "Evaluation",
    "ExactSolution",
    "ExplainingWeights",
    "Explanation",
    "FeatureExpectations",
    "FiniteMDP",
    "FiniteOccupancyFeatures",
    "FiniteValueFeatures",
    "GenerativeModel",
    "HybridSolution",
    "LfdGymWarning",
    "LinearProgramError",
    "LinearProgramSolution",
    "MirrorDescentSolution",
    "OccupancyFeatures",
    "Plan",
    "PlugInSolution",
    "Provenance",
    "RadialBasisFeatures",
    "RandomFourierFeatures",
    "SaddlePointProblem",
    "TabularModel",
    "TabularOccupancyFeatures",
    "TabularValueFeatures",
    "TileGrid",
    "TileOccupancyFeatures",
    "TilePolicy",
    "TileValueFeatures",
    "ValueFeatures",
    "aggregated_occupancies",
    "aggregated_values",
    "as_generative_model",
    "certify",
    "certify_from_samples",
    "certify_policy",
    "collect",
    "envs",
    "evaluate",
    "explaining_weights",
    "explains",
    "feature_expectations",
    "mixture_policy",
    "noisy_policy",
    "normalise_costs",
    "one_hot",
    "optimal_values",
    "policy_from_occupancy",
    "policy_occupancies",
    "policy_values",
    "required_horizon",
    "required_trajectories",
    "reward_cost",
    "rollout_occupancies",
    "soft_occupancies",
    "soft_optimal_policy",
    "soft_values",
    "solve_cutting_plane",
    "solve_linear_program",
    "solve_mirror_descent",
    "solve_mirror_descent_many",
    "solve_plug_in",
    "solve_primal_dual_hybrid",
    "testing",
]
