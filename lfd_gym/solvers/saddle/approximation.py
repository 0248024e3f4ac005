"""How well the features can express what they should: the approximation terms of Propositions 4 and 5.

The propositions, as they are used here, and their proofs are in docs/theory.md. What has to be computed:

- ``nearest_occupancy``: min over θ of ‖Φθ − μ‖₁;
- ``nearest_values``: min over λ in Λ and constants k of ‖Ψλ + k − V‖∞. The paper has k = 0; the constant is free
  because it does not change the Lagrangian (⟨T_γ μ − ν₀, 1⟩ = 0), and the propositions hold with it.

Both return feasible weights, so the error they report is attained: never too small, up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from lfd_gym.costs.sets import Ball, Box
from lfd_gym.solvers.highs import Program, solve_with_scipy
from lfd_gym.solvers.saddle.coherence import coherence, cost_half_range, flow_violation, largest_punishment
from lfd_gym.solvers.saddle.saddle_point import PointLike, SaddlePointProblem
from lfd_gym.solvers.saddle.value_radius import fitted_weights
from lfd_gym.validation import FloatArray, finite_array

_MAX_CUTS = 200
_FIT_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Fit:
    """The best approximation found.

    Attributes
    ----------
    error
        Its distance, attained by ``weights``.
    lower_bound
        No weights do better than this.
    weights
        θ or λ.
    """

    error: float
    lower_bound: float
    weights: FloatArray


@dataclass(frozen=True)
class ApproximationError:
    """The two terms of ε_approx, each an error times a factor.

    Attributes
    ----------
    occupancy_error
        min_θ'‖μ_θ' − μ‖₁.
    value_error
        By how much, for each unit of violated flow, the values of π_θ exceed what the u_λ can express: at most their
        distance in the sup norm (Proposition 4), at most R − κ_θ (Proposition 5, see `coherence`). Negative where the
        residual counts a violated flow for more than it can cost.
    occupancy_factor, value_factor
        What multiplies them. The propositions' factors hold for every (θ, λ, w); those of a given point are smaller.
    """

    occupancy_error: float
    value_error: float
    occupancy_factor: float
    value_factor: float

    @property
    def total(self) -> float:
        """Upper bound of ε_approx."""
        return self.occupancy_factor * self.occupancy_error + self.value_factor * self.value_error


def strong_approximation_error(
    problem: SaddlePointProblem,
    occupancy_weights: ArrayLike,
    apprentice_occupancy: ArrayLike,
    expert: ArrayLike | None = None,
) -> ApproximationError:
    """ε_approx,θ of Proposition 4: min‖μ_θ' − μ_A‖₁ and min‖u_λ' − V^{π_θ}_{c}‖∞, c the worst cost for π_θ.

    With the expert's occupancy in place of the apprentice's it is ε_approx,E,θ of Corollary 3. ``expert`` is ρ_C(π_E),
    if it is not the problem's own.
    """
    policy = problem.policy(occupancy_weights)
    values = _worst_values(problem, policy, expert)
    return ApproximationError(
        occupancy_error=nearest_occupancy(problem, apprentice_occupancy).error,
        value_error=nearest_values(problem, values).error,
        occupancy_factor=problem.occupancy_shift,
        value_factor=2 / (1 - problem.discount),
    )


def coherent_approximation_error(problem: SaddlePointProblem, apprentice_occupancy: ArrayLike) -> ApproximationError:
    """ε_approx of Proposition 5, sharpened: min‖μ_θ' − μ_A‖₁, and what coherence lacks at the worst θ.

    No value function has to be expressed: where `coherence` holds, the second term is zero. With the expert's occupancy
    in place of the apprentice's it is ε_approx of Corollary 4. For small problems, see `coherence`.
    """
    return ApproximationError(
        occupancy_error=nearest_occupancy(problem, apprentice_occupancy).error,
        value_error=coherence(problem).shortfall,
        occupancy_factor=problem.occupancy_shift,
        value_factor=2 / (1 - problem.discount),
    )


def point_approximation_error(
    problem: SaddlePointProblem, point: PointLike, apprentice_occupancy: ArrayLike, expert: ArrayLike | None = None
) -> ApproximationError:
    """Return the terms of Propositions 4 and 5 at this very point, as their proofs have them before bounding them.

    The occupancy term's factor is half the span of c_w − T*u_λ (two distributions differ by a vector that sums to
    zero), the value term's is ‖r‖₁, r = ν₀ − T_γ μ_θ. The value error is the smaller of the two propositions'.
    """
    mdp, costs = problem.known_model()
    theta, lam, w = point
    advantages = costs @ np.asarray(w) - mdp.bellman_adjoint(problem.values(lam)).ravel()
    violation = flow_violation(problem, theta)
    return ApproximationError(
        occupancy_error=nearest_occupancy(problem, apprentice_occupancy).error,
        value_error=_value_error(problem, theta, violation, expert),
        occupancy_factor=float(np.ptp(advantages)) / 2,
        value_factor=float(np.abs(violation).sum()),
    )


def _value_error(
    problem: SaddlePointProblem, theta: ArrayLike, violation: FloatArray, expert: ArrayLike | None
) -> float:
    size = float(np.abs(violation).sum())
    if size == 0:
        return 0.0  # whatever it is, its factor is zero
    incoherence = cost_half_range(problem) - largest_punishment(problem, violation) / size  # R − κ_θ
    if incoherence <= 0:
        return incoherence  # no distance is less
    return min(incoherence, nearest_values(problem, _worst_values(problem, problem.policy(theta), expert)).error)


def _worst_values(problem: SaddlePointProblem, policy: FloatArray, expert: ArrayLike | None) -> FloatArray:
    mdp, costs = problem.known_model()
    target = problem.expert_features if expert is None else finite_array("expert", expert, (None,))
    difference = costs.T @ mdp.occupancy(policy).ravel() - target
    return mdp.value_function(policy, costs @ problem.costs.weights.maximiser(difference))


def nearest_occupancy(problem: SaddlePointProblem, occupancy: ArrayLike) -> Fit:
    """Minimise ‖Φθ − μ‖₁ over the simplex: a linear program with S·A + n_μ variables."""
    phi, _ = problem.finite_features()
    target = finite_array("occupancy", np.ravel(np.asarray(occupancy)), (phi.n_states * phi.n_actions,))
    if phi.is_tabular:
        return Fit(0.0, 0.0, target)
    n_pairs, n_features = phi.matrix.shape
    in_theta = np.repeat([1.0, 0.0], [n_features, n_pairs])
    # Variables (θ, p) with p ≥ μ − Φθ, p ≥ 0: both are distributions, so ‖Φθ − μ‖₁ = 2 Σ max(μ − Φθ, 0).
    program = Program(
        cost=2 * (1 - in_theta),
        upper_matrix=sp.hstack([-phi.matrix, -sp.eye_array(n_pairs)], format="csr"),
        upper=-target,
        equal_matrix=sp.csr_array(in_theta[None]),
        equal=np.ones(1),
        bounds=np.tile([0.0, np.inf], (n_features + n_pairs, 1)),
    )
    solution = solve_with_scipy(program).x
    theta = np.maximum(solution[:n_features], 0.0)
    theta /= theta.sum()
    error = float(np.abs(phi.combine(theta).ravel() - target).sum())
    return Fit(error, min(2 * float(np.maximum(solution[n_features:], 0).sum()), error), theta)


def nearest_values(problem: SaddlePointProblem, values: ArrayLike) -> Fit:
    """Minimise ‖Ψλ + k − V‖∞ over λ in the problem's domain and constants k.

    Tabular features have a direct search. For others it is a linear program over the box around the domain. The domain
    is cut out of it by tangent planes until projecting the solution costs at most 1e-6, or after many cuts.
    """
    _, psi = problem.finite_features()
    target = finite_array("values", values, (psi.n_states,))
    domain = problem.value_set
    if psi.is_tabular:
        return _nearest_tabular(domain, target)
    # Where Ψ fits in many ways the planes cut slowly, but then the smallest least-squares fit is often in the domain.
    start = domain.project(fitted_weights(psi, target))
    best = Fit(_half_span(target - psi.function(start)), 0.0, start)
    lower_bound = 0.0
    cuts: list[FloatArray] = []
    for _ in range(_MAX_CUTS):
        lam, lower_bound = _chebyshev_fit(psi.matrix, target, domain, cuts)
        inside = domain.project(lam)
        error = _half_span(target - psi.function(inside))
        if error < best.error:
            best = Fit(error, 0.0, inside)
        outward = lam - inside
        if best.error <= lower_bound + _FIT_TOLERANCE or not outward.any():
            break
        cuts.append(outward / np.linalg.norm(outward))
    return Fit(best.error, min(lower_bound, best.error), best.weights)


def _half_span(difference: FloatArray) -> float:
    """Min over k of ‖difference − k‖∞."""
    return float(np.ptp(difference)) / 2


@singledispatch
def _nearest_tabular(domain: Ball | Box, target: FloatArray) -> Fit:
    """Ψ = I: shrink V − k towards zero by t, for the smallest t that brings it into the domain."""
    low, high = 0.0, _half_span(target)
    if domain.gauge(_shrunk(target, 0.0)) <= 1:
        high = 0.0
    for _ in range(60):
        shrinkage = (low + high) / 2
        if domain.gauge(_shrunk(target, shrinkage)) <= 1:
            high = shrinkage
        else:
            low = shrinkage
    lam = _shrunk(target, high)
    return Fit(_half_span(target - lam), low, lam)


@_nearest_tabular.register
def _(domain: Box, target: FloatArray) -> Fit:
    lam = domain.project(target - (target.max() + target.min()) / 2)
    error = _half_span(target - lam)
    return Fit(error, error, lam)


def _shrunk(target: FloatArray, shrinkage: float) -> FloatArray:
    """Among the λ with ‖λ + k − target‖∞ ≤ shrinkage for some k, return the one of the smallest 2-norm.

    For a given k it is the soft threshold of target − k; the best k makes its entries sum to zero.
    """
    low, high = float(target.min()), float(target.max())
    for _ in range(60):
        constant = (low + high) / 2
        if _soft_threshold(target - constant, shrinkage).sum() > 0:
            low = constant
        else:
            high = constant
    return _soft_threshold(target - (low + high) / 2, shrinkage)


def _soft_threshold(vector: FloatArray, shrinkage: float) -> FloatArray:
    return np.asarray(np.sign(vector) * np.maximum(np.abs(vector) - shrinkage, 0.0))


def _chebyshev_fit(
    matrix: sp.csr_array, target: FloatArray, domain: Ball | Box, cuts: list[FloatArray]
) -> tuple[FloatArray, float]:
    """Minimise t subject to |Ψλ + k − V| ≤ t and ⟨cut, λ⟩ ≤ max over the domain, for every cut and unit vector."""
    n_states, n_features = matrix.shape
    normals = np.array(cuts).reshape(-1, n_features)
    ones = np.ones((n_states, 1))
    blocks = [
        sp.hstack([matrix, sp.csr_array(np.hstack([ones, -ones]))]),
        sp.hstack([-matrix, sp.csr_array(np.hstack([-ones, -ones]))]),
        sp.csr_array(np.hstack([normals, np.zeros((len(cuts), 2))])),
    ]
    program = Program(
        cost=np.concatenate([np.zeros(n_features + 1), [1.0]]),
        upper_matrix=sp.vstack(blocks, format="csr"),
        upper=np.concatenate([target, -target, domain.support(normals)]),
        equal_matrix=sp.csr_array((0, n_features + 2)),
        equal=np.zeros(0),
        bounds=np.array([[-domain.bound, domain.bound]] * n_features + [[-np.inf, np.inf], [0.0, np.inf]]),
    )
    solution = solve_with_scipy(program).x
    return solution[:n_features], float(solution[-1])
