"""Learners from demonstrations behind one protocol, for fair comparisons."""

from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.baselines.registry import learner_names, make_learner, register_learner

__all__ = ["Learner", "LearningResult", "learner_names", "make_learner", "register_learner"]
