"""Learning from demonstrations with guarantees, inside Gymnasium.

Importing this package registers its environments. It imports neither torch nor matplotlib.
"""

from lfd_gym import envs
from lfd_gym.generative_model import GenerativeModel, TabularModel
from lfd_gym.mdp import FiniteMDP, one_hot, policy_from_occupancy
from lfd_gym.planning import Plan

__version__ = "0.1.0"

__all__ = [
    "FiniteMDP",
    "GenerativeModel",
    "Plan",
    "TabularModel",
    "envs",
    "one_hot",
    "policy_from_occupancy",
]
