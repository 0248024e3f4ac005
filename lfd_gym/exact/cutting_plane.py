"""The default exact solver: few planner calls on top of a small master problem.

Maximises g(w) = min_π ⟨w, ρ(π) − ρ⟩ over the cost class; see `bundle_master` for the cuts and the choice of the next
weights. The dual optimum is the best w with the values V*_w; the primal optimum is the mixture of the generated
policies' occupancy measures, which is the occupancy measure of one stationary policy.

Accuracy. A cut is valid for any policy, so the planner's own tolerance may follow the gap that is left; but a cut whose
features are inexact is *invalid*: the upper bound can fall below the lower bound and the method stalls. Features are
therefore computed to a small fraction of the tolerance asked for from the beginning. What is returned is certified anew
from the mixture and the values alone (`ApprenticeshipProblem.certified_solution`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.costs import CostClass
from lfd_gym.exact.bundle_master import bundle_master
from lfd_gym.exact.exact_solution import ApprenticeshipProblem, ExactSolution, Status
from lfd_gym.exact.feature_planner import FeaturePlanner
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.validation import FloatArray

_LEVEL = 0.6
_FEATURE_ACCURACY = 0.02
_PLANNER_ACCURACY = 0.05
_MASTER_GAP = 0.8


def solve_cutting_plane(
    mdp: FiniteMDP,
    cost_features: ArrayLike,
    expert_feature_expectations: ArrayLike,
    *,
    cost_class: CostClass = "simplex",
    tolerance: float = 1e-8,
    max_planner_calls: int = 2000,
    time_limit: float | None = None,
) -> ExactSolution:
    """Solve min_π max_{c in class} ρ_c(π) − ρ_c(π_E) to a certified gap.

    Parameters
    ----------
    mdp
        The model.
    cost_features
        C, (S·A, n_c), entries in [−1, 1].
    expert_feature_expectations
        ρ_C(π_E), (n_c,): exact, or estimated from demonstrations.
    cost_class
        ``"simplex"``: weights w ≥ 0 with Σw = 1; ``"ball"``: ‖w‖₂ ≤ 1.
    tolerance
        The gap between the certified bounds to reach.
    max_planner_calls
        Give up after so many planner calls; the status is then ``"call_limit"``.
    time_limit
        Start no planner call after so many seconds; the status is then ``"time_limit"``.

    Returns
    -------
    ExactSolution
        Also after a limit: the bounds certify what was reached.

    Examples
    --------
    >>> import numpy as np
    >>> import lfd_gym as lfd
    >>> stay_or_go = np.array([[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.0, 1.0]]])
    >>> mdp = lfd.FiniteMDP(stay_or_go, initial_distribution=[1.0, 0.0], discount=0.5)
    >>> costs = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])  # being in state 0; going
    >>> expert = mdp.optimal_policy(costs @ [0.6, 0.4])
    >>> rho = mdp.occupancy(expert).ravel() @ costs
    >>> exact = lfd.solve_cutting_plane(mdp, costs, rho)
    >>> exact.status, abs(exact.apprentice_value) < 1e-8  # an optimal expert: Lemma 1
    ('optimal', True)
    """
    problem = ApprenticeshipProblem.checked(mdp, cost_features, expert_feature_expectations, cost_class)
    if not 0 < tolerance < np.inf:
        raise ValueError(f"tolerance must be positive and finite, got {tolerance}")
    if max_planner_calls < 1:
        raise ValueError(f"max_planner_calls must be at least 1, got {max_planner_calls}")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be positive, got {time_limit}")
    deadline = np.inf if time_limit is None else time.perf_counter() + time_limit
    return _solve(problem, tolerance, max_planner_calls, deadline)


def _solve(problem: ApprenticeshipProblem, tolerance: float, max_planner_calls: int, deadline: float) -> ExactSolution:
    search = _Search(problem, tolerance)
    weights = search.master.first_weights
    while True:
        useful = search.query(weights)
        if search.gap <= search.target:
            solution = search.solution(otherwise="inaccurate")
            if solution.status == "optimal" or not search.tighten():
                return solution
        elif not useful and not search.tighten():
            return search.solution(otherwise="inaccurate")
        if len(search.policies) >= max_planner_calls:
            return search.solution(otherwise="call_limit")
        if time.perf_counter() >= deadline:
            return search.solution(otherwise="time_limit")
        weights = search.master.next_weights(search.best.weights, search.level)
        if not np.isfinite(weights).all():
            return search.solution(otherwise="inaccurate")


@dataclass(frozen=True)
class _DualPoint:
    """Weights, values close to V*_w, and a lower bound of g(w) that they prove."""

    weights: FloatArray
    values: FloatArray
    lower_bound: float


class _Search:
    """The state of the method: policies with their cuts in the master, the best dual point, and the bounds."""

    def __init__(self, problem: ApprenticeshipProblem, tolerance: float) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.planner = FeaturePlanner(problem)
        self.master = bundle_master(problem.cost_class, problem.n_costs)
        self.policies: list[NDArray[np.integer]] = []
        # Visits to states of the policies that are in the mixture, (S,) each; there are hardly more than n_c of them.
        self._state_occupancies: dict[int, FloatArray] = {}
        self.upper_bound = np.inf
        self.mixture = np.empty(0)
        self.target = _MASTER_GAP * tolerance
        self.feature_tolerance = _FEATURE_ACCURACY * tolerance
        self._n_tightenings = 0
        zeros = np.zeros(problem.mdp.n_states)
        self._trivial = _DualPoint(np.zeros(problem.n_costs), zeros, self.master.known_lower_bound)
        self._best_queried = _DualPoint(self.master.first_weights, zeros, -np.inf)

    @property
    def best(self) -> _DualPoint:
        """The dual point with the largest lower bound."""
        return max(self._best_queried, self._trivial, key=lambda point: point.lower_bound)

    @property
    def gap(self) -> float:
        """What the master has left to close."""
        return self.upper_bound - self.best.lower_bound

    @property
    def level(self) -> float:
        """The model value asked of the next weights."""
        return self.best.lower_bound + _LEVEL * self.gap

    def query(self, weights: FloatArray) -> bool:
        """Call the planner at ``weights``; say whether that improved the lower bound or cut the weights off."""
        level = self.level if self.policies else np.inf
        planner_tolerance = max(_PLANNER_ACCURACY * min(self.gap, 1.0), self.feature_tolerance)
        cut = self.planner.cut(weights, planner_tolerance, self.feature_tolerance)
        useful = cut.lower_bound > self.best.lower_bound or float(weights @ cut.row) < level
        if cut.lower_bound > self._best_queried.lower_bound:
            self._best_queried = _DualPoint(weights, cut.values, cut.lower_bound)
        self._state_occupancies[len(self.policies)] = cut.state_occupancy
        self.policies.append(cut.actions)
        self.master.add(cut.row)
        self.upper_bound, self.mixture = self.master.best_mixture()
        self._state_occupancies = {k: each for k, each in self._state_occupancies.items() if self.mixture[k] > 0}
        return useful

    def tighten(self) -> bool:
        """Ask for ten times the accuracy; False if that was done too often to help."""
        self.target /= 10
        self.feature_tolerance /= 10
        self._state_occupancies.clear()
        self._n_tightenings += 1
        return self._n_tightenings <= 3

    def solution(self, otherwise: Status) -> ExactSolution:
        """Mix the occupancy measures of the policies, and certify the mixture with the best dual point."""
        mdp = self.problem.mdp
        occupancy = np.zeros((mdp.n_states, mdp.n_actions))
        states = np.arange(mdp.n_states)
        for k in map(int, np.flatnonzero(self.mixture > 0)):
            visits = self._state_occupancies.get(k)
            if visits is None:
                visits = self.planner.state_occupancy(self.policies[k], self.feature_tolerance)
            occupancy[states, self.policies[k]] += self.mixture[k] * visits
        # Weights that explain something are preferred to w = 0, which is optimal over the ball whenever α* = 0.
        informative = self.upper_bound - self._best_queried.lower_bound <= max(self.gap, self.target)
        point = self._best_queried if informative else self._trivial
        return self.problem.certified_solution(
            occupancy,
            point.values,
            point.weights,
            negligible=1e-3 * self.tolerance * (1 - mdp.discount) / mdp.n_states,
            tolerance=self.tolerance,
            otherwise=otherwise,
            n_planner_calls=len(self.policies),
        )
