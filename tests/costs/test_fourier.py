"""Fourier costs: rows of norm 1, the kernel and its maximum mean discrepancy, every kind of space, files."""

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import lfd_gym as lfd
from lfd_gym.costs.coding import LIMIT, Coding

BOX = spaces.Box(-np.inf, np.inf, (3,), np.float64)
PUSH = spaces.Box(-2.0, 2.0, (2,), np.float32)
DISCRETE = spaces.Discrete(3)


def samples(rng, n=200):
    return rng.normal(size=(n, 3)) * [1.0, 10.0, 0.01] + [0.0, 5.0, 1.0], rng.uniform(-2, 2, (n, 2))


def made(rng, **settings):
    return lfd.FourierCosts.from_samples(*samples(rng), BOX, PUSH, chosen_from_demonstrations=False, **settings)


def test_every_row_has_norm_one():
    rng = np.random.default_rng(0)
    for constant in (0.0, 0.5, 0.99):
        costs = made(rng, constant=constant, n_frequencies=31)
        rows = costs.rows(*samples(rng, 1000))
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=0, atol=1e-14)
        np.testing.assert_array_equal(rows[:, -1], constant)
        assert costs.n_costs == rows.shape[1] == len(costs.names) == 63
    assert costs.names[0] == "cos0"
    assert costs.names[31] == "sin0"
    assert costs.names[-1] == "constant"
    assert costs.weights == lfd.Ball()
    assert costs.table is None


def test_the_kernel_is_the_inner_product_and_tends_to_a_mixture_of_gaussians():
    rng = np.random.default_rng(1)
    first, second = samples(rng, 40), samples(rng, 30)
    errors = []
    for n_frequencies in (100, 10_000):
        costs = made(np.random.default_rng(2), n_frequencies=n_frequencies, constant=0.3)
        gaps = costs.coding(*first)[:, None] - costs.coding(*second)[None]
        waves = np.cos(gaps @ costs.frequencies.T).mean(axis=2)
        kernel = costs.kernel(*first, *second)
        np.testing.assert_allclose(kernel, 0.09 + 0.91 * waves, atol=1e-12)
        distances = (gaps**2).sum(axis=2)
        limit = 0.09 + 0.91 * np.mean([np.exp(-distances / (2 * width**2)) for width in costs.widths], axis=0)
        errors.append(np.sqrt(np.mean((kernel - limit) ** 2)))
    # 100 times the frequencies, a tenth of the error, up to the luck of the draw.
    assert 4 < errors[0] / errors[1] < 25
    assert errors[1] < 0.02


def test_the_distance_is_the_maximum_mean_discrepancy_of_the_kernel():
    rng = np.random.default_rng(3)
    costs = made(rng)
    first, second = samples(rng, 50), samples(rng, 70)
    second[0][:, 0] += 0.5
    gap = costs.rows(*first).mean(axis=0) - costs.rows(*second).mean(axis=0)
    pairs = [(one, other) for one in (first, second) for other in (first, second)]
    within_1, between, _, within_2 = (costs.kernel(*one, *other).mean() for one, other in pairs)
    np.testing.assert_allclose(costs.weights.support(gap), np.sqrt(within_1 + within_2 - 2 * between), rtol=1e-10)
    # Whatever cost of norm B: its difference is at most B times the distance.
    weights = rng.normal(size=(100, costs.n_costs))
    assert (np.abs(weights @ gap) <= np.linalg.norm(weights, axis=1) * costs.weights.support(gap)).all()


def test_the_same_occupancy_is_at_distance_zero_in_the_limit_and_another_is_not():
    rng = np.random.default_rng(4)
    costs = made(rng)
    means = {n: [costs.rows(*samples(rng, n)).mean(axis=0) for _ in range(2)] for n in (100, 10_000)}
    same = {n: costs.weights.support(one - other) for n, (one, other) in means.items()}
    assert same[10_000] < same[100] / 4
    assert same[10_000] < 2 * costs.deviation(10_000, 0.01)
    moved, done = samples(rng, 10_000)
    moved[:, 1] += 5.0  # half a standard deviation in one entry of three
    assert costs.weights.support(costs.rows(moved, done).mean(axis=0) - means[10_000][0]) > 5 * same[10_000]


def test_deviation_covers_and_knows_no_number_of_features():
    rng = np.random.default_rng(5)
    costs = made(rng)
    truth = costs.rows(*samples(rng, 100_000)).mean(axis=0)
    away = [costs.weights.support(costs.rows(*samples(rng, 25)).mean(axis=0) - truth) for _ in range(200)]
    assert np.mean(np.array(away) > costs.deviation(25, 0.1)) <= 0.1
    assert costs.deviation(25, 0.1) < 0.07 * costs.weights.deviation(costs.n_costs, 25, 0.1)


def test_the_constant_sees_an_early_end():
    costs = made(np.random.default_rng(6))
    seen, done = samples(np.random.default_rng(7), 100)
    ended = np.arange(100) >= 60
    rows = costs.rows(seen, done, ended)
    assert not rows[60:].any()
    np.testing.assert_array_equal(rows[:60], costs.rows(seen[:60], done[:60]))
    gap = (costs.rows(seen, done) - rows).mean(axis=0)
    assert costs.weights.support(gap) >= 0.5 * 0.4 - 1e-12
    seen[60:] = np.nan  # the end, as generative models show it
    np.testing.assert_array_equal(costs.rows(seen, done), rows)


def test_an_end_without_a_place_of_its_own_is_free():
    """The absorbing state is no element of the space, and what is done there does not matter."""
    costs = lfd.FourierCosts.from_spaces(spaces.Discrete(4), spaces.Discrete(2))
    rows = costs.rows(np.array([3, 4]), np.array([1, -1]), np.array([False, True]))
    assert np.linalg.norm(rows[0]) == pytest.approx(1.0)
    assert not rows[1].any()
    with pytest.raises(ValueError, match=r"observations must be elements of Discrete\(4\), got \[4\]"):
        costs.rows(np.array([3, 4]), np.array([1, 1]))


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1.0, 1.0, (), np.float32),
        spaces.Box(0, 255, (4, 5, 3), np.uint8),
        spaces.Discrete(5),
        spaces.MultiDiscrete([2, 3, 4]),
        spaces.MultiDiscrete(np.array([[2, 3], [4, 5]])),
        spaces.MultiBinary(3),
        spaces.MultiBinary((2, 2)),
    ],
    ids=str,
)
def test_every_space_as_observations_and_as_actions(space):
    space.seed(0)
    batch = np.array([space.sample() for _ in range(50)])
    numbers = np.linspace(-1, 1, 50)[:, None]
    line = spaces.Box(-1.0, 1.0, (1,), np.float64)
    for first, second, first_space, second_space in ((batch, numbers, space, line), (numbers, batch, line, space)):
        by_spaces = lfd.FourierCosts.from_spaces(first_space, second_space)
        by_samples = lfd.FourierCosts.from_samples(
            first, second, first_space, second_space, chosen_from_demonstrations=True
        )
        for costs in (by_spaces, by_samples):
            rows = costs.rows(first, second)
            np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-14)
            assert len(np.unique(rows.round(9), axis=0)) == 50  # pairs that differ are told apart
            assert costs.rows(first[:0], second[:0]).shape == (0, 257)


def test_widths_are_half_the_median_distance_once_and_twice():
    rng = np.random.default_rng(8)
    seen, done = samples(rng, 300)
    for costs in (
        lfd.FourierCosts.from_spaces(PUSH, DISCRETE),
        lfd.FourierCosts.from_samples(seen, done, BOX, PUSH, chosen_from_demonstrations=False),
    ):
        np.testing.assert_allclose(np.divide(costs.widths, costs.widths[1]), [0.5, 1, 2])


def test_one_hot_vectors_by_hand():
    coding = Coding.from_bounds("action", spaces.MultiDiscrete([2, 3]))
    np.testing.assert_array_equal(coding("actions", [[1, 0], [0, 2]]), [[0, 1, 1, 0, 0], [1, 0, 0, 0, 1]])
    coding = Coding.from_bounds("action", spaces.MultiBinary(2))
    np.testing.assert_array_equal(coding("actions", [[1, 0]]), [[1, 0]])


def test_dict_spaces_stand_for_their_flat_arrays():
    space = spaces.Dict({"goal": spaces.Discrete(3), "speed": spaces.Box(-1, 1, (2,))})
    flat = np.array([[0, 1, 0, 0.5, -0.5], [1, 0, 0, 0.1, 0.2]])
    costs = lfd.FourierCosts.from_spaces(space, DISCRETE)
    assert costs.rows(flat, np.array([0, 1])).shape == (2, 257)


def test_scales_by_samples():
    rng = np.random.default_rng(8)
    seen, _ = samples(rng, 5000)
    coded = Coding.from_samples("observation", BOX, seen)("observations", seen)
    np.testing.assert_allclose(coded.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(coded.std(axis=0), 1, atol=1e-3)
    bounded = Coding.from_samples("action", PUSH, rng.normal(size=(50, 2)), prefer_bounds=True)
    np.testing.assert_array_equal(bounded("actions", [[-2.0, 1.0]]), [[-1.0, 0.5]])
    half = spaces.Box(np.array([0.0, -np.inf]), np.array([4.0, np.inf]), dtype=np.float64)
    mixed = Coding.from_samples("action", half, [[1.0, 10.0], [1.0, 30.0]], prefer_bounds=True)
    np.testing.assert_array_equal(mixed("actions", [[0.0, 30.0]]), [[-1.0, 1.0]])


def test_entries_that_never_move_are_scaled_by_bounds_or_left():
    space = spaces.Box(np.array([-4.0, -np.inf, 0.0]), np.array([4.0, np.inf, 0.0]), dtype=np.float64)
    seen = np.tile([1.0, 7.0, 0.0], (5, 1))
    seen[0, 1] += 1e-12  # rounding is no movement
    coding = Coding.from_samples("observation", space, seen)
    np.testing.assert_allclose(coding("observations", [[3.0, 8.0, 0.5]]), [[0.5, 1.0, 0.5]])
    costs = lfd.FourierCosts.from_samples(seen, None, space, None, chosen_from_demonstrations=True)
    assert np.isfinite(costs.rows(np.array([[3.0, 8.0, 0.0]]), None)).all()


def test_angles_are_seen_as_points_of_the_circle():
    space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    rng = np.random.default_rng(9)
    seen = np.stack([rng.normal(size=100), rng.uniform(-3, 3, 100)], axis=1)
    for costs in (
        lfd.FourierCosts.from_samples(seen, None, space, None, angles=(1,), chosen_from_demonstrations=False),
        lfd.FourierCosts.from_spaces(spaces.Box(np.float32([-3, -np.inf]), np.float32([3, np.inf])), None, angles=(1,)),
    ):
        around = seen + np.array([0.0, 2 * np.pi])
        np.testing.assert_allclose(costs.rows(seen, None), costs.rows(around, None), atol=1e-10)
        assert np.abs(costs.rows(seen, None) - costs.rows(seen + np.array([0.0, 1.0]), None)).max() > 0.01
    # The circle stays round: opposite points are equally far, whatever the angles in the samples.
    near = np.stack([np.zeros(100), rng.normal(size=100) * 0.01], axis=1)
    coding = Coding.from_samples("observation", space, near, (1,))
    assert coding.scale[1] == coding.scale[2] == pytest.approx(0.01 / np.sqrt(2), rel=0.3)


def test_far_out_stays_finite_and_rounding_does_not_matter():
    rng = np.random.default_rng(10)
    costs = made(rng)
    seen, done = samples(rng, 4)
    far = seen.copy()
    far[:, 1] = [1e300, -1e300, np.inf, -np.inf]
    rows = costs.rows(far, done)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-14)
    assert np.abs(costs.coding(far, done)).max() == LIMIT
    single = costs.rows(seen.astype(np.float32), done.astype(np.float32))
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, costs.rows(seen, done), atol=1e-4)  # 1e-7 of 1.0, at a scale of 0.01


def test_widths_follow_the_median_distance():
    """In 100 dimensions a width of 1 sees nothing but what is the same; widths relative to the median do."""
    rng = np.random.default_rng(11)
    space = spaces.Box(-np.inf, np.inf, (100,), np.float64)
    seen = rng.normal(size=(400, 100))
    median = np.sqrt(200)  # of independent standard normal vectors, nearly all of them

    def similarity(widths):
        costs = lfd.FourierCosts.from_samples(
            seen, None, space, None, widths=widths, chosen_from_demonstrations=False, n_frequencies=2000, constant=0.0
        )
        assert costs.widths == pytest.approx([median * width for width in widths], rel=0.05)
        return costs.kernel(seen[:1], None, seen[1:], None).mean()

    assert similarity((0.5, 1.0, 2.0)) == pytest.approx(np.mean(np.exp([-2, -1 / 2, -1 / 8])), abs=0.05)
    assert similarity((1 / median,)) == pytest.approx(0.0, abs=0.01)


def test_the_same_seed_gives_the_same_costs():
    one, same, other = (made(np.random.default_rng(0), seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert hash(one) == hash(same)
    np.testing.assert_array_equal(one.frequencies, same.frequencies)
    assert one != other
    assert one != "costs"
    assert one != made(np.random.default_rng(0), seed=1, weights=lfd.Ball(2.0))
    assert one != made(np.random.default_rng(0), seed=1, chosen_from="random play")


@pytest.mark.parametrize("with_actions", [True, False])
@pytest.mark.parametrize("weights", ["ball", "simplex", lfd.Ball(3.0), lfd.Box(0.5)])
def test_to_data_and_back(with_actions, weights):
    rng = np.random.default_rng(12)
    seen, done = samples(rng)
    costs = lfd.FourierCosts.from_samples(
        seen,
        done if with_actions else None,
        BOX,
        PUSH,
        angles=(2,),
        weights=weights,
        chosen_from="random play",
        chosen_from_demonstrations=False,
    )
    data, arrays = costs.to_data()
    back = lfd.FourierCosts.from_data(json.loads(json.dumps(data)), arrays)
    assert back == costs
    assert repr(back) == repr(costs)
    assert (back.weights, back.uses_actions) == (costs.weights, with_actions)
    np.testing.assert_array_equal(back.rows(seen, done), costs.rows(seen, done))
    assert all(array.dtype.kind == "f" for array in arrays.values())


def test_costs_of_observations_alone():
    rng = np.random.default_rng(13)
    seen, done = samples(rng)
    costs = lfd.FourierCosts.from_samples(seen, None, BOX, None, chosen_from_demonstrations=True)
    assert not costs.uses_actions
    np.testing.assert_array_equal(costs.rows(seen, None), costs.rows(seen, done))
    assert repr(costs) == "FourierCosts(257 costs of observations alone, Ball(bound=1.0), chosen from demonstrations)"
    with pytest.raises(ValueError, match="actions are not known, but FourierCosts"):
        made(rng).rows(seen, None)


def test_costs_remember_what_they_were_chosen_from():
    env = gym.make("CartPole-v1")
    demos = lfd.collect(env, lambda seen: np.zeros(len(seen), dtype=int), 3, 50, np.random.default_rng(0))
    costs = lfd.FourierCosts.from_demonstrations(demos)
    assert repr(costs) == "FourierCosts(257 costs, Ball(bound=1.0), chosen from 3 demonstrations)"
    assert costs.chosen_from_demonstrations
    assert not lfd.FourierCosts.from_demonstrations(demos, actions=False, n_frequencies=4).uses_actions
    beforehand = made(np.random.default_rng(0), chosen_from="random play")
    assert repr(beforehand) == "FourierCosts(257 costs, Ball(bound=1.0), chosen from random play)"
    assert not beforehand.chosen_from_demonstrations
    assert not lfd.FourierCosts.from_spaces(PUSH, DISCRETE).chosen_from_demonstrations


def test_expected_costs_of_demonstrations_and_of_a_simulator():
    """They go wherever costs go: the distance of a policy to its own demonstrations is small, of another not."""
    env = gym.make("CartPole-v1")
    rng = np.random.default_rng(0)

    def balance(seen):
        return (seen[:, 2] + 0.3 * seen[:, 3] > 0) * 1

    demos = lfd.collect(env, balance, 50, 100, rng)
    task = lfd.Task(env, demos, discount=0.95, costs=lfd.FourierCosts.from_demonstrations(demos))
    expert = task.expert_features().values
    own, other = (
        task.costs.weights.support(task.expected_costs(policy, rng=rng, n_rollouts=200, horizon=100).values - expert)
        for policy in (balance, lambda seen: np.zeros(len(seen), dtype=int))
    )
    assert own < 2 * task.costs.deviation(50, 0.01)
    assert other > 5 * own


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: lfd.FourierCosts.from_spaces(BOX, DISCRETE),
            r"no bounds at \[0, 1, 2\]: give samples, .* random play",
        ),
        (
            lambda: lfd.FourierCosts.from_spaces(gym.make("CartPole-v1").observation_space, DISCRETE),
            r"observation_space must be bounded .* no bounds at \[1, 3\]",
        ),
        (lambda: lfd.FourierCosts.from_spaces(DISCRETE, BOX), "action_space must be bounded"),
        (lambda: lfd.FourierCosts.from_spaces(PUSH, spaces.Text(3)), "action_space must be a Box, Discrete"),
        (lambda: lfd.FourierCosts.from_spaces(PUSH, DISCRETE, angles=(2,)), "angles must be different indices below 2"),
        (lambda: lfd.FourierCosts.from_spaces(PUSH, DISCRETE, angles=(0, 0)), "angles must be different indices"),
        (lambda: lfd.FourierCosts.from_spaces(DISCRETE, PUSH, angles=(0,)), "only entries of a Box can be angles"),
        (lambda: lfd.FourierCosts.from_spaces(PUSH, DISCRETE, constant=1.0), r"constant must lie in \[0, 1\), got 1.0"),
        (lambda: lfd.FourierCosts.from_spaces(PUSH, DISCRETE, n_frequencies=0), "n_frequencies must be at least 1"),
        (lambda: lfd.FourierCosts.from_spaces(PUSH, DISCRETE, widths=()), "widths must be one or more positive"),
        (lambda: lfd.FourierCosts.from_spaces(PUSH, DISCRETE, widths=(0.0,)), "widths must be one or more positive"),
        (lambda: made(np.random.default_rng(0), weights="box"), "weights must be one of"),
        (lambda: made(np.random.default_rng(0)).deviation(10, 0.0), "delta must lie strictly between"),
    ],
)
def test_bad_settings_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("seen", "done", "message"),
    [
        ([[0.0, 0.0]], [[0.0, 0.0]], r"observations must have shape \(n, 3\), got \(1, 2\)"),
        ([[0.0] * 3], [0.0], r"actions must have shape \(n, 2\), got \(1,\)"),
        ([[0.0] * 3], [[0.0, np.nan]], "actions must be numbers, got .* at index 0"),
        ([[0.0] * 3] * 2, [[0.0, 0.0]], "observations and actions must be equally many, got 2 and 1"),
    ],
)
def test_bad_batches_are_named(seen, done, message):
    with pytest.raises(ValueError, match=message):
        made(np.random.default_rng(0)).rows(np.array(seen), np.array(done))


def test_bad_samples_are_named():
    seen, done = samples(np.random.default_rng(0), 10)
    with pytest.raises(ValueError, match="observations must hold at least one sample"):
        lfd.FourierCosts.from_samples(seen[:0], done[:0], BOX, PUSH, chosen_from_demonstrations=False)
    seen[3, 1] = np.nan
    with pytest.raises(ValueError, match="observations must be finite to take scales from them"):
        lfd.FourierCosts.from_samples(seen, done, BOX, PUSH, chosen_from_demonstrations=False)
    with pytest.raises(ValueError, match="action_space must be given where there are actions"):
        lfd.FourierCosts.from_samples(seen[:3], done[:3], BOX, None, chosen_from_demonstrations=False)
    with pytest.raises(ValueError, match="actions must be elements of Discrete"):
        lfd.FourierCosts.from_spaces(PUSH, DISCRETE).rows(np.zeros((1, 2)), np.array([0.5]))
    turning = lfd.FourierCosts.from_spaces(PUSH, DISCRETE, angles=(0,))
    with pytest.raises(ValueError, match="observations must be numbers"):
        turning.rows(np.array([[np.inf, 0.0]]), np.array([0]))


def test_a_set_of_ones_own_cannot_be_written_down():
    class Mine(lfd.Ball):
        pass

    with pytest.raises(ValueError, match=r"weights must lie in one of \('Simplex', 'Ball', 'Box'\) to be written"):
        made(np.random.default_rng(0), weights=Mine()).to_data()
