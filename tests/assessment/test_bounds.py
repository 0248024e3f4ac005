"""Theorem 1 with explicit constants: every constant against enumeration, the bound against a literal run."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from paper_reference import enumerate_gradients, literal_algorithm_1
from problems import random_point, saddle_point_problems
from scipy.stats import binom

from lfd_gym import FiniteMDP, SaddlePointProblem, Simplex
from lfd_gym.assessment.bounds import (
    ProblemSize,
    accuracy_after,
    freedman,
    iterations_for,
    paper_step_size,
    residual_bound,
    theorem_1,
)

FEW = settings(max_examples=25, deadline=None)
PAPER = {"value_domain": "ball", "cost_class": "simplex", "max_states": 3, "max_actions": 2, "max_features": 3}


def mean_and_largest(outcomes, function):
    values = np.array([function(vector) for _, vector in outcomes])
    weights = np.array([probability for probability, _ in outcomes])
    np.testing.assert_allclose(weights.sum(), 1)
    return float(weights @ values), float(values.max())


@FEW
@given(saddle_point_problems(**PAPER))
def test_constants_of_the_three_terms_hold_by_enumeration(case):
    """b, σ², m₂, r₂, m₃, r₃ of the module's docstring, for every outcome at random points and ghost points."""
    problem, _, rng = case
    size = ProblemSize.of(problem)
    kappa, n_mu = size.scale, size.n_occupancy_features
    theta, lam, w = random_point(problem, rng)
    ghost_theta, ghost_lam, ghost_w = random_point(problem, rng)
    g_theta, g_lam, g_w = enumerate_gradients(problem, theta, lam, w)
    operator = problem.operator((theta, lam, w))  # E of (g_θ, −g_λ, −g_w)
    scale = problem.value_radius**2 / problem.n_value_features

    # T₁: increments and conditional variance. The three parts are independent.
    parts = [
        (g_theta, lambda g: (operator[0] - g) @ (theta - ghost_theta)),
        (g_lam, lambda g: (operator[1] + g) @ (lam - ghost_lam)),
        (g_w, lambda g: (operator[2] + g) @ (w - ghost_w)),
    ]
    largest = sum(mean_and_largest(outcomes, lambda g, f=f: abs(f(g)))[1] for outcomes, f in parts)
    variance = sum(mean_and_largest(outcomes, lambda g, f=f: f(g) ** 2)[0] for outcomes, f in parts)
    for outcomes, f in parts:
        assert abs(mean_and_largest(outcomes, f)[0]) < 1e-8 * (1 + kappa * n_mu)  # a martingale difference
    assert largest <= 4 * kappa * (n_mu + 3) + 4 + 1e-8
    assert variance <= (32 * n_mu + 16) * kappa**2 + 4 + 1e-8

    # T₂: squared local norms of the gradients.
    norms = [
        mean_and_largest(g_theta, lambda g: theta @ g**2),
        mean_and_largest(g_lam, lambda g: scale * g @ g),
        mean_and_largest(g_w, lambda g: w @ g**2),
    ]
    assert sum(mean for mean, _ in norms) <= (16 * n_mu + 4) * kappa**2 + 16 + 1e-8
    assert sum(large for _, large in norms) <= (16 * n_mu**2 + 4) * kappa**2 + 16 + 1e-8

    # T₃: squared local norms of the noise, at the ghost point.
    norms = [
        mean_and_largest(g_theta, lambda g: ghost_theta @ (operator[0] - g) ** 2),
        mean_and_largest(g_lam, lambda g: scale * (operator[1] + g) @ (operator[1] + g) / 2),
        mean_and_largest(g_w, lambda g: np.abs(operator[2] + g).max() ** 2 / 2),
    ]
    assert sum(mean for mean, _ in norms) <= (16 * n_mu + 2) * kappa**2 + 2 + 1e-8
    assert sum(large for _, large in norms) <= (16 * n_mu**2 + 8) * kappa**2 + 2 + 1e-8
    # The ghost's increments may be negative, but not below −1/η when 4 κ n_μ η ≤ 1.
    assert mean_and_largest(g_theta, lambda g: (g - operator[0]).max())[1] <= 4 * kappa * n_mu + 1e-8


def test_noise_can_be_negative_so_the_half_constant_does_not_hold_for_the_ghost():
    """e^{−a} ≤ 1 − a + a²/2 needs a ≥ 0; with a ≥ −1 the factor is 1: e^{−a} ≤ 1 − a + a²."""
    a = np.linspace(-1, 5, 10_001)
    assert (np.exp(-a) <= 1 - a + a**2 + 1e-12).all()
    assert (np.exp(-a[a >= 0]) <= (1 - a + a**2 / 2)[a >= 0] + 1e-12).all()
    assert (np.exp(-a[a < 0]) > (1 - a + a**2 / 2)[a < 0]).all()
    mdp = FiniteMDP([[0.5, 0.5], [0.5, 0.5]], initial_distribution=[0.5, 0.5], discount=0.5)
    problem = SaddlePointProblem.tabular(mdp, [[0.0], [0.0]], [0.0], value_radius=2.0)
    g_theta, _, _ = enumerate_gradients(problem, np.array([0.5, 0.5]), np.zeros(2), np.ones(1))
    noise = problem.operator(([0.5, 0.5], np.zeros(2), [1.0]))[0] - g_theta[0][1]
    assert noise.min() < 0 < noise.max()


def test_the_azuma_constant_of_t2_is_for_increments_in_an_interval_of_that_length():
    """For |Z_n| ≤ M the bound is M√(2N ln(1/δ)); the printed M√(N ln(1/δ)/2) fails for fair coins ±M.

    The printed number is true all the same: Z_n is a squared norm in [0, M₁/2] less its mean, so it lies in an interval
    of length M₁/2, for which half of the printed number is enough.
    """
    n, delta = 100, 0.05
    heads = binom(n, 0.5)  # the sum of the coins is 2·heads − n

    def probability_above(deviation):
        return heads.sf(np.ceil((n + deviation) / 2) - 1)

    assert probability_above(np.sqrt(n * np.log(1 / delta) / 2)) > 1.5 * delta
    assert probability_above(np.sqrt(2 * n * np.log(1 / delta))) < delta
    # Coins 0 or 1: an interval of length one. The sum is heads, its mean n/2.
    assert heads.sf(np.ceil(n / 2 + np.sqrt(n * np.log(1 / delta) / 2)) - 1) < delta


@FEW
@given(saddle_point_problems(**PAPER))
def test_the_cost_part_of_t1_is_a_difference(case):
    """⟨−Δ_w, w − w̄⟩ = ⟨c(x, a), w − w̄⟩ − ⟨μ_θ, Cw − Cw̄⟩, printed with a plus: then it would be no martingale."""
    problem, _, rng = case
    theta, lam, w = random_point(problem, rng)
    move = w - random_point(problem, rng)[2]
    gradient = -problem.operator((theta, lam, w))[2]
    drift = problem.occupancy(theta).ravel() @ problem.costs.table @ move
    outcomes = enumerate_gradients(problem, theta, lam, w)[2]
    means = np.zeros(2)
    for probability, g in outcomes:
        row = g + problem.expert_features + 2  # c(x, a)
        assert (g - gradient) @ move == pytest.approx(row @ move - drift, abs=1e-9)
        means += probability * np.array([row @ move - drift, row @ move + drift])
    assert means == pytest.approx([0, 2 * drift], abs=1e-9)


def test_algorithm_1_stays_below_its_bound_which_is_not_vacuous():
    mdp = FiniteMDP([[0.5, 0.5], [0.9, 0.1], [1.0, 0.0], [0.2, 0.8]], initial_distribution=[0.5, 0.5], discount=0.2)
    costs = np.array([[1.0, 0.2], [0.3, -1.0], [-1.0, 0.5], [0.0, 1.0]])
    expert = costs.T @ mdp.occupancy(mdp.optimal_policy(costs[:, 0])).ravel()
    problem = SaddlePointProblem.tabular(mdp, costs, expert, value_radius=2.0)
    n_iterations = 20_000
    bound = residual_bound(ProblemSize.of(problem), n_iterations, delta=0.05)
    start = problem.saddle_point_residual((np.full(4, 0.25), np.zeros(2), [0.5, 0.5]))
    for seed in range(2):
        point = literal_algorithm_1(problem, n_iterations, np.random.default_rng(seed))
        assert problem.saddle_point_residual(point) <= bound
    # Not vacuous: below the largest residual of the domain.
    corners = itertools.product(np.eye(4), [[np.sqrt(2), 0], [-np.sqrt(2), 0], [0, np.sqrt(2)]], np.eye(2))
    largest = max(problem.saddle_point_residual(corner) for corner in corners)
    assert bound < largest
    assert start < largest


@pytest.mark.parametrize(("delta", "accuracy"), [(0.05, 0.1), (0.5, 1.0), (1e-6, 0.03)])
def test_guarantees_turn_round(delta, accuracy):
    """What theorem_1 asks for gives at most the accuracy asked for, and a little less would not do."""
    size = ProblemSize(n_occupancy_features=10, n_costs=3, value_radius=3.0, discount=0.8)
    plan = theorem_1(size, accuracy, delta)
    reached = accuracy_after(size, plan.n_iterations, plan.n_trajectories, plan.horizon, delta)
    assert 0.9 * accuracy <= reached <= accuracy * (1 + 1e-9)
    assert residual_bound(size, plan.n_iterations - 1, delta / 2) > accuracy / 2
    assert plan.step_size == paper_step_size(size, plan.n_iterations)
    assert (plan.accuracy, plan.delta) == (accuracy, delta)


def test_a_factor_of_the_residual_costs_its_square():
    """Proposition 5 with 2 ε_sad asked for ε/2: four times the iterations and demonstrations; with 3 ε_sad, nine."""
    size = ProblemSize(n_occupancy_features=10, n_costs=3, value_radius=3.0, discount=0.8)
    plan = theorem_1(size, 0.1, 0.05)
    for factor in (2, 3):
        finer = theorem_1(size, 0.1 / factor, 0.05)
        assert finer.n_iterations / plan.n_iterations == pytest.approx(factor**2, rel=1e-2)
        assert finer.n_trajectories / plan.n_trajectories == pytest.approx(factor**2, rel=1e-4)


@pytest.mark.parametrize(("n_costs", "discount", "delta"), [(1, 0.5, 0.05), (7, 0.9, 0.3)])
def test_demonstrations_are_the_formulas(n_costs, discount, delta):
    """Written out: Hoeffding on [−1, 1], both sides of every cost, half of δ; twice the error, and what is cut."""
    size = ProblemSize(n_occupancy_features=3, n_costs=n_costs, value_radius=2.0, discount=discount)
    n, m, horizon = 10**6, 1000, 12
    events = 2 * n_costs  # either side of each cost
    chance = np.sqrt(2 * np.log(events / (delta / 2)) / m)
    assert 2 * n_costs * np.exp(-m * chance**2 / 2) == pytest.approx(delta / 2)
    expected = residual_bound(size, n, delta / 2) + 2 * (chance + discount**horizon)
    assert accuracy_after(size, n, m, horizon, delta) == pytest.approx(expected, rel=1e-12)
    accuracy = 0.3
    plan = theorem_1(size, accuracy, delta)
    assert plan.n_iterations == iterations_for(size, accuracy / 2, delta / 2)
    eighth = accuracy / 8  # ‖ρ̂ − ρ‖∞ ≤ ε/4: an eighth for chance, an eighth for what is cut
    assert plan.n_trajectories == np.ceil(2 * np.log(events / (delta / 2)) / eighth**2)
    assert discount**plan.horizon <= eighth < discount ** (plan.horizon - 1)


def test_rate_is_one_over_root_n_and_root_n_mu_with_a_logarithm():
    size = ProblemSize(n_occupancy_features=100, n_costs=5, value_radius=2.0, discount=0.9)
    n = 10**10
    np.testing.assert_allclose(residual_bound(size, n, 0.1) / residual_bound(size, 100 * n, 0.1), 10, rtol=1e-3)
    larger = ProblemSize(n_occupancy_features=10_000, n_costs=5, value_radius=2.0, discount=0.9)
    n = 10**14
    growth = residual_bound(larger, n, 0.1) / residual_bound(size, n, 0.1) / 10
    # Beyond √n_μ the bound grows with ln n_μ, which the theorem's O(·) leaves out.
    assert 1.1 < growth < 2


def test_step_sizes_beyond_the_argument_give_no_bound():
    size = ProblemSize(n_occupancy_features=4, n_costs=2, value_radius=2.0, discount=0.5)
    assert residual_bound(size, 16 * 4 - 1, 0.1) == np.inf
    assert residual_bound(size, 16 * 4, 0.1) < np.inf
    assert residual_bound(size, 1000, 0.1, step_size=1.0) == np.inf


@pytest.mark.parametrize("step_share", [None, 1.0, 0.2])
@pytest.mark.parametrize(
    ("n_mu", "n_c", "beta", "gamma", "delta", "n"),
    [(4, 2, 2.0, 0.5, 0.05, 1000), (1, 1, 3.5, 0.9, 0.5, 16), (30, 7, 10.0, 0.99, 1e-6, 10**8)],
)
def test_the_bound_is_the_formula(n_mu, n_c, beta, gamma, delta, n, step_share):
    """Theorem 1's constants from the sizes of the parts, and Freedman's tail solved as a polynomial."""
    kappa = beta / (1 - gamma)
    largest_step = 1 / (4 * kappa * n_mu)
    given = None if step_share is None else step_share * largest_step
    eta = (1 - gamma) / (beta * np.sqrt(n * n_mu)) if given is None else given
    level = np.log(3 / delta)  # each of three events has a third of δ

    def deviation(variance, increment):  # the t with t² = (2v + 2bt/3)·L
        return np.roots([1.0, -2 * increment * level / 3, -2 * variance * level]).real.max()

    # The single entry of g_θ is in [0, 4κn_μ] and each is drawn with probability 1/n_μ; in units of the radius of λ,
    # ‖g_λ‖₂ ≤ 2κ; the entries of g_w are in [−4, 0], and ⟨c, w − w'⟩ is within 2.
    entry, value, cost, noise = 4 * kappa * n_mu, 2 * kappa, 4, 2
    # T₁, θ: g and its mean; λ: noise of norm up to 2·2κ along ‖λ − λ'‖₂ ≤ 2; w: noise of up to 2·2. In the variance
    # Σ_i (θ_i − θ'_i)² ≤ 2, and the noise is at most the second moment.
    increment = (entry + entry / n_mu) + 2 * (2 * value) + 2 * noise
    martingale = deviation(n * (2 * entry**2 / n_mu + (2 * value) ** 2 + noise**2), increment)
    # T₂: E⟨θ, g²⟩ = Σ_i θ_i·(4κn_μ)²/n_μ.
    mean, largest = entry**2 / n_mu + value**2 + cost**2, entry**2 + value**2 + cost**2
    regret = eta / 2 * (n * mean + deviation(n * mean * largest, largest))
    # T₃: noise instead of gradients, no half for θ; variance at most the second moment, noise at most twice the size.
    mean, largest = entry**2 / n_mu + value**2 / 2 + noise**2 / 2, entry**2 + (2 * value) ** 2 / 2 + noise**2 / 2
    ghost = eta * (n * mean + deviation(n * mean * largest, largest))
    divergence = np.log(n_mu * n_c) + 0.5
    expected = (martingale + regret + ghost + 2 * divergence / eta) / n
    size = ProblemSize(n_mu, n_c, beta, gamma)
    np.testing.assert_allclose(residual_bound(size, n, delta, step_size=given), expected, rtol=1e-12)


def test_freedman_solves_its_tail():
    variance, increment, delta = 7.0, 2.0, 0.01
    t = freedman(variance, increment, delta)
    np.testing.assert_allclose(np.exp(-(t**2) / (2 * variance + 2 * increment * t / 3)), delta)


def test_iterations_are_the_smallest_that_do():
    size = ProblemSize(n_occupancy_features=7, n_costs=2, value_radius=2.0, discount=0.3)
    n = iterations_for(size, 0.2, 0.1)
    assert residual_bound(size, n, 0.1) <= 0.2 < residual_bound(size, n - 1, 0.1)
    assert iterations_for(size, 1e6, 0.1) == 16 * 7  # fewer are beyond the argument, whatever the accuracy


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda size: residual_bound(size, 100, 0.0), "delta must lie strictly between 0 and 1"),
        (lambda size: residual_bound(size, 100, np.nan), "delta must lie strictly between 0 and 1"),
        (lambda size: residual_bound(size, 0, 0.1), "n_iterations must be at least 1, got 0"),
        (lambda size: residual_bound(size, -5, 0.1, step_size=0.1), "n_iterations must be at least 1, got -5"),
        (lambda size: residual_bound(size, 100, 0.1, step_size=0.0), "step_size must be positive, got 0.0"),
        (lambda size: residual_bound(size, 100, 0.1, step_size=-1.0), "step_size must be positive, got -1.0"),
        (lambda size: residual_bound(size, 100, 0.1, step_size=np.nan), "step_size must be positive, got nan"),
        (lambda size: paper_step_size(size, 0), "n_iterations must be at least 1, got 0"),
        (lambda size: accuracy_after(size, 1000, 100, 10, 1.5), "delta must lie strictly between 0 and 1, got 1.5"),
        (lambda size: accuracy_after(size, 1000, 100, 10, 0.0), "delta must lie strictly between 0 and 1, got 0.0"),
        (lambda size: accuracy_after(size, 1000, 0, 10, 0.1), "n_trajectories must be at least 1, got 0"),
        (lambda size: accuracy_after(size, 1000, 100, 0, 0.1), "horizon must be at least 1, got 0"),
        (lambda size: accuracy_after(size, 0, 100, 10, 0.1), "n_iterations must be at least 1, got 0"),
        (lambda size: ProblemSize(1, 1, np.inf, 0.5), "value_radius must be at least 2 and finite, got inf"),
        (lambda size: iterations_for(size, 0.0, 0.1), "accuracy must be positive"),
        (lambda size: ProblemSize(0, 1, 2.0, 0.5), "n_occupancy_features and n_costs"),
        (lambda size: ProblemSize(1, 1, 1.0, 0.5), "value_radius must be at least 2"),
        (lambda size: ProblemSize(1, 1, 2.0, 1.0), "discount must lie strictly"),
    ],
)
def test_bad_input_names_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call(ProblemSize(4, 2, 2.0, 0.5))


@FEW
@given(saddle_point_problems(max_states=2, max_actions=2))
def test_sizes_outside_the_theorem_are_refused(case):
    problem, _, _ = case
    if problem.value_domain == "ball" and problem.costs.weights == Simplex():
        size = ProblemSize.of(problem)
        assert size.scale == problem.value_radius / (1 - problem.discount)
    else:
        with pytest.raises(ValueError, match="Theorem 1 is about"):
            ProblemSize.of(problem)
