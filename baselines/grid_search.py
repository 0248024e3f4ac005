"""The search of the learner ``grid``: candidates from the grid, judged and mended by rollouts of the simulator.

Each policy of the grid acts between its points in a way that is called its *mode*, the simplest first: the most
probable action of the points around (*vote*), the best by a step of the simulator and the values behind it
(*lookahead*), one drawn from the points around (*draw*), one of several policies for each episode (*mixture*).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from tqdm import tqdm

from lfd_gym.baselines.grid_starts import Starts
from lfd_gym.costs.costs import TableCosts
from lfd_gym.demonstrations.estimation import CostEstimate
from lfd_gym.demonstrations.rollout_costs import sampled_costs
from lfd_gym.grids.grid_model import GridModel
from lfd_gym.grids.policies import GridPolicy, LookaheadPolicy, StatesOf
from lfd_gym.grids.tabulated import TabulatedSimulator
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.model.mdp import FiniteMDP, one_hot
from lfd_gym.policies.mixtures import MixturePolicy
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.solvers.exact.bundle_master import bundle_master
from lfd_gym.solvers.exact.cutting_plane import solve_cutting_plane
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray

#: How a policy of the grid acts between its points, the simplest first.
Mode = Literal["vote", "lookahead", "draw", "mixture"]
_SIMPLEST = ("vote", "lookahead", "draw", "mixture")

#: The gap to which the grid is solved: what is left of it is less than what the grid is wrong by.
_TOLERANCE = 2e-3
_PLAN_TOLERANCE = 1e-3
#: Near enough: of the distance of random play.
_ENOUGH = 0.05
#: Cuts without a nearer policy after which no more are made.
_PATIENCE = 8
#: Candidates up to this many times as far as the nearest are judged again.
_FINALIST, MOST_FINALISTS = 2.0, 5
#: As near as the nearest: up to this much further, absolutely or as a share of its distance.
_MARGIN, _SHARE_OF_LEAST = 0.005, 0.1
#: A mixture averages out what each of its policies does wrong: it is for when none of them comes within this share of
#: the distance of random play.
_SINGLE_WILL_DO = 0.25


@dataclass(frozen=True)
class Effort:
    """What is spent on judging in the simulator itself.

    Attributes
    ----------
    n_starts
        Initial states of the task from which the nearest are judged again.
    n_fresh
        Fresh rollouts in the end.
    tail
        How much of the discounted weight these leave out.
    ends_count
        Whether distances are larger for policies whose episodes end more or less often than demonstrations.
    """

    n_starts: int
    n_fresh: int
    tail: float
    ends_count: bool


#: Where steps come in batches, and where they are taken one after the other.
MANY, FEW = Effort(200, 200, 1e-3, ends_count=False), Effort(20, 50, 1e-2, ends_count=True)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A way to act, its expected costs from the starts, and how far they are from the demonstrations'."""

    mode: Mode
    policy: Policy
    model: GridModel
    expected: FloatArray
    distance: float
    weights: FloatArray
    values: FloatArray | None
    value_on_grid: float


class Search:
    """Finds candidates and judges them."""

    def __init__(
        self,
        task: Task,
        model: GridModel,
        states: FloatArray,
        states_of: StatesOf,
        rng: np.random.Generator,
        *,
        looks_ahead: bool,
        effort: Effort = MANY,
    ) -> None:
        self._looks_ahead = looks_ahead and model.deterministic
        self._task, self.model, self._states, self._states_of = task, model, states, states_of
        self._seed = int(rng.integers(2**63))
        self.starts = Starts.chosen(task, states, rng)
        self._demonstrated = task.expert_features("rescale").values
        self._effort = effort
        self._elsewhere = np.asarray(task.simulator.sample_initial(effort.n_starts, rng), dtype=np.float64)
        self._table = model.table(task.costs)
        self._mdp: FiniteMDP = model.mdp(self.starts.states, self.starts.shares)
        self._master = bundle_master(task.costs.weights, self.starts.expert.size)
        self.candidates: list[Candidate] = []
        table = model.simulator
        self.n_steps = table.n_steps if isinstance(table, TabulatedSimulator) else model.n_steps
        self.n_planner_calls = 0
        self.random_distance = self._judge(UniformPolicy(task.simulator.action_space))[1]
        self.value_on_grid = float("nan")

    def solve_grid(self, max_calls: int) -> None:
        """Solve the finite model with at most so many planner calls, and judge its policy in the simulator."""
        task, model = self._task, self.model
        costs = TableCosts(self._table, model.n_actions, task.costs.weights)
        target = model.spread_costs(task.costs, self._states, task.demonstrations.actions, self.starts.step_weights)
        solution = solve_cutting_plane(
            self._mdp,
            costs,
            np.clip(target, -1.0, 1.0),
            tolerance=_TOLERANCE,
            max_planner_calls=max_calls,
        )
        self.n_planner_calls = solution.n_planner_calls
        self.value_on_grid = solution.apprentice_value
        weights = solution.cost_weights if solution.cost_weights.any() else self._master.best_weights
        for mode in ("vote", "lookahead", "draw"):
            self._consider(mode, solution.policy, weights, solution.values)

    def mend(self, max_calls: int) -> None:
        """While no candidate is near enough, plan on the grid for the cost that tells them most from the expert."""
        values = self.candidates[0].values
        n_judged = len(self.candidates)
        with tqdm(total=max_calls, unit=" cuts", delay=1, disable=None, leave=False) as bar:
            for _ in range(max_calls):
                distances = [candidate.distance for candidate in self.candidates]
                near = min(distances)
                weights = self._master.next_weights()
                if near <= _ENOUGH * self.random_distance or self._master.gap < _TOLERANCE:
                    break
                if len(distances) - max(n_judged, distances.index(near) + 1) >= _PATIENCE:
                    break
                if not np.isfinite(weights).all():
                    break
                cost = self._table @ weights
                plan = self._mdp.plan(cost, _PLAN_TOLERANCE * max(float(np.ptp(cost)), 1e-9), values)
                values = plan.values
                self.n_planner_calls += 1
                table = one_hot(plan.actions, self.model.n_actions)
                self._consider("lookahead" if self._looks_ahead else "vote", table, weights, values)
                bar.update()
                bar.set_postfix(distance=f"{near:.3f}")
        self._mix()

    def _consider(self, mode: Mode, table: FloatArray, weights: FloatArray, values: FloatArray) -> None:
        if mode == "lookahead" and not self._looks_ahead:
            return
        policy = self._policy(mode, table, weights, values)
        expected, distance = self._judge(policy)
        self._master.add(weights, expected - self.starts.expert)
        self._add(mode, policy, expected, distance, weights, values)

    def _add(
        self,
        mode: Mode,
        policy: Policy,
        expected: FloatArray,
        distance: float,
        weights: FloatArray,
        values: FloatArray | None,
    ) -> None:
        self.candidates.append(
            Candidate(mode, policy, self.model, expected, distance, weights, values, self.value_on_grid)
        )

    def _policy(self, mode: Mode, table: FloatArray, weights: FloatArray, values: FloatArray) -> Policy:
        model = self.model
        if mode == "lookahead":
            return LookaheadPolicy(model, self._table @ weights, values, self._states_of)
        grid, seen = model.grid, model.simulator.observation_space
        return GridPolicy(grid, model.actions, table[: grid.n_points], self._states_of, seen, vote=mode == "vote")

    def _mix(self) -> None:
        """Add the mixture that is nearest; its expected costs are the mean of those of its parts."""
        mixed = np.flatnonzero(self._master.mixture > 0)
        near = min(candidate.distance for candidate in self.candidates)
        if mixed.size < 2 or near <= _SINGLE_WILL_DO * self.random_distance:
            return
        parts, shares = [self.candidates[k] for k in mixed], self._master.mixture[mixed]
        expected = shares / shares.sum() @ np.array([part.expected for part in parts])
        policy = MixturePolicy([part.policy for part in parts], shares / shares.sum())
        weights = self._master.best_weights
        self._add("mixture", policy, expected, self._distance(expected), weights, None)

    @property
    def nearest(self) -> Candidate:
        """The nearest so far, before it is judged again."""
        return min(self.candidates, key=lambda each: each.distance)

    def best(self) -> Candidate:
        """Return the simplest of those that are about as near as the nearest.

        The nearest of each grid comes first, lest one whose table is wrong crowds out the others.
        """
        ordered = sorted(self.candidates, key=lambda each: each.distance)
        nearest = {id(each.model): each for each in reversed(ordered)}
        ordered.sort(key=lambda each: (nearest[id(each.model)] is not each, each.distance))
        far = ordered[0].distance + max(_MARGIN, (_FINALIST - 1) * abs(ordered[0].distance))
        finalists = [self._judged_again(each) for each in ordered[:MOST_FINALISTS] if each.distance <= far]
        least = min(each.distance for each in finalists)
        near = [each for each in finalists if each.distance <= least + max(_MARGIN, _SHARE_OF_LEAST * abs(least))]
        return min(near, key=lambda each: (_SIMPLEST.index(each.mode), each.distance))

    def _judged_again(self, candidate: Candidate) -> Candidate:
        """Give a policy that is near from the demonstrated starts but lost elsewhere the distance it deserves."""
        n = len(self._elsewhere)
        shares = np.full(n, 1 / n)
        found = self._played(candidate.policy, self._task.simulator, self._elsewhere)
        elsewhere = self.distance(shares @ rescaled(found)) + self._ends_otherwise(found, shares)
        return replace(candidate, distance=(candidate.distance + elsewhere) / 2)

    def _judge(self, policy: Policy) -> tuple[FloatArray, float]:
        """Return the expected costs of rollouts from the starts, and how far they are from the demonstrations'."""
        found = self._played(policy, self.model.simulator, self.starts.states)
        expected = np.asarray(self.starts.shares @ rescaled(found))
        return expected, self._distance(expected) + self._ends_otherwise(found, self.starts.shares)

    def _ends_otherwise(self, found: CostEstimate, shares: FloatArray) -> float:
        """Return how much more or less often episodes end than demonstrations do, if that is to count.

        A discount does not see what ends late: of two policies that are about as near, one may fall after some hundred
        steps, where the expert never does.
        """
        if not self._effort.ends_count:
            return 0.0
        return abs(float(shares @ (found.unseen_mass == 0)) - float(self._task.demonstrations.terminated.mean()))

    def _played(self, policy: Policy, simulator: GenerativeModel, starts: FloatArray) -> CostEstimate:
        """Let a policy play from each of the starts, the same random numbers for all policies."""
        task = self._task
        estimate = sampled_costs(
            policy,
            simulator,
            task.costs,
            task.criterion,
            n_rollouts=len(starts),
            horizon=longest_rollout(task),
            rng=np.random.default_rng(self._seed),
            initial_states=starts,
        )
        if simulator is task.simulator:
            self.n_steps += estimate.n_steps
        return estimate

    def _distance(self, expected: FloatArray) -> float:
        """Return how far expected costs from the starts of the search are from what is demonstrated from there."""
        return float(self._task.costs.weights.support(expected - self.starts.expert))

    def distance(self, expected: FloatArray) -> float:
        """Return how far expected costs are from the demonstrations', in the worst cost of the class."""
        return float(self._task.costs.weights.support(expected - self._demonstrated))


def longest_rollout(task: Task) -> int:
    """Return for how many steps policies are judged: those of the longest demonstration, or more."""
    demonstrations = task.demonstrations
    horizon = int(demonstrations.lengths.max())
    if demonstrations.terminated.any():  # one who needs longer than the expert shall be seen to
        horizon = max(horizon, min(2 * horizon, task.time_limit or 2 * horizon))
    return horizon


def rescaled(estimate: CostEstimate) -> FloatArray:
    """Return (n, n_c) costs of rollouts, with what comes after a cut taken to be like what came before."""
    return np.asarray(estimate.trajectory_values / (1 - estimate.unseen_mass)[:, None])
