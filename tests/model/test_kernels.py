"""The parts of the compiled loop: counted random numbers, sampling of changing weights, projections of λ."""

import numpy as np
import pytest
from scipy import stats

from lfd_gym._splitmix import uniform
from lfd_gym.model._planning_kernels import mean_deviation
from lfd_gym.solvers.descent._value_ascent import (
    IDENTITY,
    add_entry,
    clip_entry,
    project_to_ball,
    rebase,
    wants_rebase,
    zero_player,
)
from lfd_gym.solvers.descent._weight_sampler import (
    HEADROOM,
    SMALLEST,
    find_rise,
    rebuild,
    set_weight,
    temper,
    uniform_sampler,
    wants_rebuild,
)


def test_splitmix_gives_the_published_numbers():
    # The first outputs of SplitMix64 for seed 0, as in the reference implementation of Vigna.
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    for k, bits in enumerate(published, start=1):
        assert uniform(np.uint64(0), k) == (bits >> 11) * 2.0**-53


def test_splitmix_streams_are_uniform_and_uncorrelated():
    n = 100_000
    first = np.array([uniform(np.uint64(123), k) for k in range(n)])
    second = np.array([uniform(np.uint64(2**63 + 5), k) for k in range(n)])
    assert stats.kstest(first, "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(n)
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 5 / np.sqrt(n)


def proposal_shares(sampler):
    """The probability with which the alias table proposes each index."""
    slots = sampler.weights
    shares = slots["threshold"].copy()
    np.add.at(shares, slots["alias"], 1 - slots["threshold"])
    return shares / slots.size


def accepted_mass(sampler):
    """The mass of each index under the envelope that would be accepted, from the table and from the journal."""
    value, base = sampler.weights["value"], sampler.weights["base"]
    n_rises = int(sampler.numbers["n_rises"][0])
    rises = sampler.rises[:n_rises]
    mass = np.minimum(value, base)
    heights = np.diff(rises["cumulative"], prepend=0.0)
    for rise, height in zip(rises, heights, strict=True):
        mass[rise["index"]] += np.clip(value[rise["index"]] - rise["floor"], 0.0, height)
    return mass


def change_weights(sampler, headroom, n_changes, rng, spread):
    for _ in range(n_changes):
        i = int(rng.integers(sampler.weights.size))
        sampler.numbers["clock"] += 1 / sampler.numbers["total"]
        factor = np.exp(rng.normal(scale=spread)) if headroom > 1 else np.exp(-abs(rng.normal(scale=spread)))
        set_weight(sampler, i, max(float(sampler.weights["value"][i] * factor), SMALLEST), headroom)
        if wants_rebuild(sampler.weights.size, sampler.numbers[0]):
            rebuild(sampler, headroom)


@pytest.mark.parametrize("headroom", [1.0, HEADROOM])
@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_envelope_accepts_every_index_in_proportion_to_its_weight(headroom, n):
    rng = np.random.default_rng(n)
    sampler = uniform_sampler(n, headroom)
    for _ in range(20):
        change_weights(sampler, headroom, 15, rng, spread=0.7)
        bases = sampler.weights["base"]
        np.testing.assert_allclose(proposal_shares(sampler), bases / bases.sum(), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(sampler.numbers["mass"][0], bases.sum(), rtol=1e-12)
        # Proposed in proportion to the envelope, accepted with this mass: drawn in proportion to the weight.
        np.testing.assert_allclose(accepted_mass(sampler), sampler.weights["value"], rtol=1e-12)


def test_the_journal_is_searched_by_mass():
    sampler = uniform_sampler(4, HEADROOM)
    for i, factor in ((2, 3.0), (0, 5.0), (2, 9.0)):
        set_weight(sampler, i, 0.25 * factor, HEADROOM)
    assert int(sampler.numbers["n_rises"][0]) == 3
    cumulative = sampler.rises["cumulative"][:3]
    for mass, entry in ((0.0, 0), (cumulative[0] - 1e-9, 0), (cumulative[0], 1), (cumulative[1] + 1e-9, 2), (1e9, 2)):
        assert find_rise(sampler.rises, 3, mass) == entry


@pytest.mark.parametrize("spread", [1.0, 40.0])  # 40: single weights rise and fall by many orders of magnitude
def test_totals_and_averages_do_not_drift(spread):
    rng = np.random.default_rng(0)
    n, rounds = 50, 20_000
    sampler = uniform_sampler(n, HEADROOM)
    theta_sum = np.zeros(n)
    for _ in range(rounds):
        theta_sum += sampler.weights["value"] / sampler.weights["value"].sum()
        change_weights(sampler, HEADROOM, 1, rng, spread)
        np.testing.assert_allclose(sampler.numbers["total"][0], sampler.weights["value"].sum(), rtol=1e-11)
    rebuild(sampler, HEADROOM)
    np.testing.assert_allclose(sampler.weights["sum"], theta_sum, rtol=1e-9, atol=1e-9)
    assert sampler.weights["sum"].sum() == pytest.approx(rounds, rel=1e-12)


def test_weights_that_fall_for_ever_neither_vanish_nor_lose_their_ratios():
    n = 8
    sampler = uniform_sampler(n, 1.0)
    logs = np.zeros(n)
    rng = np.random.default_rng(1)
    for _ in range(40_000):  # the total falls by a factor of about exp(−25000)
        i = int(rng.integers(n))
        fall = float(rng.uniform(0, 10))
        logs[i] -= fall
        sampler.numbers["clock"] += 1 / sampler.numbers["total"]
        set_weight(sampler, i, max(float(sampler.weights["value"][i]) * np.exp(-fall), SMALLEST), 1.0)
        if wants_rebuild(n, sampler.numbers[0]):
            rebuild(sampler, 1.0)
    expected = np.exp(logs - logs.max())
    found = sampler.weights["value"] / sampler.weights["value"].max()
    close = expected > 1e-200  # below, weights stand on their floor
    np.testing.assert_allclose(found[close], expected[close], rtol=1e-9)
    assert (found[~close] < 1e-190).all()


def test_rises_cause_no_storm_of_rebuilds():
    n, rounds = 1000, 20_000
    rng = np.random.default_rng(2)
    sampler = uniform_sampler(n, HEADROOM)
    rebuilds = 0
    for _ in range(rounds):  # every change is a rise beyond the ceiling, and the total keeps growing
        i = int(rng.integers(n))
        set_weight(sampler, i, float(sampler.weights["value"][i]) * 1.5, HEADROOM)
        if wants_rebuild(n, sampler.numbers[0]):
            rebuild(sampler, HEADROOM)
            rebuilds += 1
    assert rebuilds <= rounds / n + 1


def test_temper_raises_to_a_power_and_keeps_the_averages():
    rng = np.random.default_rng(3)
    sampler = uniform_sampler(6, HEADROOM)
    change_weights(sampler, HEADROOM, 50, rng, spread=1.0)
    theta = sampler.weights["value"] / sampler.weights["value"].sum()
    sums = sampler.weights["sum"] + sampler.weights["value"] * (sampler.numbers["clock"][0] - sampler.weights["since"])
    temper(sampler, 0.5, HEADROOM)
    np.testing.assert_allclose(sampler.weights["value"], np.sqrt(theta) / np.sqrt(theta).sum(), rtol=1e-12)
    np.testing.assert_allclose(sampler.weights["sum"], sums, rtol=1e-12)


@pytest.mark.parametrize("radius", [0.5, 0.02])  # 0.02: every step leaves the ball, so the scale falls fast
def test_lambda_as_scale_times_vector_follows_projected_steps(radius):
    rng = np.random.default_rng(4)
    n = 10
    player = zero_player(n, IDENTITY)
    run = player.numbers[0]
    lam, total = np.zeros(n), np.zeros(n)
    for step in range(5000):
        total += lam
        player.numbers["clock"] += player.numbers["scale"]
        k, change = int(rng.integers(n)), float(rng.normal(scale=0.1))
        add_entry(player, k, change / float(player.numbers["scale"][0]))
        project_to_ball(run, radius)
        lam[k] += change
        lam *= min(1.0, radius / np.linalg.norm(lam))
        if wants_rebase(run) or step % 700 == 0:
            rebase(player)
    np.testing.assert_allclose(player.entries["value"] * player.numbers["scale"][0], lam, atol=1e-12)
    rebase(player)
    np.testing.assert_allclose(player.entries["sum"], total, atol=1e-9)


def test_the_box_clips_after_all_contributions():
    player = zero_player(2, IDENTITY)
    add_entry(player, 0, 3.0)
    add_entry(player, 0, -2.5)  # a self-loop: both contributions meet in one entry
    clip_entry(player.entries, 0, 1.0)
    assert player.entries["value"][0] == 0.5


@pytest.mark.parametrize("n", [1, 2, 17])
def test_mean_deviation_is_that_around_the_weighted_mean(n):
    rng = np.random.default_rng(n)
    weights, vector = rng.dirichlet(np.ones(n)), rng.normal(size=n)
    expected = (weights * np.abs(vector - weights @ vector)).sum()
    assert mean_deviation(weights, vector) == pytest.approx(expected, abs=1e-14)
