"""The reference rows of every comparison: the expert itself, and no learning at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.policies.conversion import as_policy
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.task import Task


@dataclass(frozen=True)
class Expert(Learner):
    """The expert's own policy."""

    asks_expert: ClassVar[bool] = True

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Return the expert."""
        if task.expert is None:
            raise ValueError("the reference row 'expert' needs Task(expert=...)")
        return LearningResult(as_policy(task.expert))


@dataclass(frozen=True)
class Random(Learner):
    """The uniformly random policy."""

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Return the uniform distribution over actions."""
        return LearningResult(UniformPolicy(task.action_space, task.observation_space))
