"""How large the stochastic gradients are: a first batch of draws that sets the scale of the practical steps."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.solvers.descent.step_sizes import GradientNorms
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem

#: Draws of next states, and of initial states, that the estimate takes.
N_DRAWS = 1024
_ROUNDING = 1e-9


def estimate_gradient_norms(
    problem: SaddlePointProblem, model: GenerativeModel, batch_size: int, rng: np.random.Generator
) -> GradientNorms:
    """Estimate root mean square norms of mean gradients of ``batch_size`` draws in λ and w, for uniform θ.

    Where all draws give zero, the estimate is what they are likely to have missed, so that no step is ever infinite
    and none is zero.
    """
    columns = rng.integers(problem.n_occupancy_features, size=N_DRAWS)
    states, actions = problem.occupancy_features.sample(columns, rng)
    successors = model.sample_next(states, actions, rng)
    here, rows = model.observe(states), problem.value_features.rows
    slopes = rows(model.observe(model.sample_initial(N_DRAWS, rng))) - (
        rows(here) - problem.discount * rows(model.observe(successors))
    ) / (1 - problem.discount)
    excess = problem.costs.rows(here, actions, model.is_absorbing(states)) - problem.expert_features
    return GradientNorms(
        value=_mean_norm(slopes, batch_size) or 2 / (1 - problem.discount) / sqrt(N_DRAWS),
        cost=_mean_norm(excess, batch_size) or 2 * sqrt(problem.n_costs / N_DRAWS),
    )


def _mean_norm(gradients: Any, batch_size: int) -> float:
    """√E‖mean of a batch‖² = √(‖E g‖² + (E‖g‖² − ‖E g‖²)/B), and zero if it is zero up to rounding."""
    square = float((gradients * gradients).sum()) / gradients.shape[0]
    mean_square = float(np.square(np.asarray(gradients.mean(axis=0))).sum())
    norm = sqrt(mean_square + max(square - mean_square, 0.0) / batch_size)
    return norm if norm > _ROUNDING else 0.0
