"""Learning from demonstrations with guarantees, inside Gymnasium.

Importing this package registers its environments. It imports neither torch nor matplotlib.
"""

from lfd_gym import envs, testing
from lfd_gym.cutting_plane import solve_cutting_plane
from lfd_gym.demonstrations import Demonstrations
from lfd_gym.envs.adapters import as_generative_model
from lfd_gym.envs.toy_text import reward_cost
from lfd_gym.evaluation import Evaluation, evaluate
from lfd_gym.exact_solution import ExactSolution
from lfd_gym.generative_model import GenerativeModel, TabularModel
from lfd_gym.highs import LinearProgramError
from lfd_gym.linear_program import LinearProgramSolution, solve_linear_program
from lfd_gym.mdp import FiniteMDP, one_hot, policy_from_occupancy
from lfd_gym.occupancy_features import (
    EmpiricalOccupancyFeatures,
    FiniteOccupancyFeatures,
    OccupancyFeatures,
    TabularOccupancyFeatures,
    policy_occupancies,
)
from lfd_gym.planning import Plan
from lfd_gym.provenance import Provenance
from lfd_gym.saddle_point import SaddlePointProblem
from lfd_gym.value_features import FiniteValueFeatures, TabularValueFeatures, ValueFeatures

__version__ = "0.1.0"

__all__ = [
    "Demonstrations",
    "EmpiricalOccupancyFeatures",
    "Evaluation",
    "ExactSolution",
    "FiniteMDP",
    "FiniteOccupancyFeatures",
    "FiniteValueFeatures",
    "GenerativeModel",
    "LinearProgramError",
    "LinearProgramSolution",
    "OccupancyFeatures",
    "Plan",
    "Provenance",
    "SaddlePointProblem",
    "TabularModel",
    "TabularOccupancyFeatures",
    "TabularValueFeatures",
    "ValueFeatures",
    "as_generative_model",
    "envs",
    "evaluate",
    "one_hot",
    "policy_from_occupancy",
    "policy_occupancies",
    "reward_cost",
    "solve_cutting_plane",
    "solve_linear_program",
    "testing",
]
