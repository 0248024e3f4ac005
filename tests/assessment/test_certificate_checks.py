"""What certificates refuse: points outside the domains, costs after the end, a mismatched expert, no probability."""

import gymnasium as gym
import numpy as np
import pytest
from problems import random_point

import lfd_gym as lfd
from lfd_gym import (
    FiniteMDP,
    SaddlePointProblem,
    TabularModel,
    certify,
    certify_from_samples,
    certify_policy,
    feature_expectations,
)
from lfd_gym.assessment.certificate import exactly_known
from lfd_gym.features import TabularOccupancyFeatures, TabularValueFeatures
from lfd_gym.solvers.saddle.residual_sampling import sample_residual

FEW_DRAWS = {"n_samples": 10, "n_per_column": 2}


def problem_of_two_costs(value_domain="ball", cost_class="simplex"):
    mdp = FiniteMDP([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], [1.0, 0.0], discount=0.9)
    costs = np.array([[0.0, 0.5], [0.0, -0.5], [1.0, 0.0], [1.0, 1.0]])
    domains = {"value_domain": value_domain, "cost_class": cost_class}
    return SaddlePointProblem.tabular(mdp, costs, [0.1, 0.0], value_radius=3.0, **domains)


def certificates(problem, point, delta=0.1):
    """The three ways to certify a point, as functions without arguments."""
    model, rng = TabularModel.of(problem.mdp), np.random.default_rng(0)
    radius = {"expert_radius": exactly_known, "delta": delta}
    return [
        lambda: certify(problem, *point, **radius),
        lambda: certify_from_samples(problem, model, *point, **radius, rng=rng, n_rollouts=2, **FEW_DRAWS),
        lambda: sample_residual(problem, model, *point, delta=delta, rng=rng, **FEW_DRAWS),
    ]


THETA, ZERO, W = np.full(4, 0.25), np.zeros(2), np.array([0.5, 0.5])
BALL_EDGE = np.array([3 / np.sqrt(2), 0.0])


@pytest.mark.parametrize(
    ("domain", "cost_class", "point", "message"),
    [
        ("ball", "simplex", (2 * THETA, ZERO, W), "occupancy_weights must sum to 1, got 2"),
        ("ball", "simplex", ([1.5, -0.5, 0.0, 0.0], ZERO, W), "occupancy_weights must be nonnegative"),
        ("ball", "simplex", (THETA, ZERO, [5.0, 0.0]), "cost_weights must sum to 1, got 5"),
        ("ball", "simplex", (THETA, ZERO, [2.0, -1.0]), "cost_weights must be nonnegative"),
        ("ball", "ball", (THETA, ZERO, [1.0, 0.1]), "cost_weights must have norm at most 1 for the ball, got 1.00"),
        ("ball", "simplex", (THETA, 1.001 * BALL_EDGE, W), "value_weights must have norm at most 2.12"),
        (
            "box",
            "simplex",
            (THETA, [0.0, -3.01], W),
            "value_weights must have entries at most 3.0 in the box, got 3.01",
        ),
    ],
)
def test_points_outside_the_domains_are_refused(domain, cost_class, point, message):
    for call in certificates(problem_of_two_costs(domain, cost_class), point):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    ("domain", "cost_class", "point"),
    [
        ("ball", "simplex", (THETA, BALL_EDGE, W)),
        ("ball", "ball", (THETA, -BALL_EDGE, [0.6, -0.8])),
        ("box", "ball", (THETA, [3.0, -3.0], [0.0, 0.0])),
    ],
)
def test_the_edge_of_a_domain_belongs_to_it_up_to_rounding(domain, cost_class, point):
    theta, lam, w = (np.asarray(part) * (1 + 1e-10) for part in point)
    for call in certificates(problem_of_two_costs(domain, cost_class), (theta, lam, w)):
        call()


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, np.nan])
def test_a_probability_of_failure_is_asked_for(delta):
    problem = problem_of_two_costs()
    expert = demonstrations_of(problem.mdp, problem.cost_features, 0.9)
    policy, rng = np.full((2, 2), 0.5), np.random.default_rng(0)
    calls = [
        *certificates(problem, (THETA, ZERO, W), delta),
        lambda: certify_policy(policy, problem.mdp, problem.cost_features, expert, delta=delta, rng=rng),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
            call()


def demonstrations_of(mdp, costs, discount):
    policy = np.full((mdp.n_states, mdp.n_actions), 1 / mdp.n_actions)
    demos = lfd.collect(TabularModel.of(mdp), policy, 20, 50, np.random.default_rng(1))
    return feature_expectations(demos, costs, discount)


# -- certify_policy and its expert ------------------------------------------------------------------------------------


def test_an_expert_of_another_discount_is_refused():
    problem = problem_of_two_costs()
    expert = demonstrations_of(problem.mdp, problem.cost_features, 0.99)
    policy, rng = np.full((2, 2), 0.5), np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"expert was estimated with discount 0\.99, but the model's is 0\.9"):
        certify_policy(policy, problem.mdp, problem.cost_features, expert, delta=0.1, rng=rng)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda costs: costs[:, :1], "expert must have 1 values, one for each of cost_features, got 2"),
        (lambda costs: np.hstack([costs, costs]), "expert must have 4 values"),
        (lambda costs: 7 * costs, r"cost_features must lie in \[-1, 1\], but feature 0 reaches 7"),
        (lambda costs: costs[:3], r"cost_features must have shape \(4, any\)"),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_costs_that_are_not_the_experts_are_refused(known, change, message):
    problem = problem_of_two_costs()
    expert = demonstrations_of(problem.mdp, problem.cost_features, 0.9)
    model = problem.mdp if known else TabularModel.of(problem.mdp)
    costs, rng = change(problem.cost_features), np.random.default_rng(0)
    with pytest.raises(ValueError, match=message):
        certify_policy(np.full((2, 2), 0.5), model, costs, expert, delta=0.1, rng=rng, n_rollouts=5)


def test_one_expectation_does_not_stand_for_three():
    """Numpy would broadcast it."""
    problem = problem_of_two_costs()
    expert = demonstrations_of(problem.mdp, problem.cost_features[:, :1], 0.9)
    with pytest.raises(ValueError, match="expert must have 2 values, one for each of cost_features, got 1"):
        certify_policy(
            np.full((2, 2), 0.5),
            problem.mdp,
            problem.cost_features,
            expert,
            delta=0.1,
            rng=np.random.default_rng(0),
        )


# -- the end of trajectories is free ----------------------------------------------------------------------------------


ENDING = FiniteMDP(np.array([[[0.5, 0.5]], [[0.0, 1.0]]]), [1.0, 0.0], discount=0.9, absorbing_state=1)
POLICY = np.ones((2, 1))
PAID, FREE = np.array([[0.2], [1.0]]), np.array([[0.2], [0.0]])


def simulated(costs):
    return SaddlePointProblem.from_simulator(
        costs,
        [0.1],
        occupancy_features=TabularOccupancyFeatures(2, 1),
        value_features=TabularValueFeatures(2),
        discount=0.9,
        value_radius=2.0,
    )


def free_expert():
    return demonstrations_of(ENDING, FREE, 0.9)


def rng():
    return np.random.default_rng(0)


POINT = [0.5, 0.5], [0.0, 0.0], [1.0]
MODEL = TabularModel.of(ENDING)
USERS = {
    "tabular problem": lambda costs: SaddlePointProblem.tabular(ENDING, costs, [0.1]),
    "problem": lambda costs: SaddlePointProblem(
        costs, [0.1], TabularOccupancyFeatures(2, 1), TabularValueFeatures(2), 0.9, 2.0, mdp=ENDING
    ),
    "linear program": lambda costs: lfd.solve_linear_program(ENDING, costs, [0.1]),
    "cutting plane": lambda costs: lfd.solve_cutting_plane(ENDING, costs, [0.1]),
    "explains": lambda costs: lfd.explains(ENDING, costs, POLICY, [1.0]),
    "evaluate": lambda costs: lfd.evaluate(POLICY, ENDING, costs),
    "evaluate by rollouts": lambda costs: lfd.evaluate(POLICY, MODEL, costs, discount=0.9, n_rollouts=2, rng=rng()),
    "certify_policy": lambda costs: certify_policy(POLICY, ENDING, costs, free_expert(), delta=0.1, rng=rng()),
    "certify_policy by rollouts": lambda costs: certify_policy(
        POLICY, MODEL, costs, free_expert(), delta=0.1, rng=rng(), n_rollouts=2
    ),
    "sample_residual": lambda costs: sample_residual(
        simulated(costs), MODEL, *POINT, delta=0.1, rng=rng(), **FEW_DRAWS
    ),
    "certify_from_samples": lambda costs: certify_from_samples(
        simulated(costs), MODEL, *POINT, expert_radius=exactly_known, delta=0.1, rng=rng(), n_rollouts=2, **FEW_DRAWS
    ),
}


@pytest.mark.parametrize("user", USERS)
def test_costs_after_the_end_are_refused(user):
    """Rollouts stop in the absorbing state and count nothing there; a model would count what the table says."""
    with pytest.raises(
        ValueError, match=r"cost_features must be zero in the absorbing state 1, .* got 1\.0 for action 0"
    ):
        USERS[user](PAID)
    USERS[user](FREE)


def test_costs_after_the_end_are_refused_where_observations_do_not_count_it():
    env = gym.make("FrozenLake-v1")
    demos = lfd.collect(env, np.full((17, 4), 0.25), 5, 10, rng())
    costs = np.zeros((17 * 4, 1))
    assert feature_expectations(demos, costs, 0.9).values == [0.0]
    costs[-1] = 0.5
    with pytest.raises(ValueError, match="cost_features must be zero in the absorbing state 16"):
        feature_expectations(demos, costs, 0.9)


def test_a_costs_function_is_not_asked_about_the_end():
    """Over a finite model the end is an integer like any other: it is the model that says which."""
    functions = simulated(lambda observations, actions: np.full((len(observations), 1), 0.2))
    arguments = {"n_samples": 50, "n_per_column": 10, "delta": 0.1}
    by_function = sample_residual(functions, MODEL, *POINT, rng=rng(), **arguments)
    assert by_function == sample_residual(simulated(FREE), MODEL, *POINT, rng=rng(), **arguments)
    costs = functions.pair_costs(np.array([0, 1]), np.array([0, 0]), ended=MODEL.is_absorbing([0, 1]))
    np.testing.assert_array_equal(costs, FREE)


def test_sampled_and_exact_certificates_agree_about_a_problem_with_an_end():
    problem = SaddlePointProblem.tabular(ENDING, FREE, [0.1])
    theta, lam, w = random_point(problem, rng())
    exact = certify(problem, theta, lam, w, expert_radius=exactly_known, delta=0.1)
    draws = {"n_rollouts": 5000, "n_samples": 50_000, "n_per_column": 20_000}
    sampled = certify_from_samples(
        problem, MODEL, theta, lam, w, expert_radius=exactly_known, delta=0.1, rng=rng(), **draws
    )
    np.testing.assert_allclose(sampled.cost_distance, exact.cost_distance, atol=0.005)
    np.testing.assert_allclose(sampled.residual, exact.residual, atol=0.1)


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "must be finite, got nan"), (7.0, r"must lie in \[-1, 1\], but feature 0 reaches 7")],
)
def test_a_costs_function_is_held_to_the_range(value, message):
    problem = simulated(lambda observations, actions: np.full((len(observations), 1), value))
    with pytest.raises(ValueError, match=r"cost_features\(observations, actions\) " + message):
        problem.pair_costs(np.array([0, 0]), np.array([0, 0]))
    with pytest.raises(ValueError, match=message):
        sample_residual(problem, MODEL, *POINT, delta=0.1, rng=rng(), **FEW_DRAWS)
    # What it says of the absorbing state does not matter: the observation there may be NaN.
    ended = problem.pair_costs(np.array([[np.nan]]), np.array([0]))
    np.testing.assert_array_equal(ended, [[0.0]])


def test_a_costs_function_of_trajectories_without_actions():
    start_at_the_end = TabularModel(ENDING.transitions, [0.0, 1.0], absorbing_state=1)
    demos = lfd.collect(start_at_the_end, POLICY, 5, 3, rng())
    assert demos.actions.size == 0
    estimate = feature_expectations(demos, lambda observations, actions: np.ones((len(observations), 2)), 0.9)
    np.testing.assert_array_equal(estimate.values, [0.0, 0.0])
    assert estimate.n_trajectories == 5
