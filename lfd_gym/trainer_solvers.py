"""The solvers that `PrimalDualTrainer` offers, behind one signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lfd_gym.costs import CostClass
from lfd_gym.cutting_plane import solve_cutting_plane
from lfd_gym.generative_model import GenerativeModel
from lfd_gym.mdp import FiniteMDP
from lfd_gym.mirror_descent import solve_mirror_descent
from lfd_gym.occupancy_features import TabularOccupancyFeatures, TilePolicy
from lfd_gym.plug_in import solve_plug_in
from lfd_gym.primal_dual_hybrid import solve_primal_dual_hybrid
from lfd_gym.rollout_estimates import CostRows
from lfd_gym.saddle_point import SaddlePointProblem, ValueDomain
from lfd_gym.validation import FloatArray
from lfd_gym.value_features import TabularValueFeatures

SolverName = Literal["cutting_plane", "mirror_descent", "plug_in", "primal_dual_hybrid"]
Values: TypeAlias = FloatArray | Callable[[NDArray[Any]], FloatArray]


@dataclass(frozen=True, eq=False)
class Apprenticeship:
    """What a solver is given: the expert's estimated expected costs, the simulator, and the model if it is known."""

    cost_features: FloatArray | CostRows
    expert_feature_expectations: FloatArray
    discount: float
    model: GenerativeModel
    mdp: FiniteMDP | None
    cost_class: CostClass
    occupancy_features: Any = None
    value_features: Any = None
    value_radius: float | Literal["auto"] = "auto"
    value_domain: ValueDomain | None = None
    progress: bool = False

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

    def saddle_point(self, solver: str) -> SaddlePointProblem:
        """Return the saddle-point problem over the given features; tabular ones if there are none."""
        phi, psi = self.occupancy_features, self.value_features
        if (phi is None) != (psi is None):
            raise ValueError("give both occupancy_features and value_features, or neither")
        if self.mdp is not None:
            mdp, costs = self.known(solver)
            return SaddlePointProblem.linear(
                mdp,
                costs,
                self.expert_feature_expectations,
                occupancy_features=phi or TabularOccupancyFeatures(mdp.n_states, mdp.n_actions),
                value_features=psi or TabularValueFeatures(mdp.n_states),
                value_radius=self.value_radius,
                value_domain=self.value_domain or "ball",
                cost_class=self.cost_class,
            )
        if phi is None:
            states: Any = self.model.state_space
            actions: Any = self.model.action_space
            if not hasattr(states, "n") or not hasattr(actions, "n"):
                raise ValueError(f"solver {solver!r} needs occupancy_features and value_features over {states}")
            phi, psi = TabularOccupancyFeatures(int(states.n), int(actions.n)), TabularValueFeatures(int(states.n))
        # Without a model no radius can be computed. Values of costs in [-1, 1] lie in [-1, 1] (over the ball of costs,
        # in [-√n_c, √n_c]): that is the box of features that do not overlap.
        domain = self.value_domain or "box"
        radius = self.value_radius
        if radius == "auto":
            if domain != "box":
                raise ValueError("value_radius must be given for the ball when the model is not known")
            radius = 1.0 if self.cost_class == "simplex" else float(np.sqrt(self.expert_feature_expectations.size))
        return SaddlePointProblem.from_simulator(
            self.cost_features,
            self.expert_feature_expectations,
            occupancy_features=phi,
            value_features=psi,
            discount=self.discount,
            value_radius=radius,
            value_domain=domain,
            cost_class=self.cost_class,
        )


@dataclass(frozen=True, eq=False)
class Trained:
    """What a solver found.

    Attributes
    ----------
    policy
        (S, A), or a policy over tiles.
    cost_weights
        (n_c,) the cost that explains the expert.
    values
        Its value function: (S,), or a function of observations.
    oracle_calls
        Draws of the generative model.
    facts
        What is logged at the end.
    history
        (iteration, residual) pairs, logged one by one.
    """

    policy: FloatArray | TilePolicy
    cost_weights: FloatArray
    values: Values
    oracle_calls: int = 0
    facts: Mapping[str, float | str] = field(default_factory=dict)
    history: tuple[tuple[int, float], ...] = ()


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
    problem.known("primal_dual_hybrid")
    saddle = problem.saddle_point("primal_dual_hybrid")
    limit: dict[str, Any] = {} if n_iterations is None else {"max_iterations": n_iterations}
    solution = solve_primal_dual_hybrid(saddle, **limit)
    facts = {"residual": solution.residual, "iterations": solution.n_iterations, "status": solution.status}
    return Trained(solution.policy, solution.cost_weights, saddle.values(solution.value_weights), facts=facts)


def mirror_descent(problem: Apprenticeship, n_iterations: int | None, rng: np.random.Generator) -> Trained:
    """Run Algorithm 1 from draws of the generative model."""
    saddle = problem.saddle_point("mirror_descent")
    solution = solve_mirror_descent(saddle, problem.model, n_iterations or 1_000_000, rng, progress=problem.progress)
    if solution.policy is None:
        raise ValueError(
            f"occupancy_features {saddle.occupancy_features} do not say what policy their weights stand for"
        )
    weights = solution.value_weights
    finite = isinstance(solution.policy, np.ndarray)
    values: Values = (
        saddle.values(weights)
        if finite
        else lambda observations: saddle.value_features.evaluate(observations) @ weights
    )
    facts: dict[str, float | str] = {"iterations": solution.n_iterations, "status": solution.status}
    if solution.residual is not None:
        facts["residual"] = solution.residual
    return Trained(
        solution.policy, solution.cost_weights, values, solution.oracle_calls, facts, solution.residual_history
    )


SOLVERS: dict[str, Solver] = {
    "cutting_plane": cutting_plane,
    "mirror_descent": mirror_descent,
    "plug_in": plug_in,
    "primal_dual_hybrid": primal_dual_hybrid,
}
