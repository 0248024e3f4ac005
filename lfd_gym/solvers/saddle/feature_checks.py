"""Checks of features: bounded columns, the coherence assumption (Assumption 1), realizability (Lemma 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.features.value_features import ValueFeatures
from lfd_gym.solvers.saddle.approximation import nearest_occupancy, nearest_values
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.validation import LARGEST_UNIT, FloatArray

REQUIRED_COHERENCE = 2.0


@dataclass(frozen=True)
class Coherence:
    """Bounds of the smallest coherence ratio over all θ; Assumption 1 says that it is at least 2.

    Attributes
    ----------
    lower, upper
        Guaranteed bounds.
    holds
        True or False if the bounds decide, None if they do not.
    """

    lower: float
    upper: float

    @property
    def holds(self) -> bool | None:
        """Whether Assumption 1 holds, as far as the bounds tell."""
        if self.lower >= REQUIRED_COHERENCE:
            return True
        return False if self.upper < REQUIRED_COHERENCE else None


def coherence_ratio(problem: SaddlePointProblem, occupancy_weights: ArrayLike) -> float:
    """Return the largest ⟨r, u_λ⟩ over the domain of λ, divided by ‖r‖₁, for the flow violation r = ν₀ − T_γ μ_θ.

    Assumption 1 at θ asks that ⟨r, ·⟩ takes over the domain every value that it takes over ‖u‖∞ ≤ 2, that is, all of
    [−2‖r‖₁, 2‖r‖₁]. The domain is convex and symmetric, so this is the same as a ratio of at least 2. Lemma 5 and
    Proposition 5 need it only at the θ they are applied to. Infinite if r = 0.
    """
    mdp, _ = problem.known_model()
    violation = mdp.initial_distribution - mdp.bellman_flow(problem.occupancy(occupancy_weights))
    return _ratio(problem, violation)


def coherence(problem: SaddlePointProblem) -> Coherence:
    """Bound the smallest coherence ratio over all θ, for small problems: it works with dense (S, n_μ) arrays.

    From above: the ratio of every single column of Φ and of their average. From below: with Q an orthonormal basis of
    the span of the columns' violations, ‖Ψᵀr‖₁ ≥ ‖Ψᵀr‖₂ ≥ σ_min(ΨᵀQ)‖r‖₂ ≥ σ_min(ΨᵀQ)‖r‖₁/√S.
    """
    mdp, _ = problem.known_model()
    phi, psi = problem.finite_features()
    if problem.value_domain == "box" and psi.is_tabular:
        return Coherence(problem.value_radius, problem.value_radius)  # b‖r‖₁/‖r‖₁, at every θ
    columns = phi.matrix.toarray()
    flows = (columns.reshape(mdp.n_states, mdp.n_actions, -1).sum(axis=1)) - mdp.discount * (
        mdp.transitions.T @ columns
    )
    violations = mdp.initial_distribution[:, None] - flows / (1 - mdp.discount)  # (S, n_μ)
    candidates = [*violations.T, violations.mean(axis=1)]
    upper = min(_ratio(problem, violation) for violation in candidates)
    left, singular, _ = np.linalg.svd(violations, full_matrices=False)
    if singular[0] < 1e-10:  # every column is an occupancy measure
        return Coherence(np.inf, np.inf)
    basis = left[:, singular > 1e-10 * singular[0]]
    image = psi.matrix.T @ basis  # ΨᵀQ
    full_rank = image.shape[0] >= basis.shape[1]
    smallest = float(np.linalg.svd(image, compute_uv=False)[-1]) if full_rank else 0.0
    lower = problem.value_set.bound * smallest / np.sqrt(mdp.n_states)
    return Coherence(min(float(lower), upper), upper)


def _ratio(problem: SaddlePointProblem, violation: FloatArray) -> float:
    size = float(np.abs(violation).sum())
    if size <= 1e-12:  # an occupancy measure, to rounding
        return float("inf")
    return float(problem.value_set.support(problem.finite_features()[1].inner(violation))) / size


def is_realizable(
    problem: SaddlePointProblem, apprentice_occupancy: ArrayLike, dual_values: ArrayLike, tolerance: float
) -> bool:
    """Say whether μ_A = Φθ_A and u_A = Ψλ_A + k for some θ_A, λ_A in their domains, to ``tolerance`` (Lemma 6).

    Then (θ_A, λ_A, w_A) is a saddle point of the reduced problem, and the features cost nothing.
    """
    occupancy = nearest_occupancy(problem, apprentice_occupancy)
    values = nearest_values(problem, dual_values)
    return occupancy.error <= tolerance and values.error <= tolerance


def check_bounded(value_features: ValueFeatures, observations: ArrayLike) -> None:
    """Refuse value features that exceed one in absolute value, or are not finite, on a sample of observations."""
    rows = value_features.evaluate(observations)
    if not np.isfinite(rows).all():
        raise ValueError(
            f"value_features must be finite, but feature {int(np.argwhere(~np.isfinite(rows))[0, 1])} is not"
        )
    largest = np.abs(rows).max(axis=0)
    if (largest > LARGEST_UNIT).any():
        column = int(np.argmax(largest))
        raise ValueError(f"value_features must lie in [-1, 1], but feature {column} reaches {largest[column]}")
