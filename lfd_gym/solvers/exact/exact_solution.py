"""What the exact solvers return, and the certificate that both of them end with.

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
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.costs.costs import CostClass, check_cost_class, check_model_costs, cost_distance
from lfd_gym.model.mdp import FiniteMDP, one_hot, policy_from_occupancy
from lfd_gym.validation import FloatArray, finite_array

Status = Literal["optimal", "call_limit", "time_limit", "inaccurate"]


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """An apprentice policy, the cost weights of the dual, and how far both can be from optimal.

    Attributes
    ----------
    policy
        (S, A) the stationary apprentice policy. Where it is never visited it takes the greedy action for ``values``.
    occupancy
        (S, A) the policy's occupancy measure.
    cost_weights
        w_A, (n_c,).
    values
        u_A, (S,): the optimal values of c_{w_A}, feasible for the dual.
    apprentice_value
        The policy's distance to the expert over the cost class, max_w ⟨w, ρ(policy) − ρ⟩; it estimates α*.
    lower_bound, upper_bound
        Certified: α* and ``apprentice_value`` lie between them, up to rounding.
    status
        ``"optimal"`` if the gap asked for is certified; otherwise what ended the solver before:
        a limit, or ``"inaccurate"``, the accuracy that floating-point numbers allow.
    n_planner_calls
        How many MDPs were solved on the way; 0 for the linear program.
    """

    policy: FloatArray
    occupancy: FloatArray
    cost_weights: FloatArray
    values: FloatArray
    apprentice_value: float
    lower_bound: float
    upper_bound: float
    status: Status
    n_planner_calls: int
    oracle_calls: int = 0

    @property
    def gap(self) -> float:
        """upper_bound − lower_bound."""
        return self.upper_bound - self.lower_bound


@dataclass(frozen=True, eq=False)
class ApprenticeshipProblem:
    """The checked data of (P) and (D)."""

    mdp: FiniteMDP
    cost_features: FloatArray
    expert: FloatArray
    cost_class: CostClass

    @classmethod
    def checked(
        cls,
        mdp: FiniteMDP,
        cost_features: ArrayLike,
        expert_features: ArrayLike,
        cost_class: CostClass = "simplex",
    ) -> ApprenticeshipProblem:
        """Check the arguments of a solver, naming the one that is wrong."""
        check_cost_class("cost_class", cost_class)
        costs = check_model_costs("cost_features", cost_features, mdp)
        expert = finite_array("expert_features", expert_features, (costs.shape[1],))
        if np.abs(expert).max() > 1 + 1e-9:
            raise ValueError(f"expert_features must lie in [-1, 1], as averages of costs in [-1, 1] do, got {expert}")
        return cls(mdp, costs, expert, cost_class)

    @property
    def n_costs(self) -> int:
        """n_c."""
        return self.expert.size

    @property
    def cost_bound(self) -> float:
        """b: the largest |c_w(x, a)| over pairs and weights of the class."""
        if self.cost_class == "simplex":
            return float(np.abs(self.cost_features).max())
        return float(np.sqrt(np.einsum("ij,ij->i", self.cost_features, self.cost_features).max()))

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
        advantages = (self.cost_features @ cost_weights).reshape(mdp.n_states, mdp.n_actions)
        advantages -= mdp.bellman_adjoint(values)
        feasible_values = values + advantages.min()
        lower = float(mdp.initial_distribution @ feasible_values - cost_weights @ self.expert)

        state_mass = occupancy.sum(axis=1)
        visited = np.where((state_mass > negligible)[:, None], occupancy, 0.0)
        policy = policy_from_occupancy(visited, fallback=one_hot(advantages.argmin(axis=1), mdp.n_actions))
        policy_occupancy = state_mass[:, None] * policy
        flow_error = float(np.abs(mdp.initial_distribution - mdp.bellman_flow(policy_occupancy)).sum())
        excess = policy_occupancy.ravel() @ self.cost_features - self.expert
        value = cost_distance(excess, self.cost_class)
        upper = value + self.cost_bound * flow_error
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
