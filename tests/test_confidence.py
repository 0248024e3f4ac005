"""Betting bounds: they cover, at a fixed number of observations and while one looks on, and are not wide."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lfd_gym.confidence import lower_bound, upper_bound

DELTA, REPEATS = 0.1, 1000


def draws(kind, rng, shape):
    """Samples in [0, 1], and their mean."""
    if kind == "beta":
        return rng.beta(2, 5, shape), 2 / 7
    if kind == "uniform in the middle":
        return 0.5 + 0.02 * (rng.random(shape) - 0.5), 0.5
    if kind == "three values":
        return rng.choice([0.0, 0.5, 1.0], shape, p=[0.05, 0.9, 0.05]), 0.5
    return (rng.random(shape) < kind).astype(float), kind


KINDS = ["beta", "uniform in the middle", "three values", 0.5, 0.01, 0.0015, 0.99]


def too_many(misses):
    """Whether so many misses in all repetitions would be rarer than 1 in 1000 if each had probability δ."""
    return stats.binom.sf(misses - 1, REPEATS, DELTA) < 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 10, 100, 300])
def test_both_sides_cover(kind, n):
    samples, mean = draws(kind, np.random.default_rng(n), (n, REPEATS))
    assert not too_many((lower_bound(samples, DELTA) > mean).sum())
    assert not too_many((upper_bound(samples, DELTA) < mean).sum())


@pytest.mark.parametrize("repeats", [300, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [0.5, 0.1, "beta"])
def test_the_lower_bound_covers_while_one_looks_on(kind, repeats):
    """With the number of observations planned, whoever stops at the best moment is right as often."""
    samples, mean = draws(kind, np.random.default_rng(7), (120, repeats))
    missed = np.zeros(repeats, dtype=bool)
    for n in range(1, 121, 3):
        missed |= lower_bound(samples[:n], DELTA, planned=60) > mean
    assert stats.binom.sf(missed.sum() - 1, repeats, DELTA) >= 1e-3


def test_the_wrong_side_does_not_cover():
    """The tests above can fail: the upper bound, taken for a lower one, misses."""
    samples, mean = draws(0.5, np.random.default_rng(0), (10, REPEATS))
    assert too_many((upper_bound(samples, DELTA) > mean).sum())
    assert too_many((samples.mean(axis=0) > mean).sum())


def test_bounds_are_not_wide():
    rng = np.random.default_rng(1)
    for n in (30, 300, 3000):
        coins = draws(0.5, rng, (n, 20))[0]
        hoeffding = math.sqrt(math.log(1 / DELTA) / (2 * n))
        assert (coins.mean(axis=0) - lower_bound(coins, DELTA)).mean() < 1.25 * hoeffding
        narrow = draws("uniform in the middle", rng, (n, 20))[0]
        assert (narrow.mean(axis=0) - lower_bound(narrow, DELTA)).mean() < 4 / n


def test_bounds_are_the_roots_of_the_capital():
    """Against the capital written out, at the bound and just above it."""
    rng = np.random.default_rng(2)
    samples = rng.beta(1, 3, (25, 1))

    def capital(x):
        s = math.sqrt(8 * math.log(1 / (0.25 * DELTA)) / 25)
        bets = np.minimum(s * 1.5 ** np.arange(10), 0.995 / x)
        constant = np.prod(1 + bets * (samples - x), axis=0).mean()
        return 0.75 * constant + 0.25 * np.exp(s * (samples - x) - s**2 / 8).prod()

    bound = lower_bound(samples, DELTA)[0]
    assert capital(bound) >= 1 / DELTA > capital(bound + 1e-6)


@given(
    values=st.lists(st.floats(0, 1), min_size=1, max_size=30),
    delta=st.floats(1e-6, 0.9),
    seed=st.integers(0, 100),
)
def test_bounds_enclose_the_mean_and_do_not_depend_on_the_order(values, delta, seed):
    samples = np.array(values)[:, None]
    low, high = lower_bound(samples, delta)[0], upper_bound(samples, delta)[0]
    assert 0 <= low <= samples.mean() + 1e-12
    assert samples.mean() - 1e-12 <= high <= 1
    again = lower_bound(np.random.default_rng(seed).permutation(samples), delta)[0]
    assert again == pytest.approx(low, abs=1e-6)
    assert lower_bound(samples, delta / 2)[0] <= low + 1e-9


@pytest.mark.parametrize(
    ("samples", "arguments", "message"),
    [
        (np.ones(3), {}, r"samples must have shape \(n, k\)"),
        (np.ones((0, 2)), {}, "n at least 1"),
        (np.full((2, 1), 1.1), {}, r"samples must lie in \[0, 1\]"),
        (np.full((2, 1), np.nan), {}, r"samples must lie in \[0, 1\]"),
        (np.ones((2, 1)), {"planned": 0}, "planned must be at least 1"),
        (np.ones((2, 1)), {"delta": 0.0}, "delta must lie"),
    ],
)
def test_wrong_arguments_are_named(samples, arguments, message):
    with pytest.raises(ValueError, match=message):
        lower_bound(samples, **({"delta": 0.1} | arguments))
