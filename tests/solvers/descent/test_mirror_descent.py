"""Algorithm 1 as a user calls it: rates, levels, options."""

import numpy as np
import pytest
import scipy.sparse as sp
from descent_problems import Simulator, gridworld_problem, two_states_with_self_loops
from l1_ball import L1Ball

import lfd_gym as lfd
from lfd_gym.solvers.descent.finite_descent import FiniteDescent, FiniteOracle
from lfd_gym.solvers.descent.gradient_norms import estimate_gradient_norms
from lfd_gym.solvers.descent.mirror_descent import solve_mirror_descent, solve_mirror_descent_many
from lfd_gym.solvers.descent.step_sizes import practical_steps


def test_costs_that_the_first_draws_miss_are_found_later():
    n_states = 20_000
    transitions = sp.csr_array((np.ones(2 * n_states), (np.arange(2 * n_states), np.zeros(2 * n_states, int))))
    transitions.resize((2 * n_states, n_states))
    initial = np.zeros(n_states)
    initial[0] = 1.0
    mdp = lfd.FiniteMDP(transitions, initial, discount=0.5)
    costs = np.zeros((2 * n_states, 1))
    costs[1] = 1.0  # a hazard at one pair, which the expert avoids
    problem = lfd.SaddlePointProblem.tabular(mdp, costs, [0.0], cost_class="ball", value_domain="box", value_radius=1.0)
    norms = estimate_gradient_norms(problem, lfd.TabularModel.of(mdp), 1, np.random.default_rng(0))
    assert norms.cost > 0
    solution = solve_mirror_descent(
        problem, lfd.TabularModel.of(mdp), 3_000_000, np.random.default_rng(0), progress=False
    )
    assert solution.cost_weights[0] > 0.5
    assert solution.policy[0, 1] < 0.05


# -- convergence -----------------------------------------------------------------------------------------------------


def residuals_and_slope(value_domain, anytime, n_runs=3):
    """Mean residuals over three decades of N, and the slope of their logarithms."""
    radius = 10.0 if value_domain == "ball" else 1.0
    problem, model = gridworld_problem(size=4, value_radius=radius, value_domain=value_domain)
    counts = np.array([2**12, 2**15, 2**18, 2**22])
    residuals = []
    for n in counts:
        runs = solve_mirror_descent_many(
            problem, model, int(n), np.random.default_rng(n).spawn(n_runs), anytime=anytime
        )
        residuals.append(np.mean([run.residual for run in runs]))
    return residuals, np.polyfit(np.log(counts), np.log(residuals), 1)[0]


@pytest.mark.parametrize("value_domain", ["ball", "box"])
def test_the_residual_falls_like_one_over_the_root_of_n(value_domain):
    residuals, slope = residuals_and_slope(value_domain, anytime=False)
    assert abs(slope + 0.5) < 0.1, (slope, residuals)


def test_anytime_runs_fall_as_fast_and_end_as_low():
    """Their short runs are worse, for the average still holds the first epochs: so the slope is about −0.6."""
    residuals, slope = residuals_and_slope("ball", anytime=True, n_runs=8)
    assert -0.7 < slope < -0.4, (slope, residuals)
    known_length, _ = residuals_and_slope("ball", anytime=False, n_runs=8)
    assert residuals[-1] < 1.3 * known_length[-1], (residuals, known_length)


def test_short_anytime_runs_are_nearly_as_good_as_runs_of_known_length():
    problem = two_states_with_self_loops()
    model = lfd.TabularModel.of(problem.mdp)
    for source, n in ((model, 4000), (Simulator(model), 400)):
        residuals = {
            anytime: np.mean(
                [
                    solve_mirror_descent(
                        problem, source, n, np.random.default_rng(seed), anytime=anytime, batch_size=16, progress=False
                    ).residual
                    for seed in range(8)
                ]
            )
            for anytime in (False, True)
        }
        assert residuals[True] < 1.6 * residuals[False], residuals


@pytest.mark.parametrize("cost_class", ["simplex", "ball"])
@pytest.mark.parametrize("value_domain", ["ball", "box"])
def test_long_runs_reach_the_saddle_point_of_the_deterministic_solver(value_domain, cost_class):
    problem, model = gridworld_problem(
        size=3, value_radius=8.0 if value_domain == "ball" else 1.0, value_domain=value_domain, cost_class=cost_class
    )
    exact = lfd.solve_primal_dual_hybrid(problem, tolerance=1e-7)
    value = problem.lagrangian(exact.point)
    solution = solve_mirror_descent(problem, model, 4_000_000, np.random.default_rng(0), progress=False)
    assert solution.residual < 0.1
    # The value of the game lies between what either player guarantees.
    assert problem.lower_value(solution.point.value_weights, solution.cost_weights) <= value + 1e-6
    assert problem.upper_value(solution.point.occupancy_weights) >= value - 1e-6


@pytest.mark.parametrize(("schedule", "share"), [("practical", 0.06), ("paper", 0.5)])
def test_sets_of_the_users_own_are_solved_by_mini_batches(schedule, share):
    problem = two_states_with_self_loops(cost_class=L1Ball())
    model = lfd.TabularModel.of(problem.mdp)
    residuals = []
    for n in (1, 4000):
        solution = solve_mirror_descent(problem, model, n, np.random.default_rng(0), schedule=schedule, progress=False)
        assert solution.oracle_calls == 2 * 64 * n + (1024 if schedule == "practical" else 0)
        problem.check_point(solution.point)
        residuals.append(solution.residual)
    assert residuals[1] < share * residuals[0], residuals


def test_the_value_of_the_game_over_the_l1_ball_is_found():
    problem, model = gridworld_problem(size=3, value_radius=1.0, value_domain="box", cost_class=L1Ball())
    solution = solve_mirror_descent(problem, model, 4000, np.random.default_rng(0), batch_size=256, progress=False)
    exact = lfd.solve_cutting_plane(problem.mdp, problem.costs, problem.expert_features)
    assert problem.lower_value(solution.point.value_weights, solution.cost_weights) <= exact.apprentice_value + 1e-6
    assert problem.upper_value(solution.point.occupancy_weights) >= exact.apprentice_value - 1e-6
    assert solution.residual < 0.35  # as over the simplex and the ball with so many draws


def test_low_dimensional_features_converge():
    problem = two_states_with_self_loops()
    solution = solve_mirror_descent(
        problem, lfd.TabularModel.of(problem.mdp), 1_000_000, np.random.default_rng(0), progress=False
    )
    assert solution.residual < 0.05


def test_the_papers_schedule_converges_on_a_small_problem():
    mdp = lfd.FiniteMDP(np.full((2, 2, 2), 0.5), initial_distribution=[0.5, 0.5], discount=0.3)
    costs = np.eye(4)[:, :2]
    problem = lfd.SaddlePointProblem.tabular(mdp, costs, [0.25, 0.25], value_radius=2.0)
    model = lfd.TabularModel.of(mdp)
    short, long = (
        np.mean(
            [
                run.residual
                for run in solve_mirror_descent_many(
                    problem, model, n, np.random.default_rng(n).spawn(16), schedule="paper"
                )
            ]
        )
        for n in (10_000, 1_000_000)
    )
    assert long < 0.03
    assert 0.05 < long / short < 0.2  # like 1/√N: 0.1


@pytest.mark.slow
@pytest.mark.parametrize("cost_seed", range(4))
def test_practical_schedule_on_the_papers_grid(cost_seed):
    problem, model = gridworld_problem(cost_seed=cost_seed)
    rngs = [np.random.default_rng(seed) for seed in (1, 2)]
    for solution in solve_mirror_descent_many(problem, model, 10_000_000, rngs):
        gap = problem.mdp.expected_cost(solution.policy, problem.costs.table[:, 0])
        assert solution.residual <= 0.06
        assert gap - problem.expert_features[0] <= 0.003


# -- what the solver promises ----------------------------------------------------------------------------------------


def test_same_seed_same_solution_other_seed_another():
    problem, model = gridworld_problem(size=4)
    first, again, other = (
        solve_mirror_descent(problem, model, 20_000, np.random.default_rng(seed), progress=False) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.policy, again.policy)
    assert first.residual == again.residual
    assert first.residual_history == again.residual_history
    assert first.residual != other.residual


def test_many_runs_are_the_single_runs():
    problem, model = gridworld_problem(size=4)
    together = solve_mirror_descent_many(problem, model, 10_000, [np.random.default_rng(s) for s in range(3)])
    for seed, run in enumerate(together):
        alone = solve_mirror_descent(problem, model, 10_000, np.random.default_rng(seed), progress=False)
        np.testing.assert_array_equal(run.point.occupancy_weights, alone.point.occupancy_weights)


def test_averages_are_feasible_and_the_tail_is_the_last_half():
    problem, model = gridworld_problem(size=4)
    n = 10_000
    solution = solve_mirror_descent(problem, model, n, np.random.default_rng(0), progress=False)
    for weights in (solution.point.occupancy_weights, solution.policy_weights, solution.cost_weights):
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert (weights >= 0).all()
    assert np.linalg.norm(solution.point.value_weights) <= problem.value_radius / 4 + 1e-9
    rng = np.random.default_rng(0)
    steps = practical_steps(problem, n, estimate_gradient_norms(problem, model, 1, rng))
    descent = FiniteDescent(FiniteOracle(problem, model), steps, rng)
    descent.advance(n // 2)
    head = descent.sums()[0]
    descent.advance(n // 2)
    np.testing.assert_allclose(solution.policy_weights, (descent.sums()[0] - head) / (n / 2), atol=1e-12)
    paper = solve_mirror_descent(problem, model, n, np.random.default_rng(0), schedule="paper", progress=False)
    np.testing.assert_array_equal(paper.policy_weights, paper.point.occupancy_weights)


def test_one_iteration_is_not_convergence_and_a_tolerance_stops_early():
    problem, model = gridworld_problem(size=2, value_radius=8.0)
    short = solve_mirror_descent(problem, model, 1, np.random.default_rng(0), tolerance=1e-3, progress=False)
    assert (short.status, short.n_iterations) == ("iteration_limit", 1)
    solution = solve_mirror_descent(problem, model, 10_000_000, np.random.default_rng(0), tolerance=0.1, progress=False)
    assert solution.status == "optimal"
    assert solution.residual <= 0.1
    assert solution.n_iterations < 10_000_000
    assert solution.residual_history[-1] == (solution.n_iterations, solution.residual)


def test_the_progress_bar_shows_the_residual(monkeypatch):
    shown = []

    class Bar:
        def __init__(self, **kwargs):
            shown.append(kwargs)

        def __enter__(self):
            return self

        def __exit__(self, *args):
            return None

        def set_postfix(self, residual, refresh):
            shown.append(residual)

        def update(self, n):
            shown.append(n)

    monkeypatch.setattr("lfd_gym.solvers.descent.mirror_descent.tqdm", Bar)
    problem, model = gridworld_problem(size=3)
    solution = solve_mirror_descent(problem, model, 5000, np.random.default_rng(0))
    assert shown[0]["total"] == 5000
    assert shown[0]["delay"] == 1.0
    assert not shown[0]["disable"]
    assert sum(n for n in shown[1:] if isinstance(n, int)) == 5000
    assert f"{solution.residual_history[-1][1]:.3g}" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_iterations": 0}, "n_iterations must be at least 1"),
        ({"schedule": "fast"}, "schedule must be one of"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"tolerance": -1.0}, "tolerance must not be negative"),
        ({"checkpoint_seconds": float("nan")}, "checkpoint_seconds must not be negative"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    problem, model = gridworld_problem(size=2)
    with pytest.raises(ValueError, match=message):
        solve_mirror_descent(
            problem, model, **{"n_iterations": 10, "rng": np.random.default_rng(0), "progress": False, **arguments}
        )


def test_bad_models_and_generators_are_named():
    problem, _ = gridworld_problem(size=2)
    _, other = gridworld_problem(size=3)
    with pytest.raises(ValueError, match="model has 9 states and 4 actions"):
        solve_mirror_descent(problem, other, 10, np.random.default_rng(0))
    with pytest.raises(TypeError, match="rng must be a"):
        solve_mirror_descent(problem, other, 10, 0)
