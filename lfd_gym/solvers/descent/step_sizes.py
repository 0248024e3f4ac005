"""The two schedules of Algorithm 1 and their step sizes.

``"paper"``: the constants of Theorem 1. With the shift C = 2B/(1−γ) of the modified Lagrangian and
η = (1−γ)/(B√(N n_μ)), the steps are η for θ, ηR² for λ and η for w, where B = β bounds ‖u_λ‖∞ and R = β/√n_u is the
radius of the ball of λ. Over the box of half-width b, B = b·max_x‖ψ_x‖₁ and R = b√n_u, so that η/2·‖λ/R‖² stays what it
is in the paper's regulariser. Over other sets of costs than the simplex the regulariser of w is ½‖w/R_w‖², with R_w the
largest ‖w‖₂, and the step ηR_w².

``"practical"``: no shift; θ is sampled by the balanced mixture (see `_kernels`). The steps are 2√(ln n_μ/(N n_μ)) for
θ and √(ln n_c/N) for w (R_w/(G_w√N) over other sets than the simplex), which depend on the horizon N, and R/(4G_λ√n)
for λ in round n. G_λ and G_w are root mean square norms of the stochastic gradients, estimated from a first batch of
draws. The factors 2 and 1/4 were chosen among ten variants by the gap of the policy on the 16² gridworld with cost
seeds 0, 2, 3 and 6 (γ = 0.9, N = 1e7, two runs each): against 1 and 1/2 it is smaller by a third to a half, at equal
residuals. On cost seeds 1, 4, 5 and 7, which had no part in the choice, it is smaller too. Twice as bold in θ, runs at
γ = 0.97 fail.

The step of λ falls with n because the values have far to travel at first, and must be quiet in the end. With
mini-batches of B draws the variance of the gradient in θ falls, and n_μ in its step becomes max(n_μ/B, 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Literal, get_args

from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem

Schedule = Literal["paper", "practical"]


@dataclass(frozen=True)
class GradientNorms:
    """Root mean square norms of the stochastic gradients in λ and w, G_λ and G_w."""

    value: float
    cost: float


@dataclass(frozen=True)
class StepSizes:
    """What a round of mirror descent multiplies its gradients with.

    Attributes
    ----------
    occupancy, value, cost
        Steps of θ, λ and w.
    value_decays
        Whether the step of λ in round n is ``value``/√n.
    shift
        What is added to the advantages in the gradient of θ.
    balanced
        Whether θ is sampled by the balanced mixture rather than uniformly.
    """

    occupancy: float
    value: float
    cost: float
    value_decays: bool
    shift: float
    balanced: bool


def check_schedule(name: str, schedule: str) -> None:
    """Refuse anything but the two schedules."""
    if schedule not in get_args(Schedule):
        raise ValueError(f"{name} must be one of {get_args(Schedule)}, got {schedule!r}")


def paper_steps(problem: SaddlePointProblem, horizon: int) -> StepSizes:
    """Return the constants of Theorem 1 for N = ``horizon``."""
    shift = problem.occupancy_shift
    eta = 2 / (shift * sqrt(horizon * problem.n_occupancy_features))
    return StepSizes(
        occupancy=eta,
        value=eta * problem.value_set.radius(problem.n_value_features) ** 2,
        cost=eta * problem.costs.weights.radius(problem.n_costs) ** 2,
        value_decays=False,
        shift=shift,
        balanced=False,
    )


def practical_steps(problem: SaddlePointProblem, horizon: int, norms: GradientNorms, batch_size: int = 1) -> StepSizes:
    """Return the practical steps for N = ``horizon``."""
    n_columns = problem.n_occupancy_features
    return StepSizes(
        occupancy=2 * sqrt(log(n_columns) / (horizon * max(n_columns / batch_size, 1.0))),
        value=problem.value_set.radius(problem.n_value_features) / (4 * norms.value),
        cost=problem.costs.weights.step_scale(problem.n_costs, norms.cost) / sqrt(horizon),
        value_decays=True,
        shift=0.0,
        balanced=True,
    )
