import math

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp
from alias_tables import probability_vectors, table_of
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import finite_mdps

import lfd_gym as lfd
from lfd_gym import FiniteMDP, GenerativeModel, TabularModel
from lfd_gym.testing import check_generative_model


class FixedUniforms(np.random.Generator):
    """A generator whose uniform numbers are given."""

    def __init__(self, uniforms):
        super().__init__(np.random.PCG64(0))
        self.uniforms = np.asarray(uniforms, dtype=np.float64)

    def random(self, size=None):
        assert size == self.uniforms.size
        return self.uniforms


def reconstruct(table, row, n_outcomes):
    """Return the distribution that the slots of ``row`` give to the outcomes 0, …, n_outcomes − 1."""
    slots = np.arange(table.offsets[row], table.offsets[row + 1])
    owners = np.concatenate([table.outcomes[slots], table.aliases[slots]])
    masses = np.concatenate([table.thresholds[slots], 1 - table.thresholds[slots]])
    order = np.argsort(owners, kind="stable")
    pieces = np.split(masses[order], np.searchsorted(owners[order], np.arange(1, n_outcomes)))
    return np.array([math.fsum(piece) for piece in pieces]) / slots.size  # fsum adds no error of its own


@given(rows=st.lists(probability_vectors(), min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_slots_reproduce_the_probabilities_exactly(rows):
    table = table_of(rows)
    assert ((table.thresholds >= 0) & (table.thresholds <= 1)).all()
    for k, row in enumerate(rows):
        masses = reconstruct(table, k, 10 + row.size)
        assert not masses[:10].any()
        np.testing.assert_allclose(masses[10:], row, rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", ["geometric", "uniform", "one heavy"])
def test_slots_reproduce_long_rows(kind):
    size = 100_000
    weights = {
        "geometric": 0.999 ** np.arange(size),
        "uniform": np.ones(size),
        "one heavy": np.where(np.arange(size) == 7, 1e6, 1e-6),
    }[kind]
    row = weights / weights.sum()
    np.testing.assert_allclose(reconstruct(table_of([row]), 0, 10 + size)[10:], row, rtol=0, atol=1e-15)


@given(row=probability_vectors())
@settings(deadline=None)
def test_draws_follow_the_slots(row):
    """On a grid of uniform numbers, each outcome comes as often as its probability says."""
    n = 1000 * row.size
    drawn = table_of([row]).sample(np.zeros(n, dtype=np.int64), FixedUniforms((np.arange(n) + 0.5) / n))
    counts = np.bincount(drawn - 10, minlength=row.size)
    assert np.abs(counts - n * row).max() <= row.size + 1  # an outcome owns at most one interval a slot


def test_extreme_uniforms_stay_inside_the_row():
    sizes = np.concatenate([np.arange(1, 2000), 2 ** np.arange(11, 16), 2 ** np.arange(11, 16) + 1])
    table = table_of([np.full(size, 1 / size) for size in sizes])
    rows = np.arange(sizes.size)
    np.testing.assert_array_equal(table.sample(rows, FixedUniforms(np.zeros(sizes.size))), 10)
    largest = np.full(sizes.size, 1 - 2.0**-53)  # what Generator.random can return at most
    np.testing.assert_array_equal(table.sample(rows, FixedUniforms(largest)), 10 + sizes - 1)


@given(mdp=finite_mdps())
@settings(max_examples=25, deadline=None)
def test_model_of_a_random_mdp(mdp):
    model = TabularModel.of(mdp)
    assert isinstance(model, GenerativeModel)
    check_generative_model(model, mdp=mdp, n_draws=20_000)
    for pair in range(mdp.n_states * mdp.n_actions):
        exact = mdp.transitions[[pair], :].toarray()[0]
        np.testing.assert_allclose(reconstruct(model.transition_table, pair, mdp.n_states), exact, rtol=0, atol=1e-15)
    initial = reconstruct(model.initial_table, 0, mdp.n_states)
    np.testing.assert_allclose(initial, mdp.initial_distribution, rtol=0, atol=1e-15)


def two_states(absorbing_state=None):
    return np.array([[[0.25, 0.75], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]), [0.5, 0.5], absorbing_state


def test_constructor_and_from_mdp_agree():
    transitions, initial, _ = two_states()
    direct = TabularModel(transitions, initial, absorbing_state=1)
    through = TabularModel.of(FiniteMDP(sp.csr_array(transitions.reshape(4, 2)), initial, 0.9, 1))
    states, actions = np.repeat([0, 0, 1], 100), np.repeat([0, 1, 0], 100)
    for model in (direct, through):
        assert (model.n_states, model.n_actions, model.absorbing_state) == (2, 2, 1)
        assert model.state_space == model.observation_space == gym.spaces.Discrete(2)
    drawn = [model.sample_next(states, actions, np.random.default_rng(3)) for model in (direct, through)]
    np.testing.assert_array_equal(*drawn)
    assert set(drawn[0][:100]) == {0, 1}
    assert (drawn[0][100:200] == 0).all()
    assert (drawn[0][200:] == 1).all()


def test_absorbing_states():
    transitions, initial, _ = two_states()
    np.testing.assert_array_equal(TabularModel(transitions, initial, 1).is_absorbing([0, 1]), [False, True])
    np.testing.assert_array_equal(TabularModel(transitions, initial).is_absorbing([0, 1]), [False, False])
    with pytest.raises(ValueError, match="absorbing_state 0 must stay in place, but action 0 can leave it"):
        TabularModel(transitions, initial, 0)


def test_any_integers_and_empty_batches_are_welcome():
    model = TabularModel(*two_states())
    rng = np.random.default_rng(0)
    for dtype in (np.uint8, np.int32, np.int64, np.uint64):
        assert model.sample_next(np.array([1], dtype), np.array([0], dtype), rng).dtype == np.int64
    assert model.sample_next([], [], rng).shape == (0,)
    assert model.sample_initial(0, rng).shape == (0,)
    assert model.observe([]).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m, r: m.sample_next([0, 2], [0, 0], r), ValueError, r"states must lie in \[0, 2\), got 2"),
        (lambda m, r: m.sample_next([0, -1], [0, 0], r), ValueError, r"states must lie in \[0, 2\), got -1"),
        (lambda m, r: m.sample_next([0, 1], [0, 7], r), ValueError, r"actions must lie in \[0, 2\), got 7"),
        (lambda m, r: m.sample_next(np.array([2**63], np.uint64), [0], r), ValueError, "states must lie in"),
        (lambda m, r: m.sample_next([0, 1], [0], r), ValueError, r"same length, got \(2,\) and \(1,\)"),
        (lambda m, r: m.sample_next([0.0], [0], r), ValueError, "states must be a vector of integers.*float64"),
        (lambda m, r: m.sample_next([True], [0], r), ValueError, "states must be a vector of integers.*bool"),
        (lambda m, r: m.sample_next(0, 0, r), ValueError, r"states must be a vector of integers, got shape \(\)"),
        (lambda m, r: m.sample_next([0], [0], 5), TypeError, "rng must be a numpy.random.Generator.*got 5"),
        (lambda m, r: m.sample_initial(3, None), TypeError, "rng must be a numpy.random.Generator.*got None"),
        (lambda m, r: m.sample_initial(-1, r), ValueError, "n must not be negative, got -1"),
        (lambda m, r: m.sample_initial(2.5, r), TypeError, "n must be an integer, got 2.5"),
        (lambda m, r: m.observe([2]), ValueError, r"states must lie in \[0, 2\), got 2"),
        (lambda m, r: m.is_absorbing([2]), ValueError, r"states must lie in \[0, 2\), got 2"),
    ],
)
def test_bad_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call(TabularModel(*two_states()), np.random.default_rng(0))


class OneByOne:
    """Written for single states, as simulators usually are; ``broken`` is the method that is."""

    state_space = observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, broken):
        self.broken = broken

    def sample_initial(self, n, rng):
        return np.zeros(2) if self.broken == "sample_initial" else np.zeros((n, 2))

    def sample_next(self, states, actions, rng):
        if self.broken == "sample_next":
            return [states[0] + 0.1 * int(actions), states[1]]
        return states

    def observe(self, states):
        return states[0] if self.broken == "observe" else states

    def is_absorbing(self, states):
        return False if self.broken == "is_absorbing" else np.zeros(len(states), int if self.broken == "kind" else bool)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            "sample_initial",
            r"sample_initial must return shape \(7, 2\) for 7 states, got \(2,\): .*batches",
        ),
        ("sample_next", r"sample_next failed for 7 states at once \(TypeError: .*take and return batches"),
        ("observe", r"observe must return shape \(7, 2\)"),
        ("is_absorbing", r"is_absorbing must return shape \(7,\) for 7 states, got \(\)"),
        ("kind", "is_absorbing must return True or False for each state, got int64"),
    ],
)
def test_models_of_single_states_are_refused(broken, message):
    with pytest.raises(TypeError, match=f"env.{message}"):
        lfd.Task(OneByOne(broken), discount=0.9)
    with pytest.raises(TypeError, match=f"source.{message}"):
        lfd.collect(OneByOne(broken), lambda seen: np.zeros(len(seen), int), 1, 3, np.random.default_rng(0))


def test_what_is_no_model_is_told_what_it_lacks():
    class Half:
        action_space = OneByOne.action_space

        def sample_next(self, states, actions, rng):
            return states

    def stop(seen):
        return np.zeros(len(seen), int)

    rng = np.random.default_rng(0)
    with pytest.raises(TypeError, match="got the class OneByOne: make an object of it"):
        lfd.Task(OneByOne, discount=0.9)
    with pytest.raises(TypeError, match="got the class OneByOne: make an object of it"):
        lfd.collect(OneByOne, stop, 1, 3, rng)
    for attempt in (lambda: lfd.Task(Half(), discount=0.9), lambda: lfd.collect(Half(), stop, 1, 3, rng)):
        with pytest.raises(TypeError, match="which lacks sample_initial, observe, is_absorbing, state_space, obs"):
            attempt()
    with pytest.raises(TypeError, match=r"as gymnasium.make makes from a name, or a model, got 'CartPole-v1'"):
        lfd.collect("CartPole-v1", stop, 1, 3, rng)
