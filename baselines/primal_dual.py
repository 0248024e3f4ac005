"""The package's own solvers, and the linear program of Syed, Bowling & Schapire (2008), as learners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lfd_gym.baselines.learner import Learned, Task
from lfd_gym.demonstrations.estimation import Truncation, feature_expectations
from lfd_gym.envs.adapters import as_generative_model
from lfd_gym.solvers.descent.mirror_descent import solve_mirror_descent
from lfd_gym.solvers.descent.step_sizes import Schedule
from lfd_gym.solvers.exact.cutting_plane import solve_cutting_plane
from lfd_gym.solvers.exact.exact_solution import ExactSolution
from lfd_gym.solvers.exact.linear_program import solve_linear_program
from lfd_gym.solvers.exact.plug_in import solve_plug_in
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem, ValueDomain
from lfd_gym.validation import FloatArray


def _expert(task: Task, costs: FloatArray, truncation: Truncation) -> FloatArray:
    return feature_expectations(task.demonstrations, costs, task.discount, truncation=truncation).values


def _learned(solution: ExactSolution, **counts: Any) -> Learned:
    facts = {
        "status": solution.status,
        "apprentice_value": solution.apprentice_value,
        "gap": solution.gap,
        "n_planner_calls": solution.n_planner_calls,
    }
    return Learned(solution.policy, solution.cost_weights, facts=facts, **counts)


@dataclass(frozen=True)
class CuttingPlane:
    """The exact apprentice on the known model, by the cutting-plane method.

    Attributes
    ----------
    tolerance
        The certified gap to reach.
    truncation
        What is done about the unseen end of each trajectory, see `feature_expectations`.
    """

    tolerance: float = 1e-8
    truncation: Truncation = "paper"

    queries_expert: ClassVar[bool] = False
    budget_unit: ClassVar[str] = "planner calls"
    default_budget: ClassVar[int | None] = 2000

    def learn(self, task: Task, budget: int | None, rng: np.random.Generator) -> Learned:
        """Solve to the tolerance or the budget."""
        assert budget is not None
        mdp, costs = task.known_model("cutting_plane"), task.known_costs("cutting_plane")
        solution = solve_cutting_plane(
            mdp,
            costs,
            _expert(task, costs, self.truncation),
            cost_class=task.cost_class,
            tolerance=self.tolerance,
            max_planner_calls=budget,
        )
        return _learned(solution, uses_model=True)


@dataclass(frozen=True)
class Lpal:
    """Linear programming apprenticeship learning: the exact apprentice from one linear program, by HiGHS.

    Attributes
    ----------
    truncation
        As for `CuttingPlane`.
    """

    truncation: Truncation = "paper"

    queries_expert: ClassVar[bool] = False
    budget_unit: ClassVar[str] = ""
    default_budget: ClassVar[int | None] = None

    def learn(self, task: Task, budget: int | None, rng: np.random.Generator) -> Learned:
        """Solve the program."""
        mdp, costs = task.known_model("lpal"), task.known_costs("lpal")
        if task.cost_class != "simplex":
            raise ValueError("lpal is a linear program over the simplex: cost_class must be 'simplex'")
        return _learned(solve_linear_program(mdp, costs, _expert(task, costs, self.truncation)), uses_model=True)


@dataclass(frozen=True)
class MirrorDescent:
    """Algorithm 1 of the paper without function approximation; the budget is a number of iterations, of two draws each.

    Attributes
    ----------
    schedule
        Of the steps: ``"practical"`` or ``"paper"``.
    value_domain
        ``"box"``, or the paper's ``"ball"``, which needs more iterations; of a size computed from the model.
    truncation
        As for `CuttingPlane`.
    """

    schedule: Schedule = "practical"
    value_domain: ValueDomain = "box"
    truncation: Truncation = "paper"

    queries_expert: ClassVar[bool] = False
    budget_unit: ClassVar[str] = "iterations"
    default_budget: ClassVar[int | None] = 10_000_000

    def learn(self, task: Task, budget: int | None, rng: np.random.Generator) -> Learned:
        """Run all iterations."""
        assert budget is not None
        mdp, costs = task.known_model("mirror_descent"), task.known_costs("mirror_descent")
        # The model serves for the radius of the values and the residual that is reported, not for the steps.
        problem = SaddlePointProblem.tabular(
            mdp,
            costs,
            _expert(task, costs, self.truncation),
            value_domain=self.value_domain,
            cost_class=task.cost_class,
        )
        solution = solve_mirror_descent(
            problem, as_generative_model(mdp), budget, rng, schedule=self.schedule, progress=False
        )
        return Learned(
            solution.policy,
            solution.cost_weights,
            oracle_calls=solution.oracle_calls,
            uses_model=True,
            facts={"residual": solution.residual, "value_radius": problem.value_radius},
        )


@dataclass(frozen=True)
class PlugIn:
    """The exact apprentice on a model estimated from draws of every pair; the budget is the total number of draws.

    Attributes
    ----------
    truncation
        As for `CuttingPlane`.
    """

    truncation: Truncation = "paper"

    queries_expert: ClassVar[bool] = False
    budget_unit: ClassVar[str] = "oracle calls"
    default_budget: ClassVar[int | None] = 1_000_000

    def learn(self, task: Task, budget: int | None, rng: np.random.Generator) -> Learned:
        """Estimate and solve."""
        assert budget is not None
        model = as_generative_model(task.env if task.mdp is None else task.mdp)
        costs = task.known_costs("plug_in")
        draws = max(1, budget // len(costs))
        # The rollouts of the policy are for certificates, which come later and for every learner alike.
        found = solve_plug_in(
            model,
            costs,
            _expert(task, costs, self.truncation),
            task.discount,
            draws,
            rng,
            cost_class=task.cost_class,
            n_rollouts=1,
        )
        return _learned(found.solution, oracle_calls=found.oracle_calls)
