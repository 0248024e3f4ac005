"""Certificates: exact ones are exact, sampled ones hold as often as they say, and both print readably."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from apprentice_oracle import apprentice
from hypothesis import given, settings
from problems import estimate_of, random_point, saddle_point_problems
from strategies import random_policy
from worlds import too_many

import lfd_gym as lfd
from lfd_gym import (
    FiniteMDP,
    SaddlePointProblem,
    Simplex,
    TableCosts,
    TabularModel,
    certify_saddle_point,
    solve_primal_dual_hybrid,
)
from lfd_gym.features import RadialBasisFeatures, TabularOccupancyFeatures, TabularValueFeatures, ValueFeatures
from lfd_gym.solvers.saddle.residual_sampling import sample_residual

FEW = settings(max_examples=25, deadline=None)


def small_problem(seed, cost_class="simplex", **kwargs):
    rng = np.random.default_rng(seed)
    mdp = FiniteMDP(rng.dirichlet(np.full(4, 0.5), size=8), rng.dirichlet(np.ones(4)), 0.7)
    costs = rng.uniform(-1, 1, (8, 3))
    expert = costs.T @ mdp.occupancy(random_policy(mdp, rng)).ravel()
    problem = SaddlePointProblem(
        TableCosts(costs, 2, cost_class),
        expert,
        TabularOccupancyFeatures(4, 2),
        TabularValueFeatures(4),
        0.7,
        value_radius=4.0,
        mdp=mdp,
        **kwargs,
    )
    return problem, rng


def true_distance(problem, policy, expert):
    difference = problem.costs.table.T @ problem.mdp.occupancy(policy).ravel() - expert
    return difference.max() if problem.costs.weights == Simplex() else np.linalg.norm(difference)


@FEW
@given(saddle_point_problems(cost_class="simplex", max_states=5, max_actions=3))
def test_exact_certificates_hold(case):
    """All of a certificate's bounds against the truth, when ρ̂ is as wrong as its radius allows."""
    exact_problem, _, rng = case
    true_expert = exact_problem.expert_features
    radius = 0.3 * rng.random()
    estimate = np.clip(true_expert + rng.choice([-radius, radius], size=true_expert.size), -1, 1)
    problem = SaddlePointProblem(
        exact_problem.costs,
        estimate,
        exact_problem.occupancy_features,
        exact_problem.value_features,
        exact_problem.discount,
        exact_problem.value_radius,
        exact_problem.value_domain,
        mdp=exact_problem.mdp,
    )
    point = random_point(problem, rng)
    best = apprentice(problem.mdp, problem.costs.table, true_expert)
    best_for_estimate = apprentice(problem.mdp, problem.costs.table, estimate)
    certificate = certify_saddle_point(
        problem,
        point,
        expert=estimate_of(problem, radius),
        delta=0.05,
        apprentice_occupancy=best_for_estimate.occupancy,
    )
    policy = problem.policy(point[0])
    truth = true_distance(problem, policy, true_expert)
    assert certificate.cost_distance == pytest.approx(true_distance(problem, policy, estimate))
    assert truth <= certificate.cost_distance_bound + 1e-9
    assert certificate.cost_distance_bound <= truth + 2 * radius + 1e-9
    assert problem.saddle_point_residual(point, expert=true_expert) <= certificate.residual_bound + 1e-9
    assert truth - best.value <= certificate.excess_bound + 1e-6


def test_exact_certificate_of_a_solved_problem_is_tight():
    problem, _ = small_problem(0)
    solution = solve_primal_dual_hybrid(problem, tolerance=1e-7)
    weights = solution.point
    certificate = certify_saddle_point(problem, weights, expert=None, delta=0.1)
    best = apprentice(problem.mdp, problem.costs.table, problem.expert_features)
    assert certificate.cost_distance_bound == pytest.approx(certificate.cost_distance + 1e-10, abs=1e-14)
    np.testing.assert_allclose(certificate.cost_distance, best.value, atol=1e-5)
    assert certificate.excess_bound < 1e-4
    # Another policy has a cost distance, but the approximation terms are about π_θ.
    uniform = np.full((4, 2), 0.5)
    other = certify_saddle_point(problem, weights, expert=None, delta=0.1, policy=uniform)
    assert other.cost_distance > certificate.cost_distance
    assert other.excess_bound is None


def test_cost_ball_uses_the_euclidean_radius():
    problem, rng = small_problem(1, cost_class="ball")
    point = random_point(problem, rng)
    certificate = certify_saddle_point(problem, point, expert=estimate_of(problem, 0.1), delta=0.1)
    occupancy = problem.mdp.occupancy(problem.policy(point[0])).ravel()
    difference = problem.costs.table.T @ occupancy - problem.expert_features
    # The worst vector of the cube of half-width 0.1 around the difference.
    assert certificate.cost_distance_bound == pytest.approx(np.linalg.norm(np.abs(difference) + 0.1))
    assert certificate.residual_bound == pytest.approx(certificate.residual + 2 * np.sqrt(3) * 0.1)


def test_the_radius_is_asked_at_its_share_of_delta():
    problem, rng = small_problem(2)
    asked = []

    def radius(delta):
        asked.append(delta)
        return 0.0

    point = random_point(problem, rng)
    certify_saddle_point(problem, point, expert=estimate_of(problem, radius), delta=0.06)
    model = TabularModel.of(problem.mdp)
    certify_saddle_point(
        problem,
        point,
        model=model,
        expert=estimate_of(problem, radius),
        delta=0.06,
        rng=rng,
        n_rollouts=10,
        n_samples=10,
        n_per_column=2,
    )
    np.testing.assert_allclose(asked, [0.06, 0.06, 0.02, 0.02])  # each side


@pytest.mark.parametrize("value_domain", ["ball", "box"])
@pytest.mark.parametrize("cost_class", ["simplex", "ball"])
def test_sampled_residual_bounds_the_residual_and_shrinks(value_domain, cost_class):
    problem, rng = small_problem(3, cost_class=cost_class, value_domain=value_domain)
    model = TabularModel.of(problem.mdp)
    failures, previous = 0, np.inf
    for n in (1_000, 30_000):
        bounds = []
        for _ in range(20):
            point = random_point(problem, rng)
            truth = problem.saddle_point_residual(point)
            sampled = sample_residual(problem, model, point, n_samples=n, n_per_column=n, delta=0.1, rng=rng)
            failures += sampled.bound < truth
            bounds.append(sampled.bound - truth)
            assert sampled.oracle_calls == n + 8 * n
        assert np.median(bounds) < previous / 3
        previous = np.median(bounds)
    assert failures <= 2  # 40 trials at δ = 0.1 of a conservative bound
    np.testing.assert_allclose(sampled.estimate, truth, atol=0.5)


def test_sampled_residual_is_consistent():
    """With many draws the estimate is the residual: every term has the right sign and weight."""
    problem, rng = small_problem(4)
    model = TabularModel.of(problem.mdp)
    point = random_point(problem, rng)
    sampled = sample_residual(problem, model, point, n_samples=400_000, n_per_column=100_000, delta=0.1, rng=rng)
    np.testing.assert_allclose(sampled.estimate, problem.saddle_point_residual(point), atol=0.06)


def test_sampled_residual_of_features_that_are_only_functions():
    """The same problem described by callables gives the same bound as by tables, in distribution."""
    problem, rng = small_problem(5)
    model = TabularModel.of(problem.mdp)
    point = random_point(problem, rng)

    class OneHot(ValueFeatures):
        n_features = 4
        row_l1_bound = 1.0

        def evaluate(self, observations):
            return np.eye(4)[np.asarray(observations)]

    functions = SaddlePointProblem.from_simulator(
        lambda observations, actions: problem.costs.table[observations * 2 + actions],
        problem.expert_features,
        occupancy_features=problem.occupancy_features,
        value_features=OneHot(),
        discount=0.7,
        value_radius=4.0,
    )
    sampled = sample_residual(functions, model, point, n_samples=200_000, n_per_column=50_000, delta=0.1, rng=rng)
    truth = problem.saddle_point_residual(point)
    np.testing.assert_allclose(sampled.estimate, truth, atol=0.08)
    assert sampled.bound >= truth


@pytest.mark.parametrize("cost_class", ["simplex", "ball"])
def test_certificates_from_samples_hold_as_often_as_they_say(cost_class):
    """Of π_θ, and of another policy; ρ̂ is exact here, so what may fail are the draws."""
    problem, rng = small_problem(6, cost_class=cost_class)
    model = TabularModel.of(problem.mdp)
    failures, slack = 0, []
    for trial in range(40):
        point = random_point(problem, rng)
        policy = random_policy(problem.mdp, rng) if trial % 2 else None
        certificate = certify_saddle_point(
            problem,
            point,
            model=model,
            expert=None,
            delta=0.2,
            rng=rng,
            policy=policy,
            n_rollouts=400,
            n_samples=1000,
            n_per_column=100,
        )
        played = problem.policy(point[0]) if policy is None else policy
        truth = true_distance(problem, played, problem.expert_features)
        failures += certificate.cost_distance_bound < truth
        failures += certificate.residual_bound < problem.saddle_point_residual(point)
        slack.append(certificate.cost_distance_bound - truth)
    assert failures <= 8
    assert np.median(slack) < 0.35  # and they say something


@pytest.mark.parametrize("repeats", [100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cost_class", ["simplex", "ball"])
@pytest.mark.parametrize("known", [True, False])
def test_certificates_of_points_cover(known, cost_class, repeats):
    """With ρ̂ from three demonstrations that were cut early; a binomial test at 1e-3 of both bounds together."""
    problem, rng = small_problem(6, cost_class=cost_class)
    model, delta = TabularModel.of(problem.mdp), 0.1
    expert = random_policy(problem.mdp, rng)
    table = problem.costs.table
    truth = table.T @ problem.mdp.occupancy(expert).ravel()
    with_truth = replace(problem, expert_features=truth)
    everything = lfd.collect(model, expert, 3 * repeats, 4, rng)
    draws = {} if known else {"model": model, "rng": rng, "n_rollouts": 30, "n_samples": 200, "n_per_column": 20}
    missed = 0
    for k in range(repeats):
        demos = everything.select(np.arange(3 * k, 3 * k + 3))
        estimate = lfd.feature_expectations(demos, problem.costs, problem.discount, truncation="rescale")
        asked = replace(problem, expert_features=estimate.values)
        point = random_point(asked, rng)
        certificate = certify_saddle_point(asked, point, expert=estimate, delta=delta, **draws)
        false = certificate.cost_distance_bound < true_distance(problem, problem.policy(point[0]), truth)
        missed += false or certificate.residual_bound < with_truth.saddle_point_residual(point)
    assert not too_many(missed, repeats, delta)


def test_certificates_of_a_continuous_model_with_an_end():
    """CartPole with tiles: functions instead of tables, episodes that end, and a bound that separates policies."""
    model = lfd.as_generative_model(gym.make("CartPole-v1"))
    grid = lfd.features.TileGrid([-2.4, -2.0, -0.21, -2.0], [2.4, 2.0, 0.21, 2.0], counts=(1, 2, 4, 4))
    phi = lfd.features.TileOccupancyFeatures(grid, n_actions=2, absorbing=True)
    rng = np.random.default_rng(0)

    def standing_costs(observations, actions):  # and having fallen is free
        return np.ones((len(observations), 1)) * 0.5

    problem = SaddlePointProblem.from_simulator(
        standing_costs,
        [0.5],
        occupancy_features=phi,
        value_features=lfd.features.TileValueFeatures(grid),
        discount=0.95,
        value_radius=1.0,
        value_domain="box",
    )
    theta = np.zeros(phi.n_features)
    theta[::2] = rng.dirichlet(np.ones(grid.n_tiles + 1))  # always the action 0, or ended
    certificate = certify_saddle_point(
        problem,
        (theta, np.zeros(grid.n_tiles), [1.0]),
        model=model,
        expert=None,
        delta=0.1,
        rng=rng,
        n_rollouts=500,
        n_samples=2000,
        n_per_column=200,
    )
    # Pushing one way falls after about 9 steps: ρ = 0.5·(1 − 0.95^9) and ρ̂ = 0.5 in a world without end.
    np.testing.assert_allclose(certificate.cost_distance, -0.5 * 0.95**9.3, atol=0.02)
    assert certificate.cost_distance < certificate.cost_distance_bound < 0
    assert 0 < certificate.residual < certificate.residual_bound


def test_it_prints_as_a_short_table():
    problem, rng = small_problem(8)
    point = random_point(problem, rng)
    certificate = certify_saddle_point(problem, point, expert=estimate_of(problem, 0.01), delta=0.05)
    lines = str(certificate).splitlines()
    assert lines[0] == f"Certificate (probability 95 %; known model; discount {problem.discount:g})"
    assert [line.split("  ")[1] for line in lines[2:]] == [
        "cost distance to the expert",
        "as a sum of rewards",
        "saddle-point residual",
        "features: distance of occupancies",
        "features: values, or coherence",
        "excess over the best policy",
    ]
    assert max(len(line) for line in lines) < 90
    shown = certificate._repr_html_()
    assert shown.count("<tr>") == len(lines) - 1
    assert "excess over the best policy" in shown


@pytest.mark.parametrize("arguments", [{"n_samples": 0, "n_per_column": 2}, {"n_samples": 1, "n_per_column": 1}])
def test_too_few_samples_are_refused(arguments):
    problem, rng = small_problem(9)
    model = TabularModel.of(problem.mdp)
    with pytest.raises(ValueError, match="n_samples must be >= 1 and n_per_column >= 2"):
        sample_residual(problem, model, random_point(problem, rng), **arguments, delta=0.1, rng=rng)


def test_exact_certificates_need_the_model():
    problem = SaddlePointProblem.from_simulator(
        lambda observations, actions: np.zeros((len(observations), 1)),
        [0.0],
        occupancy_features=TabularOccupancyFeatures(2, 1),
        value_features=RadialBasisFeatures([[0.0]], 1.0),
        discount=0.5,
        value_radius=2.0,
    )
    with pytest.raises(ValueError, match="this needs the model"):
        certify_saddle_point(problem, ([0.5, 0.5], [0.0], [1.0]), expert=None, delta=0.1)


def test_no_bound_of_a_point_is_beyond_what_is_possible():
    problem, rng = small_problem(8)
    model = TabularModel.of(problem.mdp)
    demos = lfd.collect(model, random_policy(problem.mdp, rng), 1, 1, rng)
    estimate = lfd.feature_expectations(demos, problem.costs, problem.discount)
    own = replace(problem, expert_features=estimate.values)
    draws = {"model": model, "rng": rng, "n_rollouts": 1, "n_samples": 20, "n_per_column": 2}
    for how in ({}, draws):
        certificate = certify_saddle_point(own, random_point(own, rng), expert=estimate, delta=0.05, **how)
        assert certificate.cost_distance_bound <= own.costs.largest_distance
