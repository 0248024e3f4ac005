"""The exact apprentice: by cutting planes, by one linear program, and on a model estimated from draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.demonstrations.estimation import Truncation
from lfd_gym.policies.tables import TablePolicy
from lfd_gym.resources import Resources
from lfd_gym.solvers.exact.cutting_plane import solve_cutting_plane
from lfd_gym.solvers.exact.linear_program import solve_linear_program
from lfd_gym.solvers.exact.plug_in import solve_plug_in
from lfd_gym.solvers.solution import ExactSolution
from lfd_gym.task import Access, Task


def _result(solution: ExactSolution, uses_model: bool) -> LearningResult:
    return LearningResult(
        TablePolicy(solution.policy),
        solution.cost_weights,
        solution.values,
        Resources(oracle_calls=solution.oracle_calls, uses_model=uses_model),
        facts={
            "status": solution.status,
            "apprentice_value": solution.apprentice_value,
            "gap": solution.gap,
            "n_planner_calls": solution.n_planner_calls,
        },
    )


@dataclass(frozen=True)
class CuttingPlane(Learner):
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

    needs: ClassVar[Access] = "model"
    discounted: ClassVar[bool] = True
    budget_unit: ClassVar[str] = "planner calls"
    default_budget: ClassVar[int] = 2000

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Solve to the tolerance or the budget."""
        expert = task.expert_features(self.truncation).values
        solution = solve_cutting_plane(
            task.model, task.costs, expert, tolerance=self.tolerance, max_planner_calls=budget
        )
        return _result(solution, uses_model=True)


@dataclass(frozen=True)
class Lpal(Learner):
    """Linear programming apprenticeship learning (Syed, Bowling & Schapire 2008): one linear program, by HiGHS.

    Attributes
    ----------
    truncation
        As for `CuttingPlane`.
    """

    truncation: Truncation = "paper"

    needs: ClassVar[Access] = "model"
    discounted: ClassVar[bool] = True

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Solve the program."""
        expert = task.expert_features(self.truncation).values
        return _result(solve_linear_program(task.model, task.costs, expert), uses_model=True)


@dataclass(frozen=True)
class PlugIn(Learner):
    """The exact apprentice on a model estimated from draws of every pair; the budget is the total number of draws.

    Attributes
    ----------
    truncation
        As for `CuttingPlane`.
    """

    truncation: Truncation = "paper"

    needs: ClassVar[Access] = "simulator"
    discounted: ClassVar[bool] = True
    budget_unit: ClassVar[str] = "oracle calls"
    default_budget: ClassVar[int] = 1_000_000

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Estimate the model with all of the budget, and solve it."""
        draws = max(1, budget // len(task.cost_table))
        expert = task.expert_features(self.truncation).values
        return _result(solve_plug_in(task.simulator, task.costs, expert, task.discount, draws, rng), uses_model=False)
