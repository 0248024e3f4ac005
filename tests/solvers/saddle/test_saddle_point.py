"""The saddle-point problem: the Lagrangian, its gradients, and the residual in closed form."""

import numpy as np
import pytest
from apprentice_oracle import apprentice, flow_matrix
from hypothesis import given, settings
from hypothesis import strategies as st
from l1_ball import L1Ball
from problems import random_point, saddle_point_problems
from strategies import finite_mdps, mdps_with_costs

from lfd_gym import Ball, Box, FiniteMDP, SaddlePointProblem, Simplex, TableCosts
from lfd_gym.features import TabularOccupancyFeatures, TabularValueFeatures
from lfd_gym.validation import LfdGymWarning

FEW = settings(max_examples=40, deadline=None)


def dense(problem):
    """Φ, Ψ and T as dense matrices, T from its definition."""
    phi, psi = problem.finite_features()
    return phi.matrix.toarray(), psi.matrix.toarray(), flow_matrix(problem.mdp)


@FEW
@given(saddle_point_problems())
def test_empirical_lagrangian_is_its_definition(case):
    problem, _, rng = case
    theta, lam, w = random_point(problem, rng)
    phi, psi, flow = dense(problem)
    occupancy, values = phi @ theta, psi @ lam
    estimate = rng.uniform(-1, 1, problem.n_costs)
    expected = (
        occupancy @ (problem.costs.table @ w - flow.T @ values)
        + problem.mdp.initial_distribution @ values
        - w @ estimate
    )
    np.testing.assert_allclose(problem.lagrangian((theta, lam, w), expert=estimate), expected, atol=1e-9)


@FEW
@given(saddle_point_problems())
def test_with_the_expert_itself_it_is_the_papers_lagrangian(case):
    problem, expert, rng = case
    theta, lam, w = random_point(problem, rng)
    phi, psi, flow = dense(problem)
    expected = (phi @ theta - expert.ravel()) @ (problem.costs.table @ w - flow.T @ (psi @ lam))
    np.testing.assert_allclose(problem.lagrangian((theta, lam, w)), expected, atol=1e-9)


@FEW
@given(saddle_point_problems())
def test_gradients_are_slopes_of_the_lagrangian(case):
    problem, _, rng = case
    theta, lam, w = random_point(problem, rng)
    other_theta, other_lam, other_w = random_point(problem, rng)
    slope, value_slope, cost_slope = problem.gradients((theta, lam, w))
    base = problem.lagrangian((theta, lam, w))
    np.testing.assert_allclose(
        problem.lagrangian((other_theta, lam, w)) - base, slope @ (other_theta - theta), atol=1e-8
    )
    np.testing.assert_allclose(
        problem.lagrangian((theta, other_lam, other_w)) - base,
        value_slope @ (other_lam - lam) + cost_slope @ (other_w - w),
        atol=1e-8,
    )


@FEW
@given(saddle_point_problems())
def test_operator_is_the_gradient_of_the_shifted_lagrangian(case):
    problem, _, rng = case
    theta, lam, w = random_point(problem, rng)
    g_theta, g_lam, g_w = problem.operator((theta, lam, w))
    phi, psi, flow = dense(problem)
    mdp = problem.mdp
    shift = problem.occupancy_shift
    np.testing.assert_allclose(g_theta, phi.T @ (problem.costs.table @ w - flow.T @ (psi @ lam) + shift), atol=1e-8)
    np.testing.assert_allclose(g_lam, psi.T @ (flow @ phi @ theta - mdp.initial_distribution), atol=1e-8)
    expected = problem.expert_features - problem.costs.table.T @ phi @ theta + problem.cost_shift
    np.testing.assert_allclose(g_w, expected, atol=1e-8)
    # The shifted Lagrangian is bilinear plus linear terms, so its value follows from its slopes.
    shifted = problem.shifted_lagrangian((theta, lam, w))
    np.testing.assert_allclose(shifted, -g_lam @ lam - g_w @ w + shift, atol=1e-8)


@FEW
@given(saddle_point_problems())
def test_shift_makes_the_gradients_one_sided(case):
    problem, _, rng = case
    g_theta, _, g_w = problem.operator(random_point(problem, rng))
    assert g_theta.min() >= -1e-9
    if problem.costs.weights == Simplex():
        assert g_w.min() >= -1e-9


@FEW
@given(saddle_point_problems())
def test_residual_bounds_and_attains_every_exchange(case):
    """The residual is a maximum over the product of the domains: nothing exceeds it, and the maximisers attain it."""
    problem, _, rng = case
    theta, lam, w = random_point(problem, rng)
    residual = problem.saddle_point_residual((theta, lam, w))
    assert residual >= -1e-9
    for _ in range(20):
        other_theta, other_lam, other_w = random_point(problem, rng)
        exchange = problem.lagrangian((theta, other_lam, other_w)) - problem.lagrangian((other_theta, lam, w))
        assert exchange <= residual + 1e-8
    slope, value_slope, cost_slope = problem.gradients((theta, lam, w))
    best_theta = np.eye(theta.size)[np.argmin(slope)]
    if problem.value_domain == "ball":
        norm = np.linalg.norm(value_slope)
        radius = problem.value_radius / np.sqrt(lam.size)
        best_lam = value_slope * (radius / norm if norm > 0 else 0)
        assert np.linalg.norm(best_lam) <= radius + 1e-9
    else:
        best_lam = problem.value_radius * np.sign(value_slope)
    if problem.costs.weights == Simplex():
        best_w = np.eye(w.size)[np.argmax(cost_slope)]
    else:
        norm = np.linalg.norm(cost_slope)
        best_w = cost_slope / norm if norm > 0 else np.zeros_like(w)
    attained = problem.lagrangian((theta, best_lam, best_w)) - problem.lagrangian((best_theta, lam, w))
    np.testing.assert_allclose(residual, attained, atol=1e-8)


@FEW
@given(saddle_point_problems())
def test_shift_does_not_change_the_residual(case):
    problem, _, rng = case
    point = random_point(problem, rng)
    other = random_point(problem, rng)
    theta, lam, w = point
    plain = problem.lagrangian((theta, other[1], other[2])) - problem.lagrangian((other[0], lam, w))
    shifted = problem.shifted_lagrangian((theta, other[1], other[2])) - problem.shifted_lagrangian((other[0], lam, w))
    np.testing.assert_allclose(plain, shifted, atol=1e-8)


@FEW
@given(mdps_with_costs(full_support=True), st.integers(0, 2**32 - 1), st.sampled_from(["ball", "box"]))
def test_residual_vanishes_at_the_saddle_point_of_the_linear_programs(case, seed, domain):
    mdp, costs = case
    rng = np.random.default_rng(seed)
    policy = rng.dirichlet(np.ones(mdp.n_actions), size=mdp.n_states)
    expert = costs.T @ mdp.occupancy(policy).ravel()
    exact = apprentice(mdp, costs, expert)
    problem = SaddlePointProblem.tabular(mdp, costs, expert, value_domain=domain)
    # value_radius="auto" holds V*_w for every w, hence u_A up to a constant.
    if domain == "ball":
        lam = exact.values - exact.values.mean()
        assert np.linalg.norm(lam) <= problem.value_radius / np.sqrt(mdp.n_states) + 1e-6
    else:
        lam = exact.values - (exact.values.max() + exact.values.min()) / 2
        assert np.abs(lam).max() <= problem.value_radius + 1e-6
    residual = problem.saddle_point_residual((exact.occupancy, lam, exact.cost_weights))
    assert abs(residual) <= 1e-6 * (1 + problem.value_radius)
    np.testing.assert_allclose(problem.lagrangian((exact.occupancy, lam, exact.cost_weights)), exact.value, atol=1e-6)


@FEW
@given(finite_mdps(), st.integers(0, 2**32 - 1))
def test_constants_do_not_change_the_lagrangian(mdp, seed):
    """⟨T_γ μ − ν₀, 1⟩ = 0 for every distribution μ, occupancy measure or not."""
    rng = np.random.default_rng(seed)
    occupancy = rng.dirichlet(np.ones(mdp.n_states * mdp.n_actions)).reshape(mdp.n_states, mdp.n_actions)
    assert abs((mdp.bellman_flow(occupancy) - mdp.initial_distribution).sum()) <= 1e-10


@FEW
@given(
    mdps_with_costs(), st.integers(0, 2**32 - 1), st.sampled_from(["ball", "box"]), st.sampled_from(["simplex", "ball"])
)
def test_automatic_radius_holds_the_optimal_values_of_every_cost(case, seed, domain, cost_class):
    mdp, costs = case
    problem = SaddlePointProblem.tabular(
        mdp, costs, np.zeros(costs.shape[1]), value_domain=domain, cost_class=cost_class
    )
    rng = np.random.default_rng(seed)
    for _ in range(5):
        _, _, w = random_point(problem, rng)
        values = mdp.plan(costs @ w).values
        if domain == "ball":
            need = np.sqrt(mdp.n_states) * np.linalg.norm(values - values.mean())
        else:
            need = np.ptp(values) / 2
        assert need <= problem.value_radius + 1e-9


@FEW
@given(saddle_point_problems())
def test_values_are_bounded_over_the_whole_domain(case):
    """The largest value at a state: by the dual norm of its row; over the ball the paper's β, for any such features."""
    problem, _, _ = case
    _, psi, _ = dense(problem)
    if problem.value_domain == "box":
        largest = problem.value_radius * np.abs(psi).sum(axis=1).max()
        assert problem.value_bound == pytest.approx(largest)
    else:
        largest = problem.value_radius / np.sqrt(psi.shape[1]) * np.linalg.norm(psi, axis=1).max()
        assert largest <= problem.value_bound * (1 + 1e-12)
        assert problem.value_bound == problem.value_radius


def two_state_mdp():
    return FiniteMDP([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], initial_distribution=[1.0, 0.0], discount=0.9)


def test_a_radius_that_leaves_out_the_values_draws_a_warning():
    rng = np.random.default_rng(0)
    mdp = FiniteMDP(rng.dirichlet(np.full(40, 0.05), size=80), rng.dirichlet(np.ones(40)), 0.9)
    costs = rng.choice([-1.0, 1.0], size=(80, 2))
    with pytest.warns(LfdGymWarning, match="leaves out the optimal values of cost feature 0"):
        SaddlePointProblem.tabular(mdp, costs, np.zeros(2), value_radius=2.0)
    with pytest.warns(LfdGymWarning, match="Use value_radius='auto'"):
        SaddlePointProblem.tabular(mdp, costs, np.zeros(2), value_radius=0.01, value_domain="box")
    SaddlePointProblem.tabular(mdp, costs, np.zeros(2), value_radius=40.0)  # large enough: no warning
    SaddlePointProblem.tabular(mdp, costs, np.zeros(2), value_radius=1.0, value_domain="box")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value_radius": 1.5}, "value_radius must be at least 2 for the ball, got 1.5"),
        ({"value_radius": "auto"}, "value_radius must be a number, got 'auto'; 'auto' is for tabular and linear"),
        ({"value_radius": 0.0, "value_domain": "box"}, "value_radius must be positive for the box"),
        ({"value_domain": "sphere"}, "value_domain must be one of"),
        ({"discount": 0.5}, "discount must be the mdp's, 0.9"),
        ({"expert_features": [0.0, 0.0]}, "expert_features must have length 1, got 2"),
        ({"expert_features": [1.5]}, "expert_features must lie in"),
        ({"costs": TableCosts(np.zeros((6, 1)), 2)}, "costs must have shape"),
        ({"occupancy_features": TabularOccupancyFeatures(3, 2)}, "costs must have shape"),
        ({"value_features": TabularValueFeatures(3)}, "do not fit"),
    ],
)
def test_bad_input_names_the_argument(change, message):
    arguments = {
        "costs": TableCosts([[0.0], [0.0], [1.0], [1.0]], 2),
        "expert_features": [0.5],
        "occupancy_features": TabularOccupancyFeatures(2, 2),
        "value_features": TabularValueFeatures(2),
        "discount": 0.9,
        "value_radius": 2.0,
        "mdp": two_state_mdp(),
    }
    with pytest.raises(ValueError, match=message):
        SaddlePointProblem(**{**arguments, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cost_class": "cone"}, "cost_class must be one of"),
        ({"cost_features": np.full((4, 1), 2.0)}, "cost_features must lie in"),
        ({"cost_features": np.zeros((6, 1))}, "cost_features must have shape"),
        (
            {"cost_features": TableCosts(np.zeros((4, 1)), 2, "ball"), "cost_class": "simplex"},
            "that of the costs, Ball",
        ),
        ({"expert_features": [0.0, 0.0]}, "expert_features must have length 1, got 2"),
    ],
)
def test_bad_input_of_the_constructors_names_the_argument(change, message):
    arguments = {"cost_features": np.zeros((4, 1)), "expert_features": [0.5]}
    with pytest.raises(ValueError, match=message):
        SaddlePointProblem.tabular(two_state_mdp(), **{**arguments, **change})


def test_costs_may_come_with_their_set():
    costs = TableCosts(np.zeros((4, 3)), 2, Box(0.5))
    problem = SaddlePointProblem.tabular(two_state_mdp(), costs, np.zeros(3))
    assert problem.costs is costs
    assert problem.cost_bound == 1.5
    assert problem.cost_shift == 0.0
    with pytest.raises(ValueError, match=r"cost_weights must lie in Box\(bound=0.5\)"):
        problem.check_point((np.full(4, 0.25), np.zeros(2), np.ones(3)))
    with pytest.raises(ValueError, match="value_weights must lie in Ball"):
        problem.check_point((np.full(4, 0.25), np.full(2, 9.0), np.zeros(3)))


def test_the_residual_over_a_set_of_the_users_own():
    """Over the l1 ball every cost counts with both signs, as over the simplex of twice as many costs."""
    rng = np.random.default_rng(0)
    mdp, costs, expert = two_state_mdp(), rng.uniform(-1, 1, (4, 3)), rng.uniform(-0.5, 0.5, 3)
    theta, lam = rng.dirichlet(np.ones(4)), rng.uniform(-0.5, 0.5, 2)
    w = rng.dirichlet(np.ones(6))
    doubled = SaddlePointProblem.tabular(
        mdp, np.hstack([costs, -costs]), np.concatenate([expert, -expert]), value_radius=3.0
    )
    problem = SaddlePointProblem.tabular(mdp, costs, expert, value_radius=3.0, cost_class=L1Ball())
    point = problem.check_point((theta, lam, w[:3] - w[3:]))
    np.testing.assert_allclose(
        problem.saddle_point_residual(point), doubled.saddle_point_residual((theta, lam, w)), rtol=1e-12
    )
    radius = SaddlePointProblem.tabular(mdp, costs, expert, cost_class=L1Ball()).value_radius
    for weights in (np.eye(3)[0], -np.eye(3)[1], w[:3] - w[3:]):
        values = mdp.plan(costs @ weights).values
        assert np.sqrt(2) * np.linalg.norm(values - values.mean()) <= radius + 1e-9


def test_a_function_with_another_number_of_costs_is_refused():
    problem = SaddlePointProblem.from_simulator(
        lambda observations, actions: np.ones((len(observations), 3)),
        [0.5, 0.5],
        occupancy_features=TabularOccupancyFeatures(2, 2),
        value_features=TabularValueFeatures(2),
        discount=0.9,
        value_radius=2.0,
        cost_class="ball",
    )
    assert problem.costs.weights == Ball()
    with pytest.raises(ValueError, match=r"must return shape \(1, 2\), got \(1, 3\)"):
        problem.costs.rows(np.array([0]), np.array([0]))


def test_without_a_model_the_exact_quantities_say_what_is_missing():
    problem = SaddlePointProblem.from_simulator(
        lambda observations, actions: np.ones((len(observations), 1)),
        [0.5],
        occupancy_features=TabularOccupancyFeatures(2, 2),
        value_features=TabularValueFeatures(2),
        discount=0.9,
        value_radius=2.0,
    )
    with pytest.raises(ValueError, match="this needs the model"):
        problem.saddle_point_residual((np.full(4, 0.25), np.zeros(2), [1.0]))


def test_without_a_model_the_radius_cannot_be_chosen():
    with pytest.raises(ValueError, match="value_radius must be a number, got 'auto'"):
        SaddlePointProblem.from_simulator(
            np.zeros((4, 1)),
            [0.0],
            occupancy_features=TabularOccupancyFeatures(2, 2),
            value_features=TabularValueFeatures(2),
            discount=0.9,
            value_radius="auto",
        )


def test_costs_of_the_absorbing_state_are_zero():
    problem = SaddlePointProblem.from_simulator(
        lambda observations, actions: np.ones((len(observations), 1)),
        [0.5],
        occupancy_features=TabularOccupancyFeatures(2, 2),
        value_features=TabularValueFeatures(2),
        discount=0.9,
        value_radius=2.0,
    )
    costs = problem.costs.rows(np.array([[0.0, 1.0], [np.nan, np.nan]]), np.array([0, 0]))
    np.testing.assert_array_equal(costs, [[1.0], [0.0]])
