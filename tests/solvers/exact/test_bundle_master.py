"""The small problems of the cutting-plane method against scipy and against their optimality conditions."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from lfd_gym import Box, ConvexSet
from lfd_gym.solvers.exact.bundle_master import BallMaster, HullMaster, SimplexMaster
from lfd_gym.solvers.exact.curvature import Trust
from lfd_gym.solvers.exact.matrix_game import game_prices, initial_basis, solve_game
from lfd_gym.solvers.exact.polyhedron_projection import least_distance, min_norm_weights, nonnegative_least_squares


@st.composite
def matrices(draw, max_rows=30, max_columns=8):
    """Rows that are generic, tied ({−1, 0, 1}), repeated, or nearly parallel."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    kind = draw(st.sampled_from(["generic", "tied", "repeated", "parallel"]))
    if kind == "tied":
        return rng.choice([-1.0, 0.0, 1.0], size=shape)
    if kind == "repeated":
        return rng.normal(size=shape)[rng.integers(shape[0], size=shape[0])]
    if kind == "parallel":
        return rng.normal(size=shape[1]) + 1e-6 * rng.normal(size=shape)
    return rng.normal(size=shape)


def game_value(rows):
    n_rows, size = rows.shape
    result = linprog(
        np.append(np.zeros(n_rows), 1.0),
        A_ub=np.hstack([rows.T, -np.ones((size, 1))]),
        b_ub=np.zeros(size),
        A_eq=np.append(np.ones(n_rows), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * n_rows + [(None, None)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return result.fun


@settings(max_examples=150, deadline=None)
@given(matrices())
def test_game_agrees_with_a_linear_program_whether_rows_come_one_by_one_or_at_once(rows):
    basis = initial_basis(rows[0])
    for count in range(1, len(rows) + 1):
        grown = solve_game(rows[:count], basis, 10_000)
    at_once = solve_game(rows, initial_basis(rows[0]), 10_000)
    value = game_value(rows)
    for mixture in (grown, at_once):
        assert mixture.min() >= 0
        assert mixture.sum() == pytest.approx(1, abs=1e-12)
        # A mixture cannot beat the value of the game: where it is below HiGHS' answer, HiGHS stopped short.
        assert (mixture @ rows).max() <= value + 1e-9


@settings(max_examples=150, deadline=None)
@given(matrices(), st.integers(0, 2**32 - 1))
def test_prices_of_a_game_are_the_mixture_of_its_maximiser(rows, seed):
    first = seed % len(rows)  # any row will do to begin with
    basis = initial_basis(rows[first], first)
    mixture = solve_game(rows, basis, 10_000)
    prices = game_prices(rows, basis)
    assert prices.min() >= 0
    assert prices.sum() == pytest.approx(1, abs=1e-12)
    assert (rows @ prices).min() >= (mixture @ rows).max() - 1e-9  # what neither player can improve on


def test_game_stopped_early_still_returns_a_mixture():
    rows = np.random.default_rng(0).normal(size=(20, 6))
    mixture = solve_game(rows, initial_basis(rows[0]), 1)
    assert mixture.sum() == pytest.approx(1)
    assert (mixture @ rows).max() >= game_value(rows) - 1e-12


@settings(max_examples=150, deadline=None)
@given(matrices(), st.integers(0, 2**32 - 1))
def test_nonnegative_least_squares_meets_its_optimality_conditions(columns, seed):
    target = np.random.default_rng(seed).normal(size=columns.shape[1])
    solution = nonnegative_least_squares(columns, target)
    gradient = columns @ (target - solution @ columns)
    scale = np.abs(columns).max() * np.linalg.norm(target) + 1
    assert solution.min() >= 0
    assert gradient.max() <= 1e-9 * scale
    assert np.abs(gradient[solution > 0]).max(initial=0.0) <= 1e-9 * scale


@settings(max_examples=150, deadline=None)
@given(matrices())
def test_min_norm_point_is_nearest_to_the_origin(points):
    weights = min_norm_weights(points)
    nearest = weights @ points
    assert weights.min() >= 0
    # x is the point of least norm in a convex hull iff ⟨x, p⟩ ≥ ‖x‖² for every point p.
    assert (points @ nearest).min() >= nearest @ nearest - 1e-11


@settings(max_examples=150, deadline=None)
@given(matrices(), st.integers(0, 2**32 - 1))
def test_least_distance_is_the_projection_of_the_origin(normals, seed):
    rng = np.random.default_rng(seed)
    normals = normals[np.linalg.norm(normals, axis=1) > 0]
    if len(normals) == 0:
        return
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    inside = rng.normal(size=normals.shape[1])
    offsets = normals @ inside - rng.random(len(normals))
    nearest = least_distance(normals, offsets)
    assert (normals @ nearest - offsets).min() >= -1e-8
    # The projection y of 0 onto a convex set satisfies ⟨y, z − y⟩ ≥ 0 for every z in it.
    assert nearest @ (inside - nearest) >= -1e-8


def test_least_distance_says_when_there_is_no_point():
    assert np.isnan(least_distance(np.array([[1.0], [-1.0]]), np.array([1.0, 1.0]))).all()


def filled(master, points, cuts):
    for point, cut in zip(points, cuts, strict=True):
        master.add(point, cut)
    return master


@settings(max_examples=150, deadline=None)
@given(matrices(max_columns=6), st.integers(0, 2**32 - 1))
def test_simplex_master_bounds_the_game_and_asks_between_the_bounds(cuts, seed):
    rng = np.random.default_rng(seed)
    size = cuts.shape[1]
    points = rng.dirichlet(np.ones(size), size=len(cuts))
    master = filled(SimplexMaster(size), points, cuts)
    assert master.upper_bound == pytest.approx((master.mixture @ cuts).max(), abs=1e-12)
    values = (points @ cuts.T).min(axis=1)
    assert master.lower_bound == pytest.approx(values.max(), abs=1e-12)
    assert (cuts @ master.best_weights).min() == pytest.approx(values.max(), abs=1e-12)
    if master.gap < 1e-9:
        return  # nothing to ask
    weights = master.next_weights()
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    # Whether by the cuts alone or with curvature, so that lower bound or cuts must move.
    assert (cuts @ weights).min() >= master.lower_bound + 0.049 * master.gap - 1e-9


@settings(max_examples=100, deadline=None)
@given(matrices(max_columns=6), st.integers(0, 2**32 - 1))
def test_without_curvature_the_next_weights_are_the_nearest_of_the_level_set(cuts, seed):
    rng = np.random.default_rng(seed)
    size = cuts.shape[1]
    master = filled(SimplexMaster(size), rng.dirichlet(np.ones(size), size=len(cuts)), cuts)
    master._trust = Trust()
    level = master.lower_bound + 0.55 * master.gap
    weights, centre = master.next_weights(), master.best_weights
    assert (cuts @ weights).min() >= level - 1e-7
    for other in rng.dirichlet(np.ones(size), size=200):
        if (cuts @ other).min() >= level:
            assert (centre - weights) @ (other - weights) <= 1e-7


@settings(max_examples=100, deadline=None)
@given(matrices(max_columns=6), st.integers(0, 2**32 - 1))
def test_ball_master_returns_unit_weights_above_the_level(cuts, seed):
    points = np.random.default_rng(seed).normal(size=cuts.shape)
    points /= np.linalg.norm(points, axis=1)[:, None]
    master = filled(BallMaster(cuts.shape[1]), points, cuts)
    assert master.upper_bound == pytest.approx(np.linalg.norm(master.mixture @ cuts), abs=1e-12)
    assert master.lower_bound == pytest.approx(max((points @ cuts.T).min(axis=1).max(), 0.0), abs=1e-12)
    if master.gap < 1e-3:
        return  # the hull holds the origin, or there is nothing to cut
    weights = master.next_weights()
    assert np.linalg.norm(weights) == pytest.approx(1, abs=1e-12)
    assert (cuts @ weights).min() >= master.lower_bound + 0.55 * master.gap - 1e-6


@pytest.mark.parametrize("master", [SimplexMaster(3), BallMaster(3)])
def test_masters_begin_in_the_middle_with_no_bounds(master):
    assert np.ptp(master.next_weights()) == 0
    assert master.upper_bound == np.inf
    assert master.gap == np.inf


@dataclass(frozen=True)
class Segment(ConvexSet):
    """Weights (1, t) with t in [0, 1]: the nearest to the origin has a zero in it, and the origin is not among them."""

    def support(self, vectors):
        vectors = np.asarray(vectors)
        return vectors[..., 0] + np.maximum(vectors[..., 1], 0)

    def maximiser(self, vector):
        return np.array([1.0, float(vector[1] > 0)])

    def radius(self, size):
        return 2**0.5

    def project(self, vector):
        return np.array([1.0, np.clip(vector[1], 0, 1)])


def test_only_where_no_cost_belongs_to_the_set_nothing_is_known_of_the_maximum_before():
    assert HullMaster(Segment(), 2).floor == -np.inf
    assert HullMaster(Box(1.0), 2).floor == 0


def smooth_oracle(size, rng):
    """Return a concave function of weights, and its gradient made homogeneous: ⟨w, cut(w)⟩ is the value at w."""
    root = rng.normal(size=(size, size))
    curvature, peak, linear = root @ root.T, rng.dirichlet(np.full(size, 20.0)), 0.1

    def cut(weights):
        move = weights - peak
        gradient = linear - curvature @ move
        return gradient + (linear - 0.5 * move @ curvature @ move - gradient @ weights)

    return cut, linear


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_curvature_finds_a_smooth_maximum_in_fewer_calls(size):
    calls = {}
    for curved in (False, True):
        calls[curved] = 0
        for seed in range(10):
            cut, maximum = smooth_oracle(size, np.random.default_rng(seed))
            master = SimplexMaster(size)
            while master.gap > 1e-9:
                weights = master.next_weights()
                master.add(weights, cut(weights))
                if not curved:
                    master._trust = Trust()
                calls[curved] += 1
                assert calls[curved] < 10_000
            assert master.lower_bound - 1e-12 <= maximum <= master.upper_bound + 1e-12
    assert calls[True] < 0.8 * calls[False]


def test_a_curved_step_that_rounding_keeps_below_the_level_is_not_taken(monkeypatch):
    cut, _ = smooth_oracle(4, np.random.default_rng(0))
    master = SimplexMaster(4)
    for _ in range(8):
        weights = master.next_weights()
        master.add(weights, cut(weights))
    assert master._curved_step(master._quadratic) is not None
    monkeypatch.setattr(master, "_above", lambda *_: master.best_weights)
    assert master._curved_step(master._quadratic) is None
