"""Coherence (Assumption 1, Proposition 5): whether the domain of λ can punish a violated flow by what it can cost.

Let r = ν₀ − T_γ μ_θ be the flow violation of μ_θ, κ_θ = max over λ of ⟨r, u_λ⟩ / ‖r‖₁ its coherence ratio, and R the
half range of the costs: every cost of the class lies within R of some constant, so R ≤ 1 for the paper's. The policy of
θ costs at most R‖r‖₁ more than μ_θ says, while the Lagrangian's maximum over λ has κ_θ‖r‖₁ for it. So κ_θ ≥ R is what
is needed; Assumption 1 asks for 2. The statement and its proof: docs/theory.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.validation import FloatArray

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Coherence:
    """Bounds of the smallest coherence ratio over all θ, and what it has to reach.

    Attributes
    ----------
    lower, upper
        Guaranteed bounds.
    required
        R, the half range of the costs.
    holds
        True or False if the bounds decide, None if they do not.
    """

    lower: float
    upper: float
    required: float

    @property
    def holds(self) -> bool | None:
        """Whether the ratio is at least ``required`` at every θ, as far as the bounds tell."""
        if self.lower >= self.required * (1 - _ROUNDING):
            return True
        return False if self.upper < self.required else None

    @property
    def shortfall(self) -> float:
        """How far the ratio may be below what is required, at the worst θ; zero if it never is."""
        return max(0.0, self.required - self.lower)


def cost_half_range(problem: SaddlePointProblem) -> float:
    """Return R such that every cost of the class lies within R of some constant; for the simplex, the smallest.

    For any constants k_i, that is the largest |Σ_i w_i (c_i(x, a) − k_i)| over the class and all pairs. Tried are no
    constants (then, over the ball, R is the largest norm of a row of C) and the middle of each feature's range.
    """
    _, costs = problem.known_model()
    weights = problem.costs.weights
    middle = (costs.max(axis=0) + costs.min(axis=0)) / 2
    return min(weights.largest(costs), weights.largest(costs - middle))


def flow_violation(problem: SaddlePointProblem, occupancy_weights: ArrayLike) -> FloatArray:
    """Return r = ν₀ − T_γ μ_θ, (S,): what μ_θ lacks to be an occupancy measure. It sums to zero."""
    mdp, _ = problem.known_model()
    return np.asarray(mdp.initial_distribution - mdp.bellman_flow(problem.occupancy(occupancy_weights)))


def largest_punishment(problem: SaddlePointProblem, violation: FloatArray) -> float:
    """Return the largest ⟨r, u_λ⟩ over the domain of λ: κ‖r‖₁."""
    return float(problem.value_set.support(problem.finite_features()[1].inner(violation)))


def coherence_ratio(problem: SaddlePointProblem, occupancy_weights: ArrayLike) -> float:
    """κ_θ, the largest ⟨r, u_λ⟩ over the domain of λ, divided by ‖r‖₁, for the flow violation r of μ_θ.

    Assumption 1 at θ asks that ⟨r, ·⟩ takes over the domain every value that it takes over ‖u‖∞ ≤ 2, that is, all of
    [−2‖r‖₁, 2‖r‖₁]. The domain is convex and symmetric, so this is the same as a ratio of at least 2. Proposition 5
    needs no more than R, and that only at the θ it is applied to. Infinite if r = 0.
    """
    return _ratio(problem, flow_violation(problem, occupancy_weights))


def coherence(problem: SaddlePointProblem) -> Coherence:
    """Bound the smallest coherence ratio over all θ, for small problems: it works with dense (S, n_μ) arrays.

    From above: the ratio of every single column of Φ and of their average. From below: with Q an orthonormal basis of
    the span of the columns' violations, ‖Ψᵀr‖₁ ≥ ‖Ψᵀr‖₂ ≥ σ_min(ΨᵀQ)‖r‖₂ ≥ σ_min(ΨᵀQ)‖r‖₁/√S.
    """
    mdp, _ = problem.known_model()
    phi, psi = problem.finite_features()
    required = cost_half_range(problem)
    if problem.value_domain == "box" and psi.is_tabular:
        return Coherence(problem.value_radius, problem.value_radius, required)  # b‖r‖₁/‖r‖₁, at every θ
    columns = phi.matrix.toarray()
    flows = (columns.reshape(mdp.n_states, mdp.n_actions, -1).sum(axis=1)) - mdp.discount * (
        mdp.transitions.T @ columns
    )
    violations = mdp.initial_distribution[:, None] - flows / (1 - mdp.discount)  # (S, n_μ)
    candidates = [*violations.T, violations.mean(axis=1)]
    upper = min(_ratio(problem, violation) for violation in candidates)
    left, singular, _ = np.linalg.svd(violations, full_matrices=False)
    if singular[0] < 1e-10:  # every column is an occupancy measure
        return Coherence(np.inf, np.inf, required)
    basis = left[:, singular > 1e-10 * singular[0]]
    image = psi.matrix.T @ basis  # ΨᵀQ
    full_rank = image.shape[0] >= basis.shape[1]
    smallest = float(np.linalg.svd(image, compute_uv=False)[-1]) if full_rank else 0.0
    lower = problem.value_set.bound * smallest / np.sqrt(mdp.n_states)
    return Coherence(min(float(lower), upper), upper, required)


def _ratio(problem: SaddlePointProblem, violation: FloatArray) -> float:
    size = float(np.abs(violation).sum())
    if size <= 1e-12:  # an occupancy measure, to rounding
        return float("inf")
    return largest_punishment(problem, violation) / size
