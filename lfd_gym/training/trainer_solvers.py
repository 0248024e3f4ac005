"""The solvers that `PrimalDualTrainer` offers, behind one signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lfd_gym.costs.costs import CostClass
from lfd_gym.demonstrations.rollout_estimates import CostRows
from lfd_gym.features.occupancy_features import (
    FiniteOccupancyFeatures,
    TabularOccupancyFeatures,
    TileOccupancyFeatures,
    TilePolicy,
)
from lfd_gym.features.value_features import TabularValueFeatures, ValueFeatures
from lfd_gym.model.generative_model import GenerativeModel, TabularModel
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.solvers.descent.mirror_descent import solve_mirror_descent
from lfd_gym.solvers.exact.cutting_plane import solve_cutting_plane
from lfd_gym.solvers.exact.plug_in import solve_plug_in
from lfd_gym.solvers.saddle.primal_dual_hybrid import solve_primal_dual_hybrid
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem, ValueDomain
from lfd_gym.validation import FloatArray

#: Iterations of Algorithm 1 if the user does not say: seconds of compiled rounds, minutes of batches of a simulator.
_DEFAULT_ROUNDS = 10_000_000
_DEFAULT_BATCHES = 20_000

SolverName = Literal["cutting_plane", "mirror_descent", "plug_in", "primal_dual_hybrid"]


@dataclass(frozen=True, eq=False)
class LinearValues:
    """u_λ = Ψλ as a function of observations: (n, …) → (n,)."""

    features: ValueFeatures
    weights: FloatArray

    def __call__(self, observations: NDArray[Any]) -> FloatArray:
        """Return the values of a batch."""
        return self.features.evaluate(observations) @ self.weights


#: A number for every state, or a function of observations.
Values: TypeAlias = FloatArray | LinearValues


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The choices that make the saddle-point problem, see `SaddlePointProblem`; None where they are left to us."""

    occupancy_features: Any = None
    value_features: Any = None
    value_radius: float | None = None
    value_domain: ValueDomain | None = None

    def __post_init__(self) -> None:
        if (self.occupancy_features is None) != (self.value_features is None):
            raise ValueError("give both occupancy_features and value_features, or neither")

    @property
    def is_default(self) -> bool:
        """Whether nothing was chosen."""
        chosen = (self.occupancy_features, self.value_features, self.value_radius, self.value_domain)
        return all(choice is None for choice in chosen)


@dataclass(frozen=True, eq=False)
class Apprenticeship:
    """What a solver is given: the expert's estimated expected costs, the simulator, and the model if it is known."""

    cost_features: FloatArray | CostRows
    expert_features: FloatArray
    discount: float
    model: GenerativeModel
    mdp: FiniteMDP | None
    cost_class: CostClass
    relaxation: Relaxation
    progress: bool
    on_residual: Callable[[int, float], None]

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
        """Return the saddle-point problem over the given features; over tabular ones if none are given."""
        chosen = self.relaxation
        phi, psi = self._features(solver)
        if self.mdp is not None:
            mdp, costs = self.known(solver)
            return SaddlePointProblem.linear(
                mdp,
                costs,
                self.expert_features,
                occupancy_features=phi,
                value_features=psi,
                value_radius="auto" if chosen.value_radius is None else chosen.value_radius,
                value_domain=chosen.value_domain or ("box" if chosen.value_features is None else "ball"),
                cost_class=self.cost_class,
            )
        domain, radius = chosen.value_domain or "box", chosen.value_radius
        if radius is None:
            if domain != "box":
                raise ValueError("value_radius must be given for the ball when the model is not known")
            # |V| ≤ max |c_w|, so this box holds the values of every cost if the features do not overlap.
            radius = 1.0 if self.cost_class == "simplex" else float(np.sqrt(self.expert_features.size))
        return SaddlePointProblem.from_simulator(
            self.cost_features,
            self.expert_features,
            occupancy_features=phi,
            value_features=psi,
            discount=self.discount,
            value_radius=radius,
            value_domain=domain,
            cost_class=self.cost_class,
        )

    def _features(self, solver: str) -> tuple[Any, Any]:
        phi, psi = self.relaxation.occupancy_features, self.relaxation.value_features
        if phi is None:
            n_states, n_actions = (getattr(s, "n", None) for s in (self.model.state_space, self.model.action_space))
            if n_states is None or n_actions is None:
                raise ValueError(
                    f"solver {solver!r} needs occupancy_features and value_features over {self.model.state_space}"
                )
            return TabularOccupancyFeatures(int(n_states), int(n_actions)), TabularValueFeatures(int(n_states))
        if not isinstance(phi, FiniteOccupancyFeatures | TabularOccupancyFeatures | TileOccupancyFeatures):
            raise ValueError(f"occupancy_features must be of a kind whose mixtures are policies, got {phi}")
        seen = self.model.observation_space
        if isinstance(phi, TileOccupancyFeatures) and seen.shape != phi.grid.low.shape:
            raise ValueError(f"occupancy_features are tiles over {phi.grid.low.size} numbers, but policies see {seen}")
        return phi, psi


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
        (iteration, residual) pairs on the way.
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
    solution = solve_cutting_plane(mdp, costs, problem.expert_features, cost_class=problem.cost_class, **limit)
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
        problem.expert_features,
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
    """Run Algorithm 1 from draws of the generative model; an iteration is a round, or a batch on a simulator."""
    saddle = problem.saddle_point("mirror_descent")
    default = _DEFAULT_ROUNDS if isinstance(problem.model, TabularModel) else _DEFAULT_BATCHES
    solution = solve_mirror_descent(
        saddle,
        problem.model,
        n_iterations or default,
        rng,
        progress=problem.progress,
        on_residual=problem.on_residual,
    )
    weights = solution.value_weights
    values: Values
    if isinstance(solution.policy, TilePolicy):
        values = LinearValues(saddle.value_features, weights)
    else:
        values = saddle.values(weights)
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
