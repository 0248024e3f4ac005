"""The quadratic model of the cutting-plane method, on functions whose curvature is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lfd_gym.solvers.exact.curvature import Trust, fit_curvature


def plane_of(size):
    """Orthonormal directions in which weights keep their sum."""
    return np.linalg.svd(np.ones((1, size)))[2][1:].T


def quadratic(size, rng):
    """A positive definite curvature in the plane, and the weights of the maximum."""
    root = rng.normal(size=(size - 1, size - 1)) + 0.1 * np.eye(size - 1)
    return root @ root.T, rng.dirichlet(np.ones(size))


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_conjugate_steps_reveal_a_quadratic_function(size, seed):
    """BFGS is exact after as many conjugate steps as there are dimensions, whatever it starts from."""
    rng = np.random.default_rng(seed)
    plane = plane_of(size)
    curvature, peak = quadratic(size, rng)
    eigenvalues, axes = np.linalg.eigh(curvature)
    if eigenvalues[0] < 1e-3 * eigenvalues[-1]:
        return
    centre = rng.dirichlet(np.ones(size))
    points = np.vstack([centre, centre + rng.uniform(0.01, 0.1, size - 1)[:, None] * (plane @ axes).T])

    def value(weights):
        move = plane.T @ (weights - peak)
        return 0.3 - 0.5 * move @ curvature @ move

    gradients = -(points - peak) @ plane @ curvature @ plane.T + rng.normal()  # a constant changes nothing in the plane
    model = fit_curvature(points, gradients, 0, value(centre), plane)
    assert model.peak == pytest.approx(peak, abs=1e-6)
    assert model.rise == pytest.approx(0.3 - value(centre), rel=1e-6, abs=1e-9)
    assert model(peak) == pytest.approx(0.3, abs=1e-6)
    for weights in rng.dirichlet(np.ones(size), size=5):
        assert model(weights) == pytest.approx(value(weights), rel=1e-6, abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 6), st.integers(2, 30), st.integers(0, 2**32 - 1))
def test_the_nearest_pair_is_met_and_the_curvature_is_positive(size, n_points, seed):
    rng = np.random.default_rng(seed)
    plane = plane_of(size)
    curvature, _ = quadratic(size, rng)
    points = rng.dirichlet(np.ones(size), size=n_points)
    cuts = -points @ plane @ (curvature + 0.1 * np.eye(size - 1)) @ plane.T
    best = int(rng.integers(n_points))
    model = fit_curvature(points, cuts, best, 0.0, plane)
    distances = np.linalg.norm(points - points[best], axis=1)
    distances[best] = np.inf
    nearest = int(distances.argmin())
    step, fall = points[nearest] - points[best], plane @ plane.T @ (cuts[best] - cuts[nearest])
    assert model.curvature @ step == pytest.approx(fall, rel=1e-5, abs=1e-9)
    assert np.linalg.eigvalsh(plane.T @ model.curvature @ plane)[0] > -1e-9
    # In its own directions the curvature is the identity.
    scaled = model.directions.T @ model.curvature @ model.directions
    if np.linalg.cond(plane.T @ model.curvature @ plane) < 1e6:
        assert scaled == pytest.approx(np.eye(size - 1), abs=1e-6)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_linear_function_has_no_curvature(size):
    rng = np.random.default_rng(0)
    points = rng.dirichlet(np.ones(size), size=6)
    assert fit_curvature(points, np.tile(rng.normal(size=size), (6, 1)), 2, 0.0, plane_of(size)) is None
    assert fit_curvature(points[:1], rng.normal(size=(1, size)), 0, 0.0, plane_of(size)) is None


def test_points_that_coincide_do_no_harm():
    rng = np.random.default_rng(1)
    points = np.repeat(rng.dirichlet(np.ones(3), size=2), 3, axis=0) + 1e-14 * rng.normal(size=(6, 3))
    model = fit_curvature(points, -points, 0, 0.0, plane_of(3))
    assert np.isfinite(model.curvature).all()
    assert np.isfinite(model.peak).all()


def test_forecasts_are_trusted_after_two_that_were_clearly_better_than_the_cuts():
    trust = Trust()
    assert not trust
    trust.judge(forecast=1.1, cut_model=2.0, value=1.0)
    assert not trust
    trust.judge(forecast=0.9, cut_model=2.0, value=1.0)
    assert trust
    trust.judge(forecast=1.9, cut_model=2.0, value=1.0)
    assert not trust
    trust.judge(forecast=1.0, cut_model=2.0, value=1.0)
    assert not trust
    trust.judge(forecast=1.0, cut_model=2.0, value=1.0)
    assert trust
    trust.judge(forecast=1.0, cut_model=1.0, value=1.0)  # nothing to predict
    assert not trust
