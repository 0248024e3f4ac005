"""The problem of the exact solvers, and the certificate that all of them end with.

The problem, over occupancy measures μ, cost weights w of the class and values u:

    α* = min_μ max_w ⟨μ, c_w⟩ − ⟨w, ρ⟩    subject to  T_γ μ = ν₀, μ ≥ 0                                        (P)
       = max_{u, w} ⟨ν₀, u⟩ − ⟨w, ρ⟩       subject to  c_w − T_γ* u ≥ 0                                         (D)

with ρ the expert's feature expectations, exact or estimated. α* ≤ 0 if ρ is the expectation of some policy; with an
estimate it is often positive. Any nonnegative μ and any (u, w) bound α*, however they were found:

- from below: u + k·1 with k = min(c_w − T_γ* u) is feasible for (D), since T_γ* 1 = 1;
- from above: the policy of μ has an occupancy within ‖ν₀ − T_γ μ‖₁ of μ in l1 norm (Lemma 3), so its distance to the
  expert is at most max_w ⟨w, Cᵀμ − ρ⟩ + b‖ν₀ − T_γ μ‖₁, with b the largest |c_w(x, a)| of the class.

The difference of the two is the saddle-point residual of the Lagrangian over ‖u‖∞ ≤ b, in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.costs.costs import Costs, TableCosts, model_costs
from lfd_gym.costs.sets import CostClass, Simplex
from lfd_gym.model.mdp import FiniteMDP, one_hot, policy_from_occupancy
from lfd_gym.solvers.solution import ExactSolution, Status
from lfd_gym.validation import FloatArray, check_type, finite_array


@dataclass(frozen=True, eq=False)
class ApprenticeshipProblem:
    """The checked data of (P) and (D)."""

    mdp: FiniteMDP
    costs: TableCosts
    expert: FloatArray

    @classmethod
    def checked(
        cls,
        mdp: FiniteMDP,
        cost_features: Costs | ArrayLike,
        expert_features: ArrayLike,
        cost_class: CostClass | None = None,
    ) -> ApprenticeshipProblem:
        """Check the arguments of a solver, naming the one that is wrong."""
        check_type("mdp", mdp, FiniteMDP)
        costs = model_costs("cost_features", cost_features, mdp.dynamics, cost_class)
        expert = finite_array("expert_features", expert_features, (costs.n_costs,))
        if np.abs(expert).max() > 1 + 1e-9:
            raise ValueError(f"expert_features must lie in [-1, 1], as averages of costs in [-1, 1] do, got {expert}")
        return cls(mdp, costs, expert)

    @property
    def n_costs(self) -> int:
        """n_c."""
        return self.expert.size

    def certified_solution(
        self,
        occupancy: FloatArray,
        values: FloatArray,
        cost_weights: FloatArray,
        *,
        negligible: float,
        tolerance: float,
        otherwise: Status,
        n_planner_calls: int,
    ) -> ExactSolution:
        """Turn any nonnegative (S, A) array, (S,) values and weights of the class into a solution with bounds.

        Nothing is taken over from how they were found. States whose occupancy is at most ``negligible`` count as
        unvisited. The status is ``"optimal"`` if the gap is at most ``tolerance``, else ``otherwise``.
        """
        mdp = self.mdp
        advantages = (self.costs.table @ cost_weights).reshape(mdp.n_states, mdp.n_actions)
        advantages -= mdp.bellman_adjoint(values)
        feasible_values = values + advantages.min()
        lower = float(mdp.initial_distribution @ feasible_values - cost_weights @ self.expert)

        state_mass = occupancy.sum(axis=1)
        visited = np.where((state_mass > negligible)[:, None], occupancy, 0.0)
        policy = policy_from_occupancy(visited, fallback=one_hot(advantages.argmin(axis=1), mdp.n_actions))
        policy_occupancy = state_mass[:, None] * policy
        flow_error = float(np.abs(mdp.initial_distribution - mdp.bellman_flow(policy_occupancy)).sum())
        excess = policy_occupancy.ravel() @ self.costs.table - self.expert
        value = float(self.costs.weights.support(excess))
        upper = value + self.costs.weights.largest(self.costs.table) * flow_error
        return ExactSolution(
            policy=policy,
            occupancy=policy_occupancy,
            cost_weights=cost_weights,
            values=feasible_values,
            apprentice_value=value,
            lower_bound=lower,
            upper_bound=upper,
            status="optimal" if upper - lower <= tolerance else otherwise,
            n_planner_calls=n_planner_calls,
        )


def require_simplex(costs: Costs, caller: str) -> None:
    """Refuse costs whose weights do not live in the simplex."""
    if costs.weights != Simplex():
        raise ValueError(f"cost_class must be the simplex for {caller}, got {costs.weights}")
