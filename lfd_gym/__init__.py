"""Learning from demonstrations with guarantees, inside Gymnasium.

Importing this package registers its environments. It imports neither torch nor matplotlib.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lfd_gym import baselines, datasets, envs, features, plots, testing
from lfd_gym.assessment.certificate import certify
from lfd_gym.assessment.collecting import Collected, collect_until
from lfd_gym.assessment.evaluation import Evaluation, evaluate
from lfd_gym.assessment.point_certificate import PointCertificate, certify_saddle_point
from lfd_gym.assessment.statements import Certificate
from lfd_gym.baselines.learner import LearningResult
from lfd_gym.costs.costs import Costs, FunctionCosts, TableCosts, normalise_costs
from lfd_gym.costs.fourier import FourierCosts
from lfd_gym.costs.recovered import RecoveredCost
from lfd_gym.costs.sets import Ball, Box, ConvexSet, Simplex
from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.discounts import suggest_discount
from lfd_gym.demonstrations.estimation import CostEstimate, feature_expectations
from lfd_gym.demonstrations.optimal_expert import optimal_policy
from lfd_gym.demonstrations.provenance import Provenance
from lfd_gym.envs.adapters import as_generative_model
from lfd_gym.envs.env_costs import reward_cost
from lfd_gym.grids.grid import Grid
from lfd_gym.grids.grid_model import GridModel
from lfd_gym.learning import learn
from lfd_gym.model.criterion import Criterion
from lfd_gym.model.generative_model import GenerativeModel, TabularModel
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.policies.conversion import as_policy
from lfd_gym.policies.experts import mixture_policy, noisy_policy, soft_optimal_policy
from lfd_gym.policies.files import load_policy, save_policy
from lfd_gym.policies.mixtures import MixturePolicy
from lfd_gym.policies.policy import Policy
from lfd_gym.solvers.descent.mirror_descent import solve_mirror_descent
from lfd_gym.solvers.exact.cutting_plane import solve_cutting_plane
from lfd_gym.solvers.exact.explanation import explaining_weights, explains
from lfd_gym.solvers.exact.linear_program import solve_linear_program
from lfd_gym.solvers.exact.plug_in import solve_plug_in
from lfd_gym.solvers.saddle.primal_dual_hybrid import solve_primal_dual_hybrid
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.solvers.solution import SaddlePoint, Solution
from lfd_gym.task import Task
from lfd_gym.validation import LfdGymWarning

if TYPE_CHECKING:
    from lfd_gym.training.trainer import PrimalDualTrainer

__version__ = "0.2.0"

__all__ = [
    "Ball",
    "Box",
    "Certificate",
    "Collected",
    "ConvexSet",
    "CostEstimate",
    "Costs",
    "Criterion",
    "Demonstrations",
    "Evaluation",
    "FiniteMDP",
    "FourierCosts",
    "FunctionCosts",
    "GenerativeModel",
    "Grid",
    "GridModel",
    "LearningResult",
    "LfdGymWarning",
    "MixturePolicy",
    "PointCertificate",
    "Policy",
    "PrimalDualTrainer",
    "Provenance",
    "RecoveredCost",
    "SaddlePoint",
    "SaddlePointProblem",
    "Simplex",
    "Solution",
    "TableCosts",
    "TabularModel",
    "Task",
    "as_generative_model",
    "as_policy",
    "baselines",
    "certify",
    "certify_saddle_point",
    "collect",
    "collect_until",
    "datasets",
    "envs",
    "evaluate",
    "explaining_weights",
    "explains",
    "feature_expectations",
    "features",
    "learn",
    "load_policy",
    "mixture_policy",
    "noisy_policy",
    "normalise_costs",
    "optimal_policy",
    "plots",
    "reward_cost",
    "save_policy",
    "soft_optimal_policy",
    "solve_cutting_plane",
    "solve_linear_program",
    "solve_mirror_descent",
    "solve_plug_in",
    "solve_primal_dual_hybrid",
    "suggest_discount",
    "testing",
]

#: The trainer's module imports torch: it is imported when it is first used.
_LATER = {"PrimalDualTrainer": "lfd_gym.training.trainer"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'lfd_gym' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
