"""The solvers that `PrimalDualTrainer` offers, behind one signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from lfd_gym.costs import CostClass
from lfd_gym.cutting_plane import solve_cutting_plane
from lfd_gym.generative_model import GenerativeModel
from lfd_gym.mdp import FiniteMDP
from lfd_gym.plug_in import solve_plug_in
from lfd_gym.primal_dual_hybrid import solve_primal_dual_hybrid
from lfd_gym.rollout_estimates import CostRows
from lfd_gym.saddle_point import SaddlePointProblem
from lfd_gym.validation import FloatArray

SolverName = Literal["cutting_plane", "plug_in", "primal_dual_hybrid"]


@dataclass(frozen=True, eq=False)
class Apprenticeship:
    """What a solver is given: the expert's estimated expected costs, the simulator, and the model if it is known."""

    cost_features: FloatArray | CostRows
    expert_feature_expectations: FloatArray
    discount: float
    model: GenerativeModel
    mdp: FiniteMDP | None
    cost_class: CostClass

    def known(self, solver: str) -> tuple[FiniteMDP, FloatArray]:
        """Return the model and the costs as numbers, or say that ``solver`` needs them."""
        if self.mdp is None:
            raise ValueError(f"solver {solver!r} needs a known finite model: a tabular env, or model=FiniteMDP(...)")
        return self.mdp, self.finite_costs(solver)

    def finite_costs(self, solver: str) -> FloatArray:
        """Return the costs as numbers, or say that ``solver`` needs them."""
        if callable(self.cost_features):
            raise ValueError(f"solver {solver!r} needs cost_features as an (S*A, n_c) array")
        return self.cost_features


@dataclass(frozen=True, eq=False)
class Trained:
    """What a solver found.

    Attributes
    ----------
    table
        (S, A) the policy.
    cost_weights, values
        (n_c,) and (S,): the cost that explains the expert, and its value function.
    oracle_calls
        Draws of the generative model.
    facts
        What is logged.
    """

    table: FloatArray
    cost_weights: FloatArray
    values: FloatArray
    oracle_calls: int = 0
    facts: Mapping[str, float | str] = field(default_factory=dict)


Solver: TypeAlias = Callable[[Apprenticeship, int | None, np.random.Generator], Trained]


def cutting_plane(problem: Apprenticeship, n_iterations: int | None, rng: np.random.Generator) -> Trained:
    """Solve exactly on the known model; an iteration is a planner call."""
    mdp, costs = problem.known("cutting_plane")
    limit: dict[str, Any] = {} if n_iterations is None else {"max_planner_calls": n_iterations}
    solution = solve_cutting_plane(
        mdp, costs, problem.expert_feature_expectations, cost_class=problem.cost_class, **limit
    )
    facts = {
        "apprentice_value": solution.apprentice_value,
        "gap": solution.gap,
        "planner_calls": solution.n_planner_calls,
        "status": solution.status,
    }
    return Trained(solution.policy, solution.cost_weights, solution.values, facts=facts)


def plug_in(problem: Apprenticeship, n_iterations: int | None, rng: np.random.Generator) -> Trained:
    """Solve exactly on a model estimated from draws; an iteration is a draw."""
    costs = problem.finite_costs("plug_in")
    draws_per_pair = 1000 if n_iterations is None else max(1, n_iterations // len(costs))
    found = solve_plug_in(
        problem.model,
        costs,
        problem.expert_feature_expectations,
        problem.discount,
        draws_per_pair,
        rng,
        cost_class=problem.cost_class,
        n_rollouts=1,
    )
    solution = found.solution
    facts = {
        "apprentice_value": solution.apprentice_value,
        "gap": solution.gap,
        "draws_per_pair": draws_per_pair,
        "status": solution.status,
    }
    return Trained(solution.policy, solution.cost_weights, solution.values, found.oracle_calls, facts)


def primal_dual_hybrid(problem: Apprenticeship, n_iterations: int | None, rng: np.random.Generator) -> Trained:
    """Solve the saddle-point problem by first-order steps on the known model."""
    mdp, costs = problem.known("primal_dual_hybrid")
    saddle = SaddlePointProblem.tabular(mdp, costs, problem.expert_feature_expectations, cost_class=problem.cost_class)
    limit: dict[str, Any] = {} if n_iterations is None else {"max_iterations": n_iterations}
    solution = solve_primal_dual_hybrid(saddle, **limit)
    facts = {"residual": solution.residual, "iterations": solution.n_iterations, "status": solution.status}
    return Trained(solution.policy, solution.cost_weights, saddle.values(solution.value_weights), facts=facts)


SOLVERS: dict[str, Solver] = {
    "cutting_plane": cutting_plane,
    "plug_in": plug_in,
    "primal_dual_hybrid": primal_dual_hybrid,
}
