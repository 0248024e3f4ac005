"""The compiled rounds of Algorithm 1: a literal loop replays them, and their gradients are unbiased."""

import dataclasses
import itertools

import numpy as np
import pytest
from descent_problems import (
    chi_square,
    gridworld_problem,
    new_descent,
    some_steps,
    two_states_with_self_loops,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import saddle_point_problems
from reference_mirror_descent import (
    Draws,
    ReplayedDraws,
    lambda_gradient,
    literal_mirror_descent,
    sound_rounds,
    theta_gradient,
    w_gradient,
)

from lfd_gym import TableCosts
from lfd_gym.solvers.descent._kernels import DRAWS, _exponential
from lfd_gym.solvers.descent._weight_sampler import HEADROOM, set_weight
from lfd_gym.solvers.descent.step_sizes import GradientNorms, practical_steps

# -- the compiled rounds are the literal ones ------------------------------------------------------------------------


def replayed(problem, steps, n, seed):
    """Run the compiled rounds and replay their draws by the literal loop.

    Returns the number of rounds for which the literal loop is a reference, and the largest difference of iterates and
    averages after these.
    """
    descent = new_descent(problem, steps, seed)
    record = np.zeros((n, len(DRAWS)), np.int64)
    descent.advance(n, record)
    n_sound = sound_rounds(problem, steps, n, ReplayedDraws(record))
    if n_sound == 0:
        return 0, 0.0
    if n_sound < n:
        descent = new_descent(problem, steps, seed)
        descent.advance(n_sound)
    iterates, averages = literal_mirror_descent(problem, steps, n_sound, ReplayedDraws(record))
    found = (*descent.current(), *(total / n_sound for total in descent.sums()))
    return n_sound, max(np.abs(a - b).max() for a, b in zip(found, (*iterates, *averages), strict=True))


@given(saddle_point_problems(), st.sampled_from(["paper", "practical"]), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_replayed_draws_give_the_iterates_of_the_literal_loop(drawn, schedule, seed):
    problem, _, rng = drawn
    n = 200
    steps = some_steps(problem, schedule, n, rng)
    _, difference = replayed(problem, steps, n, seed)
    assert difference <= 1e-9


@pytest.mark.parametrize("schedule", ["paper", "practical"])
def test_long_replay_on_the_grid_stays_on_the_literal_loop(schedule):
    problem, _ = gridworld_problem(size=4, value_radius=10.0)
    n = 20_000  # many rebuilds of the sampler and rebases of λ
    steps = some_steps(problem, schedule, n, np.random.default_rng(0))
    n_sound, difference = replayed(problem, steps, n, seed=1)
    assert n_sound == n
    assert difference <= 1e-9


@pytest.mark.parametrize("step", [10.0, 100.0, 400.0])
def test_a_weight_may_rise_by_any_factor_in_one_round(step):
    """In logarithms: beside a weight that has risen by exp(400), the others are nothing."""
    problem = two_states_with_self_loops()
    costs = TableCosts(-np.abs(problem.costs.table), problem.mdp.n_actions)  # nothing falls at first
    problem = dataclasses.replace(problem, costs=costs)
    steps = some_steps(problem, "practical", 100, np.random.default_rng(0))
    steps = dataclasses.replace(steps, occupancy=step)
    largest = 0.0
    for seed in range(8):
        descent = new_descent(problem, steps, seed)
        record = np.zeros((1, len(DRAWS)), np.int64)
        descent.advance(1, record)
        if sound_rounds(problem, steps, 1, ReplayedDraws(record)) == 1:
            (theta, _, _), _ = literal_mirror_descent(problem, steps, 1, ReplayedDraws(record))
            np.testing.assert_allclose(np.log(descent.current()[0]), np.log(theta), atol=1e-9)
            largest = max(largest, np.ptp(np.log(theta)))
    assert largest > step  # it is what the test is about


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


@pytest.mark.parametrize("n_costs", [1, 3, 5, 8, 9, 17])
def test_costs_are_read_however_many_and_in_whatever_order_they_lie(n_costs):
    problem = two_states_with_self_loops()
    rng = np.random.default_rng(n_costs)
    costs = TableCosts(np.asfortranarray(rng.uniform(-1, 1, (4, n_costs))), problem.mdp.n_actions)
    assert n_costs == 1 or not costs.table.flags.c_contiguous
    problem = dataclasses.replace(problem, costs=costs, expert_features=rng.uniform(-1, 1, n_costs))
    n_sound, difference = replayed(problem, some_steps(problem, "practical", 300, rng), 300, seed=0)
    assert n_sound == 300
    assert difference < 1e-9


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
        (theta, lam, w)
    )  # of the shifted Lagrangian, maximisers negated
    unshifted = exact_theta - problem.occupancy_shift
    np.testing.assert_allclose(found[0], unshifted + steps.shift, atol=1e-12)
    np.testing.assert_allclose(found[1], -exact_lambda, atol=1e-12)
    np.testing.assert_allclose(found[2], -exact_w, atol=1e-12)


def stale_descent(problem, schedule="practical", n_before=300):
    """A run that no longer moves, whose sampler is out of date.

    The weights are moved away from those of which it has its table, up and down, and it may not make a new one:
    proposals are rejected, and others come from the journal of rises.
    """
    steps = some_steps(problem, schedule, 30 * n_before, np.random.default_rng(0))
    descent = new_descent(problem, steps, seed=5)
    descent.advance(n_before)
    sampler = descent.state.sampler
    factors = np.exp(np.linspace(-1.0, 1.0, sampler.weights.size))
    for i, value in enumerate(sampler.weights["value"] * factors):
        set_weight(sampler, i, value, HEADROOM)
    numbers = sampler.numbers[0]
    numbers["until_rebuild"], numbers["waste"] = 2**60, -(2**60)
    assert 0.1 < numbers["excess"] / (numbers["excess"] + numbers["mass"]) < 0.9
    descent.set_steps(dataclasses.replace(steps, occupancy=0.0, value=0.0, cost=0.0))
    return descent


def recorded(descent, n_rounds):
    """Draw rounds of a stale run, some by proposals that were rejected or from the journal."""
    record = np.zeros((n_rounds, len(DRAWS)), np.int64)
    descent.advance(n_rounds, record)
    assert descent.state.sampler.numbers["n_rises"] > 0  # there was no rebuild
    assert descent.state.sampler.numbers["waste"] + 2**60 > 0.1 * n_rounds
    return record


def test_every_draw_has_its_own_stream():
    problem = two_states_with_self_loops()
    i, j, k = ["i", "pair", "next"], ["j", "pair_2", "next_2"], ["k", "pair_3"]
    changed_by_stream = [["start"], i, i[1:], i[2:], j, j[1:], j[2:], k, k[1:], j, k]
    before = recorded(stale_descent(problem), 3000)
    assert stale_descent(problem).state.seeds.size == len(changed_by_stream)
    for stream, names in enumerate(changed_by_stream):
        descent = stale_descent(problem)
        descent.state.seeds[stream] += np.uint64(1)
        changed = (recorded(descent, 3000) != before).any(axis=0)
        assert [name for name, differs in zip(DRAWS, changed, strict=True) if differs] == names, stream


@pytest.mark.parametrize("schedule", ["paper", "practical"])
def test_the_kernel_draws_from_the_right_distributions(schedule):
    problem = two_states_with_self_loops()
    descent = stale_descent(problem, schedule)
    record, theta = recorded(descent, 1_000_000), descent.current()[0]
    columns = dict(zip(DRAWS, record.T, strict=True))
    phi, transitions = problem.occupancy_features.matrix.toarray(), problem.mdp.transitions.toarray()
    uniform = np.full(3, 1 / 3)
    pairs = {"i": (uniform[:, None] * phi.T).ravel(), "j": (theta[:, None] * phi.T).ravel()}
    pairs["k"] = pairs["j"]
    drawn = {
        index: 4 * columns[index] + columns[pair] for index, pair in (("i", "pair"), ("j", "pair_2"), ("k", "pair_3"))
    }
    values = [chi_square(columns["start"], problem.mdp.initial_distribution)]
    for index, successor in (("i", "next"), ("j", "next_2")):
        joint = pairs[index][:, None] * np.tile(transitions, (3, 1))
        values.append(chi_square(2 * drawn[index] + columns[successor], joint.ravel()))
    for one, other in (("i", "j"), ("i", "k"), ("j", "k")):  # independent of each other
        values.append(chi_square(12 * drawn[one] + drawn[other], np.outer(pairs[one], pairs[other]).ravel()))
    for one, other in (("next", "next_2"), ("start", "next"), ("start", "next_2")):
        seen = [np.bincount(columns[name], minlength=2) / len(record) for name in (one, other)]
        values.append(chi_square(2 * columns[one] + columns[other], np.outer(*seen).ravel()))
    assert min(values) > 1e-4, values


def test_the_sampler_draws_exactly_after_rises_and_falls():
    problem, _ = gridworld_problem(size=4, value_radius=10.0)
    descent = stale_descent(problem, n_before=3000)
    record, theta = recorded(descent, 300_000), descent.current()[0]
    assert theta.max() > 3 * theta.mean()
    assert chi_square(record[:, DRAWS.index("j")], theta) > 1e-4
    assert chi_square(record[:, DRAWS.index("k")], theta) > 1e-4


def test_mean_gradients_of_recorded_draws_are_the_exact_ones():
    problem = two_states_with_self_loops()
    descent = stale_descent(problem)
    record, (theta, lam, w) = recorded(descent, 6_000), descent.current()
    steps = practical_steps(problem, 1000, GradientNorms(1.0, 1.0))
    exact = problem.gradients((theta, lam, w))
    rounds = [Draws(*row) for row in record]
    samples = (
        np.array([theta_gradient(problem, steps, draws, theta, lam, w) for draws in rounds]),
        np.array([lambda_gradient(problem, draws) for draws in rounds]),
        np.array([w_gradient(problem, draws) + problem.cost_shift for draws in rounds]),
    )
    for gradients, expected in zip(samples, exact, strict=True):
        error = gradients.std(axis=0) / np.sqrt(len(rounds))
        assert (np.abs(gradients.mean(axis=0) - expected) < 5 * error + 1e-12).all()


def test_exponentials_are_those_of_the_library_to_rounding():
    """Near zero, and on both sides of where the polynomial ends."""
    steps = np.concatenate([np.linspace(-0.031, 0.031, 201), [-1e-9, 0.0, 1e-9, -3.0, 2.0]])
    found = [_exponential(step) for step in steps]
    np.testing.assert_allclose(found, np.exp(steps), rtol=4e-16)
