"""Behavioural cloning by counting, over finitely many states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import gymnasium as gym
import numpy as np

from lfd_gym.baselines.learner import Learned, Task
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.estimation import feature_expectations
from lfd_gym.model.mdp import policy_from_occupancy
from lfd_gym.solvers.exact.cutting_plane import solve_cutting_plane
from lfd_gym.validation import FloatArray


@dataclass(frozen=True)
class TabularBC:
    """π(a|x) = the share of a among the actions the expert took in x; uniform in states the expert was never seen in.

    The maximum-likelihood policy, without smoothing.
    """

    queries_expert: ClassVar[bool] = False
    budget_unit: ClassVar[str] = ""
    default_budget: ClassVar[int | None] = None

    def learn(self, task: Task, budget: int | None, rng: np.random.Generator) -> Learned:
        """Count."""
        counts = action_counts(task, "tabular_bc")
        return Learned(policy_from_occupancy(counts), facts={"n_states_seen": int((counts.sum(axis=1) > 0).sum())})


@dataclass(frozen=True)
class ApprenticeBC:
    """Counts where the expert was seen, the exact apprentice policy elsewhere.

    The two use different things about the expert, what it does where it has been and what its behaviour costs, and each
    is weak where the other is strong.

    Attributes
    ----------
    tolerance
        Certified gap of the apprentice.
    """

    tolerance: float = 1e-8

    queries_expert: ClassVar[bool] = False
    budget_unit: ClassVar[str] = ""
    default_budget: ClassVar[int | None] = None

    def learn(self, task: Task, budget: int | None, rng: np.random.Generator) -> Learned:
        """Solve for the apprentice, and put the counts on top."""
        counts = action_counts(task, "apprentice_bc")
        mdp, costs = task.known_model("apprentice_bc"), task.known_costs("apprentice_bc")
        expert = feature_expectations(task.demonstrations, costs, task.discount).values
        apprentice = solve_cutting_plane(mdp, costs, expert, cost_class=task.cost_class, tolerance=self.tolerance)
        return Learned(
            policy_from_occupancy(counts, fallback=apprentice.policy),
            cost_weights=apprentice.cost_weights,
            uses_model=True,
            facts={"n_states_seen": int((counts.sum(axis=1) > 0).sum()), "apprentice_gap": apprentice.gap},
        )


def action_counts(task: Task, learner: str) -> FloatArray:
    """Return how often the expert took each action in each state of the model, (S, A)."""
    mdp = task.known_model(learner)
    return count_actions(task.demonstrations, mdp.n_states, mdp.n_actions)


def count_actions(demonstrations: Demonstrations, n_states: int, n_actions: int) -> FloatArray:
    """Return how often each action was taken in each state, (S, A)."""
    spaces = (demonstrations.observation_space, demonstrations.action_space)
    if not all(isinstance(space, gym.spaces.Discrete) for space in spaces):
        raise ValueError(f"counting actions needs discrete observations and actions, got {spaces[0]} and {spaces[1]}")
    pairs = demonstrations.acted_on * n_actions + demonstrations.actions
    if demonstrations.acted_on.max() >= n_states or demonstrations.actions.max() >= n_actions:
        raise ValueError(
            f"demonstrations over {spaces[0]} and {spaces[1]} do not fit {n_states} states, {n_actions} actions"
        )
    return np.bincount(pairs, minlength=n_states * n_actions).reshape(n_states, n_actions).astype(np.float64)
