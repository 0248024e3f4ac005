"""Learning from demonstrations with guarantees, inside Gymnasium.

Importing this package registers its environments. It imports neither torch nor matplotlib.
"""

from lfd_gym import envs, features, testing
from lfd_gym.costs.costs import Costs, FunctionCosts, TableCosts, normalise_costs
from lfd_gym.costs.sets import Ball, Box, ConvexSet, Simplex
from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.estimation import CostEstimate, feature_expectations
from lfd_gym.demonstrations.provenance import Provenance
from lfd_gym.envs.adapters import as_generative_model
from lfd_gym.envs.toy_text import reward_cost
from lfd_gym.model.generative_model import GenerativeModel, TabularModel
from lfd_gym.model.mdp import FiniteMDP, one_hot, policy_from_occupancy
from lfd_gym.policies.experts import mixture_policy, noisy_policy, soft_optimal_policy
from lfd_gym.policies.files import load_policy, save_policy
from lfd_gym.policies.policy import Policy, as_policy
from lfd_gym.solvers.descent.mirror_descent import solve_mirror_descent, solve_mirror_descent_many
from lfd_gym.solvers.exact.cutting_plane import solve_cutting_plane
from lfd_gym.solvers.exact.explanation import explaining_weights, explains
from lfd_gym.solvers.exact.highs import LinearProgramError
from lfd_gym.solvers.exact.linear_program import solve_linear_program
from lfd_gym.solvers.exact.plug_in import solve_plug_in
from lfd_gym.solvers.saddle.primal_dual_hybrid import solve_primal_dual_hybrid
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.validation import LfdGymWarning

__version__ = "0.1.0"
