import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import HalfspaceIntersection

from lfd_gym.solvers.exact.weight_polytope import WeightPolytope


def intersected(size, normals):
    polytope = WeightPolytope(size, 1e-11)
    for normal in normals:
        polytope.intersect(np.asarray(normal, dtype=float))
    return polytope


def sorted_rows(points):
    return np.array(sorted(map(tuple, np.round(points, 9))))


def vertices_by_qhull(normals):
    """Enumerate with Qhull, in coordinates along the simplex around its centre, which must be inside."""
    size = normals.shape[1]
    centre = np.full(size, 1 / size)
    directions = np.linalg.svd(np.eye(size) - 1 / size)[0][:, : size - 1]
    rows = np.vstack([np.eye(size), normals])
    halfspaces = np.column_stack([-rows @ directions, -rows @ centre])
    points = HalfspaceIntersection(halfspaces, np.zeros(size - 1)).intersections
    return centre + points @ directions.T


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 6), st.integers(1, 80), st.integers(0, 2**32 - 1))
def test_the_vertices_are_those_of_qhull(size, n_cuts, seed):
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(n_cuts, size))
    normals += rng.uniform(0.05, 1.0, (n_cuts, 1)) - normals.mean(axis=1, keepdims=True)  # the centre is inside
    expected = vertices_by_qhull(normals)
    polytope = intersected(size, normals)
    assert polytope.normals == pytest.approx(normals)
    distances = np.abs(polytope.vertices[:, None] - expected[None]).max(axis=2)
    assert distances.min(axis=0).max() <= 1e-8
    assert distances.min(axis=1).max() <= 1e-8


@pytest.mark.parametrize("size", [1, 2, 4, 7])
def test_weights_in_order(size):
    """w₁ ≥ w₂ ≥ … ≥ w_n: averages of the first k unit vectors, in whatever order and however often cut."""
    normals = [np.eye(size)[i] - np.eye(size)[j] for i, j in itertools.combinations(range(size), 2)]
    expected = np.array([np.append(np.full(k, 1 / k), np.zeros(size - k)) for k in range(1, size + 1)])
    for order in (normals, normals[::-1], normals + normals):
        assert sorted_rows(intersected(size, order).vertices) == pytest.approx(sorted_rows(expected), abs=1e-9)


def test_one_point_and_nothing():
    equal = [[1, -1, 0], [-1, 1, 0], [0, 1, -1], [0, -1, 1]]
    assert intersected(3, equal).vertices == pytest.approx(np.full((1, 3), 1 / 3))
    assert len(intersected(3, [*equal, [-1, -1, 1]]).vertices) == 0


def test_new_vertices_are_unchecked_and_old_ones_keep_their_mark():
    polytope = WeightPolytope(3, 1e-11)
    for _ in range(3):
        polytope.mark_checked(polytope.unchecked())
    assert polytope.unchecked() is None
    polytope.intersect(np.array([1.0, 1.0, -1.0]))  # cuts off the third unit vector
    unchecked = []
    while (index := polytope.unchecked()) is not None:
        unchecked.append(polytope.vertices[index])
        polytope.mark_checked(index)
    assert sorted_rows(unchecked) == pytest.approx(np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]))
