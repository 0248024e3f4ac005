"""Grids: interpolation against linear functions, textbook weights, periodic axes, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lfd_gym as lfd


def grids(rng, n_dimensions, interpolation):
    axes = [np.cumsum(rng.uniform(0.1, 1.0, rng.integers(2, 6))) for _ in range(n_dimensions)]
    return lfd.Grid(axes, interpolation=interpolation)


@pytest.mark.parametrize("interpolation", ["multilinear", "simplex"])
@given(seed=st.integers(0, 10_000), n_dimensions=st.integers(1, 5))
def test_linear_functions_are_reproduced(interpolation, seed, n_dimensions):
    rng = np.random.default_rng(seed)
    grid = grids(rng, n_dimensions, interpolation)
    low, high = grid.bounds
    states = rng.uniform(low, high, (20, n_dimensions))
    corners, weights = grid.interpolate(states)
    assert corners.shape == weights.shape == (20, grid.n_corners)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose((weights[..., None] * grid.points[corners]).sum(axis=1), states, atol=1e-9)


def test_the_weights_of_a_textbook_cell():
    square = [[0.0, 1.0], [0.0, 1.0]]
    corners, weights = lfd.Grid(square).interpolate([[0.75, 0.5]])
    np.testing.assert_allclose(dict(zip(corners[0], weights[0], strict=True))[3], 0.375)
    corners, weights = lfd.Grid(square, interpolation="simplex").interpolate([[0.75, 0.5]])
    found = {int(k): float(w) for k, w in zip(corners[0], weights[0], strict=True)}
    assert found == {0: 0.25, 2: 0.25, 3: 0.5}  # by the axis of the larger fraction first


@pytest.mark.parametrize("interpolation", ["multilinear", "simplex"])
def test_a_periodic_axis_closes(interpolation):
    circle = np.array([0.0, 1.0, 2.0, 3.0])
    grid = lfd.Grid([circle, [0.0, 1.0]], periods=[4.0, 0.0], interpolation=interpolation)
    corners, weights = grid.interpolate([[3.25, 0.0], [-0.75, 0.0], [7.25, 0.0]])
    mass = np.zeros((3, 4))
    np.add.at(mass, (np.arange(3)[:, None], corners // 2), weights)
    np.testing.assert_allclose(mass, [[0.25, 0, 0, 0.75]] * 3, atol=1e-12)


def test_a_full_turn_is_the_first_point_whatever_the_rounding():
    grid = lfd.Grid([2 * np.pi * np.arange(7) / 7 - np.pi], periods=[2 * np.pi])
    for k in range(-20, 21):
        corners, weights = grid.interpolate([[-np.pi + 2 * np.pi * k]])
        assert abs(weights[0, corners[0] == 0].sum() - 1) < 1e-9


def test_what_lies_outside_counts_as_on_the_edge():
    grid = lfd.Grid([[0.0, 1.0, 3.0]])
    corners, weights = grid.interpolate([[-5.0], [9.0]])
    assert [int(corners[k, weights[k].argmax()]) for k in range(2)] == [0, 2]
    assert grid.inside([[-5.0], [2.0]]).tolist() == [False, True]


def test_smooth_functions_are_met_to_second_order():
    errors = []
    for n in (11, 21, 41):
        grid = lfd.Grid([np.linspace(0, 1, n)] * 2, interpolation="simplex")
        states = np.random.default_rng(0).uniform(size=(500, 2))
        corners, weights = grid.interpolate(states)
        values = np.sin(3 * grid.points[:, 0]) * np.cos(2 * grid.points[:, 1])
        truth = np.sin(3 * states[:, 0]) * np.cos(2 * states[:, 1])
        errors.append(np.abs((values[corners] * weights).sum(axis=1) - truth).max())
    assert errors[1] < errors[0] / 3
    assert errors[2] < errors[1] / 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "axes must be one or more"),
        (([[0.0]],), r"axes\[0\] must be two or more increasing"),
        (([[0.0, 0.0]],), r"axes\[0\] must be two or more increasing"),
        (([[0.0, np.nan]],), r"axes\[0\] must be finite"),
        (([[0.0, 1.0]], [1.0]), r"periods\[0\] must be 0, or more than"),
        (([[0.0, 1.0]], None, "cubic"), "interpolation must be one of"),
        (([[0.0, 1.0]] * 11,), "must be 'simplex'"),
    ],
)
def test_bad_grids_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        lfd.Grid(*arguments)


def test_states_must_be_finite_and_fit():
    grid = lfd.Grid([[0.0, 1.0]] * 2)
    with pytest.raises(ValueError, match="states must be finite"):
        grid.interpolate([[np.nan, 0.0]])
    with pytest.raises(ValueError, match=r"states must have shape \(any, 2\)"):
        grid.interpolate([[0.0]])


def test_a_grid_is_data():
    grid = lfd.Grid([[0.0, 1.0, 4.0], [0.0, 1.0]], periods=[0.0, 3.0], interpolation="simplex")
    again = lfd.Grid.from_data(*grid.to_data())
    assert again == grid
    assert hash(again) == hash(grid)
    assert again != lfd.Grid([[0.0, 1.0, 4.0], [0.0, 1.0]])
