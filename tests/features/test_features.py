"""Occupancy and value features: columns, draws, approximation, realizability."""

import numpy as np
import pytest
import scipy.sparse as sp
from apprentice_oracle import apprentice
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import random_cells, random_point, saddle_point_problems
from scipy.optimize import minimize
from scipy.stats import chisquare
from strategies import finite_mdps, mdps_with_costs, random_policy

from lfd_gym import FiniteMDP, SaddlePointProblem, TableCosts, TabularModel
from lfd_gym.features import (
    EmpiricalOccupancyFeatures,
    FiniteOccupancyFeatures,
    FiniteValueFeatures,
    OccupancyFeatures,
    RadialBasisFeatures,
    RandomFourierFeatures,
    TabularOccupancyFeatures,
    TabularValueFeatures,
    TileGrid,
    TileOccupancyFeatures,
    TileValueFeatures,
    ValueFeatures,
    aggregated_occupancies,
    aggregated_values,
    optimal_values,
    policy_occupancies,
    policy_values,
    rollout_occupancies,
    soft_occupancies,
    soft_values,
)
from lfd_gym.solvers.saddle.approximation import nearest_occupancy, nearest_values
from lfd_gym.solvers.saddle.feature_checks import check_bounded, is_realizable

FEW = settings(max_examples=30, deadline=None)


# -- occupancy features -----------------------------------------------------------------------------------------------


@FEW
@given(finite_mdps(), st.integers(0, 2**32 - 1))
def test_columns_are_distributions_and_products_are_matrix_products(mdp, seed):
    rng = np.random.default_rng(seed)
    cells = random_cells(mdp.n_states, rng)
    memberships = rng.random((mdp.n_states, 3))
    for features in (
        TabularOccupancyFeatures(mdp.n_states, mdp.n_actions),
        aggregated_occupancies(cells, mdp.n_actions),
        soft_occupancies(memberships, mdp.n_actions),
        policy_occupancies(mdp, [random_policy(mdp, rng), random_policy(mdp, rng)]),
    ):
        assert isinstance(features, OccupancyFeatures)
        matrix = features.matrix.toarray()
        assert matrix.shape == (mdp.n_states * mdp.n_actions, features.n_features)
        assert matrix.min() >= 0
        np.testing.assert_allclose(matrix.sum(axis=0), 1)
        theta = rng.dirichlet(np.ones(features.n_features))
        np.testing.assert_allclose(features.combine(theta).ravel(), matrix @ theta)
        mass = (matrix @ theta).reshape(mdp.n_states, mdp.n_actions)
        np.testing.assert_allclose(features.policy(theta) * mass.sum(axis=1, keepdims=True), mass, atol=1e-12)
        np.testing.assert_allclose(features.policy(theta).sum(axis=1), 1)
        pair_values = rng.standard_normal((matrix.shape[0], 2))
        np.testing.assert_allclose(features.inner(pair_values), matrix.T @ pair_values)


@pytest.mark.parametrize("kind", ["finite", "tabular", "empirical", "soft"])
def test_draws_follow_the_columns(kind):
    rng = np.random.default_rng(1)
    features = {
        "finite": lambda: FiniteOccupancyFeatures(rng.dirichlet(np.full(6, 0.5), size=3).T, n_actions=2),
        "tabular": lambda: TabularOccupancyFeatures(3, 2),
        "empirical": lambda: EmpiricalOccupancyFeatures(
            [[0, 1, 2, 0], [2, 2]], [[0, 1, 0, 0], [1, 0]], [[1.0, 2.0, 3.0, 4.0], [1.0, 1.0]]
        ),
        "soft": lambda: soft_occupancies(rng.random((3, 2)), 2),
    }[kind]()
    finite = features.to_finite(3, 2) if kind == "empirical" else features
    matrix = finite.matrix.toarray()
    n = 20_000
    for column in range(features.n_features):
        states, actions = features.sample(np.full(n, column), rng)
        counts = np.bincount(states * 2 + actions, minlength=6)
        assert counts[matrix[:, column] == 0].sum() == 0
        support = matrix[:, column] > 0
        if support.sum() > 1:
            assert chisquare(counts[support], n * matrix[support, column]).pvalue > 1e-4


def test_aggregated_columns_are_uniform_over_cells_with_one_action():
    matrix = aggregated_occupancies([0, 1, 0], n_actions=2).matrix.toarray()
    np.testing.assert_allclose(matrix[:, 0], [0.5, 0, 0, 0, 0.5, 0])  # cell 0, action 0
    np.testing.assert_allclose(matrix[:, 3], [0, 0, 0, 1, 0, 0])  # cell 1, action 1


@FEW
@given(finite_mdps(), st.integers(0, 2**32 - 1))
def test_mixtures_of_policy_occupancies_satisfy_the_flow_constraints(mdp, seed):
    rng = np.random.default_rng(seed)
    features = policy_occupancies(mdp, [random_policy(mdp, rng) for _ in range(3)])
    occupancy = features.combine(rng.dirichlet(np.ones(3)))
    np.testing.assert_allclose(mdp.bellman_flow(occupancy), mdp.initial_distribution, atol=1e-9)


def test_rollout_columns_approach_the_occupancy_measure():
    rng = np.random.default_rng(0)
    mdp = FiniteMDP(rng.dirichlet(np.ones(4), size=8), rng.dirichlet(np.ones(4)), 0.7)
    policy = random_policy(mdp, rng)
    model = TabularModel.of(mdp)
    states, actions = [model.sample_initial(4000, rng)], []
    for _ in range(40):
        draws = rng.random(4000)
        actions.append((policy[states[-1]].cumsum(axis=1) < draws[:, None]).sum(axis=1).clip(max=1))
        states.append(model.sample_next(states[-1], actions[-1], rng))
    trajectories = np.array(states[:-1]).T, np.array(actions).T
    features = rollout_occupancies([list(trajectories[0])], [list(trajectories[1])], mdp.discount).to_finite(4, 2)
    error = np.abs(features.matrix.toarray()[:, 0] - mdp.occupancy(policy).ravel()).sum()
    assert error < 0.05  # 8 cells, 4000 trajectories; the l1 error is about 0.02
    assert error > 0


def test_tiles_cover_the_box_and_draws_stay_in_their_tile():
    grid = TileGrid([-1.0, 0.0], [1.0, 4.0], counts=(4, 2))
    rng = np.random.default_rng(0)
    tiles = np.repeat(np.arange(8), 500)
    points = grid.sample(tiles, rng)
    np.testing.assert_array_equal(grid.index(points), tiles)
    assert points.min(axis=0).min() >= -1
    np.testing.assert_allclose(points.mean(axis=0), [0, 2], atol=0.05)
    np.testing.assert_array_equal(grid.index([[-9.0, -9.0], [9.0, 9.0]]), [0, 7])


def test_tile_occupancies_give_a_policy_and_know_the_absorbing_state():
    grid = TileGrid([0.0], [1.0], counts=(2,))
    features = TileOccupancyFeatures(grid, n_actions=2, absorbing=True)
    assert features.n_features == 5
    states, actions = features.sample(np.array([0, 3, 4]), np.random.default_rng(0))
    assert states[0, 0] < 0.5 < states[1, 0]
    assert np.isnan(states[2, 0])
    np.testing.assert_array_equal(actions, [0, 1, 0])
    policy = features.policy(np.array([0.1, 0.3, 0.0, 0.0, 0.6]))
    np.testing.assert_allclose(policy.probabilities([[0.2], [0.8]]), [[0.25, 0.75], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: FiniteOccupancyFeatures([[0.5], [0.4]], 1), "columns that sum to 1, got 0.9 in column 0"),
        (lambda: FiniteOccupancyFeatures([[1.5], [-0.5]], 1), "matrix must be nonnegative"),
        (lambda: FiniteOccupancyFeatures([[0.5], [0.5], [0.0]], 2), "matrix must have S\\*A rows"),
        (lambda: EmpiricalOccupancyFeatures([[0, 1]], [[0]]), "actions must hold batches of the same sizes"),
        (lambda: EmpiricalOccupancyFeatures([[0, 1]], [[0, 0]], [[0.0, 0.0]]), "weights\\[0\\] must be nonnegative"),
        (lambda: aggregated_occupancies([0, 2], 1), "cells must use every number"),
        (lambda: aggregated_values([0.0, 1.0]), "cells must be a vector of integers"),
        (lambda: soft_occupancies([[0.0], [0.0]], 1), "memberships must be nonnegative and finite"),
        (lambda: FiniteValueFeatures([[0.5, -1.5]]), "but column 1 reaches 1.5"),
        (lambda: FiniteValueFeatures([[np.nan]]), "matrix must be finite"),
        (lambda: TileGrid([0.0], [0.0], (1,)), "high must exceed low"),
        (lambda: RadialBasisFeatures([[0.0]], -1.0), "widths must be positive"),
    ],
)
def test_bad_features_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


# -- value features ---------------------------------------------------------------------------------------------------


@FEW
@given(mdps_with_costs(), st.integers(0, 2**32 - 1))
def test_value_features_are_bounded_and_consistent(case, seed):
    mdp, costs = case
    rng = np.random.default_rng(seed)
    for features in (
        TabularValueFeatures(mdp.n_states),
        aggregated_values(random_cells(mdp.n_states, rng)),
        soft_values(rng.random((mdp.n_states, 3)) + 0.01),
        optimal_values(mdp, costs),
        policy_values(mdp, [random_policy(mdp, rng)], costs),
    ):
        assert isinstance(features, ValueFeatures)
        matrix = features.matrix.toarray()
        assert np.abs(matrix).max(initial=0) <= 1
        assert features.row_l1_bound >= np.abs(matrix).sum(axis=1).max() - 1e-12
        np.testing.assert_allclose(features.evaluate(np.arange(mdp.n_states)), matrix)
        batch = rng.integers(mdp.n_states, size=7)
        np.testing.assert_allclose(features.rows(batch).toarray(), matrix[batch])
        np.testing.assert_allclose(features.row_sum(batch), matrix[batch].sum(axis=0), atol=1e-12)
        lam, measure = rng.standard_normal(features.n_features), rng.standard_normal(mdp.n_states)
        np.testing.assert_allclose(features.function(lam), matrix @ lam)
        np.testing.assert_allclose(features.inner(measure), matrix.T @ measure)


def test_rounding_beyond_one_is_allowed_and_more_is_not():
    mdp = FiniteMDP(np.ones((2, 1)), [1.0], discount=0.5)
    average = np.full((2, 3), 1.0) @ np.array([[0.3], [0.3], [0.4 + 3e-16]])
    assert average[0, 0] > 1
    assert optimal_values(mdp, average).n_features == 1
    assert FiniteValueFeatures(average[:1]).n_features == 1
    with pytest.raises(ValueError, match="cost_features must lie in"):
        optimal_values(mdp, average + 1e-9)
    with pytest.raises(ValueError, match="matrix must lie in"):
        FiniteValueFeatures(average[:1] + 1e-9)


@FEW
@given(mdps_with_costs(), st.integers(0, 2**32 - 1))
def test_value_function_columns_are_the_value_functions(case, seed):
    mdp, costs = case
    policy = random_policy(mdp, np.random.default_rng(seed))
    best = optimal_values(mdp, costs).matrix.toarray()
    theirs = policy_values(mdp, [policy], costs).matrix.toarray()
    for k, cost in enumerate(costs.T):
        # Bellman's equations, written out.
        after = (mdp.transitions @ best[:, k]).reshape(mdp.n_states, mdp.n_actions)
        action_values = (1 - mdp.discount) * cost.reshape(after.shape) + mdp.discount * after
        np.testing.assert_allclose(best[:, k], action_values.min(axis=1), atol=1e-8)
        after = (mdp.transitions @ theirs[:, k]).reshape(mdp.n_states, mdp.n_actions)
        action_values = (1 - mdp.discount) * cost.reshape(after.shape) + mdp.discount * after
        np.testing.assert_allclose(theirs[:, k], (policy * action_values).sum(axis=1), atol=1e-8)
        assert (best[:, k] <= theirs[:, k] + 1e-8).all()


def test_features_of_observations_are_bounded_and_vanish_in_the_absorbing_state():
    rng = np.random.default_rng(0)
    observations = np.vstack([rng.uniform(-2, 2, (50, 2)), [[1e6, -1e6]], [[np.nan, np.nan]]])
    for features in (
        RadialBasisFeatures(rng.uniform(-1, 1, (7, 2)), widths=[0.3, 0.5]),
        RandomFourierFeatures(9, widths=[0.5, 1.0], rng=rng),
        TileValueFeatures(TileGrid([-1, -1], [1, 1], (3, 3))),
    ):
        assert isinstance(features, ValueFeatures)
        rows = features.evaluate(observations)
        assert rows.shape == (52, features.n_features)
        np.testing.assert_array_equal(rows[-1], 0)
        assert np.abs(rows[:-1]).max() > 0.5
        assert np.abs(rows).sum(axis=1).max() <= features.row_l1_bound + 1e-12
        np.testing.assert_allclose(features.row_sum(observations), rows.sum(axis=0))
        weights = rng.standard_normal(features.n_features)
        np.testing.assert_array_equal(features.function(weights)(observations), rows @ weights)
        check_bounded(features, observations)


def test_radial_features_are_normalised_gaussians():
    features = RadialBasisFeatures([[0.0, 0.0], [1.0, 0.0]], widths=0.5)
    bumps = np.exp([-0.5 * (0.2 / 0.5) ** 2, -0.5 * (0.8 / 0.5) ** 2])
    np.testing.assert_allclose(features.evaluate([[0.2, 0.0]])[0], bumps / bumps.sum())


def test_fourier_features_average_to_the_gaussian_kernel():
    """E[cos(ωx + b) cos(ωy + b)] = ½ exp(−½‖(x − y)/width‖²)."""
    features = RandomFourierFeatures(200_000, widths=[0.5, 2.0], rng=np.random.default_rng(0))
    x, y = np.array([[0.3, 0.1]]), np.array([[0.1, -0.4]])
    product = (features.evaluate(x) * features.evaluate(y)).mean()
    expected = 0.5 * np.exp(-0.5 * ((0.2 / 0.5) ** 2 + (0.5 / 2.0) ** 2))
    np.testing.assert_allclose(product, expected, atol=0.005)


def test_check_bounded_names_the_feature():
    class TooLarge(ValueFeatures):
        n_features = 2
        row_l1_bound = 3.0

        def evaluate(self, observations):
            return np.tile([0.5, 2.0], (len(observations), 1))

    with pytest.raises(ValueError, match="feature 1 reaches 2"):
        check_bounded(TooLarge(), np.zeros((3, 1)))


# -- approximation ----------------------------------------------------------------------------------------------------


@FEW
@given(saddle_point_problems(max_states=4, max_actions=3))
def test_nearest_occupancy_beats_every_other_point(case):
    problem, _, rng = case
    target = rng.dirichlet(np.ones(problem.mdp.n_states * problem.mdp.n_actions))
    fit = nearest_occupancy(problem, target)
    np.testing.assert_allclose(np.abs(problem.occupancy(fit.weights).ravel() - target).sum(), fit.error, atol=1e-9)
    assert fit.lower_bound >= fit.error - 1e-6
    assert fit.weights.min() >= 0
    np.testing.assert_allclose(fit.weights.sum(), 1)
    for _ in range(30):
        theta, _, _ = random_point(problem, rng)
        assert np.abs(problem.occupancy(theta).ravel() - target).sum() >= fit.error - 1e-7


@FEW
@given(saddle_point_problems(max_states=5, max_actions=2))
def test_nearest_values_beats_every_other_point_and_is_feasible(case):
    problem, _, rng = case
    target = rng.uniform(-1, 1, problem.mdp.n_states) * rng.choice([0.1, 1.0, 5.0])
    fit = nearest_values(problem, target)

    def error(lam):
        return np.ptp(problem.values(lam) - target) / 2

    np.testing.assert_allclose(error(fit.weights), fit.error, atol=1e-9)
    if problem.value_domain == "ball":
        radius = problem.value_radius / np.sqrt(problem.n_value_features)
        assert np.linalg.norm(fit.weights) <= radius * (1 + 1e-9)
    else:
        assert np.abs(fit.weights).max() <= problem.value_radius * (1 + 1e-9)
    assert fit.lower_bound >= fit.error - 2e-6
    for _ in range(30):
        assert error(random_point(problem, rng)[1]) >= fit.lower_bound - 1e-9


def test_nearest_values_finds_a_fit_among_many():
    """More features than states: the fits are a whole subspace, where cutting planes alone stay at errors of 1e-5."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        mdp = FiniteMDP(np.full((2, 2), 0.5), initial_distribution=[0.5, 0.5], discount=0.5)
        problem = SaddlePointProblem(
            TableCosts(np.zeros((2, 1)), 1),
            np.zeros(1),
            TabularOccupancyFeatures(2, 1),
            FiniteValueFeatures(rng.uniform(-1, 1, (2, 5))),
            0.5,
            value_radius=rng.uniform(2, 30),
            mdp=mdp,
        )
        fit = nearest_values(problem, rng.uniform(-5, 5, 2))
        assert fit.error <= fit.lower_bound + 1e-6


def test_nearest_values_in_the_ball_agrees_with_a_general_optimiser():
    rng = np.random.default_rng(3)
    mdp = FiniteMDP(rng.dirichlet(np.ones(6), size=6), rng.dirichlet(np.ones(6)), 0.9)
    target = rng.uniform(-3, 3, 6)
    for features in (TabularValueFeatures(6), FiniteValueFeatures(rng.uniform(-1, 1, (6, 3)))):
        problem = SaddlePointProblem(
            TableCosts(np.zeros((6, 1)), 1),
            np.zeros(1),
            TabularOccupancyFeatures(6, 1),
            features,
            0.9,
            value_radius=2.0,
            mdp=mdp,
        )
        n = features.n_features
        radius = 2.0 / np.sqrt(n)
        result = minimize(  # variables (λ, k, t)
            lambda v: v[-1],
            np.append(np.zeros(n + 1), 5.0),
            method="SLSQP",
            constraints=[
                {"type": "ineq", "fun": lambda v, f=features, n=n: v[-1] - (f.function(v[:n]) + v[n] - target)},
                {"type": "ineq", "fun": lambda v, f=features, n=n: v[-1] + (f.function(v[:n]) + v[n] - target)},
                {"type": "ineq", "fun": lambda v, n=n, r=radius: r**2 - v[:n] @ v[:n]},
            ],
            options={"maxiter": 500, "ftol": 1e-12},
        )
        fit = nearest_values(problem, target)
        np.testing.assert_allclose(fit.error, result.fun, atol=1e-5)
        assert fit.error > 0.5  # the ball does bind


@FEW
@given(mdps_with_costs(max_features=3), st.integers(0, 2**32 - 1), st.sampled_from(["ball", "box"]))
def test_automatic_radius_costs_aggregated_features_nothing(case, seed, domain):
    """No larger domain would bring the cells nearer to the optimal values of any cost in the class."""
    mdp, costs = case
    rng = np.random.default_rng(seed)
    features = aggregated_values(random_cells(mdp.n_states, rng))
    phi = TabularOccupancyFeatures(mdp.n_states, mdp.n_actions)
    expert = np.zeros(costs.shape[1])
    problem = SaddlePointProblem.linear(
        mdp, costs, expert, occupancy_features=phi, value_features=features, value_domain=domain
    )
    unlimited = SaddlePointProblem(
        TableCosts(costs, mdp.n_actions), expert, phi, features, mdp.discount, 1e4, domain, mdp=mdp
    )
    for _ in range(3):
        values = mdp.plan(costs @ rng.dirichlet(np.ones(costs.shape[1]))).values
        assert nearest_values(problem, values).error <= nearest_values(unlimited, values).error + 1e-5


@FEW
@given(mdps_with_costs(max_features=3), st.sampled_from(["ball", "box"]))
def test_automatic_radius_holds_value_functions_that_are_features(case, domain):
    mdp, costs = case
    problem = SaddlePointProblem.linear(
        mdp,
        costs,
        np.zeros(costs.shape[1]),
        occupancy_features=TabularOccupancyFeatures(mdp.n_states, mdp.n_actions),
        value_features=optimal_values(mdp, costs),
        value_domain=domain,
    )
    for cost in costs.T:
        assert nearest_values(problem, mdp.plan(cost).values).error <= 1e-5


# -- realizability -----------------------------------------------------------------------------------------------------


def test_realizability_is_recognised():
    rng = np.random.default_rng(5)
    mdp = FiniteMDP(rng.dirichlet(np.ones(5), size=10), rng.dirichlet(np.ones(5)), 0.9)
    costs = rng.uniform(-1, 1, (10, 2))
    expert = mdp.optimal_policy(costs[:, 0])
    exact = apprentice(mdp, costs, costs.T @ mdp.occupancy(expert).ravel())
    policies = [expert, random_policy(mdp, rng)]
    values = mdp.plan(costs[:, 0]).values
    assert abs(exact.value) < 1e-8  # the expert is optimal, so it is an apprentice with dual values V*_{c_0}
    problem = SaddlePointProblem.linear(
        mdp,
        costs,
        costs.T @ mdp.occupancy(expert).ravel(),
        occupancy_features=policy_occupancies(mdp, policies),
        value_features=optimal_values(mdp, costs),
    )
    assert is_realizable(problem, mdp.occupancy(expert), values, tolerance=1e-7)
    assert not is_realizable(problem, mdp.occupancy(random_policy(mdp, rng)), values, tolerance=1e-3)
    assert not is_realizable(problem, mdp.occupancy(expert), rng.uniform(-1, 1, 5), tolerance=1e-3)


def test_sparse_input_is_kept_sparse():
    identity = sp.eye_array(1000, format="csc")
    assert FiniteOccupancyFeatures(identity, n_actions=2).matrix.nnz == 1000
    assert FiniteValueFeatures(identity).matrix.nnz == 1000
