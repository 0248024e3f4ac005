"""The small problems of the cutting-plane method against scipy and against their optimality conditions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from lfd_gym.exact.bundle_master import BallMaster, SimplexMaster
from lfd_gym.exact.matrix_game import initial_basis, solve_game
from lfd_gym.exact.polyhedron_projection import least_distance, min_norm_weights, nonnegative_least_squares


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


@settings(max_examples=100, deadline=None)
@given(matrices(max_columns=6), st.integers(0, 2**32 - 1), st.floats(0.05, 0.95))
def test_simplex_master_returns_the_nearest_weights_of_the_level_set(cuts, seed, share):
    rng = np.random.default_rng(seed)
    size = cuts.shape[1]
    master = SimplexMaster(size)
    for cut in cuts:
        master.add(cut)
    upper, mixture = master.best_mixture()
    assert upper == pytest.approx((mixture @ cuts).max(), abs=1e-12)
    centre = rng.dirichlet(np.ones(size))
    level = share * upper + (1 - share) * min((cuts @ centre).min(), upper)
    weights = master.next_weights(centre, level)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert (cuts @ weights).min() >= level - 1e-7
    for other in rng.dirichlet(np.ones(size), size=200):
        if (cuts @ other).min() >= level:
            assert (centre - weights) @ (other - weights) <= 1e-7


@settings(max_examples=100, deadline=None)
@given(matrices(max_columns=6), st.integers(0, 2**32 - 1), st.floats(0.05, 0.95))
def test_ball_master_returns_unit_weights_above_the_level(cuts, seed, share):
    rng = np.random.default_rng(seed)
    master = BallMaster(cuts.shape[1])
    for cut in cuts:
        master.add(cut)
    upper, mixture = master.best_mixture()
    assert upper == pytest.approx(np.linalg.norm(mixture @ cuts), abs=1e-12)
    if upper < 1e-3:
        return  # the hull holds the origin: nothing to cut
    centre = rng.normal(size=cuts.shape[1])
    centre /= np.linalg.norm(centre)
    level = share * upper
    weights = master.next_weights(centre, level)
    assert np.linalg.norm(weights) == pytest.approx(1, abs=1e-12)
    assert (cuts @ weights).min() >= level - 1e-6
