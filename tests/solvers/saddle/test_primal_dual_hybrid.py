"""Restarted PDHG: against the linear programs, in every domain, honest about not converging."""

import gymnasium as gym
import numpy as np
import pytest
from apprentice_oracle import apprentice
from hypothesis import given, settings
from l1_ball import L1Ball
from problems import saddle_point_problems
from scipy.optimize import linprog

import lfd_gym as lfd
from lfd_gym import FiniteMDP, SaddlePointProblem, Simplex, solve_primal_dual_hybrid
from lfd_gym.features import FiniteOccupancyFeatures, TabularValueFeatures
from lfd_gym.solvers.saddle.primal_dual_hybrid import _simplex_threshold
from lfd_gym.validation import LfdGymWarning

FEW = settings(max_examples=25, deadline=None)


def grid_problem(cost_seed=0, size=16, **kwargs):
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=size, cost_seed=cost_seed)
    mdp = FiniteMDP.from_env(env, discount=0.9)
    costs = env.unwrapped.cost_features
    expert = costs.T @ mdp.occupancy(mdp.optimal_policy(costs[:, 0])).ravel()
    return SaddlePointProblem.tabular(mdp, costs, expert, **kwargs)


@FEW
@given(saddle_point_problems(max_discount=0.9))
def test_points_are_feasible_and_the_residual_is_the_problems_own(case):
    problem, _, _ = case
    solution = solve_primal_dual_hybrid(problem, tolerance=1e-4, max_iterations=20_000)
    theta, lam, w = solution.point
    np.testing.assert_array_equal(solution.cost_weights, w)
    np.testing.assert_array_equal(solution.values, problem.values(lam))
    assert theta.min() >= 0
    np.testing.assert_allclose(theta.sum(), 1)
    if problem.value_domain == "ball":
        assert np.linalg.norm(lam) <= problem.value_radius / np.sqrt(lam.size) * (1 + 1e-12)
    else:
        assert np.abs(lam).max() <= problem.value_radius
    if problem.costs.weights == Simplex():
        assert w.min() >= 0
        np.testing.assert_allclose(w.sum(), 1)
    else:
        assert np.linalg.norm(w) <= 1 + 1e-12
    np.testing.assert_allclose(solution.residual, problem.saddle_point_residual((theta, lam, w)), atol=1e-12)
    assert solution.status == ("optimal" if solution.residual <= 1e-4 else "iteration_limit")


def reduced_value(problem):
    """min_θ max_{λ, w} L over the box and the simplex as one linear program: the textbook way."""
    mdp = problem.mdp
    phi, psi = problem.occupancy_features.matrix.toarray(), problem.value_features.matrix.toarray()
    n_mu, n_u, n_c = phi.shape[1], psi.shape[1], problem.n_costs
    flow = np.array([psi.T @ mdp.bellman_flow(phi[:, i].reshape(mdp.n_states, -1)) for i in range(n_mu)]).T
    start = psi.T @ mdp.initial_distribution
    costs = problem.costs.table.T @ phi
    # Variables (θ, s, ε): minimise b Σ s + ε with s ≥ |b − Kθ| and ε ≥ (costs θ − ρ)_j.
    result = linprog(
        np.concatenate([np.zeros(n_mu), np.full(n_u, problem.value_radius), [1.0]]),
        A_ub=np.block(
            [
                [-flow, -np.eye(n_u), np.zeros((n_u, 1))],
                [flow, -np.eye(n_u), np.zeros((n_u, 1))],
                [costs, np.zeros((n_c, n_u)), -np.ones((n_c, 1))],
            ]
        ),
        b_ub=np.concatenate([-start, start, problem.expert_features]),
        A_eq=np.concatenate([np.ones(n_mu), np.zeros(n_u + 1)])[None],
        b_eq=[1.0],
        bounds=[(0, None)] * (n_mu + n_u) + [(None, None)],
    )
    assert result.status == 0
    return result.fun


@FEW
@given(saddle_point_problems(value_domain="box", cost_class="simplex", max_discount=0.9))
def test_value_agrees_with_a_linear_program_of_the_reduced_problem(case):
    problem, _, _ = case
    solution = solve_primal_dual_hybrid(problem, tolerance=1e-5, max_iterations=200_000)
    value = reduced_value(problem)
    assert problem.lower_value(solution.point.value_weights, solution.cost_weights) <= value + 1e-7
    assert problem.upper_value(solution.point.occupancy_weights) >= value - 1e-7
    assert solution.status == "optimal"


@pytest.mark.parametrize("value_domain", ["ball", "box"])
def test_tabular_solution_is_an_apprentice(value_domain):
    rng = np.random.default_rng(0)
    for _ in range(3):
        mdp = FiniteMDP(rng.dirichlet(np.full(12, 0.3), size=36), rng.dirichlet(np.ones(12)), 0.9)
        costs = rng.uniform(-1, 1, (36, 4))
        expert = costs.T @ mdp.occupancy(rng.dirichlet(np.ones(3), size=12)).ravel()
        exact = apprentice(mdp, costs, expert)
        problem = SaddlePointProblem.tabular(mdp, costs, expert, value_domain=value_domain)
        solution = solve_primal_dual_hybrid(problem, tolerance=1e-7)
        assert solution.status == "optimal"
        gap = (costs.T @ mdp.occupancy(solution.policy).ravel() - expert).max()
        np.testing.assert_allclose(gap, exact.value, atol=1e-5)


@pytest.mark.parametrize("cost_seed", [0, 1, 2, 3])
def test_grid_to_a_residual_of_a_millionth(cost_seed):
    problem = grid_problem(cost_seed, value_radius=50.0)
    solution = solve_primal_dual_hybrid(problem, tolerance=1e-6, max_iterations=20_000)
    assert solution.status == "optimal"
    mdp, costs = problem.mdp, problem.costs.table
    assert mdp.expected_cost(solution.policy, costs[:, 0]) <= problem.expert_features[0] + 1e-6


def test_a_ball_that_leaves_out_the_values_has_a_bad_policy_as_its_exact_saddle_point():
    """Why the radius matters: at residual 1e-6 the policy is far from the expert with β = 2, less so with 8."""
    gaps = []
    for radius in (2.0, 8.0):
        with pytest.warns(LfdGymWarning, match="leaves out the optimal values"):
            problem = grid_problem(0, value_radius=radius)
        solution = solve_primal_dual_hybrid(problem, tolerance=1e-6)
        assert solution.residual <= 1e-6
        true_cost = problem.mdp.expected_cost(solution.policy, problem.costs.table[:, 0])
        gaps.append(true_cost - problem.expert_features[0])
    assert gaps[0] > gaps[1] > 0.1


def test_not_converging_is_said():
    problem = grid_problem(0, size=4)
    solution = solve_primal_dual_hybrid(problem, tolerance=1e-12, max_iterations=1)
    assert solution.status == "iteration_limit"
    assert solution.n_iterations == 1
    assert solution.residual > 1e-3


def test_sets_of_weights_that_it_does_not_know_are_refused():
    with pytest.raises(
        ValueError, match=r"weights in Simplex\(\) or Ball\(bound=1.0\) for this solver, got TableCosts"
    ):
        solve_primal_dual_hybrid(grid_problem(0, size=4, cost_class=L1Ball()))


def test_same_problem_same_answer():
    first, second = (solve_primal_dual_hybrid(grid_problem(0, size=4)) for _ in range(2))
    np.testing.assert_array_equal(first.point.occupancy_weights, second.point.occupancy_weights)


@pytest.mark.parametrize(
    ("arguments", "message"), [({"tolerance": 0}, "tolerance"), ({"max_iterations": 0}, "max_iter")]
)
def test_bad_input_names_the_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        solve_primal_dual_hybrid(grid_problem(0, size=4), **arguments)


def test_simplex_projection_from_any_guess():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 500):
        point = rng.standard_normal(n) * rng.choice([1e-3, 1.0, 1e3])
        ordered = np.sort(point)[::-1]
        thresholds = (ordered.cumsum() - 1) / np.arange(1, n + 1)
        expected = thresholds[np.flatnonzero(ordered > thresholds)[-1]]
        for guess in (-1e6, 0.0, expected, 1e6):
            np.testing.assert_allclose(_simplex_threshold(point, guess), expected, rtol=1e-12, atol=1e-12)


def test_it_is_exported():
    assert lfd.solve_primal_dual_hybrid is solve_primal_dual_hybrid


@pytest.mark.filterwarnings("ignore::lfd_gym.validation.LfdGymWarning")  # the radius is small on purpose
@pytest.mark.parametrize("seed", [99, 127])
def test_weights_stay_in_the_simplex_however_long_the_steps_get(seed):
    # With one cost feature nothing stops its player's steps from growing until a sum of one is lost to rounding.
    rng = np.random.default_rng(seed)
    mdp = FiniteMDP(rng.dirichlet(np.ones(5), size=5), rng.dirichlet(np.ones(5)), 0.5)
    costs = rng.choice([0.0, -1.0, 1.0], size=(5, 1))
    features = FiniteOccupancyFeatures(rng.dirichlet(np.ones(5), size=2).T, n_actions=1)
    problem = SaddlePointProblem.linear(
        mdp,
        costs,
        rng.uniform(-0.5, 0.5, 1),
        occupancy_features=features,
        value_features=TabularValueFeatures(5),
        value_radius=2.0,
    )
    solution = solve_primal_dual_hybrid(problem, tolerance=1e-4, max_iterations=20_000)
    np.testing.assert_allclose(solution.cost_weights, [1.0])
    np.testing.assert_allclose(solution.point.occupancy_weights.sum(), 1.0)
