"""Checks of features: bounded columns, realizability (Lemma 6). Coherence is in `coherence`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.features.value_features import ValueFeatures
from lfd_gym.solvers.saddle.approximation import nearest_occupancy, nearest_values
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.validation import LARGEST_UNIT


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
