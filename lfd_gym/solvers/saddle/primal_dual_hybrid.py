"""Restarted PDHG: a deterministic solver for the saddle-point problem of a known model.

    min over θ in the simplex, max over λ and w of   ⟨θ, Aw⟩ − ⟨Kθ, λ⟩ + ⟨b, λ⟩ − ⟨w, ρ⟩,

with A = ΦᵀC, K = Ψᵀ T_γ Φ and b = Ψᵀν₀. One step T of PDHG (Chambolle & Pock) is a projected gradient step in θ, then
one in (λ, w) at the extrapolated θ. The points z = (θ, λ, w) are reflected and drawn back to an anchor (Halpern),

    z ← (k+1)/(k+2) · (2 T(z) − z) + 1/(k+2) · anchor;

whenever the exact residual of T(z) has fallen enough, T(z) becomes the new anchor and the step sizes are rebalanced to
how far the players moved. Over the box and the simplices, where the residual is sharp, this converges linearly (Lu &
Yang; Applegate et al.); over a ball that binds it may be slower. On the grids of the tests it needs half the steps of
restarts from averages.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lfd_gym._jit import jit
from lfd_gym.arguments import checked
from lfd_gym.costs.sets import Ball, Simplex
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.solvers.solution import SaddlePoint, SaddlePointSolution
from lfd_gym.validation import FloatArray, check_type

_STEPS_BETWEEN_CHECKS = 40
#: λ is the slow player, so most of what the step sizes may be together is its.
_VALUE_SHARE = 0.9
_LARGEST_CHANGE = 4.0


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class HybridSolution(SaddlePointSolution):
    """An approximate saddle point of a known problem; ``policy`` is π_θ, (S, A).

    Attributes
    ----------
    n_restarts
        How often the method began anew from its last point.
    """

    residual: float
    n_restarts: int


@checked
def solve_primal_dual_hybrid(
    problem: SaddlePointProblem, *, tolerance: float = 1e-6, max_iterations: int = 1_000_000
) -> HybridSolution:
    """Find a saddle point of ``problem`` to an exact residual of at most ``tolerance``.

    Parameters
    ----------
    problem
        With a known model, and weights of the costs in the simplex or the unit ball.
    tolerance
        Largest saddle-point residual to accept.
    max_iterations
        Give up after so many steps; the best point so far is returned, and its status says so.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym import FiniteMDP, SaddlePointProblem, solve_primal_dual_hybrid
    >>> mdp = FiniteMDP([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], initial_distribution=[1.0, 0.0], discount=0.9)
    >>> costs = np.array([[0.0], [0.0], [1.0], [1.0]])  # state 1 is costly
    >>> expert = mdp.occupancy(mdp.optimal_policy(costs[:, 0])).ravel()
    >>> solution = solve_primal_dual_hybrid(SaddlePointProblem.tabular(mdp, costs, costs.T @ expert))
    >>> solution.status, bool(solution.residual <= 1e-6)
    ('optimal', True)
    """
    check_type("problem", problem, SaddlePointProblem)
    if tolerance <= 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}")
    if max_iterations < 1:
        raise ValueError(f"max_iterations must be at least 1, got {max_iterations}")
    if problem.costs.weights not in (Simplex(), Ball()):
        raise ValueError(
            f"problem must have costs with weights in {Simplex()} or {Ball()} for this solver, got {problem.costs}"
        )
    run = _Run(problem)
    while run.best_residual > tolerance and run.n_iterations < max_iterations:
        run.advance(min(_STEPS_BETWEEN_CHECKS, max_iterations - run.n_iterations))
    point = run.best._replace(occupancy_weights=run.best.occupancy_weights / run.best.occupancy_weights.sum())
    residual = problem.saddle_point_residual(point)
    return HybridSolution(
        policy=problem.policy(point.occupancy_weights),
        cost_weights=point.cost_weights,
        values=problem.values(point.value_weights),
        status="optimal" if residual <= tolerance else "iteration_limit",
        point=point,
        residual=residual,
        n_iterations=run.n_iterations,
        n_restarts=run.n_restarts,
    )


class _Sparse(NamedTuple):
    """The arrays of a CSR matrix."""

    offsets: NDArray[Any]
    columns: NDArray[Any]
    data: FloatArray


class _Game(NamedTuple):
    """The problem as arrays: K and Kᵀ, A, b, ρ, and the domains of λ and w."""

    flow: _Sparse
    adjoint: _Sparse
    costs: FloatArray
    initial: FloatArray
    expert: FloatArray
    value_radius: float
    value_ball: bool
    cost_simplex: bool


class _StepSizes(NamedTuple):
    occupancy: float
    value: float
    cost: float


class _Run:
    """The state of one solve: the current point z, the anchor, the feasible image T(z), and the best image seen."""

    def __init__(self, problem: SaddlePointProblem) -> None:
        mdp, costs = problem.known_model()
        phi, psi = problem.finite_features()
        rows = sp.kron(sp.eye_array(mdp.n_states), np.ones((mdp.n_actions, 1)), format="csr")
        adjoint = (rows - mdp.discount * mdp.transitions) @ psi.matrix / (1 - mdp.discount)  # T*Ψ, (S·A, n_u)
        self.problem = problem
        self.transposed: sp.csr_array = sp.csr_array(phi.matrix.T @ adjoint)  # Kᵀ, (n_μ, n_u)
        self.matrix: sp.csr_array = sp.csr_array(self.transposed.T)
        self.game = _Game(
            flow=_Sparse(self.matrix.indptr, self.matrix.indices, self.matrix.data),
            adjoint=_Sparse(self.transposed.indptr, self.transposed.indices, self.transposed.data),
            costs=np.ascontiguousarray(phi.inner(costs)),
            initial=np.ascontiguousarray(psi.inner(mdp.initial_distribution)),
            expert=problem.expert_features,
            value_radius=problem.value_set.bound,
            value_ball=problem.value_domain == "ball",
            cost_simplex=problem.costs.weights == Simplex(),
        )
        n_occupancy, n_costs = self.game.costs.shape
        self.flow_norm = _spectral_norm(self.matrix)
        self.cost_norm = max(float(np.linalg.norm(self.game.costs, 2)), 1e-12)
        self.primal_step = 1 / (self.flow_norm * self.game.value_radius)
        self.n_iterations = 0
        self.n_restarts = -1
        self.image = SaddlePoint(
            np.full(n_occupancy, 1 / n_occupancy),
            np.zeros(problem.n_value_features),
            problem.costs.weights.centre(n_costs),
        )
        self.best = _copy(self.image)
        self.best_residual = self.residual(self.image)
        self._restart(self.best_residual)

    def _restart(self, residual: float) -> None:
        self.point = _copy(self.image)
        self.anchor = _copy(self.image)
        self.anchor_residual = self.last_residual = residual
        self.epoch_length = 0
        self.n_restarts += 1

    def residual(self, point: SaddlePoint) -> float:
        theta, lam, w = point
        _, _, costs, initial, expert, *_ = self.game
        slope = initial - self.matrix @ theta
        excess = costs.T @ theta - expert
        gain = float(self.problem.value_set.support(slope)) + float(self.problem.costs.weights.support(excess))
        return gain - float((costs @ w - self.transposed @ lam).min() + initial @ lam - w @ expert)

    def advance(self, n_steps: int) -> None:
        """Take ``n_steps`` steps, then restart if the residual has fallen enough or has stopped falling."""
        # The steps converge if primal_step·(value_step·‖K‖² + cost_step·‖A‖²) ≤ 1.
        sizes = _StepSizes(
            self.primal_step,
            value=_VALUE_SHARE / (self.primal_step * self.flow_norm**2),
            cost=(1 - _VALUE_SHARE) / (self.primal_step * self.cost_norm**2),
        )
        _steps(self.game, sizes, self.epoch_length, n_steps, self.point, self.anchor, self.image)
        self.n_iterations += n_steps
        self.epoch_length += n_steps
        residual = self.residual(self.image)
        if residual < self.best_residual:
            self.best_residual = residual
            self.best = _copy(self.image)
        fallen = residual <= 0.2 * self.anchor_residual
        stalled = residual <= 0.8 * self.anchor_residual and residual > self.last_residual
        overlong = self.epoch_length >= 0.36 * self.n_iterations
        self.last_residual = residual
        if fallen or stalled or overlong:
            self._rebalance()
            self._restart(residual)

    def _rebalance(self) -> None:
        """Move the primal step half the way (in logarithm) to where θ and (λ, w) travelled equally far.

        Distances are those of the method: squares divided by the step sizes. The change is limited, because an epoch
        in which one player hardly moved says little about the next.
        """
        occupancy, value, cost = (
            float(np.linalg.norm(new - old)) for new, old in zip(self.image, self.anchor, strict=True)
        )
        dual = np.hypot(self.flow_norm * value / sqrt(_VALUE_SHARE), self.cost_norm * cost / sqrt(1 - _VALUE_SHARE))
        if occupancy > 1e-14 and dual > 1e-14:
            change = sqrt(occupancy / dual / self.primal_step)
            self.primal_step *= min(max(change, 1 / _LARGEST_CHANGE), _LARGEST_CHANGE)


def _copy(point: SaddlePoint) -> SaddlePoint:
    return SaddlePoint(*(part.copy() for part in point))


def _spectral_norm(matrix: sp.csr_array) -> float:
    """Estimate ‖K‖₂ by power iteration, a little from above, and never above √(‖K‖₁‖K‖∞)."""
    bound = float(np.sqrt(abs(matrix).sum(axis=0).max() * abs(matrix).sum(axis=1).max()))
    vector = np.random.default_rng(0).standard_normal(matrix.shape[1])
    estimate = 0.0
    for _ in range(50):
        image = matrix.T @ (matrix @ vector)
        norm = float(np.linalg.norm(image))
        if norm == 0:
            break
        estimate = float(np.sqrt(norm / np.linalg.norm(vector)))
        vector = image / norm
    return max(min(bound, 1.05 * estimate), 1e-12)


@jit
def _steps(
    game: _Game,
    sizes: _StepSizes,
    epoch_length: int,
    n_steps: int,
    point: SaddlePoint,
    anchor: SaddlePoint,
    image: SaddlePoint,
) -> None:
    """Take steps in place: the point moves, and the image is T of the last point but one, always feasible."""
    costs, initial, expert = game.costs, game.initial, game.expert
    indptr, indices, data = game.flow
    indptr_t, indices_t, data_t = game.adjoint
    theta, lam, w = point
    theta_anchor, lam_anchor, w_anchor = anchor
    theta_image, lam_image, w_image = image
    n_occupancy, n_costs = costs.shape
    ahead = np.empty(n_occupancy)  # the extrapolated θ
    excess = np.empty(n_costs)
    threshold = 0.0
    for step in range(epoch_length, epoch_length + n_steps):
        for i in range(n_occupancy):
            gradient = 0.0
            for j in range(n_costs):
                gradient += costs[i, j] * w[j]
            for k in range(indptr_t[i], indptr_t[i + 1]):
                gradient -= data_t[k] * lam[indices_t[k]]
            ahead[i] = gradient
        # The simplex does not see a constant added to a gradient; without it no step is so long that its sum is lost.
        lowest = ahead.min()
        for i in range(n_occupancy):
            ahead[i] = theta[i] - sizes.occupancy * (ahead[i] - lowest)
        threshold = _simplex_threshold(ahead, threshold)
        excess[:] = -expert
        for i in range(n_occupancy):
            theta_image[i] = max(ahead[i] - threshold, 0.0)
            ahead[i] = 2 * theta_image[i] - theta[i]
            for j in range(n_costs):
                excess[j] += costs[i, j] * ahead[i]
        for k in range(lam.size):
            slope = initial[k]
            for p in range(indptr[k], indptr[k + 1]):
                slope -= data[p] * ahead[indices[p]]
            lam_image[k] = lam[k] + sizes.value * slope
        _project_values(lam_image, game.value_radius, game.value_ball)
        if game.cost_simplex:
            excess -= excess.max()
        w_image[:] = w + sizes.cost * excess
        if game.cost_simplex:
            w_image[:] = np.maximum(w_image - _simplex_threshold(w_image, np.max(w_image) - 1.0), 0.0)
        else:
            _project_values(w_image, 1.0, True)
        weight = (step + 1) / (step + 2)
        theta[:] = weight * ahead + (1 - weight) * theta_anchor  # ahead is the reflected θ
        lam[:] = weight * (2 * lam_image - lam) + (1 - weight) * lam_anchor
        w[:] = weight * (2 * w_image - w) + (1 - weight) * w_anchor


@jit
def _project_values(vector: FloatArray, radius: float, is_ball: bool) -> None:
    if is_ball:
        norm = np.sqrt((vector * vector).sum())
        if norm > radius:
            vector *= radius / norm
    else:
        for k in range(vector.size):
            vector[k] = min(max(vector[k], -radius), radius)


@jit
def _simplex_threshold(point: FloatArray, guess: float) -> float:
    """Find t with Σ max(point − t, 0) = 1: the projection onto the simplex is max(point − t, 0).

    Newton's method on a convex, piecewise linear, decreasing function: exact after finitely many steps, two or three
    from the threshold of the step before.
    """
    threshold = guess
    previous_count = -1
    for _ in range(point.size + 2):
        total = 0.0
        count = 0
        for i in range(point.size):
            if point[i] > threshold:
                total += point[i]
                count += 1
        if count == 0:
            threshold = point.max() - 1.0
            continue
        step = (total - 1.0) / count
        if step == threshold or (count == previous_count and abs(step - threshold) <= 1e-16 * abs(threshold)):
            return step
        previous_count = count
        threshold = step
    return threshold
