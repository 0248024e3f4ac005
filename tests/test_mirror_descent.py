"""Algorithm 1: the compiled rounds against a literal loop, unbiased gradients, rates, options."""

import dataclasses
import itertools
import warnings

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from problems import saddle_point_problems
from reference_mirror_descent import (
    Draws,
    ReplayedDraws,
    UnderflowError,
    lambda_gradient,
    literal_mirror_descent,
    theta_gradient,
    w_gradient,
)
from scipy import stats

import lfd_gym as lfd
from lfd_gym.descent._kernels import DRAWS
from lfd_gym.descent.finite_descent import FiniteDescent, FiniteOracle
from lfd_gym.descent.gradient_norms import estimate_gradient_norms
from lfd_gym.descent.mirror_descent import solve_mirror_descent, solve_mirror_descent_many
from lfd_gym.descent.simulated_descent import SimulatedDescent
from lfd_gym.descent.step_sizes import GradientNorms, paper_steps, practical_steps


def two_states_with_self_loops(value_domain="ball", cost_class="simplex"):
    transitions = np.array([[[0.6, 0.4], [0.1, 0.9]], [[0.3, 0.7], [1.0, 0.0]]])
    mdp = lfd.FiniteMDP(transitions, initial_distribution=[0.7, 0.3], discount=0.8)
    costs = np.array([[1.0, -0.5], [0.2, 0.3], [-1.0, 0.8], [0.4, -0.9]])
    return lfd.SaddlePointProblem(
        cost_features=costs,
        expert_feature_expectations=np.array([0.1, -0.2]),
        occupancy_features=lfd.FiniteOccupancyFeatures(
            np.array([[0.5, 0.1, 0.25], [0.5, 0.0, 0.25], [0.0, 0.9, 0.25], [0.0, 0.0, 0.25]]), n_actions=2
        ),
        value_features=lfd.FiniteValueFeatures(np.array([[1.0, 0.5, 0.0], [-0.3, 0.0, 1.0]])),
        discount=0.8,
        value_radius=3.0,
        value_domain=value_domain,
        cost_class=cost_class,
        mdp=mdp,
    )


def gridworld_problem(size=16, cost_seed=0, discount=0.9, value_radius=33.0, **kwargs):
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=size, cost_seed=cost_seed)
    mdp = lfd.FiniteMDP.from_env(env, discount=discount)
    costs = np.asarray(env.unwrapped.cost_features)
    expert = costs.T @ mdp.occupancy(mdp.optimal_policy(costs[:, 0])).ravel()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lfd.LfdGymWarning)  # the radius need not hold the values of every cost
        problem = lfd.SaddlePointProblem.tabular(mdp, costs, expert, value_radius=value_radius, **kwargs)
    return problem, lfd.as_generative_model(env)


def some_steps(problem, schedule, n_iterations, rng):
    if schedule == "paper":
        return paper_steps(problem, n_iterations)
    model = lfd.TabularModel.from_mdp(problem.mdp)
    return practical_steps(problem, n_iterations, estimate_gradient_norms(problem, model, 1, rng))


def new_descent(problem, steps, seed):
    oracle = FiniteOracle(problem, lfd.TabularModel.from_mdp(problem.mdp))
    return FiniteDescent(oracle, steps, np.random.default_rng(seed))


# -- the compiled rounds are the literal ones ------------------------------------------------------------------------


def assert_literal(problem, steps, n, seed):
    """Run the compiled rounds, replay their draws by the literal loop, and compare iterates and averages."""
    descent = new_descent(problem, steps, seed)
    record = np.zeros((n, len(DRAWS)), np.int64)
    descent.advance(n, record)
    iterates, averages = literal_mirror_descent(problem, steps, n, ReplayedDraws(record))
    for found, expected in zip(descent.current(), iterates, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    for found, expected in zip(descent.sums(), averages, strict=True):
        np.testing.assert_allclose(found / n, expected, rtol=0, atol=1e-9)


@given(saddle_point_problems(), st.sampled_from(["paper", "practical"]), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_replayed_draws_give_the_iterates_of_the_literal_loop(drawn, schedule, seed):
    problem, _, rng = drawn
    n = 200
    steps = some_steps(problem, schedule, n, rng)
    try:
        assert_literal(problem, steps, n, seed)
    except UnderflowError:
        reject()  # both are then off: zero for ever here, a floor there


@pytest.mark.parametrize("schedule", ["paper", "practical"])
def test_long_replay_on_the_grid_stays_on_the_literal_loop(schedule):
    problem, _ = gridworld_problem(size=4, value_radius=10.0)
    n = 20_000  # many rebuilds of the sampler and rebases of λ
    steps = some_steps(problem, schedule, n, np.random.default_rng(0))
    assert_literal(problem, steps, n, seed=1)


@pytest.mark.parametrize("schedule", ["paper", "practical"])
def test_pieces_of_a_run_make_the_run(schedule):
    problem, _ = gridworld_problem(size=5)
    steps = some_steps(problem, schedule, 30_000, np.random.default_rng(0))
    whole, pieces = new_descent(problem, steps, seed=3), new_descent(problem, steps, seed=3)
    whole.advance(30_000)
    for n in (1, 2, 29, 32, 1000, 4321, 24_615):
        pieces.advance(n)
        pieces.sums()  # looking changes nothing
    assert pieces.iteration == whole.iteration
    for found, expected in zip(pieces.arrays().values(), whole.arrays().values(), strict=True):
        np.testing.assert_array_equal(found, expected)


# -- the gradients are unbiased --------------------------------------------------------------------------------------


def outcomes_of_a_round(problem, theta):
    """Every outcome of the nine draws of a round with its probability."""
    phi = problem.occupancy_features.matrix.toarray()
    transitions = problem.mdp.transitions.toarray()
    n_pairs, n_columns = phi.shape
    states = range(transitions.shape[1])
    uniform = np.full(n_columns, 1 / n_columns)

    def triples(weights):
        for i, pair, y in itertools.product(range(n_columns), range(n_pairs), states):
            yield weights[i] * phi[pair, i] * transitions[pair, y], (i, pair, y)

    starts = [(problem.mdp.initial_distribution[x], (x,)) for x in states]
    pairs = [(theta[k] * phi[pair, k], (k, pair)) for k, pair in itertools.product(range(n_columns), range(n_pairs))]
    for parts in itertools.product(triples(uniform), starts, triples(theta), pairs):
        probability = np.prod([part[0] for part in parts])
        if probability > 0:
            yield probability, Draws(*itertools.chain(*(part[1] for part in parts)))


def expected_gradients(problem, steps, theta, lam, w):
    """Sum gradient times probability over all outcomes."""
    sums = [np.zeros_like(theta), np.zeros_like(lam), np.zeros_like(w)]
    mass = 0.0
    for probability, draws in outcomes_of_a_round(problem, theta):
        mass += probability
        sums[0] += probability * theta_gradient(problem, steps, draws, theta, lam, w)
        sums[1] += probability * lambda_gradient(problem, draws)
        sums[2] += probability * w_gradient(problem, draws)
    assert mass == pytest.approx(1, abs=1e-12)
    return sums


@pytest.mark.parametrize(
    ("schedule", "value_domain", "cost_class"),
    [("paper", "ball", "simplex"), ("paper", "box", "ball"), ("practical", "ball", "simplex")],
)
def test_gradients_are_unbiased_by_enumeration(schedule, value_domain, cost_class):
    problem = two_states_with_self_loops(value_domain, cost_class)
    steps = some_steps(problem, schedule, 1000, np.random.default_rng(0))
    theta, lam, w = np.array([0.2, 0.7, 0.1]), np.array([0.5, -1.0, 0.3]), np.array([0.4, 0.6])
    found = expected_gradients(problem, steps, theta, lam, w)
    exact_theta, exact_lambda, exact_w = problem.operator(
        theta, lam, w
    )  # of the shifted Lagrangian, maximisers negated
    unshifted = exact_theta - problem.occupancy_shift
    np.testing.assert_allclose(found[0], unshifted + steps.shift, atol=1e-12)
    np.testing.assert_allclose(found[1], -exact_lambda, atol=1e-12)
    np.testing.assert_allclose(found[2], -exact_w, atol=1e-12)


def frozen_record(problem, n_rounds=200_000, schedule="practical", n_before=300):
    """Run a while, then draw rounds without moving; return the record and the iterates."""
    steps = some_steps(problem, schedule, 30 * n_before, np.random.default_rng(0))
    descent = new_descent(problem, steps, seed=5)
    descent.advance(n_before)
    descent.set_steps(dataclasses.replace(steps, occupancy=0.0, value=0.0, cost=0.0))
    record = np.zeros((n_rounds, len(DRAWS)), np.int64)
    descent.advance(n_rounds, record)
    return record, descent.current()


def chi_square(drawn, probabilities):
    counts = np.bincount(drawn, minlength=probabilities.size)
    assert (counts[probabilities == 0] == 0).all()
    support = probabilities > 0
    expected = probabilities[support] * drawn.size
    return stats.chisquare(counts[support], expected * counts.sum() / expected.sum()).pvalue


@pytest.mark.parametrize("schedule", ["paper", "practical"])
def test_the_kernel_draws_from_the_right_distributions(schedule):
    problem = two_states_with_self_loops()
    record, (theta, _, _) = frozen_record(problem, schedule=schedule)
    columns = dict(zip(DRAWS, record.T, strict=True))
    phi, transitions = problem.occupancy_features.matrix.toarray(), problem.mdp.transitions.toarray()
    values = [
        chi_square(columns["i"], np.full(3, 1 / 3)),
        chi_square(columns["start"], problem.mdp.initial_distribution),
        chi_square(columns["j"], theta),
        chi_square(columns["k"], theta),
        chi_square(3 * columns["j"] + columns["k"], np.outer(theta, theta).ravel()),  # independent of each other
        chi_square(3 * columns["i"] + columns["j"], np.outer(np.full(3, 1 / 3), theta).ravel()),
    ]
    for index, pair, successor in (("i", "pair", "next"), ("j", "pair_2", "next_2")):
        for column in range(3):
            chosen = columns[index] == column
            assert chosen.sum() > 1000
            joint = phi[:, [column]] * transitions
            values.append(chi_square(2 * columns[pair][chosen] + columns[successor][chosen], joint.ravel()))
    assert min(values) > 1e-4, values


def test_the_sampler_draws_exactly_after_rises_and_falls():
    problem, _ = gridworld_problem(size=4, value_radius=10.0)
    record, (theta, _, _) = frozen_record(problem, n_rounds=300_000, n_before=3000)
    assert theta.max() > 3 * theta.mean()
    assert chi_square(record[:, DRAWS.index("j")], theta) > 1e-4
    assert chi_square(record[:, DRAWS.index("k")], theta) > 1e-4


def test_mean_gradients_of_recorded_draws_are_the_exact_ones():
    problem = two_states_with_self_loops()
    record, (theta, lam, w) = frozen_record(problem, n_rounds=6_000)
    steps = practical_steps(problem, 1000, GradientNorms(1.0, 1.0))
    exact = problem.gradients(theta, lam, w)
    rounds = [Draws(*row) for row in record]
    samples = (
        np.array([theta_gradient(problem, steps, draws, theta, lam, w) for draws in rounds]),
        np.array([lambda_gradient(problem, draws) for draws in rounds]),
        np.array([w_gradient(problem, draws) + problem.cost_shift for draws in rounds]),
    )
    for gradients, expected in zip(samples, exact, strict=True):
        error = gradients.std(axis=0) / np.sqrt(len(rounds))
        assert (np.abs(gradients.mean(axis=0) - expected) < 5 * error + 1e-12).all()


class Simulator:
    """A finite model that hides its tables, as a user's simulator would."""

    def __init__(self, model):
        self._model = model
        self.state_space, self.action_space = model.state_space, model.action_space
        self.observation_space = model.observation_space
        self.calls = self.starts = 0

    def sample_initial(self, n, rng):
        self.starts += n
        return self._model.sample_initial(n, rng)

    def sample_next(self, states, actions, rng):
        self.calls += len(states)
        return self._model.sample_next(states, actions, rng)

    def observe(self, states):
        return self._model.observe(states)

    def is_absorbing(self, states):
        return self._model.is_absorbing(states)


@pytest.mark.parametrize("schedule", ["paper", "practical"])
def test_mini_batches_step_along_the_exact_gradient_in_the_mean(schedule):
    problem = two_states_with_self_loops(value_domain="box", cost_class="ball")
    batch = 400_000
    steps = dataclasses.replace(
        some_steps(problem, schedule, 1000, np.random.default_rng(0)), occupancy=0.1, value=0.1, cost=0.1
    )
    descent = SimulatedDescent(
        problem, Simulator(lfd.TabularModel.from_mdp(problem.mdp)), batch, steps, np.random.default_rng(1)
    )
    descent.advance(1)
    before = descent.current()
    descent.advance(1)
    theta, lam, w = descent.current()
    exact = problem.gradients(*before)
    value_step = 0.1 / np.sqrt(2) if steps.value_decays else 0.1
    logs = np.log(before[0] / theta) / 0.1
    tolerance = 0.02 * (1 + steps.shift)
    np.testing.assert_allclose(logs - logs.mean(), exact[0] - exact[0].mean(), atol=3 * tolerance)
    np.testing.assert_allclose((lam - before[1]) / value_step, exact[1], atol=0.06)
    np.testing.assert_allclose((w - before[2]) / 0.1, exact[2], atol=0.02)


class SpiedFeatures(lfd.FiniteOccupancyFeatures):
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
    descent = SimulatedDescent(problem, lfd.TabularModel.from_mdp(problem.mdp), n, steps, np.random.default_rng(2))
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
    descent = SimulatedDescent(problem, lfd.TabularModel.from_mdp(problem.mdp), 4, steps, np.random.default_rng(0))
    for _ in range(1000):
        descent._cost_ascent(np.array([0.0, -1.0]))
    assert 0 < descent.current()[2][1] < 1e-200
    for _ in range(1000):
        descent._cost_ascent(np.array([0.0, 1.0]))
    assert descent.current()[2][1] > 0.999
    descent._log_theta[:] = [0.0, -1e6, -1.0]
    descent.advance(1)
    assert descent._log_theta.min() >= -650


def test_mini_batches_temper_as_the_tables_do():
    problem = two_states_with_self_loops()
    model = lfd.TabularModel.from_mdp(problem.mdp)
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
    norms = estimate_gradient_norms(problem, lfd.TabularModel.from_mdp(mdp), 1, np.random.default_rng(0))
    assert norms.cost > 0
    solution = solve_mirror_descent(
        problem, lfd.TabularModel.from_mdp(mdp), 3_000_000, np.random.default_rng(0), progress=False
    )
    assert solution.cost_weights[0] > 0.5
    assert solution.policy[0, 1] < 0.05


# -- convergence -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("anytime", "value_domain"), [(False, "ball"), (False, "box"), (True, "ball")])
def test_the_residual_falls_like_one_over_the_root_of_n(anytime, value_domain):
    radius = 10.0 if value_domain == "ball" else 1.0
    problem, model = gridworld_problem(size=4, value_radius=radius, value_domain=value_domain)
    counts = np.array([2**12, 2**15, 2**18, 2**22])  # three decades
    residuals = []
    for n in counts:
        runs = solve_mirror_descent_many(problem, model, int(n), np.random.default_rng(n).spawn(3), anytime=anytime)
        residuals.append(np.mean([run.residual for run in runs]))
    slope = np.polyfit(np.log(counts), np.log(residuals), 1)[0]
    assert abs(slope + 0.5) < 0.1, (slope, residuals)


def test_short_anytime_runs_are_nearly_as_good_as_runs_of_known_length():
    problem = two_states_with_self_loops()
    model = lfd.TabularModel.from_mdp(problem.mdp)
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
    value = problem.lagrangian(exact.occupancy_weights, exact.value_weights, exact.cost_weights)
    solution = solve_mirror_descent(problem, model, 4_000_000, np.random.default_rng(0), progress=False)
    assert solution.residual < 0.1
    # The value of the game lies between what either player guarantees.
    assert problem.lower_value(solution.value_weights, solution.cost_weights) <= value + 1e-6
    assert problem.upper_value(solution.occupancy_weights) >= value - 1e-6


def test_low_dimensional_features_converge():
    problem = two_states_with_self_loops()
    solution = solve_mirror_descent(
        problem, lfd.TabularModel.from_mdp(problem.mdp), 1_000_000, np.random.default_rng(0), progress=False
    )
    assert solution.residual < 0.05


def test_the_papers_schedule_converges_on_a_small_problem():
    mdp = lfd.FiniteMDP(np.full((2, 2, 2), 0.5), initial_distribution=[0.5, 0.5], discount=0.3)
    costs = np.eye(4)[:, :2]
    problem = lfd.SaddlePointProblem.tabular(mdp, costs, [0.25, 0.25], value_radius=2.0)
    model = lfd.TabularModel.from_mdp(mdp)
    residuals = [
        solve_mirror_descent(problem, model, n, np.random.default_rng(0), schedule="paper", progress=False).residual
        for n in (10_000, 1_000_000)
    ]
    assert residuals[1] < 0.02
    assert residuals[1] < 0.25 * residuals[0]


@pytest.mark.slow
@pytest.mark.parametrize("cost_seed", range(4))
def test_practical_schedule_on_the_papers_grid(cost_seed):
    problem, model = gridworld_problem(cost_seed=cost_seed)
    rngs = [np.random.default_rng(seed) for seed in (1, 2)]
    for solution in solve_mirror_descent_many(problem, model, 10_000_000, rngs):
        gap = problem.mdp.expected_cost(solution.policy, problem.cost_features[:, 0])
        assert solution.residual <= 0.06
        assert gap - problem.expert_feature_expectations[0] <= 0.003


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
        np.testing.assert_array_equal(run.occupancy_weights, alone.occupancy_weights)


def test_averages_are_feasible_and_the_tail_is_the_last_half():
    problem, model = gridworld_problem(size=4)
    n = 10_000
    solution = solve_mirror_descent(problem, model, n, np.random.default_rng(0), progress=False)
    for weights in (solution.occupancy_weights, solution.policy_weights, solution.cost_weights):
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert (weights >= 0).all()
    assert np.linalg.norm(solution.value_weights) <= problem.value_radius / 4 + 1e-9
    rng = np.random.default_rng(0)
    steps = practical_steps(problem, n, estimate_gradient_norms(problem, model, 1, rng))
    descent = FiniteDescent(FiniteOracle(problem, model), steps, rng)
    descent.advance(n // 2)
    head = descent.sums()[0]
    descent.advance(n // 2)
    np.testing.assert_allclose(solution.policy_weights, (descent.sums()[0] - head) / (n / 2), atol=1e-12)
    paper = solve_mirror_descent(problem, model, n, np.random.default_rng(0), schedule="paper", progress=False)
    np.testing.assert_array_equal(paper.policy_weights, paper.occupancy_weights)


def test_oracle_calls_are_those_a_simulator_answers():
    problem = two_states_with_self_loops()
    simulator = Simulator(lfd.TabularModel.from_mdp(problem.mdp))
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
    simulator = Simulator(lfd.TabularModel.from_mdp(problem.mdp))
    first, solution = (
        solve_mirror_descent(problem, simulator, n, np.random.default_rng(0), batch_size=64, progress=False)
        for n in (1, 1000)
    )
    assert solution.residual < 0.2 * first.residual
    assert solution.policy.shape == (2, 2)


def test_classic_control_runs_with_sampled_features():
    model = lfd.as_generative_model(gym.make("CartPole-v1"))
    bounds = np.array([2.4, 3.0, 0.21, 3.0])
    grid = lfd.TileGrid(-bounds, bounds, [2, 2, 3, 2])
    problem = lfd.SaddlePointProblem.from_simulator(
        lambda observations, actions: np.abs(observations[:, [0, 2]]) / bounds[[0, 2]].clip(1e-9) / 2,
        [0.1, 0.1],
        occupancy_features=lfd.TileOccupancyFeatures(grid, n_actions=2, absorbing=True),
        value_features=lfd.TileValueFeatures(grid),
        discount=0.9,
        value_radius=2.0,
        value_domain="box",
    )
    solution = solve_mirror_descent(problem, model, 30, np.random.default_rng(0), batch_size=16, progress=False)
    assert solution.residual is None
    assert solution.residual_history == ()
    observations = model.observe(model.sample_initial(5, np.random.default_rng(0)))
    np.testing.assert_allclose(solution.policy.action_probabilities(observations).sum(axis=1), 1)
    assert solution.oracle_calls == 2 * 16 * 30 + 1024


def test_one_iteration_is_not_convergence_and_a_tolerance_stops_early():
    problem, model = gridworld_problem(size=2, value_radius=8.0)
    short = solve_mirror_descent(problem, model, 1, np.random.default_rng(0), tolerance=1e-3, progress=False)
    assert (short.status, short.n_iterations) == ("iteration limit", 1)
    solution = solve_mirror_descent(problem, model, 10_000_000, np.random.default_rng(0), tolerance=0.1, progress=False)
    assert solution.status == "converged"
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

    monkeypatch.setattr("lfd_gym.descent.mirror_descent.tqdm", Bar)
    problem, model = gridworld_problem(size=3)
    told = []
    solution = solve_mirror_descent(
        problem, model, 5000, np.random.default_rng(0), on_residual=lambda *look: told.append(look)
    )
    assert tuple(told) == solution.residual_history
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


def ending_chain():
    """A chain that may end; a cost of its end would never be met by trajectories."""
    transitions = np.array([[[0.5, 0.5], [0.9, 0.1]], [[0.0, 1.0], [0.0, 1.0]]])
    return lfd.FiniteMDP(transitions, initial_distribution=[1.0, 0.0], discount=0.9, absorbing_state=1)


def chain_problem(costs):
    return lfd.SaddlePointProblem.from_simulator(
        costs,
        [0.0],
        occupancy_features=lfd.TabularOccupancyFeatures(2, 2),
        value_features=lfd.TabularValueFeatures(2),
        discount=0.9,
        value_radius=1.0,
        value_domain="box",
    )


def test_nothing_is_paid_where_trajectories_end():
    model = Simulator(lfd.TabularModel.from_mdp(ending_chain()))
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
    np.testing.assert_array_equal(everywhere.occupancy_weights, alive.occupancy_weights)


def test_bad_models_and_generators_are_named():
    problem, _ = gridworld_problem(size=2)
    _, other = gridworld_problem(size=3)
    with pytest.raises(ValueError, match="model has 9 states and 4 actions"):
        solve_mirror_descent(problem, other, 10, np.random.default_rng(0))
    with pytest.raises(TypeError, match="rng must be a"):
        solve_mirror_descent(problem, other, 10, 0)
