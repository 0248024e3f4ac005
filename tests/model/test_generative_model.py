import math

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp
from alias_tables import probability_vectors, table_of
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import finite_mdps

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
