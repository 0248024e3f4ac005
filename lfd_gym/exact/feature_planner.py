"""The oracle of the exact methods: an optimal policy for c_w and its feature expectations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lfd_gym.exact._cost_kernels import combine_costs, policy_costs
from lfd_gym.exact.exact_solution import ApprenticeshipProblem
from lfd_gym.validation import FloatArray

# Asking for a smaller l1 error times (1−γ) is asking for more than floating point has.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Cut:
    """What one planner call at weights w tells about g(w) = min_π ⟨w, ρ(π) − ρ⟩.

    Attributes
    ----------
    actions
        (S,) the policy found, in the smallest integers that hold the actions.
    values
        (S,) close to V*_w.
    row
        (n_c,) ρ(π) − ρ of that policy: ⟨w', row⟩ ≥ g(w') for every w'.
    lower_bound
        A certified lower bound of g(w).
    state_occupancy
        (S,) how often the policy visits each state.
    """

    actions: NDArray[np.integer]
    values: FloatArray
    row: FloatArray
    lower_bound: float
    state_occupancy: FloatArray


class FeaturePlanner:
    """Plans for one cost after another, each warm-started from the last."""

    def __init__(self, problem: ApprenticeshipProblem) -> None:
        self.problem = problem
        self._values = np.zeros(problem.mdp.n_states)
        self._state_occupancy: FloatArray | None = None

    def cut(self, cost_weights: FloatArray, planner_tolerance: float, feature_tolerance: float) -> Cut:
        """Plan for c_w.

        Parameters
        ----------
        cost_weights
            w.
        planner_tolerance
            How far ``lower_bound`` may be from g(w).
        feature_tolerance
            How far each entry of ``row`` may be from the policy's.
        """
        problem, mdp = self.problem, self.problem.mdp
        plan = mdp.plan(combine_costs(problem.cost_features, cost_weights), planner_tolerance, self._values)
        self._values = plan.values
        state_occupancy = self.state_occupancy(plan.actions, feature_tolerance)
        lower_value = float((mdp.initial_distribution * plan.values).sum()) - plan.error_bound / 2
        return Cut(
            actions=plan.actions.astype(np.min_scalar_type(mdp.n_actions - 1)),
            values=plan.values,
            row=policy_costs(problem.cost_features, plan.actions, state_occupancy) - problem.expert,
            lower_bound=lower_value - float(cost_weights @ problem.expert),
            state_occupancy=state_occupancy,
        )

    def state_occupancy(self, actions: NDArray[np.integer], tolerance: float) -> FloatArray:
        """Return how often a deterministic policy visits each state, (S,), to an l1 error of ``tolerance``."""
        mdp = self.problem.mdp
        reachable = max(tolerance, _ROUNDING / (1 - mdp.discount))
        self._state_occupancy = mdp.state_occupancy(actions, reachable, self._state_occupancy)
        return self._state_occupancy
