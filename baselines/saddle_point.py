"""The relaxed saddle-point problem: Algorithm 1 of the paper from draws, and first-order steps on a known model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.demonstrations.estimation import Truncation
from lfd_gym.features.occupancy_features import OccupancyFeatures, TabularOccupancyFeatures
from lfd_gym.features.value_features import TabularValueFeatures, ValueFeatures
from lfd_gym.model.generative_model import TabularModel
from lfd_gym.policies.conversion import as_policy
from lfd_gym.resources import Resources
from lfd_gym.solvers.descent.mirror_descent import solve_mirror_descent
from lfd_gym.solvers.descent.step_sizes import Schedule
from lfd_gym.solvers.saddle.primal_dual_hybrid import solve_primal_dual_hybrid
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.solvers.saddle.value_radius import ValueDomain
from lfd_gym.task import Access, Task


@dataclass(frozen=True)
class SaddlePointLearner(Learner):
    """The choices that make the saddle-point problem, see `SaddlePointProblem`.

    Attributes
    ----------
    occupancy_features, value_features
        Φ and Ψ; tabular if not given, needed over spaces that cannot be enumerated (there Φ must have a policy:
        `TileOccupancyFeatures`).
    value_radius, value_domain
        The domain of the value weights. By default a box for tabular features, else a ball, of a size computed from
        the model; without a model the box |λ_k| ≤ the largest cost of the class, which suffices for features that do
        not overlap.
    truncation
        What is done about the unseen end of each trajectory, see `feature_expectations`.
    """

    occupancy_features: OccupancyFeatures | None = None
    value_features: ValueFeatures | None = None
    value_radius: float | None = None
    value_domain: ValueDomain | None = None
    truncation: Truncation = "paper"

    discounted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.occupancy_features is None) != (self.value_features is None):
            raise ValueError("give both occupancy_features and value_features, or neither")

    def problem(self, task: Task) -> SaddlePointProblem:
        """Return the saddle-point problem of ``task``."""
        expert = task.expert_features(self.truncation).values
        phi, psi = self._features(task)
        if task.access == "model":
            return SaddlePointProblem.linear(
                task.model,
                task.costs,
                expert,
                occupancy_features=phi,
                value_features=psi,
                value_radius="auto" if self.value_radius is None else self.value_radius,
                value_domain=self.value_domain or ("box" if self.value_features is None else "ball"),
            )
        domain, radius = self.value_domain or "box", self.value_radius
        if radius is None:
            if domain != "box":
                raise ValueError("value_radius must be given for the ball when the model is not known")
            # |V| ≤ max |c_w|, so this box holds the values of every cost if the features do not overlap.
            radius = task.costs.weights.largest_within(np.zeros(expert.size), np.ones(expert.size))
        return SaddlePointProblem.from_simulator(
            task.costs,
            expert,
            occupancy_features=phi,
            value_features=psi,
            discount=task.discount,
            value_radius=radius,
            value_domain=domain,
        )

    def _features(self, task: Task) -> tuple[Any, Any]:
        model = task.simulator
        phi, psi = self.occupancy_features, self.value_features
        if phi is None:
            states, actions = model.state_space, model.action_space
            if not (isinstance(states, gym.spaces.Discrete) and isinstance(actions, gym.spaces.Discrete)):
                raise ValueError(f"occupancy_features and value_features must be given over {states}")
            n_states, n_actions = int(states.n), int(actions.n)
            return TabularOccupancyFeatures(n_states, n_actions), TabularValueFeatures(n_states)
        grid = getattr(phi, "grid", None)
        if grid is not None and model.observation_space.shape != grid.low.shape:
            raise ValueError(
                f"occupancy_features are tiles over {grid.low.size} numbers, but policies see {model.observation_space}"
            )
        if type(phi).policy is OccupancyFeatures.policy:
            raise ValueError(f"occupancy_features must be of a kind whose mixtures are policies, got {phi}")
        return phi, psi


@dataclass(frozen=True)
class MirrorDescent(SaddlePointLearner):
    """Algorithm 1 of the paper; the budget is a number of iterations, of two draws each or of a batch of a simulator.

    Attributes
    ----------
    schedule
        Of the steps: ``"practical"`` or ``"paper"``.
    checkpoint
        A file to write every few minutes. If it is there when learning begins, learning goes on from it, to the same
        bits as without the interruption; it has to be the same problem.
    progress
        Whether to show how far it has come.
    """

    schedule: Schedule = "practical"
    checkpoint: str | None = None
    progress: bool = True

    needs: ClassVar[Access] = "simulator"
    budget_unit: ClassVar[str] = "iterations"
    default_budget: ClassVar[int] = 10_000_000
    default_batches: ClassVar[int] = 20_000

    def quiet(self) -> MirrorDescent:
        """Return the same learner without a progress bar."""
        return replace(self, progress=False)

    def budget_for(self, task: Task) -> int:
        """Seconds of compiled rounds, minutes of batches of a simulator."""
        return self.default_budget if isinstance(task.simulator, TabularModel) else self.default_batches

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Run all iterations. A known model serves for the radius of the values and the residual, not for the steps."""
        problem = self.problem(task)
        found = solve_mirror_descent(
            problem,
            task.simulator,
            budget,
            rng,
            schedule=self.schedule,
            checkpoint=self.checkpoint,
            progress=self.progress,
        )
        facts: dict[str, Any] = {"status": found.status, "iterations": found.n_iterations}
        if found.residual is not None:
            facts["residual"] = found.residual
        return LearningResult(
            as_policy(found.policy),
            found.cost_weights,
            found.values,
            Resources(oracle_calls=found.oracle_calls, uses_model=task.access == "model"),
            facts={**facts, "value_radius": problem.value_radius},
            history=found.residual_history,
        )


@dataclass(frozen=True)
class PrimalDualHybrid(SaddlePointLearner):
    """Restarted first-order steps on the known model; the budget is the largest number of steps."""

    needs: ClassVar[Access] = "model"
    budget_unit: ClassVar[str] = "iterations"
    default_budget: ClassVar[int] = 1_000_000

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Solve to the tolerance of the solver or the budget."""
        task.needs("model", "primal_dual_hybrid")
        found = solve_primal_dual_hybrid(self.problem(task), max_iterations=budget)
        return LearningResult(
            as_policy(found.policy),
            found.cost_weights,
            found.values,
            Resources(uses_model=True),
            facts={"status": found.status, "iterations": found.n_iterations, "residual": found.residual},
        )
