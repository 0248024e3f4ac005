"""Statistics over runs: values computed by hand, and coverage of the intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lfd_gym.assessment.statistics import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
    run_interval,
)


def test_interquartile_mean_by_hand():
    assert interquartile_mean([[1.0, 9.0], [3.0, 5.0]]) == 4.0  # drops 1 and 9
    # Five scores: ⌊5/4⌋ = 1 dropped at either end.
    assert interquartile_mean([-100.0, 1.0, 2.0, 6.0, 1000.0]) == 3.0
    # Eight scores over four runs and two tasks: the middle four of both tasks together, not of each.
    assert interquartile_mean([[0, 10], [1, 11], [2, 12], [3, 13]]) == (2 + 3 + 10 + 11) / 4
    assert interquartile_mean([7.0]) == 7.0


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40))
def test_interquartile_mean_is_the_trimmed_mean(values):
    assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25), abs=1e-9)


def test_performance_profile_by_hand():
    scores = [[0.1, 0.5], [0.5, 0.9]]
    np.testing.assert_allclose(performance_profile(scores, [0.0, 0.1, 0.5, 0.7, 0.9]), [1.0, 0.75, 0.25, 0.25, 0.0])


def test_probability_of_improvement_by_hand():
    # Task 0: pairs (2,1) win, (2,2) tie, (0,1) lose, (0,2) lose: 1.5 of 4. Task 1: all win.
    ours, theirs = [[2.0, 5.0], [0.0, 6.0]], [[1.0, 4.0], [2.0, 3.0]]
    assert probability_of_improvement(ours, theirs) == (1.5 / 4 + 1) / 2
    assert probability_of_improvement(theirs, ours) == 1 - (1.5 / 4 + 1) / 2
    with_more_runs = probability_of_improvement([[1.0], [1.0], [4.0]], [[1.0], [2.0]])  # 0.5+0.5+1+1 of 6
    assert with_more_runs == pytest.approx(3.0 / 6)


def test_probability_of_improvement_is_mann_whitney():
    rng = np.random.default_rng(0)
    ours, theirs = rng.integers(0, 4, (9, 1)).astype(float), rng.integers(0, 4, (7, 1)).astype(float)
    statistic = stats.mannwhitneyu(ours[:, 0], theirs[:, 0]).statistic
    assert probability_of_improvement(ours, theirs) == pytest.approx(statistic / (9 * 7))


def test_bootstrap_is_seeded_and_stratified():
    scores = np.random.default_rng(3).normal(loc=[0.0, 100.0], size=(12, 2))
    first = run_interval(scores, np.random.default_rng(0), statistic=np.mean)
    again = run_interval(scores, np.random.default_rng(0), statistic=np.mean)
    other = run_interval(scores, np.random.default_rng(1), statistic=np.mean)
    assert first == again
    assert first != other
    assert first.value == scores.mean()
    # Runs are resampled within tasks: mixing the tasks would give an interval tens of units wide.
    assert 0 < first.high - first.low < 2


def test_bootstrap_covers_a_known_mean():
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        sample = rng.exponential(size=(30, 1))
        interval = run_interval(sample, rng, statistic=np.mean, confidence=0.9, n_resamples=300)
        covered += interval.low <= 1.0 <= interval.high
    # 200 draws at coverage 0.9 have standard deviation 0.021; the skew of the exponential costs BCa a little.
    assert 0.82 <= covered / 200 <= 0.97


@pytest.mark.parametrize("n_runs", [2, 3, 5, 9, 10])
def test_intervals_of_few_runs_cover(n_runs):
    """Of 2 or 3 runs, resampling them covers three of four times, or six of seven, where 95 % are meant."""
    rng = np.random.default_rng(n_runs)
    scores = rng.normal(size=(1000, n_runs, 1))
    n_covered = 0
    for sample in scores[: 1000 if n_runs < 10 else 200]:
        interval = run_interval(sample, rng, n_resamples=300)
        n_covered += interval.low <= 0 <= interval.high
        assert interval.n_runs == n_runs
    n = 1000 if n_runs < 10 else 200
    nominal = 0.95 if n_runs < 10 else 0.88  # from there on it is the bootstrap, which is still a little narrow
    assert stats.binom.cdf(n_covered, n, nominal) >= 1e-3


def test_of_one_run_nothing_is_known():
    interval = run_interval([[1.0, 2.0]], np.random.default_rng(0))
    assert (interval.low, interval.value, interval.high, interval.n_runs) == (-np.inf, 1.5, np.inf, 1)


@pytest.mark.parametrize("n_runs", [5, 12])
def test_the_interval_of_equal_runs_is_a_point(n_runs):
    interval = run_interval([[1.0, 2.0]] * n_runs, np.random.default_rng(0))
    assert (interval.low, interval.value, interval.high) == (1.5, 1.5, 1.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: interquartile_mean([]), "scores must not be empty"),
        (lambda: interquartile_mean([1.0, np.nan]), "scores must be finite"),
        (lambda: run_interval([1.0, 2.0], np.random.default_rng(0), confidence=95), "confidence must lie"),
        (lambda: probability_of_improvement([[1.0, 2.0]], [[1.0]]), "others must have 2 tasks"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
