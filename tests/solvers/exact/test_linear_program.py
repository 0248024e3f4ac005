import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from l1_ball import L1Ball
from strategies import mdps_with_costs, random_policy

import lfd_gym as lfd
from lfd_gym import FiniteMDP, SaddlePointProblem
from lfd_gym.solvers.exact.exact_solution import ApprenticeshipProblem
from lfd_gym.solvers.exact.linear_program import dual_program, primal_program
from lfd_gym.solvers.highs import Program, solve_with_scipy

seeds = st.integers(0, 2**32 - 1)


def noisy_expectations(mdp, costs, seed):
    """Those of a random policy, exact or with noise that no policy may attain."""
    rng = np.random.default_rng(seed)
    rho = mdp.occupancy(random_policy(mdp, rng)).ravel() @ costs
    return np.clip(rho + rng.choice([0.0, 0.1]) * rng.normal(size=rho.size), -1, 1)


@settings(max_examples=300, deadline=None)
@given(
    mdps_with_costs(),
    seeds,
    st.sampled_from(["primal", "dual"]),
    st.sampled_from(["highs-ds", "highs-ipm"]),
)
def test_programs_cutting_plane_method_and_closed_form_residual_agree(problem, seed, form, method):
    mdp, costs = problem
    rho = noisy_expectations(mdp, costs, seed)
    program = lfd.solve_linear_program(mdp, costs, rho, form=form, method=method)
    exact = lfd.solve_cutting_plane(mdp, costs, rho)
    assert program.status == exact.status == "optimal"
    assert program.primal_objective == pytest.approx(program.dual_objective, abs=1e-8)  # strong duality
    assert program.n_planner_calls == 0  # HiGHS needs none
    assert program.apprentice_value == pytest.approx(program.primal_objective, abs=1e-8)
    assert exact.apprentice_value == pytest.approx(program.primal_objective, abs=1e-8)
    assert exact.lower_bound - 1e-10 <= program.primal_objective <= exact.upper_bound + 1e-10
    lagrangian = SaddlePointProblem.tabular(mdp, costs, rho, value_domain="box")
    for solution in (program, exact):
        occupancy = solution.occupancy.ravel() / solution.occupancy.sum()
        assert abs(lagrangian.saddle_point_residual((occupancy, solution.values, solution.cost_weights))) <= 1.1e-8
        assert 0 <= solution.gap + 1e-12 <= 1e-8
        assert solution.lower_bound - 1e-12 <= solution.apprentice_value <= solution.upper_bound


@settings(max_examples=50, deadline=None)
@given(mdps_with_costs(max_states=5), seeds)
def test_the_two_programs_are_each_others_dual(problem, seed):
    mdp, costs = problem
    checked = ApprenticeshipProblem.checked(mdp, costs, noisy_expectations(mdp, costs, seed))
    points = []
    for build in (primal_program, dual_program):
        program, read = build(checked)
        points.append(read(solve_with_scipy(program, "highs-ds", None)))
    for point in points:
        # Both read out a feasible pair with equal objectives, so both are optimal.
        occupancy = point.occupancy.reshape(mdp.n_states, mdp.n_actions)
        assert occupancy.min() > -1e-9
        assert mdp.bellman_flow(occupancy) == pytest.approx(mdp.initial_distribution, abs=1e-8)
        assert point.cost_weights.sum() == pytest.approx(1, abs=1e-9)
        assert point.cost_weights.min() > -1e-9
        assert (costs @ point.cost_weights - mdp.bellman_adjoint(point.values).ravel()).min() > -1e-8
        excess = point.occupancy @ costs - checked.expert
        assert excess.max() == pytest.approx(point.epsilon, abs=1e-8)
        dual_objective = mdp.initial_distribution @ point.values - point.cost_weights @ checked.expert
        assert dual_objective == pytest.approx(point.epsilon, abs=1e-8)


def test_the_policy_does_not_depend_on_zeros_that_the_interior_point_method_leaves():
    """State 1 is never visited: there the greedy action of V*_w decides, whatever HiGHS put there."""
    transitions = np.zeros((3, 2, 3))
    transitions[0, :, 2] = 1.0
    transitions[1, 0, 1] = transitions[1, 1, 2] = 1.0
    transitions[2, :, 2] = 1.0
    mdp = FiniteMDP(transitions, initial_distribution=[1.0, 0.0, 0.0], discount=0.9)
    costs = np.array([[0.3], [0.1], [1.0], [0.5], [0.0], [0.0]])
    for method in ("highs-ds", "highs-ipm"):
        for form in ("primal", "dual"):
            solution = lfd.solve_linear_program(mdp, costs, [0.0], form=form, method=method)
            assert solution.policy[:2].tolist() == [[0.0, 1.0], [0.0, 1.0]]
            assert solution.occupancy[1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("method", ["highs-ds", "highs-ipm"])
def test_two_runs_are_bit_identical(grid_problem, method):
    first, second = (lfd.solve_linear_program(*grid_problem, method=method) for _ in range(2))
    for name in ("policy", "occupancy", "cost_weights", "values"):
        assert np.array_equal(getattr(first, name), getattr(second, name))


def test_limits_and_impossible_programs_are_reported_and_give_no_policy(grid_problem):
    with pytest.raises(lfd.solvers.highs.LinearProgramError, match="time_limit") as caught:
        lfd.solve_linear_program(*grid_problem, time_limit=1e-4)
    assert caught.value.status == "time_limit"

    def program(upper, lower, cost):
        matrix = np.array([[1.0]])
        bounds = np.array([[lower, np.inf]])
        return Program(np.array([cost]), matrix, np.array([upper]), np.array([[0.0]]), np.zeros(1), bounds)

    for impossible, status in ((program(-1.0, 0.0, 1.0), "infeasible"), (program(1.0, -np.inf, 1.0), "unbounded")):
        with pytest.raises(lfd.solvers.highs.LinearProgramError) as caught:
            solve_with_scipy(impossible, "highs-ds", None)
        assert caught.value.status == status


@pytest.fixture(scope="module")
def grid_problem():
    rng = np.random.default_rng(0)
    kernel = rng.dirichlet(np.full(60, 0.1), size=60 * 4)
    mdp = FiniteMDP(kernel, initial_distribution=np.full(60, 1 / 60), discount=0.95)
    return mdp, rng.uniform(-1, 1, (240, 5)), rng.uniform(-0.2, 0.2, 5)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("form", "both", "form must be one of"),
        ("cost_class", L1Ball(), "cost_class must be the simplex for solve_linear_program"),
        ("cost_class", "ball", "cost_class must be the simplex for solve_linear_program"),
        ("method", "simplex", "method must be one of"),
        ("time_limit", 0.0, "time_limit must be positive"),
        ("cost_features", np.full((240, 5), 2.0), "cost_features must lie in"),
        ("cost_features", np.full((240, 5), np.nan), "cost_features must be finite"),
        ("cost_features", np.zeros((239, 5)), r"cost_features must have shape"),
        ("cost_features", np.zeros((236, 5)), "cost_features must have shape"),
        ("expert_features", np.zeros(4), "expert_features must have shape"),
        ("expert_features", np.full(5, np.nan), "expert_features must be finite"),
        ("expert_features", np.full(5, 1.5), "expert_features must lie in"),
    ],
)
def test_bad_arguments_are_named(grid_problem, argument, value, message):
    arguments = dict(zip(("mdp", "cost_features", "expert_features"), grid_problem, strict=True))
    with pytest.raises(ValueError, match=message):
        lfd.solve_linear_program(**(arguments | {argument: value}))
