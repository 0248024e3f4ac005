"""The estimate against exact values, and its radius against what happens in a thousand repetitions."""

import collections
import dataclasses
import math

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import mdps_with_costs, random_policy

from lfd_gym import (
    Ball,
    CostEstimate,
    Demonstrations,
    FiniteMDP,
    TableCosts,
    TabularModel,
    Task,
    as_generative_model,
    collect,
    feature_expectations,
    normalise_costs,
)
from lfd_gym.assessment.bounds import required_horizon, required_trajectories
from lfd_gym.confidence import lower_bound, upper_bound
from lfd_gym.model.criterion import Criterion


def two_trajectories(**changes):
    """Trajectories of two actions (terminated) and one action (cut)."""
    parts = {
        "observations": [0, 1, 2, 2, 0],
        "actions": [1, 0, 1],
        "offsets": [0, 2, 3],
        "terminated": [True, False],
        "truncated": [False, True],
        "observation_space": gym.spaces.Discrete(3),
        "action_space": gym.spaces.Discrete(2),
    }
    return Demonstrations(**(parts | changes))


COSTS = np.array([[0.1, -1.0], [0.2, 1.0], [0.3, 0.5], [0.4, 0.0], [0.5, 0.25], [0.6, -0.5]])


# -- the estimate -----------------------------------------------------------------------------------------------------


def test_by_hand():
    estimate = feature_expectations(two_trajectories(), COSTS, discount=0.5)
    first = 0.5 * (COSTS[1] + 0.5 * COSTS[2])  # the pairs (0, 1) and (1, 0)
    second = 0.5 * COSTS[5]  # the pair (2, 1)
    np.testing.assert_allclose(estimate.trajectory_values, [first, second], rtol=1e-15)
    np.testing.assert_allclose(estimate.values, (first + second) / 2, rtol=1e-15)
    np.testing.assert_array_equal(estimate.unseen_mass, [0.0, 0.5])
    rescaled = feature_expectations(two_trajectories(), COSTS, discount=0.5, truncation="rescale")
    np.testing.assert_allclose(rescaled.values, (first + second / 0.5) / 2, rtol=1e-15)


@settings(deadline=None, max_examples=50)
@given(mdps_with_costs(), st.integers(0, 2**32 - 1))
def test_array_and_callable_agree_with_an_independent_sum(problem, seed):
    mdp, costs = problem
    rng = np.random.default_rng(seed)
    demos = collect(TabularModel.of(mdp), random_policy(mdp, rng), 5, 12, rng)
    by_array = feature_expectations(demos, costs, mdp.discount)
    by_callable = feature_expectations(demos, lambda x, a: costs[x * mdp.n_actions + a], mdp.discount)
    np.testing.assert_array_equal(by_array.trajectory_values, by_callable.trajectory_values)
    weights = (1 - mdp.discount) * mdp.discount ** np.arange(12)
    rows = (demos.acted_on * mdp.n_actions + demos.actions).reshape(5, 12)
    np.testing.assert_allclose(by_array.values, np.einsum("t,jti->i", weights, costs[rows]) / 5, atol=1e-14)


@settings(deadline=None, max_examples=25)
@given(mdps_with_costs(max_discount=0.9), st.integers(0, 2**32 - 1))
def test_many_long_trajectories_give_the_exact_values(problem, seed):
    mdp, costs = problem
    rng = np.random.default_rng(seed)
    policy = random_policy(mdp, rng)
    demos = collect(TabularModel.of(mdp), policy, 2000, 200, rng)
    estimate = feature_expectations(demos, costs, mdp.discount)
    truth = costs.T @ mdp.occupancy(policy).ravel()
    spread = estimate.trajectory_values.std(axis=0) / np.sqrt(2000)
    assert (np.abs(estimate.values - truth) <= 6 * spread + 1e-8).all()


def test_blocks_do_not_show(monkeypatch):
    rng = np.random.default_rng(0)
    demos = collect(as_generative_model(gym.make("CartPole-v1")), lambda x: np.ones(len(x), dtype=int), 30, 50, rng)
    features = lambda x, a: np.clip(x * (1 + a[:, None]), -1, 1)  # noqa: E731
    whole = feature_expectations(demos, features, 0.9)
    monkeypatch.setattr("lfd_gym.demonstrations.estimation._BLOCK", 25)
    np.testing.assert_array_equal(feature_expectations(demos, features, 0.9).trajectory_values, whole.trajectory_values)
    assert whole.trajectory_values.shape == (30, 4)


def test_rescaling_mends_what_the_paper_drops():
    """At γ = 0.99 and 200 actions the paper's estimate misses 13 % of a constant cost; rescaling misses nothing."""
    mdp = FiniteMDP(np.ones((1, 1, 1)), [1.0], discount=0.99)
    demos = collect(TabularModel.of(mdp), np.ones((1, 1)), 3, 200, np.random.default_rng(0))
    paper = feature_expectations(demos, [[1.0]], 0.99)
    rescaled = feature_expectations(demos, [[1.0]], 0.99, truncation="rescale")
    assert 1 - paper.values[0] == pytest.approx(0.99**200)
    assert 0.13 < 0.99**200 < 0.135
    assert rescaled.values[0] == pytest.approx(1)
    assert (np.abs(paper.values - 1) <= paper.radius(0.1)).all()


def test_costs_of_an_absorbing_state_may_follow():
    demos = two_trajectories()
    longer = np.vstack([COSTS, np.zeros((2, 2))])
    np.testing.assert_array_equal(
        feature_expectations(demos, longer, 0.5).values, feature_expectations(demos, COSTS, 0.5).values
    )


@pytest.mark.parametrize(
    ("costs", "settings", "message"),
    [
        (COSTS[:5], {}, r"cost_features must have shape \(6, any\), got \(5, 2\)"),
        (COSTS[:, 0], {}, r"cost_features must have shape \(6, any\), got \(6,\)"),
        (3 * COSTS, {}, r"must lie in \[-1, 1\], but feature 0 reaches .*normalise_costs"),
        (COSTS * [1, 2], {}, r"but feature 1 reaches 2\.0; lfd_gym\.normalise_costs rescales them"),
        (
            lambda x, a: 3 * COSTS[2 * x + a] * [0.1, 1],
            {},
            r"costs\(observations, actions\) .*feature 1 reaches",
        ),
        (lambda x, a: COSTS[x], {"discount": 1.0}, "discount must lie strictly between 0 and 1"),
        (lambda x, a: COSTS[:2], {}, r"must return shape \(3, n_c\), got \(2, 2\)"),
        (np.where(COSTS == 1, np.nan, COSTS), {}, "cost_features must be finite"),
        (COSTS, {"truncation": "none"}, "truncation must be one of"),
    ],
)
def test_wrong_arguments_are_named(costs, settings, message):
    with pytest.raises(ValueError, match=message):
        feature_expectations(two_trajectories(), costs, **({"discount": 0.5} | settings))


def test_arrays_are_for_finite_spaces():
    demos = collect(gym.make("CartPole-v1"), lambda x: np.ones(len(x), dtype=int), 1, 5, np.random.default_rng(0))
    with pytest.raises(ValueError, match="cost_features must be a callable"):
        feature_expectations(demos, COSTS, 0.5)


def test_normalised_costs_are_accepted_and_keep_signs_and_zeros():
    costs = COSTS * [3.0, 0.5]
    normalised = normalise_costs(costs)
    assert np.abs(normalised).max() == 1
    np.testing.assert_array_equal(np.sign(normalised), np.sign(costs))
    np.testing.assert_array_equal(normalised[:, 1], costs[:, 1])  # already inside
    np.testing.assert_allclose(normalised[:, 0] * 1.8, costs[:, 0])
    feature_expectations(two_trajectories(), normalised, 0.5)
    np.testing.assert_array_equal(normalise_costs([0.0, -4.0]), [0.0, -1.0])


# -- the radius -------------------------------------------------------------------------------------------------------


def cases():
    rng = np.random.default_rng(11)
    mixing = FiniteMDP(rng.dirichlet(np.ones(4), size=(4, 2)), np.full(4, 0.25), discount=0.9)
    ends = np.zeros((3, 2, 3))
    ends[:2] = rng.dirichlet(np.ones(3), size=(2, 2))
    ends[2, :, 2] = 1
    ending = FiniteMDP(ends, [0.5, 0.5, 0.0], discount=0.8, absorbing_state=2)
    coin = FiniteMDP(np.eye(2)[:, None, :], [0.5, 0.5], discount=0.9)  # stays where it starts
    extreme = np.array([[1.0, -1.0], [-1.0, 1.0]])
    mixed_costs = rng.uniform(-1, 1, (8, 3))
    ending_costs = np.vstack([rng.uniform(-1, 1, (4, 4)), np.zeros((2, 4))])
    return {
        "mixing": (mixing, mixed_costs, 20, 10),
        "ending": (ending, ending_costs, 15, 4),
        "coin": (coin, extreme, 25, 15),
        "coin, many": (coin, extreme, 400, 15),
        "coin, hardly cut": (coin, extreme, 25, 150),
        "one-sided tail": (FiniteMDP(np.ones((1, 1, 1)), [1.0], discount=0.9), np.ones((1, 1)), 5, 8),
    }


@pytest.mark.parametrize("case", cases())
def test_coverage(case):
    """In 1,000 repetitions at δ = 0.1 every kind of radius covers the truth in at least 900."""
    mdp, costs, m, horizon = cases()[case]
    rng = np.random.default_rng(3)
    policy = rng.dirichlet(np.ones(mdp.n_actions), size=mdp.n_states)
    truth = costs.T @ mdp.occupancy(policy).ravel()
    demos = collect(TabularModel.of(mdp), policy, 1000 * m, horizon, rng)
    all_at_once = feature_expectations(demos, costs, mdp.discount)
    covered = collections.Counter()
    for k in range(1000):
        part = slice(k * m, (k + 1) * m)
        sums, unseen = all_at_once.trajectory_values[part], all_at_once.unseen_mass[part]
        for truncation, seen in (("paper", 1.0), ("rescale", (1 - unseen)[:, None])):
            values = (sums / seen).mean(axis=0)
            errors = np.abs(values - truth)
            estimate = CostEstimate(values, sums, unseen, Criterion(mdp.discount), truncation, horizon)
            covered[truncation, "all"] += (errors <= estimate.radius(0.1) + 1e-12).all()
            covered[truncation, "alone"] += errors[0] <= estimate.radius(0.1, simultaneous=False)[0] + 1e-12
        for design in (horizon, None):
            estimate = CostEstimate(sums.mean(axis=0), sums, unseen, Criterion(mdp.discount), "paper", design)
            radius = estimate.class_radius(TableCosts(costs, mdp.n_actions, "ball"), 0.1)
            covered["ball", design] += np.linalg.norm(estimate.values - truth) <= radius
    assert min(covered.values()) >= 900, covered


def test_the_radius_is_not_absurdly_wide():
    """On a fair coin the radius is within twice the true 90 % quantile of the error; half of it fails."""
    mdp, costs, m, horizon = cases()["coin, many"]
    rng = np.random.default_rng(0)
    everything = collect(TabularModel.of(mdp), np.ones((2, 1)), 1000 * m, horizon, rng)
    sums = feature_expectations(everything, costs[:, :1], 0.9).trajectory_values.reshape(1000, m)
    errors = np.abs(sums.mean(axis=1))  # the truth is 0
    estimate = feature_expectations(everything.select(range(m)), costs[:, :1], 0.9)
    sampling = estimate.radius(0.1)[0] - 0.9**horizon
    assert sampling <= 2 * np.quantile(errors, 0.9)
    assert (errors <= sampling / 2).mean() < 0.9


def test_bounds_are_those_of_what_was_seen_less_and_more_what_was_not():
    mdp, costs, m, horizon = cases()["mixing"]
    rng = np.random.default_rng(0)
    demos = collect(TabularModel.of(mdp), np.full((4, 2), 0.5), m, horizon, rng)
    estimate = feature_expectations(demos, costs, 0.9)
    tail = 0.9**horizon  # nothing ends: all are cut
    seen = estimate.trajectory_values
    lower = 2 * lower_bound((seen - tail + 1) / 2, 0.1 / 3) - 1
    upper = 2 * upper_bound((seen + tail + 1) / 2, 0.1 / 3) - 1
    np.testing.assert_allclose(estimate.lower(0.1), lower, rtol=1e-12)
    np.testing.assert_allclose(estimate.upper(0.1), upper, rtol=1e-12)
    np.testing.assert_allclose(estimate.lower(0.1, simultaneous=False), estimate.lower(0.3), rtol=1e-12)
    each = estimate.intervals(0.8)
    np.testing.assert_allclose(each[:, 0], estimate.lower(0.1, simultaneous=False), rtol=1e-12)
    np.testing.assert_allclose(each[:, 1], estimate.upper(0.1, simultaneous=False), rtol=1e-12)
    sides = np.maximum(estimate.values - estimate.lower(0.05), estimate.upper(0.05) - estimate.values)
    np.testing.assert_allclose(estimate.radius(0.1), sides, rtol=1e-12)
    # How the estimate treats what was not seen moves the estimate, not what is known.
    rescaled = feature_expectations(demos, costs, 0.9, truncation="rescale")
    np.testing.assert_array_equal(rescaled.lower(0.1), estimate.lower(0.1))
    np.testing.assert_array_equal(rescaled.upper(0.1), estimate.upper(0.1))


def test_the_radius_of_a_class_is_the_formula():
    mdp, table, m, horizon = cases()["mixing"]
    rng = np.random.default_rng(0)
    demos = collect(TabularModel.of(mdp), np.full((4, 2), 0.5), m, horizon, rng)
    costs = TableCosts(table, 2, Ball(2.0))
    estimate = feature_expectations(demos, costs, 0.9)
    norm = np.linalg.norm(table, axis=1).max()
    assert costs.row_norm == pytest.approx(norm)
    share = 0.045  # δ = 0.1, a tenth of it for the tail, the rest for two inequalities
    mcdiarmid = norm * (1 + math.sqrt(2 * math.log(1 / share))) / math.sqrt(m)
    pairs = estimate.trajectory_values[: m // 2 * 2].reshape(-1, 2, 3)
    halves = ((pairs[:, 0] - pairs[:, 1]) ** 2).sum(axis=1, keepdims=True) / 2
    variance = 2 * norm**2 * upper_bound(halves / (2 * norm**2), share / 2)[0]
    log = math.log(4 / share)
    bernstein = math.sqrt(2 * variance * log / m) + 4 * norm * log / (3 * m)
    tail = 0.9**horizon * 1.0  # all are cut: no less is known of the mean
    expected = 2 * (min(mcdiarmid, bernstein) + norm * tail)
    np.testing.assert_allclose(estimate.class_radius(costs, 0.1), expected, rtol=1e-9)
    unknown = feature_expectations(dataclasses.replace(demos, horizon=None), costs, 0.9)
    assert unknown.class_radius(costs, 0.1) > expected
    # Where something else may cut trajectories, that none was cut there does not tell that none ever is.
    elsewhere = dataclasses.replace(estimate, cut_elsewhere=True)
    assert elsewhere.class_radius(costs, 0.1) == unknown.class_radius(costs, 0.1)
    free = dataclasses.replace(estimate, trajectory_values=0 * estimate.trajectory_values, values=np.zeros(3))
    assert free.class_radius(TableCosts(np.zeros((8, 3)), 2, "ball"), 0.1) == 0
    known = CostEstimate.exactly(np.zeros(3), Criterion(0.9), error=0.01)
    assert known.class_radius(costs, 0.1) == pytest.approx(2 * math.sqrt(3) * 0.01)


class Impatient(gym.Wrapper):
    """Cuts an episode at random, now and then."""

    def step(self, action):
        observation, reward, terminated, _, info = self.env.step(action)
        return observation, reward, terminated, self.np_random.random() < 0.002, info


def test_it_must_be_known_that_nothing_but_a_limit_cuts_episodes():
    """Twenty short episodes seldom show it."""

    def lean(seen):
        return (seen[:, 2] > 0).astype(int)

    known = gym.make("CartPole-v1", max_episode_steps=8)
    many = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1", max_episode_steps=8)] * 2)
    for env, unknown in (
        (known, False),
        (Impatient(known), True),
        (many, False),
        (None, True),
    ):  # of none nothing is known
        demos = collect(known, lean, 20, 8, np.random.default_rng(0))
        assert demos.horizon == 8
        task = Task(env, demos, discount=0.9)
        assert task.expert_features().cut_elsewhere == unknown
        if env is not None:
            played = task.expected_costs(lean, rng=np.random.default_rng(0), n_rollouts=4, horizon=8)
            assert played.cut_elsewhere == unknown


def test_the_radius_shrinks_with_data_and_grows_with_confidence():
    mdp, costs, _, horizon = cases()["ending"]
    demos = collect(TabularModel.of(mdp), np.full((3, 2), 0.5), 4000, horizon, np.random.default_rng(0))
    few, many = (feature_expectations(demos.select(range(m)), costs, 0.8) for m in (100, 4000))
    assert (many.radius(0.1) < few.radius(0.1)).all()
    assert (few.radius(0.01) > few.radius(0.1)).all()
    assert (few.radius(0.1) > few.radius(0.1, simultaneous=False)).all()
    # Most trajectories end: the tail that is left is a fraction of γ^H.
    assert many.radius(0.1).max() < 0.8**horizon


def test_radius_refuses_nonsense():
    estimate = feature_expectations(two_trajectories(), COSTS, 0.5)
    for arguments, message in [
        ({"delta": 0.0}, "delta must lie"),
        ({"delta": 1.0}, "delta must lie"),
    ]:
        with pytest.raises(ValueError, match=message):
            estimate.radius(**arguments)
    one = feature_expectations(two_trajectories().select([0]), COSTS, 0.5)
    assert (one.radius(0.1) <= 2).all()


# -- how much is needed -----------------------------------------------------------------------------------------------


def test_the_numbers_printed_in_the_paper():
    """Theorem 1 prints m = 8 log(4 n_c/δ)/ε² and H = log(2/ε)/(1−γ); these are the numbers for accuracy ε."""
    for eps, n_c, delta, discount in ((0.1, 5, 0.05, 0.9), (0.3, 1, 0.2, 0.99), (0.01, 50, 0.01, 0.5)):
        assert required_trajectories(eps, n_c, delta / 2) == math.ceil(8 * math.log(4 * n_c / delta) / eps**2)
        horizon = required_horizon(eps, discount)
        assert discount**horizon <= eps / 2 < discount ** (horizon - 1)
        assert horizon <= math.log(2 / eps) / (1 - discount) + 1
        assert required_trajectories(eps / 4, n_c, delta / 2) == math.ceil(128 * math.log(4 * n_c / delta) / eps**2)


def test_the_printed_numbers_do_not_give_a_quarter_of_epsilon():
    """A constant cost, no randomness: with the printed H the tail alone exceeds ε/4. The corrected H is enough."""
    eps, discount = 0.1, 0.9
    mdp = FiniteMDP(np.ones((1, 1, 1)), [1.0], discount)
    model = TabularModel.of(mdp)
    printed = math.ceil(math.log(2 / eps) / (1 - discount)) + 1  # H counts from 0
    for n_actions, enough in ((printed, False), (required_horizon(eps / 4, discount), True)):
        demos = collect(model, np.ones((1, 1)), 1, n_actions, np.random.default_rng(0))
        error = 1 - feature_expectations(demos, [[1.0]], discount).values[0]
        assert (error <= eps / 4) == enough


def test_the_required_numbers_are_enough():
    """Accuracy 0.5 for three features at δ = 0.1: in 300 repetitions no more than a tenth miss it."""
    mdp, costs, *_ = cases()["mixing"]
    m, horizon = required_trajectories(0.5, 3, 0.1), required_horizon(0.5, 0.9)
    rng = np.random.default_rng(0)
    policy = np.full((4, 2), 0.5)
    truth = costs.T @ mdp.occupancy(policy).ravel()
    everything = collect(TabularModel.of(mdp), policy, 300 * m, horizon, rng)
    sums = feature_expectations(everything, costs, 0.9).trajectory_values.reshape(300, m, 3)
    errors = np.abs(sums.mean(axis=1) - truth).max(axis=1)
    assert (errors <= 0.5).mean() >= 0.9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: required_trajectories(0.0, 1, 0.1), "accuracy must lie strictly between 0 and 2"),
        (lambda: required_trajectories(0.1, 0, 0.1), "n_features must be at least 1"),
        (lambda: required_trajectories(0.1, 1, 1.0), "delta must lie"),
        (lambda: required_horizon(2.0, 0.9), "accuracy must lie"),
        (lambda: required_horizon(0.1, 1.0), "discount must lie"),
    ],
)
def test_required_numbers_refuse_nonsense(call, message):
    with pytest.raises(ValueError, match=message):
        call()
