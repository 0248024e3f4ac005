"""Learners from demonstrations behind one protocol, for fair comparisons."""

from lfd_gym.baselines.learner import Learner, LearningResult, learner_names, make_learner, register_learner

__all__ = ["Learner", "LearningResult", "learner_names", "make_learner", "register_learner"]
