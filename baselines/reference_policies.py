"""The reference rows of every comparison: the expert itself, and no learning at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import gymnasium as gym
import numpy as np

from lfd_gym.baselines.learner import Learned, Task
from lfd_gym.validation import FloatArray


@dataclass(frozen=True)
class Expert:
    """The expert's own policy."""

    queries_expert: ClassVar[bool] = True
    budget_unit: ClassVar[str] = ""
    default_budget: ClassVar[int | None] = None

    def learn(self, task: Task, budget: int | None, rng: np.random.Generator) -> Learned:
        """Return the expert."""
        if task.expert is None:
            raise ValueError("the reference row 'expert' needs Task(expert=...)")
        return Learned(task.expert)


@dataclass(frozen=True)
class Random:
    """The uniformly random policy."""

    queries_expert: ClassVar[bool] = False
    budget_unit: ClassVar[str] = ""
    default_budget: ClassVar[int | None] = None

    def learn(self, task: Task, budget: int | None, rng: np.random.Generator) -> Learned:
        """Return the uniform distribution over actions, in every state."""
        if task.mdp is not None:
            return Learned(np.full((task.mdp.n_states, task.mdp.n_actions), 1 / task.mdp.n_actions))
        if not isinstance(task.env.action_space, gym.spaces.Discrete):
            raise ValueError(f"the reference row 'random' needs discrete actions, got {task.env.action_space}")
        return Learned(UniformPolicy(int(task.env.action_space.n)))


@dataclass(frozen=True)
class UniformPolicy:
    """Every action with the same probability, whatever is observed."""

    n_actions: int

    def action_probabilities(self, observations: np.ndarray) -> FloatArray:
        """Return (n, A) uniform rows."""
        return np.full((len(observations), self.n_actions), 1 / self.n_actions)
