"""Apprenticeship learning by repeated planning: Abbeel & Ng (2004), and MWAL (Syed & Schapire 2007).

Both return a mixture of the policies they planned on the way. A mixture that is drawn once, at the beginning, has the
mixed occupancy measure; the stationary policy of that measure has it too, and is what is returned here.

In terms of costs: d_k = ρ(π_k) − ρ̂ is the difference of the feature expectations of the k-th policy and the expert's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.costs.sets import Simplex
from lfd_gym.model.mdp import FiniteMDP, one_hot, policy_from_occupancy
from lfd_gym.policies.tables import TablePolicy
from lfd_gym.resources import Resources
from lfd_gym.solvers.exact.polyhedron_projection import min_norm_weights
from lfd_gym.task import Access, Task
from lfd_gym.validation import FloatArray


class _Planner:
    """Answers cost weights with an optimal policy's occupancy and features, planning from the last values."""

    def __init__(self, mdp: FiniteMDP, costs: FloatArray) -> None:
        self._mdp = mdp
        self._costs = costs
        self._values: FloatArray | None = None
        self.n_calls = 0

    def __call__(self, cost_weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return μ and ρ of a policy that is optimal for Σ w_i c_i."""
        plan = self._mdp.plan(self._costs @ cost_weights, initial_values=self._values)
        self._values = plan.values
        self.n_calls += 1
        occupancy = self._mdp.occupancy(one_hot(plan.actions, self._mdp.n_actions))
        return occupancy, self._costs.T @ occupancy.ravel()


@dataclass(frozen=True)
class AbbeelNg(Learner):
    """Find a mixture of policies whose feature expectations are nearest the expert's in Euclidean norm.

    The costs that are planned for are d̄, the difference at the current mixture; the budget is the largest number of
    planner calls.

    Attributes
    ----------
    variant
        ``"projection"``: the mixture is moved to the nearest point on the segment to the new policy;
        ``"max_margin"``: it is the nearest point of the convex hull of all policies, a small quadratic program.
    tolerance
        Stop when no policy can bring the mixture nearer by more than this: ‖d̄‖ − min_π ⟨d̄, d_π⟩/‖d̄‖, which bounds the
        distance left to the best mixture (Abbeel & Ng stop by the same quantity, the margin).
    """

    variant: Literal["projection", "max_margin"] = "projection"
    tolerance: float = 1e-4

    needs: ClassVar[Access] = "model"
    discounted: ClassVar[bool] = True
    budget_unit: ClassVar[str] = "planner calls"
    default_budget: ClassVar[int] = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in ("projection", "max_margin"):
            raise ValueError(f"variant must be 'projection' or 'max_margin', got {self.variant!r}")

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Plan, mix, and plan again for what is left of the difference."""
        mdp, costs = task.model, task.cost_table
        expert = task.expert_features().values
        planner = _Planner(mdp, costs)
        occupancies, differences = [], []
        occupancy, features = planner(np.zeros(costs.shape[1]))  # any policy will do to begin with
        mixture = np.ones(1)
        while True:
            occupancies.append(occupancy)
            differences.append(features - expert)
            if len(differences) > 1:
                mixture = self._mix(np.array(differences), mixture)
            difference = mixture @ np.array(differences)
            distance = float(np.linalg.norm(difference))
            if distance <= self.tolerance or planner.n_calls >= budget:
                margin = np.nan if distance > self.tolerance else 0.0
                break
            occupancy, features = planner(difference / distance)
            margin = distance - float((features - expert) @ difference) / distance
            if margin <= self.tolerance:
                break
        weights = difference / distance if distance > 0 else difference
        return LearningResult(
            TablePolicy(policy_from_occupancy(np.tensordot(mixture, np.array(occupancies), axes=1))),
            cost_weights=weights,
            resources=Resources(uses_model=True),
            facts={
                "n_planner_calls": planner.n_calls,
                "distance": distance,
                "converged": bool(margin <= self.tolerance),
            },
        )

    def _mix(self, differences: FloatArray, mixture: FloatArray) -> FloatArray:
        """Return the weights of all policies so far, given those of all but the last."""
        if self.variant == "max_margin":
            return min_norm_weights(np.ascontiguousarray(differences))
        current = mixture @ differences[:-1]
        step = differences[-1] - current
        share = float(np.clip(-(current @ step) / max(step @ step, 1e-300), 0.0, 1.0))
        return np.append((1 - share) * mixture, share)


@dataclass(frozen=True)
class Mwal(Learner):
    """Multiplicative weights over the cost features against a planner; the budget T is the number of planner calls.

    W_i is multiplied by β^{(2 − d_i)/4}, β = 1/(1 + √(2 ln n_c / T)): Syed & Schapire's rule, for costs and differences
    normalised by (1−γ). The returned policy mixes all T policies equally.

    Attributes
    ----------
    step_factor
        Multiplies ln β. With 1, the published rule: it allows for differences of up to 2, and is slow when they are as
        small as they usually are.
    """

    step_factor: float = 50.0

    needs: ClassVar[Access] = "model"
    discounted: ClassVar[bool] = True
    budget_unit: ClassVar[str] = "planner calls"
    default_budget: ClassVar[int] = 500

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Plan for the current weights, and move them to the features on which the policy does worst."""
        mdp, costs = task.model, task.cost_table
        if task.costs.weights != Simplex():
            raise ValueError(f"mwal plays weights of the simplex, but those of the costs lie in {task.costs.weights}")
        expert = task.expert_features().values
        planner = _Planner(mdp, costs)
        n_costs = costs.shape[1]
        log_factor = -self.step_factor * np.log1p(np.sqrt(2 * np.log(n_costs) / budget))  # ln β
        log_weights = np.zeros(n_costs)
        occupancy = np.zeros((mdp.n_states, mdp.n_actions))
        mean_weights = np.zeros(n_costs)
        for _ in range(budget):
            weights = np.exp(log_weights - log_weights.max())
            weights /= weights.sum()
            mean_weights += weights / budget
            planned, features = planner(weights)
            occupancy += planned / budget
            log_weights += log_factor * (2 - (features - expert)) / 4
        return LearningResult(
            TablePolicy(policy_from_occupancy(occupancy)),
            cost_weights=mean_weights,
            resources=Resources(uses_model=True),
            facts={"n_planner_calls": planner.n_calls},
        )
