"""What certificates refuse: points outside the domains, costs after the end, a mismatched expert, no probability."""

import gymnasium as gym
import numpy as np
import pytest
from problems import random_point

import lfd_gym as lfd
from lfd_gym import (
    FiniteMDP,
    SaddlePointProblem,
    TableCosts,
    TabularModel,
    Task,
    certify,
    certify_saddle_point,
    feature_expectations,
)
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
    radius = {"expert": None, "delta": delta}
    return [
        lambda: certify_saddle_point(problem, point, **radius),
        lambda: certify_saddle_point(problem, point, model=model, **radius, rng=rng, n_rollouts=2, **FEW_DRAWS),
        lambda: sample_residual(problem, model, point, delta=delta, rng=rng, **FEW_DRAWS),
    ]


THETA, ZERO, W = np.full(4, 0.25), np.zeros(2), np.array([0.5, 0.5])
BALL_EDGE = np.array([3 / np.sqrt(2), 0.0])


@pytest.mark.parametrize(
    ("domain", "cost_class", "point", "message"),
    [
        ("ball", "simplex", (2 * THETA, ZERO, W), "occupancy_weights of point must sum to 1, got 2"),
        ("ball", "simplex", ([1.5, -0.5, 0.0, 0.0], ZERO, W), "occupancy_weights of point must be nonnegative"),
        ("ball", "simplex", (THETA, ZERO, [5.0, 0.0]), "cost_weights must sum to 1, got 5"),
        ("ball", "simplex", (THETA, ZERO, [2.0, -1.0]), "cost_weights must be nonnegative"),
        ("ball", "ball", (THETA, ZERO, [1.0, 0.1]), r"cost_weights must lie in Ball\(bound=1.0\), got"),
        ("ball", "simplex", (THETA, 1.001 * BALL_EDGE, W), r"value_weights must lie in Ball\(bound=2.12"),
        ("box", "simplex", (THETA, [0.0, -3.01], W), r"value_weights must lie in Box\(bound=3.0\), .* 0.01 away"),
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
    task = Task(problem.mdp, demonstrations_of(problem.mdp), costs=problem.costs)
    calls = [
        *certificates(problem, (THETA, ZERO, W), delta),
        lambda: certify(np.full((2, 2), 0.5), task, delta=delta),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
            call()


def demonstrations_of(mdp):
    policy = np.full((mdp.n_states, mdp.n_actions), 1 / mdp.n_actions)
    return lfd.collect(TabularModel.of(mdp), policy, 20, 50, np.random.default_rng(1))


# -- the task of a policy ---------------------------------------------------------------------------------------------


def test_another_discount_than_the_models_is_refused():
    problem = problem_of_two_costs()
    with pytest.raises(ValueError, match=r"discount must be that of the mdp, 0\.9, got 0\.99"):
        Task(problem.mdp, demonstrations_of(problem.mdp), discount=0.99, costs=problem.costs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda costs: 7 * costs, r"costs must lie in \[-1, 1\], but feature 0 reaches 7"),
        (lambda costs: costs[:2], r"must have shape \(4, any\)"),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_costs_that_do_not_fit_are_refused(known, change, message):
    problem = problem_of_two_costs()
    model = problem.mdp if known else TabularModel.of(problem.mdp)

    def certified():
        task = Task(model, demonstrations_of(problem.mdp), discount=0.9, costs=change(problem.costs.table))
        return certify(np.full((2, 2), 0.5), task, rng=np.random.default_rng(0), n_rollouts=5)

    with pytest.raises(ValueError, match=message):
        certified()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"costs": np.zeros((4, 1))}, "demonstrations must be given"),
        ({"demonstrations": True}, "costs must be given"),
        ({"demonstrations": True, "costs": np.zeros((4, 1))}, "rng must be given"),
    ],
)
def test_what_a_certificate_rests_on_must_be_there(settings, message):
    mdp = problem_of_two_costs().mdp
    if "demonstrations" in settings:
        settings = settings | {"demonstrations": demonstrations_of(mdp)}
    task = Task(TabularModel.of(mdp), discount=0.9, **settings)
    with pytest.raises(ValueError, match=message):
        certify(np.full((2, 2), 0.5), task)


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


def ending_task(costs, model):
    return Task(model, demonstrations_of(ENDING), discount=0.9, costs=costs)


def rng():
    return np.random.default_rng(0)


POINT = [0.5, 0.5], [0.0, 0.0], [1.0]
MODEL = TabularModel.of(ENDING)
USERS = {
    "tabular problem": lambda costs: SaddlePointProblem.tabular(ENDING, costs, [0.1]),
    "problem": lambda costs: SaddlePointProblem(
        TableCosts(costs, 1), [0.1], TabularOccupancyFeatures(2, 1), TabularValueFeatures(2), 0.9, 2.0, mdp=ENDING
    ),
    "linear program": lambda costs: lfd.solve_linear_program(ENDING, costs, [0.1]),
    "cutting plane": lambda costs: lfd.solve_cutting_plane(ENDING, costs, [0.1]),
    "explains": lambda costs: lfd.explains(ENDING, costs, POLICY, [1.0]),
    "evaluate": lambda costs: lfd.evaluate(POLICY, ENDING, costs),
    "evaluate by rollouts": lambda costs: lfd.evaluate(POLICY, MODEL, costs, discount=0.9, n_rollouts=2, rng=rng()),
    "certify": lambda costs: certify(POLICY, ending_task(costs, ENDING)),
    "certify by rollouts": lambda costs: certify(POLICY, ending_task(costs, MODEL), rng=rng(), n_rollouts=2),
    "sample_residual": lambda costs: sample_residual(simulated(costs), MODEL, POINT, delta=0.1, rng=rng(), **FEW_DRAWS),
    "certify_saddle_point": lambda costs: certify_saddle_point(
        simulated(costs),
        POINT,
        model=MODEL,
        expert=None,
        delta=0.1,
        rng=rng(),
        n_rollouts=2,
        **FEW_DRAWS,
    ),
}


@pytest.mark.parametrize("user", USERS)
def test_costs_after_the_end_are_refused(user):
    """Rollouts stop in the absorbing state and count nothing there; a model would count what the table says."""
    with pytest.raises(
        ValueError, match=r"cost(s|_features) must be zero in the absorbing state 1, .* got 1\.0 for action 0"
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
    by_function = sample_residual(functions, MODEL, POINT, rng=rng(), **arguments)
    assert by_function == sample_residual(simulated(FREE), MODEL, POINT, rng=rng(), **arguments)
    costs = functions.costs.rows(np.array([0, 1]), np.array([0, 0]), ended=MODEL.is_absorbing([0, 1]))
    np.testing.assert_array_equal(costs, FREE)


def test_sampled_and_exact_certificates_agree_about_a_problem_with_an_end():
    problem = SaddlePointProblem.tabular(ENDING, FREE, [0.1])
    theta, lam, w = random_point(problem, rng())
    exact = certify_saddle_point(problem, (theta, lam, w), expert=None, delta=0.1)
    draws = {"n_rollouts": 5000, "n_samples": 50_000, "n_per_column": 20_000}
    sampled = certify_saddle_point(problem, (theta, lam, w), model=MODEL, expert=None, delta=0.1, rng=rng(), **draws)
    np.testing.assert_allclose(sampled.cost_distance, exact.cost_distance, atol=0.005)
    np.testing.assert_allclose(sampled.residual, exact.residual, atol=0.1)


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "must be finite, got nan"), (7.0, r"must lie in \[-1, 1\], but feature 0 reaches 7")],
)
def test_a_costs_function_is_held_to_the_range(value, message):
    problem = simulated(lambda observations, actions: np.full((len(observations), 1), value))
    with pytest.raises(ValueError, match=r"costs\(observations, actions\) " + message):
        problem.costs.rows(np.array([0, 0]), np.array([0, 0]))
    with pytest.raises(ValueError, match=message):
        sample_residual(problem, MODEL, POINT, delta=0.1, rng=rng(), **FEW_DRAWS)
    # What it says of the absorbing state does not matter: the observation there may be NaN.
    ended = problem.costs.rows(np.array([[np.nan]]), np.array([0]))
    np.testing.assert_array_equal(ended, [[0.0]])


def test_a_costs_function_of_trajectories_without_actions():
    start_at_the_end = TabularModel(ENDING.transitions, [0.0, 1.0], absorbing_state=1)
    demos = lfd.collect(start_at_the_end, POLICY, 5, 3, rng())
    assert demos.actions.size == 0
    estimate = feature_expectations(demos, lambda observations, actions: np.ones((len(observations), 2)), 0.9)
    np.testing.assert_array_equal(estimate.values, [0.0, 0.0])
    assert estimate.n_trajectories == 5
