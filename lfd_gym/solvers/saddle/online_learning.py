"""The no-regret view (Appendix F): solving the saddle-point problem is playing a game of linear losses well.

In round n the learner plays z_n = (θ_n, λ_n, w_n) and pays ℓ_n(z_n), where ℓ_n(z) = L(θ, λ_n, w_n) − L(θ_n, λ, w).
Its regret is Σ ℓ_n(z_n) − min_z Σ ℓ_n(z), and the average regret *is* the saddle-point residual of the averaged plays.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.solvers.saddle.saddle_point import PointLike, SaddlePointProblem
from lfd_gym.validation import FloatArray


def per_round_loss(
    problem: SaddlePointProblem, played: PointLike, point: PointLike, expert: ArrayLike | None = None
) -> float:
    """ℓ_n(z) for the play z_n of round n: L(θ, λ_n, w_n) − L(θ_n, λ, w); linear in z up to a constant."""
    theta, lam, w = point
    theta_n, lam_n, w_n = played
    return problem.lagrangian((theta, lam_n, w_n), expert) - problem.lagrangian((theta_n, lam, w), expert)


def average_regrets(
    problem: SaddlePointProblem, plays: Iterable[PointLike], expert: ArrayLike | None = None
) -> FloatArray:
    """Return the average regret after every round, (N,): the regret curve of a learner.

    The sums of the losses' slopes are kept, not the plays. The last entry equals
    ``problem.saddle_point_residual`` at the average play.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym import FiniteMDP, SaddlePointProblem
    >>> mdp = FiniteMDP([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], initial_distribution=[1.0, 0.0], discount=0.5)
    >>> costs = np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    >>> problem = SaddlePointProblem.tabular(mdp, costs, [0.0, 0.5])
    >>> plays = [(np.eye(4)[i], np.zeros(2), np.array([0.5, 0.5])) for i in (0, 1, 3)]
    >>> regrets = average_regrets(problem, plays)
    >>> average = [np.mean([play[k] for play in plays], axis=0) for k in range(3)]
    >>> bool(np.isclose(regrets[-1], problem.saddle_point_residual(average)))
    True
    """
    occupancy_slope = np.zeros(problem.n_occupancy_features)  # of Σ L(·, λ_n, w_n)
    value_slope = np.zeros(problem.n_value_features)  # of Σ L(θ_n, ·, ·)
    cost_slope = np.zeros(problem.n_costs)
    constant = 0.0  # of Σ L(·, λ_n, w_n), which is affine in θ
    regrets = []
    for n_rounds, play in enumerate(plays, start=1):
        slope, value, cost = problem.gradients(play, expert)
        occupancy_slope += slope
        value_slope += value
        cost_slope += cost
        constant += problem.lagrangian(play, expert) - float(slope @ np.asarray(play[0]))
        best_response = float(problem.value_set.support(value_slope) + problem.costs.weights.support(cost_slope))
        regrets.append((best_response - constant - occupancy_slope.min()) / n_rounds)
    return np.array(regrets)
