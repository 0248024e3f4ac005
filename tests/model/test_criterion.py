"""Weights of steps: they sum to one, and what is unseen is what they leave."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import finite_mdps, random_policy

from lfd_gym.model.criterion import Criterion

DISCOUNTS = st.one_of(st.floats(0.01, 0.99), st.sampled_from([0.999, 0.9999, 1 - 1e-9, 1.0]))


@given(discount=DISCOUNTS, horizon=st.integers(1, 300), length=st.integers(0, 400))
def test_weights_of_the_first_steps_are_the_normalised_discounts(discount, horizon, length):
    criterion = Criterion(discount, horizon)
    powers = discount ** np.arange(horizon)
    # Below the smallest normal number there are fewer digits to agree on.
    tiny = np.finfo(np.float64).tiny
    np.testing.assert_allclose(criterion.weights(horizon), powers / powers.sum(), rtol=1e-9, atol=tiny)
    assert criterion.weights(horizon + 5)[horizon:].tolist() == [0] * 5
    seen = criterion.weights(horizon)[:length].sum()
    np.testing.assert_allclose(criterion.unseen(length), 1 - seen, atol=1e-9)


@given(discount=st.floats(0.01, 0.999), length=st.integers(0, 400))
def test_weights_without_a_horizon_are_the_papers(discount, length):
    criterion = Criterion(discount)
    np.testing.assert_allclose(criterion.weights(length).sum() + criterion.unseen(length), 1, atol=1e-9)
    assert criterion.scale == 1 - discount


@given(discount=DISCOUNTS, horizon=st.one_of(st.none(), st.integers(1, 200)), tail=st.floats(1e-4, 0.9))
def test_steps_are_the_fewest_that_leave_no_more_than_the_tail(discount, horizon, tail):
    if horizon is None and discount > 0.9999:
        return
    criterion = Criterion(discount, horizon)
    steps = criterion.steps(tail)
    assert steps >= 1
    assert criterion.unseen(steps) <= tail
    assert steps == 1 or criterion.unseen(steps - 1) > tail
    assert horizon is None or steps <= horizon


@pytest.mark.parametrize(
    ("discount", "horizon", "message"),
    [
        (1.0, None, "discount must lie strictly between 0 and 1"),
        (0.0, 5, r"discount must lie in \(0, 1\]"),
        (1.1, 5, r"discount must lie in \(0, 1\]"),
        (0.9, 0, "horizon must be at least 1"),
        (0.9, 2.5, "horizon must be a whole number of steps or None, got 2.5"),
        (0.9, True, "horizon must be a whole number"),
        (0.9, "5", "horizon must be a whole number"),
        (float("nan"), 5, "discount must lie"),
    ],
)
def test_what_is_no_criterion_is_refused(discount, horizon, message):
    with pytest.raises(ValueError, match=message):
        Criterion(discount, horizon)


@given(mdp=finite_mdps(), seed=st.integers(0, 50), horizon=st.integers(1, 30), discount=st.sampled_from([0.5, 1.0]))
def test_occupancy_of_the_first_steps_agrees_with_matrix_powers(mdp, seed, horizon, discount):
    policy = random_policy(mdp, np.random.default_rng(seed))
    weights = Criterion(discount, horizon).weights(horizon)
    shape = (mdp.n_states, mdp.n_actions, mdp.n_states)
    chain = np.einsum("xa,xay->xy", policy, mdp.transitions.toarray().reshape(shape))
    expected = sum(
        weight * mdp.initial_distribution @ np.linalg.matrix_power(chain, t) for t, weight in enumerate(weights)
    )
    found = mdp.dynamics.occupancy(policy, weights)
    np.testing.assert_allclose(found, expected[:, None] * policy, atol=1e-12)
    assert found.sum() == pytest.approx(1)
