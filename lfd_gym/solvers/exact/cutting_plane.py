"""The default exact solver: few planner calls on top of a small master problem.

Maximises g(w) = min_π ⟨w, ρ(π) − ρ⟩ over the cost class; see `bundle_master` for the cuts and the choice of the next
weights. The dual optimum is the best w with the values V*_w; the primal optimum is the mixture of the generated
policies' occupancy measures, which is the occupancy measure of one stationary policy.

Accuracy. A cut is valid for any policy, so while searching, policies may be as bad as the gap that is left allows, and
that they are no worse is estimated: it takes twice as many evaluations to certify it. One certified plan at the weights
found comes last. Should it disagree with the search, the search goes on with certified plans only.

A cut whose features are inexact, though, is *invalid*: the upper bound can fall below the lower bound and the method
stalls. Where no weight is negative, features with errors of at most ε still make a valid cut when ε is added to them; ε
is a small fraction of the gap, and such a cut is soon above others that were made later. Elsewhere, features are
computed to a small fraction of the tolerance asked for from the beginning. What is returned is certified anew from the
mixture and the values alone (`ApprenticeshipProblem.certified_solution`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.arguments import checked
from lfd_gym.costs.costs import Costs
from lfd_gym.costs.sets import CostClass
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.solvers.exact.bundle_master import bundle_master
from lfd_gym.solvers.exact.exact_solution import ApprenticeshipProblem
from lfd_gym.solvers.exact.feature_planner import FeaturePlanner
from lfd_gym.solvers.solution import ExactSolution, Status
from lfd_gym.validation import FloatArray

# Of the gap: how much a policy may lose, and how far its features may be off.
_PLANNER_ACCURACY = 0.4
_ROUGH_FEATURES = 1e-3
# Of the tolerance: the gap at which the search ends, how accurate the certified plan is, and how accurate features are
# in the end.
_SEARCHED_GAP = 0.65
_CERTIFIED_ACCURACY = 0.2
_FEATURE_ACCURACY = 0.02
_ENOUGH = 0.8  # of the tolerance: a gap that is surely small enough
_MOST_TIGHTENINGS = 3


@checked
def solve_cutting_plane(
    mdp: FiniteMDP,
    cost_features: Costs | ArrayLike,
    expert_features: ArrayLike,
    *,
    cost_class: CostClass | None = None,
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
        C, (S·A, n_c), entries in [−1, 1]; or `Costs`.
    expert_features
        ρ_C(π_E), (n_c,): exact, or estimated from demonstrations.
    cost_class
        ``"simplex"``: weights w ≥ 0 with Σw = 1; ``"ball"``: ‖w‖₂ ≤ 1; or any `ConvexSet`. By default the simplex, or
        what the costs come with.
    tolerance
        The gap between the certified bounds to reach.
    max_planner_calls
        Give up after so many planner calls, of which the last certifies what was found; the status is then
        ``"iteration_limit"``.
    time_limit
        Stop searching after so many seconds, and certify what was found by one more planner call; the status is then
        ``"time_limit"``.

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
    problem = ApprenticeshipProblem.checked(mdp, cost_features, expert_features, cost_class)
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
    while True:
        limit: Status | None = None
        if search.n_planner_calls >= max_planner_calls - 1:
            limit = "iteration_limit"
        elif time.perf_counter() >= deadline:
            limit = "time_limit"
        if limit is None and search.master.gap > search.target:
            weights = search.master.next_weights()
            if np.isfinite(weights).all():
                search.query(weights)
                continue
            limit = "inaccurate"
        search.certify()
        solution = search.solution(otherwise=limit or "inaccurate")
        if solution.status == "optimal" or limit is not None:
            return solution
        if search.master.gap <= search.target and not search.tighten():
            return solution


@dataclass(frozen=True)
class _DualPoint:
    """Weights, values close to V*_w, and a lower bound of g(w) that they prove."""

    weights: FloatArray
    values: FloatArray
    lower_bound: float


class _Search:
    """The state of the method: policies with their cuts in the master, and the best dual point that is certified."""

    def __init__(self, problem: ApprenticeshipProblem, tolerance: float) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.planner = FeaturePlanner(problem)
        self.master = bundle_master(problem.costs.weights, problem.n_costs)
        self.policies: list[NDArray[np.integer]] = []
        # Visits to states of the policies that are in the mixture, (S,) each; there are hardly more than n_c of them.
        self._state_occupancies: dict[int, FloatArray] = {}
        self._feature_errors: list[float] = []
        self._accuracy = tolerance
        self._n_tightenings = 0
        self._cautious = False
        zeros = np.zeros(problem.mdp.n_states)
        self._best = _DualPoint(self.master.best_weights, zeros, -np.inf)

    @property
    def n_planner_calls(self) -> int:
        """How many planner calls were made."""
        return len(self.policies)

    @property
    def target(self) -> float:
        """The gap of the master at which to certify."""
        return _SEARCHED_GAP * self._accuracy

    @property
    def feature_tolerance(self) -> float:
        """How accurate features have to be in the end."""
        return _FEATURE_ACCURACY * self._accuracy

    def query(self, weights: FloatArray) -> None:
        """Call the planner at ``weights``."""
        gap = min(self.master.gap, 1.0)
        rough = self.problem.costs.weights.nonnegative and not self._cautious
        self._plan(
            weights,
            max(_PLANNER_ACCURACY * gap, self.feature_tolerance),
            max(_ROUGH_FEATURES * gap, self.feature_tolerance) if rough else self.feature_tolerance,
            certify=self._cautious,
        )

    def certify(self) -> None:
        """Call the planner at the best weights for a lower bound that is certified; be cautious from then on."""
        # After a limit, with much of the gap left, more than a small part of it would be wasted.
        accuracy = _CERTIFIED_ACCURACY * max(self._accuracy, 0.1 * min(self.master.gap, 1.0))
        self._plan(self.master.best_weights, accuracy, self.feature_tolerance, certify=True)
        self._cautious = True

    def _plan(self, weights: FloatArray, accuracy: float, feature_error: float, certify: bool) -> None:
        cut = self.planner.cut(weights, accuracy, feature_error, certify=certify)
        if certify and cut.lower_bound > self._best.lower_bound:
            self._best = _DualPoint(weights, cut.values, cut.lower_bound)
        self._state_occupancies[self.n_planner_calls] = cut.state_occupancy
        self._feature_errors.append(feature_error)
        self.policies.append(cut.actions)
        is_rough = feature_error > self.feature_tolerance
        self.master.add(weights, cut.row + feature_error if is_rough else cut.row)
        mixed = self.master.mixture > 0
        self._state_occupancies = {k: each for k, each in self._state_occupancies.items() if mixed[k]}

    def tighten(self) -> bool:
        """Ask for ten times the accuracy; False if that was done too often to help."""
        self._accuracy /= 10
        self._n_tightenings += 1
        return self._n_tightenings <= _MOST_TIGHTENINGS

    def solution(self, otherwise: Status) -> ExactSolution:
        """Mix the occupancy measures of the policies, and certify the mixture with the best dual point."""
        mdp = self.problem.mdp
        occupancy = np.zeros((mdp.n_states, mdp.n_actions))
        states = np.arange(mdp.n_states)
        mixture = self.master.mixture
        for k in map(int, np.flatnonzero(mixture > 0)):
            visits = self._state_occupancies.get(k)
            if visits is None or self._feature_errors[k] > self.feature_tolerance:
                visits = self.planner.state_occupancy(self.policies[k], self.feature_tolerance, visits)
            occupancy[states, self.policies[k]] += mixture[k] * visits
        point = self._best
        needed = self.master.upper_bound - _ENOUGH * self.tolerance
        if point.lower_bound < min(self.master.floor, needed):
            # w = 0 proves more. It is optimal whenever α* = 0, but explains nothing, so others are preferred.
            point = _DualPoint(np.zeros(self.problem.n_costs), np.zeros(mdp.n_states), 0.0)
        return self.problem.certified_solution(
            occupancy,
            point.values,
            point.weights,
            negligible=1e-3 * self.tolerance * (1 - mdp.discount) / mdp.n_states,
            tolerance=self.tolerance,
            otherwise=otherwise,
            n_planner_calls=self.n_planner_calls,
        )
