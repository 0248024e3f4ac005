"""Public checks: of generative models, of policies and of learners, ours and yours."""

from lfd_gym.testing.learners import check_learner, check_policy
from lfd_gym.testing.models import check_generative_model

__all__ = ["check_generative_model", "check_learner", "check_policy"]
