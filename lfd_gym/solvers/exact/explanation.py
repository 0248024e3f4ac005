"""The inverse reading: the cost weights that explain an expert, that is, make it optimal.

An expert π_E is optimal for c_w iff its suboptimality ρ_w(π_E) − ρ*_w = max_π ⟨w, ρ(π_E) − ρ(π)⟩ is zero. As a function
of w it is convex, piecewise linear and nonnegative, so the weights of the simplex that explain the expert form a
polytope {w : ⟨w, ρ(π) − ρ(π_E)⟩ ≥ 0 for all π}. By Proposition 2 these are exactly the weights that are optimal for the
dual (D), provided there are any. States count as ν₀ and the expert visit them: elsewhere anything may happen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.arguments import checked
from lfd_gym.costs.costs import Costs, model_costs
from lfd_gym.costs.sets import CostClass
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.solvers.exact.exact_solution import ApprenticeshipProblem, require_simplex
from lfd_gym.solvers.exact.feature_planner import FeaturePlanner
from lfd_gym.solvers.exact.weight_polytope import WeightPolytope
from lfd_gym.validation import FloatArray, check_type, policy_array


@dataclass(frozen=True)
class Explanation:
    """Whether weights make an expert optimal; true in a condition if they do.

    Attributes
    ----------
    optimal
        Whether ``suboptimality`` is at most the tolerance asked for.
    suboptimality
        ρ_w(π_E) − ρ*_w ≥ 0: what the expert gives away under c_w.
    error_bound
        Certified accuracy of ``suboptimality``.
    """

    optimal: bool
    suboptimality: float
    error_bound: float

    def __bool__(self) -> bool:
        return self.optimal


@checked
def explains(
    mdp: FiniteMDP,
    cost_features: Costs | ArrayLike,
    expert: ArrayLike,
    cost_weights: ArrayLike,
    *,
    cost_class: CostClass | None = None,
    tolerance: float = 1e-8,
) -> Explanation:
    """Say whether the cost c_w makes ``expert`` optimal, and how far it is from that.

    Parameters
    ----------
    mdp, cost_features
        As for `solve_cutting_plane`.
    expert
        (S, A) policy.
    cost_weights
        w, (n_c,), of the cost class.
    cost_class
        As for `solve_cutting_plane`.
    tolerance
        The largest suboptimality that counts as optimal.

    Examples
    --------
    >>> import numpy as np
    >>> import lfd_gym as lfd
    >>> stay_or_go = np.array([[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.0, 1.0]]])
    >>> mdp = lfd.FiniteMDP(stay_or_go, initial_distribution=[1.0, 0.0], discount=0.5)
    >>> costs = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])  # being in state 0; going
    >>> go = np.array([[0.0, 1.0], [0.5, 0.5]])
    >>> bool(lfd.explains(mdp, costs, go, [0.7, 0.3]))
    True
    >>> lfd.explains(mdp, costs, go, [0.5, 0.5])
    Explanation(optimal=False, suboptimality=0.0555..., error_bound=...)
    """
    problem = _problem(mdp, cost_features, expert, cost_class)
    weights = problem.costs.weights.check("cost_weights", cost_weights, problem.n_costs)
    accuracy = 0.01 * tolerance
    cut = FeaturePlanner(problem).cut(weights, accuracy, accuracy)
    # ρ*_w lies between the certified lower bound and what the policy found attains.
    attained = float(weights @ cut.row)
    suboptimality = max(-attained, 0.0)
    return Explanation(suboptimality <= tolerance, suboptimality, max(attained - cut.lower_bound, 0.0) + accuracy)


@dataclass(frozen=True, eq=False)
class ExplainingWeights:
    """The polytope of weights that explain an expert.

    Attributes
    ----------
    vertices
        (K, n_c): the set is their convex hull; K = 0 if no weights explain the expert.
    normals
        (M, n_c): the set is {w in the simplex : normals·w ≥ 0}.
    """

    vertices: FloatArray
    normals: FloatArray

    @property
    def is_empty(self) -> bool:
        """Whether no weights of the simplex explain the expert."""
        return len(self.vertices) == 0

    @property
    def bounds(self) -> FloatArray:
        """(n_c, 2): the least and the largest value of each weight over the set."""
        if self.is_empty:
            raise ValueError("no weights explain the expert, so there are no bounds; allow a larger `slack`")
        return np.stack([self.vertices.min(axis=0), self.vertices.max(axis=0)], axis=1)


@checked
def explaining_weights(
    mdp: FiniteMDP,
    cost_features: Costs | ArrayLike,
    expert: ArrayLike,
    *,
    cost_class: CostClass | None = None,
    slack: float = 0.0,
    tolerance: float = 1e-8,
    max_vertices: int = 10_000,
) -> ExplainingWeights:
    """Find all weights of the simplex for which ``expert`` is suboptimal by at most ``slack``.

    Starts from the whole simplex and plans at its vertices: a vertex whose optimal policy beats the expert by more
    than ``slack`` is cut off by that policy's half-space. The suboptimality is convex, so when every vertex passes, the
    whole polytope does. It holds every w with suboptimality at most ``slack``, none with more than slack + tolerance.

    Parameters
    ----------
    mdp, cost_features, expert
        As for `explains`.
    cost_class
        The simplex: no other class is allowed.
    slack
        0 for weights that make the expert optimal. If nothing does, at least −α* is needed (`solve_cutting_plane`).
    tolerance
        How far the vertices may be off, in suboptimality.
    max_vertices
        Give up beyond; the number of vertices can grow exponentially with the number of features.
    """
    if not slack >= 0:
        raise ValueError(f"slack must be nonnegative, got {slack}")
    problem = _problem(mdp, cost_features, expert, cost_class)
    require_simplex(problem.costs, "explaining_weights")
    planner = FeaturePlanner(problem)
    polytope = WeightPolytope(problem.n_costs, 1e-3 * tolerance)
    accuracy = 0.1 * tolerance
    while (index := polytope.unchecked()) is not None:
        vertex = polytope.vertices[index]
        cut = planner.cut(vertex, accuracy, 0.1 * accuracy)
        if float(vertex @ cut.row) < -slack - 0.9 * tolerance:
            polytope.intersect(cut.row + slack)  # ⟨w, row⟩ + slack, because Σw = 1
        else:
            polytope.mark_checked(index)
        if len(polytope.vertices) > max_vertices:
            raise RuntimeError(f"more than {max_vertices} vertices: use fewer features, or raise max_vertices")
    return ExplainingWeights(polytope.vertices, polytope.normals)


def _problem(
    mdp: FiniteMDP, cost_features: Costs | ArrayLike, expert: ArrayLike, cost_class: CostClass | None
) -> ApprenticeshipProblem:
    check_type("mdp", mdp, FiniteMDP)
    policy = policy_array("expert", expert, mdp.n_states, mdp.n_actions)
    costs = model_costs("cost_features", cost_features, mdp.dynamics, cost_class)
    return ApprenticeshipProblem(mdp, costs, mdp.occupancy(policy).ravel() @ costs.table)
