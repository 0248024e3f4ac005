"""Sets of weights: every closed form against what it means, on random vectors."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from l1_ball import L1Ball

from lfd_gym import Ball, Box, Simplex
from lfd_gym.costs.sets import cost_weights_set

SETS = [Simplex(), Ball(), Ball(0.3), Box(), Box(2.5), L1Ball()]
each_set = pytest.mark.parametrize("weights", SETS, ids=repr)
FEW = settings(max_examples=60, deadline=None)
cases = given(st.integers(1, 6), st.integers(0, 2**32 - 1))


def members(weights, size, rng, count=40):
    """Points of the set: projections of random points near and far, and corners."""
    points = [weights.project(scale * rng.standard_normal(size)) for scale in (0.01, 1.0, 50.0) for _ in range(count)]
    return np.array([*points, *(weights.maximiser(rng.standard_normal(size)) for _ in range(count))])


@each_set
@FEW
@cases
def test_the_support_function_is_attained_and_never_exceeded(weights, size, seed):
    rng = np.random.default_rng(seed)
    vector, points = rng.standard_normal(size), members(weights, size, rng)
    best = weights.maximiser(vector)
    assert weights.check("best", best, size) is not None
    assert vector @ best == pytest.approx(float(weights.support(vector)), abs=1e-12)
    assert (points @ vector <= weights.support(vector) + 1e-9).all()
    rows = rng.standard_normal((4, size))
    np.testing.assert_allclose(weights.support(rows), [weights.support(row) for row in rows])
    assert weights.largest(rows) == pytest.approx(max(weights.support(np.vstack([rows, -rows]))))
    assert np.linalg.norm(points, axis=1).max() <= weights.radius(size) + 1e-9


@each_set
@FEW
@cases
def test_projections_are_feasible_idempotent_nearest_and_do_not_expand(weights, size, seed):
    rng = np.random.default_rng(seed)
    one, other = 3 * rng.standard_normal((2, size))
    near, near_other = weights.project(one), weights.project(other)
    weights.check("projection", near, size)
    np.testing.assert_allclose(weights.project(near), near, atol=1e-12)
    assert np.linalg.norm(near - near_other) <= np.linalg.norm(one - other) + 1e-12
    for point in members(weights, size, rng, 10):  # the obtuse angle of a projection
        assert (one - near) @ (point - near) <= 1e-9
    weights.check("centre", weights.centre(size), size)


@each_set
@FEW
@cases
def test_bounds_over_boxes_hold_at_their_corners(weights, size, seed):
    rng = np.random.default_rng(seed)
    vector, radii = rng.standard_normal(size), rng.random(size)
    corners = [vector + np.array(signs) * radii for signs in itertools.product((-1, 1), repeat=size)]
    inside = [vector + rng.uniform(-1, 1, size) * radii for _ in range(20)]
    values = [float(weights.support(point)) for point in corners + inside]
    assert max(values) <= weights.largest_within(vector, radii) + 1e-9
    assert weights.smallest_within(vector, radii) <= min(values) + 1e-9
    if not isinstance(weights, L1Ball):  # the others say it sharply: the support function is convex
        assert weights.largest_within(vector, radii) == pytest.approx(max(values))
        nearest = np.sign(vector) * np.maximum(np.abs(vector) - radii, 0)
        lowest = vector - radii if weights.nonnegative else nearest
        assert weights.smallest_within(vector, radii) == pytest.approx(float(weights.support(lowest)))


@pytest.mark.parametrize("weights", [Ball(), Ball(0.3), Box(), Box(2.5)], ids=repr)
def test_the_gauge_is_how_often_the_set_fits(weights):
    rng = np.random.default_rng(0)
    vector = rng.standard_normal(5)
    scale = weights.gauge(vector)
    weights.check("edge", vector / scale, 5)
    with pytest.raises(ValueError, match="beyond must lie in B"):
        weights.check("beyond", vector / scale * 1.001, 5)
    with pytest.raises(TypeError, match=r"Simplex\(\) has no gauge"):
        Simplex().gauge(vector)


@each_set
def test_mirror_ascent_finds_the_maximum(weights):
    """Steps of every set, with the length it asks for, climb a linear function to its support."""
    vector, n_rounds = np.array([0.3, -0.2, 0.9, 0.1]), 3000
    step = weights.step_scale(4, float(np.linalg.norm(vector))) / np.sqrt(n_rounds)
    point, total = weights.centre(4), np.zeros(4)
    for _ in range(n_rounds):
        total += point
        point = weights.mirror_step(point, step * vector)
        weights.check("point", point, 4)
    assert total @ vector / n_rounds >= 0.95 * float(weights.support(vector))
    weights.check("tempered", weights.temper(point, 0.5), 4)


def test_projections_onto_the_simplex_lose_no_digits():
    np.testing.assert_allclose(Simplex().project(np.array([1e17, 1e17])), [0.5, 0.5])
    np.testing.assert_allclose(Simplex().project(np.array([1e300, -1e300])), [1.0, 0.0])


class Beside(L1Ball):
    """An l1 ball around (3, 0, …): no weights are those of another sign."""

    def support(self, vectors):
        return 3 * np.asarray(vectors)[..., 0] + super().support(vectors)


def test_the_largest_of_rows_counts_both_signs_of_each():
    rows = np.array([[-1.0, 0.5], [0.5, 0.0], [-0.2, 0.1]])
    assert Beside().largest(rows) == 4.0  # 3 · 1 + 1, of the first with its sign changed
    assert Beside().largest(-rows) == 4.0


def test_tempering_the_simplex_shortens_all_steps_so_far():
    start, change = np.full(3, 1 / 3), np.array([0.3, -0.5, 0.1])
    whole = Simplex().mirror_step(start, 0.5 * change)
    np.testing.assert_allclose(Simplex().temper(Simplex().mirror_step(start, change), 0.5), whole)


@each_set
def test_deviations_of_means_are_covered(weights):
    """The mean of vectors with entries ±1, 200 times: misses are rarer than δ."""
    rng, size, n, delta = np.random.default_rng(0), 4, 50, 0.1
    means = rng.choice([-1.0, 1.0], size=(200, n, size)).mean(axis=1)
    missed = (weights.support(means) > weights.deviation(size, n, delta)).mean()
    assert missed <= delta


def test_names_of_sets():
    assert cost_weights_set("cost_class", "simplex") == Simplex()
    assert cost_weights_set("cost_class", "ball") == Ball()
    own = L1Ball()
    assert cost_weights_set("cost_class", own) is own
    with pytest.raises(ValueError, match=r"cost_class must be one of \('simplex', 'ball'\) or a ConvexSet, got 'box'"):
        cost_weights_set("cost_class", "box")


@pytest.mark.parametrize(
    ("weights", "point", "message"),
    [
        (Simplex(), [0.5, 0.6], "w must sum to 1"),
        (Simplex(), [1.5, -0.5], "w must be nonnegative"),
        (Ball(), [1.0, 0.1], r"w must lie in Ball\(bound=1.0\), got .* away from it"),
        (Box(0.5), [0.0, 0.7], r"w must lie in Box\(bound=0.5\), got .* 0.2 away"),
        (Ball(), [np.nan, 0.0], "w must be finite"),
        (Box(), [0.0], r"w must have shape \(2,\)"),
    ],
)
def test_weights_outside_are_refused(weights, point, message):
    with pytest.raises(ValueError, match=message):
        weights.check("w", point, 2)


@pytest.mark.parametrize("kind", [Ball, Box])
@pytest.mark.parametrize("bound", [0.0, -1.0, np.inf, np.nan])
def test_bounds_must_be_positive(kind, bound):
    with pytest.raises(ValueError, match="bound must be positive and finite"):
        kind(bound)
