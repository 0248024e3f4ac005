"""Behavioural cloning by counting, over finitely many states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import gymnasium as gym
import numpy as np

from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.model.mdp import policy_from_occupancy
from lfd_gym.policies.tables import TablePolicy
from lfd_gym.resources import Resources
from lfd_gym.solvers.exact.cutting_plane import solve_cutting_plane
from lfd_gym.task import Access, Task
from lfd_gym.validation import FloatArray


@dataclass(frozen=True)
class TabularBC(Learner):
    """π(a|x) = the share of a among the actions the expert took in x; uniform in states the expert was never seen in.

    The maximum-likelihood policy, without smoothing.
    """

    needs_actions: ClassVar[bool] = True

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Count the actions of each state."""
        counts = action_counts(task)
        return LearningResult(
            TablePolicy(policy_from_occupancy(counts)), facts={"n_states_seen": int((counts.sum(axis=1) > 0).sum())}
        )


@dataclass(frozen=True)
class ApprenticeBC(Learner):
    """Counts where the expert was seen, the exact apprentice policy elsewhere.

    The two use different things about the expert, what it does where it has been and what its behaviour costs, and each
    is weak where the other is strong.

    Attributes
    ----------
    tolerance
        Certified gap of the apprentice.
    """

    tolerance: float = 1e-8

    needs: ClassVar[Access] = "model"
    needs_actions: ClassVar[bool] = True
    discounted: ClassVar[bool] = True

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Solve for the apprentice, and put the counts on top."""
        counts = action_counts(task)
        expert = task.expert_features().values
        apprentice = solve_cutting_plane(task.model, task.costs, expert, tolerance=self.tolerance)
        return LearningResult(
            TablePolicy(policy_from_occupancy(counts, fallback=apprentice.policy)),
            cost_weights=apprentice.cost_weights,
            resources=Resources(uses_model=True),
            facts={"n_states_seen": int((counts.sum(axis=1) > 0).sum()), "apprentice_gap": apprentice.gap},
        )


def action_counts(task: Task) -> FloatArray:
    """Return how often the expert took each action in each state, (S, A): of the model, if it is known."""
    demonstrations = task.demonstrations
    states, actions = demonstrations.observation_space, demonstrations.action_space
    if not (isinstance(states, gym.spaces.Discrete) and isinstance(actions, gym.spaces.Discrete)):
        raise ValueError(f"counting actions needs discrete observations and actions, got {states} and {actions}")
    n_states, n_actions = int(states.n), int(actions.n)
    if task.dynamics is not None:
        n_states, n_actions = task.dynamics.n_states, task.dynamics.n_actions
    seen, done = demonstrations.acted_on.astype(np.int64), demonstrations.actions.astype(np.int64)  # any integers
    pairs = seen * n_actions + done
    return np.bincount(pairs, minlength=n_states * n_actions).reshape(n_states, n_actions).astype(np.float64)
