"""Algorithm 1 on simulators: mini-batches that step along the exact gradient, counted calls, classic control."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
from descent_problems import (
    Simulator,
    chi_square,
    some_steps,
    two_states_with_self_loops,
)

import lfd_gym as lfd
from lfd_gym.features import (
    EmpiricalOccupancyFeatures,
    FiniteOccupancyFeatures,
    TabularOccupancyFeatures,
    TabularValueFeatures,
    TileGrid,
    TileOccupancyFeatures,
    TileValueFeatures,
)
from lfd_gym.solvers.descent.finite_descent import FiniteDescent, FiniteOracle
from lfd_gym.solvers.descent.mirror_descent import solve_mirror_descent
from lfd_gym.solvers.descent.simulated_descent import SimulatedDescent
from lfd_gym.solvers.descent.step_sizes import paper_steps


@pytest.mark.parametrize("schedule", ["paper", "practical"])
def test_mini_batches_step_along_the_exact_gradient_in_the_mean(schedule):
    problem = two_states_with_self_loops(value_domain="box", cost_class="ball")
    batch = 400_000
    steps = dataclasses.replace(
        some_steps(problem, schedule, 1000, np.random.default_rng(0)), occupancy=0.1, value=0.1, cost=0.1
    )
    descent = SimulatedDescent(
        problem, Simulator(lfd.TabularModel.of(problem.mdp)), batch, steps, np.random.default_rng(1)
    )
    descent.advance(1)
    before = descent.current()
    descent.advance(1)
    theta, lam, w = descent.current()
    exact = problem.gradients(before)
    value_step = 0.1 / np.sqrt(2) if steps.value_decays else 0.1
    logs = np.log(before[0] / theta) / 0.1
    tolerance = 0.02 * (1 + steps.shift)
    np.testing.assert_allclose(logs - logs.mean(), exact[0] - exact[0].mean(), atol=3 * tolerance)
    np.testing.assert_allclose((lam - before[1]) / value_step, exact[1], atol=0.06)
    np.testing.assert_allclose((w - before[2]) / 0.1, exact[2], atol=0.02)


class SpiedFeatures(FiniteOccupancyFeatures):
    """Remembers which columns were asked for."""

    def sample(self, indices, rng):
        self.asked = [*getattr(self, "asked", []), np.array(indices)]
        return super().sample(indices, rng)


def test_mini_batches_draw_the_columns_of_w_anew():
    problem = two_states_with_self_loops()
    matrix = problem.occupancy_features.matrix.toarray()
    spied = SpiedFeatures(matrix, n_actions=2)
    problem = dataclasses.replace(problem, occupancy_features=spied)
    steps = dataclasses.replace(paper_steps(problem, 1000), occupancy=0.001, value=0.0, cost=0.0)
    n = 100_000
    descent = SimulatedDescent(problem, lfd.TabularModel.of(problem.mdp), n, steps, np.random.default_rng(2))
    descent.advance(1)
    theta = descent.current()[0]
    spied.asked.clear()
    descent.advance(1)
    (i, j), k = np.split(spied.asked[0], 2), spied.asked[1]
    uniform = np.full(3, 1 / 3)
    for first, second, of_first, of_second in ((j, k, theta, theta), (i, j, uniform, theta), (i, k, uniform, theta)):
        assert chi_square(3 * first + second, np.outer(of_first, of_second).ravel()) > 1e-4


def test_mini_batches_keep_weights_that_can_come_back():
    problem = two_states_with_self_loops()
    steps = dataclasses.replace(some_steps(problem, "paper", 1000, np.random.default_rng(0)), occupancy=0.0)
    descent = SimulatedDescent(problem, lfd.TabularModel.of(problem.mdp), 4, steps, np.random.default_rng(0))
    for _ in range(1000):
        descent._w = problem.costs.weights.mirror_step(descent._w, np.array([0.0, -1.0]))
    assert 0 < descent.current()[2][1] < 1e-200
    for _ in range(1000):
        descent._w = problem.costs.weights.mirror_step(descent._w, np.array([0.0, 1.0]))
    assert descent.current()[2][1] > 0.999
    descent._log_theta[:] = [0.0, -1e6, -1.0]
    descent.advance(1)
    assert descent._log_theta.min() >= -650


def test_mini_batches_temper_as_the_tables_do():
    problem = two_states_with_self_loops()
    model = lfd.TabularModel.of(problem.mdp)
    steps = some_steps(problem, "practical", 30_000, np.random.default_rng(0))
    finite = FiniteDescent(FiniteOracle(problem, model), steps, np.random.default_rng(0))
    for descent in (finite, SimulatedDescent(problem, model, 8, steps, np.random.default_rng(0))):
        descent.advance(200)
        theta, lam, w = descent.current()
        sums = descent.sums()
        assert np.ptp(theta) > 0.1
        descent.temper(0.5)
        for found, expected in zip(
            descent.current(), (np.sqrt(theta) / np.sqrt(theta).sum(), lam, np.sqrt(w) / np.sqrt(w).sum()), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-12)
        for found, expected in zip(descent.sums(), sums, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_oracle_calls_are_those_a_simulator_answers():
    problem = two_states_with_self_loops()
    simulator = Simulator(lfd.TabularModel.of(problem.mdp))
    for schedule in ("paper", "practical"):
        simulator.calls = simulator.starts = 0
        solution = solve_mirror_descent(
            problem, simulator, 20, np.random.default_rng(0), schedule=schedule, batch_size=8, progress=False
        )
        assert solution.oracle_calls == simulator.calls
        assert solution.initial_draws == simulator.starts
    finite = solve_mirror_descent(
        problem, simulator._model, 1000, np.random.default_rng(0), schedule="paper", progress=False
    )
    assert (finite.oracle_calls, finite.initial_draws) == (2000, 1000)


def test_a_simulator_reaches_what_the_tables_reach():
    problem = two_states_with_self_loops()
    simulator = Simulator(lfd.TabularModel.of(problem.mdp))
    first, solution = (
        solve_mirror_descent(problem, simulator, n, np.random.default_rng(0), batch_size=64, progress=False)
        for n in (1, 1000)
    )
    assert solution.residual < 0.2 * first.residual
    assert solution.policy.shape == (2, 2)


def test_classic_control_runs_with_sampled_features():
    model = lfd.as_generative_model(gym.make("CartPole-v1"))
    bounds = np.array([2.4, 3.0, 0.21, 3.0])
    grid = TileGrid(-bounds, bounds, [2, 2, 3, 2])
    problem = lfd.SaddlePointProblem.from_simulator(
        lambda observations, actions: np.abs(observations[:, [0, 2]]) / bounds[[0, 2]].clip(1e-9) / 2,
        [0.1, 0.1],
        occupancy_features=TileOccupancyFeatures(grid, n_actions=2, absorbing=True),
        value_features=TileValueFeatures(grid),
        discount=0.9,
        value_radius=2.0,
        value_domain="box",
    )
    solution = solve_mirror_descent(problem, model, 30, np.random.default_rng(0), batch_size=16, progress=False)
    assert solution.residual is None
    assert solution.residual_history == ()
    observations = model.observe(model.sample_initial(5, np.random.default_rng(0)))
    np.testing.assert_allclose(solution.policy.probabilities(observations).sum(axis=1), 1)
    assert solution.oracle_calls == 2 * 16 * 30 + 1024
    values = problem.value_features.evaluate(observations) @ solution.point.value_weights
    np.testing.assert_array_equal(solution.values(observations), values)
    assert repr(solution).startswith("MirrorDescentSolution(status='iteration_limit', oracle_calls=1984, ")


def test_features_that_can_only_be_drawn_from_give_no_policy():
    known = two_states_with_self_loops()
    drawn = EmpiricalOccupancyFeatures([[0, 1, 0], [1, 1, 0]], [[0, 1, 1], [0, 1, 0]])
    problem = lfd.SaddlePointProblem.from_simulator(
        known.costs.rows,
        known.expert_features,
        occupancy_features=drawn,
        value_features=known.value_features,
        discount=0.8,
        value_radius=3.0,
    )
    solution = solve_mirror_descent(
        problem, lfd.TabularModel.of(known.mdp), 5, np.random.default_rng(0), progress=False
    )
    assert solution.policy is None
    np.testing.assert_array_equal(solution.values, known.values(solution.point.value_weights))
    with pytest.raises(TypeError, match="can only be drawn from"):
        problem.policy(solution.policy_weights)


def ending_chain():
    """A chain that may end; a cost of its end would never be met by trajectories."""
    transitions = np.array([[[0.5, 0.5], [0.9, 0.1]], [[0.0, 1.0], [0.0, 1.0]]])
    return lfd.FiniteMDP(transitions, initial_distribution=[1.0, 0.0], discount=0.9, absorbing_state=1)


def chain_problem(costs):
    return lfd.SaddlePointProblem.from_simulator(
        costs,
        [0.0],
        occupancy_features=TabularOccupancyFeatures(2, 2),
        value_features=TabularValueFeatures(2),
        discount=0.9,
        value_radius=1.0,
        value_domain="box",
    )


def test_nothing_is_paid_where_trajectories_end():
    model = Simulator(lfd.TabularModel.of(ending_chain()))
    table = np.array([[0.0], [0.0], [1.0], [1.0]])
    with pytest.raises(ValueError, match="cost_features must be zero in the absorbing state 1"):
        solve_mirror_descent(chain_problem(table), model, 10, np.random.default_rng(0))
    everywhere, alive = (
        solve_mirror_descent(chain_problem(costs), model, 50, np.random.default_rng(0), progress=False)
        for costs in (
            lambda states, actions: np.full((len(states), 1), 0.7),
            lambda states, actions: np.where(states == 0, 0.7, 0.0)[:, None],
        )
    )
    np.testing.assert_array_equal(everywhere.point.occupancy_weights, alive.point.occupancy_weights)
