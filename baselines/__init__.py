"""Learners from demonstrations behind one protocol, for fair comparisons."""

from lfd_gym.baselines.learner import Learned, Learner, LearningResult, Task, run_learner
from lfd_gym.baselines.registry import learner_names, make_learner, register_learner

__all__ = [
    "Learned",
    "Learner",
    "LearningResult",
    "Task",
    "learner_names",
    "make_learner",
    "register_learner",
    "run_learner",
]
