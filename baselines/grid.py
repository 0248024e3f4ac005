"""The exact apprentice on a grid over a simulator, judged and mended by rollouts of the simulator itself.

1. Rollouts begin where the task starts, and in states along the demonstrations: these show what the expert does from
   each of them (`grid_starts`).
2. The demonstrations' costs are spread over the grid as the apprentice's are, and the cutting-plane method solves the
   finite model exactly.
3. Its policy is brought back to the continuous space in several ways: the most probable action of the points around
   (*vote*), one drawn from them (*draw*), the best by a step of the simulator and the values behind it (*lookahead*).
4. Each is judged by rollouts of the simulator. While none is near enough, the cutting-plane method goes on with the
   grid as its planner and those rollouts as its cuts, so that the error of the grid cannot mislead it; the best mixture
   of the policies on the way (*mixture*) is a candidate too if all of them are far.
5. The nearest are judged again, now as much by where the task starts as by where the demonstrations do. Of those
   about as near as the nearest, the simplest is taken, and measured once more on rollouts it was not chosen by.

Where the simulator steps one pair after the other, 2. to 4. are done with a table of some thousand of its steps, see
`grid_laying`, and those of 5. are fewer.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lfd_gym.baselines.grid_laying import laid, search_in_rounds, surveyed
from lfd_gym.baselines.grid_search import Candidate, Effort, Search, rescaled
from lfd_gym.baselines.grid_starts import demonstrated_states
from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.demonstrations.estimation import CostEstimate
from lfd_gym.demonstrations.rollout_costs import sampled_costs
from lfd_gym.grids.choice import grid_problem
from lfd_gym.grids.grid import Grid
from lfd_gym.grids.policies import StatesOf
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.resources import Resources
from lfd_gym.task import Access, Task
from lfd_gym.validation import FloatArray, LfdGymWarning

#: How many steps fresh rollouts have at most.
_LONGEST_FRESH = 10_000
#: An initial state is far from a demonstrated one if they differ by more than this share of the box along some axis.
_FAR = 0.1
#: Of initial states that are far, and of the discounted weight that was not demonstrated: more is worth a warning.
_MANY_FAR, _MUCH_UNSEEN = 0.25, 0.25


@dataclass(frozen=True)
class GridApprentice(Learner):
    """The exact apprentice on a grid over a simulator; it is called ``"grid"``.

    What is not given is chosen: the box and the density of the axes from demonstrations, initial states and random
    play, the number of points from the dimensions and the memory, the repeat from how far a step moves on the grid.

    Attributes
    ----------
    grid
        The grid over states.
    n_points
        Along each axis, if the grid is chosen.
    n_actions
        Along each dimension of a `Box` of actions.
    repeat
        For how many steps an action is held on the grid; the policy chooses anew at every step.
    angles
        Which entries of states are angles in radians, besides those that observations show as sine and cosine.
    memory
        How many bytes the grid model with its costs may take.
    savable
        Whether the policy shall be one that can be saved, which acts without the simulator: none that looks ahead.
    """

    grid: Grid | None = None
    n_points: int | None = None
    n_actions: int | None = None
    repeat: int | None = None
    angles: tuple[int, ...] = ()
    memory: float = 2e9
    savable: bool = False

    needs: ClassVar[Access] = "simulator"
    discounted: ClassVar[bool] = True
    budget_unit: ClassVar[str] = "planner calls"
    default_budget: ClassVar[int] = 120

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("n_points", 2), ("n_actions", 1), ("repeat", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
        if not 0 < self.memory < np.inf:
            raise ValueError(f"memory must be a positive number of bytes, got {self.memory!r}")

    @property
    def name(self) -> str:
        """``"grid"``."""
        return "grid"

    def learn(self, task: Task, budget: int, rng: np.random.Generator) -> LearningResult:
        """Lay the grid, solve it, and find the policy that is nearest in the simulator."""
        refused = grid_task_problem(task) if self.grid is None and self.n_points is None else states_problem(task)
        if refused:
            raise ValueError(f"grid cannot learn this task: {refused}")
        states = demonstrated_states(task)
        ground = surveyed(task, states, self, rng)
        others: list[Candidate] = []
        if ground.in_rounds:
            search, others = search_in_rounds(task, ground, states, self, budget, rng)
        else:
            model = laid(ground, self, task.discount, rng)
            search = Search(
                task, model, states, ground.states_of, rng, looks_ahead=not self.savable, effort=ground.effort
            )
            search.solve_grid(max(1, budget * 5 // 6))
        search.mend(min(budget - search.n_planner_calls, budget // 6))
        search.candidates += others
        best = search.best()
        model = best.model
        fresh, of_random = (
            _fresh(task, policy, ground.effort, rng)
            for policy in (best.policy, UniformPolicy(task.simulator.action_space))
        )
        facts = {
            "mode": best.mode,
            "distance": search.distance(rescaled(fresh).mean(axis=0)),
            "distance_of_random": search.distance(rescaled(of_random).mean(axis=0)),
            "distance_when_chosen": best.distance,
            "n_rollouts": fresh.n_trajectories,
            "grid": repr(model.grid),
            "n_actions": model.n_actions,
            "repeat": model.repeat,
            "share_outside": model.share_outside,
            "deterministic": model.deterministic,
            "apprentice_value_on_grid": best.value_on_grid,
            "n_planner_calls": search.n_planner_calls,
            "n_candidates": len(search.candidates),
            **ground.facts(model),
            **_warned(task, model.grid, states, search.starts.others),
        }
        steps = search.n_steps + fresh.n_steps + of_random.n_steps
        values = GridValues(model.grid, best.values, ground.states_of) if best.values is not None else None
        return LearningResult(best.policy, best.weights, values, Resources(oracle_calls=steps), facts)


@dataclass(frozen=True, eq=False)
class GridValues:
    """Values on a grid as a function of observations."""

    grid: Grid
    values: FloatArray
    states_of: StatesOf

    def __call__(self, observations: Any) -> FloatArray:
        """Return the value of each observation."""
        corners, weights = self.grid.interpolate(self.states_of(observations))
        return np.asarray((self.values[corners] * weights).sum(axis=1))


def _fresh(task: Task, policy: Policy, effort: Effort, rng: np.random.Generator) -> CostEstimate:
    longest = max(_LONGEST_FRESH, int(task.demonstrations.lengths.max()))
    return sampled_costs(
        policy,
        task.simulator,
        task.costs,
        task.criterion,
        n_rollouts=effort.n_fresh,
        horizon=min(task.criterion.steps(effort.tail), longest),
        rng=rng,
    )


def states_problem(task: Task) -> str:
    """Return why the states of demonstrations cannot be told, empty if they can."""
    if not hasattr(task.simulator, "states_of"):
        return "its observations do not tell the states of the simulator, which has no `states_of`"
    return ""


def grid_task_problem(task: Task) -> str:
    """Return why no grid can be laid over a task with a simulator, empty if one can."""
    return states_problem(task) or grid_problem(task.simulator)


def _warned(task: Task, grid: Grid, states: FloatArray, others: FloatArray) -> dict[str, float]:
    """Return what the demonstrations leave open, and warn where it is much."""
    low, high = grid.bounds
    span = np.where(grid.periods > 0, grid.periods, high - low)
    far = np.ones(len(others), dtype=bool)
    for k, other in enumerate(others):
        apart = np.abs(states - other)
        apart = np.where(grid.periods > 0, np.minimum(apart % span, span - apart % span), apart)
        far[k] = (apart / span).max(axis=1).min() > _FAR
    unseen = float(task.expert_features().unseen_mass.mean())
    if far.mean() > _MANY_FAR:
        warnings.warn(
            f"{far.sum()} of {far.size} initial states are far from every demonstrated one: what the expert does there "
            "is not known, and the policy there follows from the recovered cost alone",
            LfdGymWarning,
            stacklevel=4,
        )
    if unseen > _MUCH_UNSEEN:
        warnings.warn(
            f"the demonstrations show {1 - unseen:.0%} of the discounted weight: what comes after they were cut is "
            f"taken to be like what came before; a smaller discount than {task.discount} would fit them",
            LfdGymWarning,
            stacklevel=4,
        )
    return {"share_of_starts_far": float(far.mean()), "unseen_mass": unseen}
