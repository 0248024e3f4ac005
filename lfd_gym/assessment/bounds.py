"""Theorem 1 with explicit constants: how many iterations and demonstrations guarantee what.

The setting is the paper's: Algorithm 1 as printed (the ``"paper"`` schedule), λ in the ball, w in the simplex. Appendix
D hides its constants in O(·); here they are worked out. Write κ = β/(1−γ) and D = ln n_μ + ln n_c + ½, the largest
Bregman divergence from the starting point. If 4 κ n_μ η ≤ 1, the empirical residual ε̂ of the averages of N iterations
with step size η satisfies N ε̂ ≤ T₁ + T₂ + T₃, where, each with probability 1 − δ',

- T₁ ≤ F(N σ², b): martingale; |Y_n| ≤ b = 4κ(n_μ + 3) + 4 and Var Y_n ≤ σ² = 32κ²n_μ + 16κ² + 4;
- T₂ ≤ D/η + (η/2)(N m₂ + F(N m₂ r₂, r₂)): regret; m₂ = 16κ²n_μ + 4κ² + 16 and r₂ = 16κ²n_μ² + 4κ² + 16;
- T₃ ≤ D/η + η(N m₃ + F(N m₃ r₃, r₃)): ghost regret; m₃ = 16κ²n_μ + 2κ² + 2 and r₃ = 16κ²n_μ² + 8κ² + 2.

F(v, b) = bL/3 + √((bL/3)² + 2vL), L = ln(1/δ'), is Freedman's bound of a martingale with total conditional variance v
and increments at most b; m and r bound the mean and the size of the squared local norms. The true residual exceeds ε̂
by at most 2‖ρ̂ − ρ‖∞.

The policy's distance to the expert exceeds α* by at most the residual plus ε_approx, by Proposition 4 and, sharpened,
by Proposition 5: both have the residual with factor one, so the theorem's two parts ask for the same N and m. They
differ in ε_approx alone: `strong_approximation_error` needs features for values, `coherent_approximation_error` needs
coherence instead. Where these constants differ from the paper's, and why, is told in docs/paper_slips.md; the proof of
the sharpened proposition is in docs/theory.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, log, sqrt

from lfd_gym.arguments import check_fields, checked
from lfd_gym.costs.sets import Simplex
from lfd_gym.model.criterion import Criterion
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.validation import check_delta, discount_factor

#: More iterations than this are not even counted.
_MOST_ITERATIONS = 10**100


@dataclass(frozen=True)
class ProblemSize:
    """All that Theorem 1 knows of a problem.

    Attributes
    ----------
    n_occupancy_features, n_costs
        n_μ and n_c. The number of value features and the size of the state space do not matter.
    value_radius
        β ≥ 2.
    discount
        γ.
    """

    n_occupancy_features: int
    n_costs: int
    value_radius: float
    discount: float

    def __post_init__(self) -> None:
        check_fields(self)
        if self.n_occupancy_features < 1 or self.n_costs < 1:
            raise ValueError("n_occupancy_features and n_costs must be at least 1")
        if not 2 <= self.value_radius < inf:
            raise ValueError(f"value_radius must be at least 2 and finite, got {self.value_radius}")
        discount_factor("discount", self.discount)

    @classmethod
    def of(cls, problem: SaddlePointProblem) -> ProblemSize:
        """Return the size of ``problem``, which must have the paper's domains."""
        if problem.value_domain != "ball" or problem.costs.weights != Simplex():
            raise ValueError(
                "Theorem 1 is about value_domain 'ball' and cost_class 'simplex', "
                f"got {problem.value_domain!r} and {problem.costs.weights}"
            )
        return cls(problem.n_occupancy_features, problem.n_costs, problem.value_radius, problem.discount)

    @property
    def scale(self) -> float:
        """κ = β/(1−γ)."""
        return self.value_radius / (1 - self.discount)


@dataclass(frozen=True)
class Guarantee:
    """What suffices for a residual, or a policy, within ``accuracy`` with probability ``1 - delta``.

    Attributes
    ----------
    n_iterations, step_size
        N and η of Algorithm 1.
    n_trajectories, horizon
        m demonstrations of so many actions each.
    accuracy, delta
        ε and δ.
    """

    n_iterations: int
    step_size: float
    n_trajectories: int
    horizon: int
    accuracy: float
    delta: float


@checked
def paper_step_size(size: ProblemSize, n_iterations: int) -> float:
    """η = (1−γ)/(β√(N n_μ))."""
    _check_count("n_iterations", n_iterations)
    return 1 / (size.scale * sqrt(n_iterations * size.n_occupancy_features))


@checked
def residual_bound(size: ProblemSize, n_iterations: int, delta: float, step_size: float | None = None) -> float:
    """Bound the *empirical* residual of the averages of Algorithm 1, with probability ``1 - delta``.

    Infinite if the step size is too large for the argument (4 κ n_μ η > 1); with the paper's step size, if N < 16 n_μ.

    Examples
    --------
    >>> size = ProblemSize(n_occupancy_features=4, n_costs=2, value_radius=2.0, discount=0.5)
    >>> round(residual_bound(size, 10**6, delta=0.05), 3), round(residual_bound(size, 10**8, delta=0.05), 3)
    (0.381, 0.038)
    """
    check_delta(delta)
    _check_count("n_iterations", n_iterations)
    if step_size is not None and not step_size > 0:
        raise ValueError(f"step_size must be positive, got {step_size}")
    eta = paper_step_size(size, n_iterations) if step_size is None else step_size
    n, n_mu, kappa = n_iterations, size.n_occupancy_features, size.scale
    if 4 * kappa * n_mu * eta > 1 + 1e-12:
        return inf
    each = delta / 3  # three events: the martingale T₁ and the local norms of T₂ and T₃
    divergence = log(n_mu) + log(size.n_costs) + 0.5
    square = kappa**2
    variance = 32 * square * n_mu + 16 * square + 4
    martingale = freedman(n * variance, 4 * kappa * (n_mu + 3) + 4, each)
    mean, largest = 16 * square * n_mu + 4 * square + 16, 16 * square * n_mu**2 + 4 * square + 16
    regret = divergence / eta + eta / 2 * (n * mean + freedman(n * mean * largest, largest, each))
    mean, largest = 16 * square * n_mu + 2 * square + 2, 16 * square * n_mu**2 + 8 * square + 2
    ghost_regret = divergence / eta + eta * (n * mean + freedman(n * mean * largest, largest, each))
    return (martingale + regret + ghost_regret) / n


@checked
def freedman(variance: float, increment: float, delta: float) -> float:
    """Bound a martingale with probability ``1 - delta`` (McDiarmid 1998, Theorem 3.15, solved for the deviation).

    ``variance`` bounds the sum of conditional variances, ``increment`` every increment from above.
    """
    level = log(1 / delta)
    linear = increment * level / 3
    return linear + sqrt(linear**2 + 2 * variance * level)


@checked
def iterations_for(size: ProblemSize, accuracy: float, delta: float) -> int:
    """Return the smallest N, with the paper's step size, for which `residual_bound` is at most ``accuracy``."""
    if not accuracy > 0:
        raise ValueError(f"accuracy must be positive, got {accuracy}")
    low = high = 16 * size.n_occupancy_features
    while residual_bound(size, high, delta) > accuracy:
        low, high = high, 2 * high
        if high > _MOST_ITERATIONS:
            raise ValueError(f"accuracy must be one that {_MOST_ITERATIONS:.0e} iterations reach, got {accuracy}")
    while low < high:
        middle = (low + high) // 2
        if residual_bound(size, middle, delta) <= accuracy:
            high = middle
        else:
            low = middle + 1
    return high


@checked
def theorem_1(size: ProblemSize, accuracy: float, delta: float) -> Guarantee:
    """Return what makes δ_C(π̂, π_E) ≤ ε + ε_approx + α* with probability ``1 - delta``.

    ε_approx is the total of `strong_approximation_error` at θ̂ or of `coherent_approximation_error`, whichever is less.
    Half of ε and of δ goes to the optimisation, half to the demonstrations: ‖ρ̂ − ρ‖∞ ≤ ε/4, of which ε/8 is for the
    truncation (γ^horizon ≤ ε/8) and ε/8 for chance.

    Parameters
    ----------
    size
        Of the problem.
    accuracy, delta
        ε and δ.

    Examples
    --------
    >>> size = ProblemSize(n_occupancy_features=4, n_costs=2, value_radius=2.0, discount=0.5)
    >>> guarantee = theorem_1(size, accuracy=0.1, delta=0.05)
    >>> guarantee.n_iterations, guarantee.n_trajectories, guarantee.horizon
    (61265002, 64963, 7)
    """
    check_delta(delta)
    n_iterations = iterations_for(size, accuracy / 2, delta / 2)
    return Guarantee(
        n_iterations=n_iterations,
        step_size=paper_step_size(size, n_iterations),
        n_trajectories=required_trajectories(accuracy / 4, size.n_costs, delta / 2),
        horizon=required_horizon(accuracy / 4, size.discount),
        accuracy=accuracy,
        delta=delta,
    )


@checked
def accuracy_after(size: ProblemSize, n_iterations: int, n_trajectories: int, horizon: int, delta: float) -> float:
    """Return the ε of Theorem 1 after so many iterations and demonstrations: the other way round."""
    check_delta(delta)
    _check_count("n_trajectories", n_trajectories)
    _check_count("horizon", horizon)
    chance = sqrt(2 * log(4 * size.n_costs / delta) / n_trajectories)
    expert_error = chance + size.discount**horizon
    return residual_bound(size, n_iterations, delta / 2) + 2 * expert_error


@checked
def required_trajectories(accuracy: float, n_features: int, delta: float) -> int:
    """Return m = ⌈8 log(2 n_c/δ) / accuracy²⌉: then all sample means are within accuracy/2 of their expectations.

    With `required_horizon` at the same accuracy, ‖ρ̂ − ρ‖_∞ ≤ accuracy with probability at least 1 − δ: one half of it
    for sampling (Hoeffding on [−1, 1]), the other for the tail.

    Theorem 1 of the paper, for its ε and δ, needs ‖ρ̂ − ρ‖_∞ ≤ ε/4 with probability 1 − δ/2, and prints
    m = 8 log(4 n_c/δ)/ε² and H = log(2/ε)/(1−γ). These are the numbers for accuracy ε, not ε/4 (the tail alone may
    reach ε/2): ``required_trajectories(eps, n_c, delta / 2)``. What the proof uses takes 16 times as many,
    ``required_trajectories(eps / 4, n_c, delta / 2)`` = 128 log(4 n_c/δ)/ε², and
    ``required_horizon(eps / 4, discount)``, about log(8/ε)/(1−γ).

    Examples
    --------
    >>> required_trajectories(0.1, n_features=5, delta=0.05)
    4239
    """
    _check_accuracy(accuracy)
    check_delta(delta)
    if n_features < 1:
        raise ValueError(f"n_features must be at least 1, got {n_features}")
    if accuracy**2 == 0:
        raise ValueError(f"accuracy must be one whose square is no zero, got {accuracy}")
    return ceil(8 * (log(2 * n_features) - log(delta)) / accuracy**2)


@checked
def required_horizon(accuracy: float, discount: float) -> int:
    """Return the smallest number of actions after which the tail, γ^horizon, is at most accuracy/2.

    The paper's H counts from 0 and bounds this by log(2/ε)/(1−γ); see `required_trajectories` for its constants.

    Examples
    --------
    >>> required_horizon(0.1, discount=0.9)
    29
    """
    _check_accuracy(accuracy)
    gamma = discount_factor("discount", discount)
    return Criterion(gamma).steps(accuracy / 2)


def _check_accuracy(accuracy: float) -> None:
    if not 0 < accuracy < 2:
        raise ValueError(f"accuracy must lie strictly between 0 and 2, the range of expected costs, got {accuracy}")


def _check_count(name: str, count: int) -> None:
    if not count >= 1:
        raise ValueError(f"{name} must be at least 1, got {count}")
