"""Warm starts of the exact methods: values guessed from those of other weights, visits from the nearest ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lfd_gym as lfd
from lfd_gym.envs import gridworld_transitions
from lfd_gym.envs.gridworld import random_state_costs
from lfd_gym.solvers.exact._cost_kernels import extrapolate
from lfd_gym.solvers.exact.exact_solution import ApprenticeshipProblem
from lfd_gym.solvers.exact.feature_planner import FeaturePlanner


def problem_of(size=16, discount=0.95, n_costs=4):
    rng = np.random.default_rng(0)
    mdp = lfd.FiniteMDP(gridworld_transitions(size), np.full(size**2, 1 / size**2), discount)
    costs = np.repeat(random_state_costs(size**2, n_costs, rng), 4, axis=0)
    return ApprenticeshipProblem.checked(mdp, costs, np.zeros(n_costs))


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 10), st.integers(1, 6), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e-2, 1e-4]))
def test_shares_minimise_what_they_say(n_points, size, seed, spread):
    rng = np.random.default_rng(seed)
    target = rng.dirichlet(np.ones(size)) if size > 1 else np.zeros(1)
    points = target + spread * rng.normal(size=(n_points, size))
    shares = extrapolate(points, np.eye(n_points), target)
    assert shares.sum() == pytest.approx(1, abs=1e-9)

    def objective(shares):
        moves = points - target
        return ((shares @ moves) ** 2).sum() + (shares**2 * (moves**2).sum(axis=1) ** 2).sum()

    # Within rounding no other shares that sum to one are better.
    least = objective(shares)
    for _ in range(30):
        change = rng.normal(size=n_points) * rng.choice([1.0, 1e-2, 1e-4])
        assert objective(shares + change - change.mean()) >= least * (1 - 1e-6) - 1e-13 * spread**2


def test_values_that_are_linear_in_the_weights_are_guessed_up_to_second_order():
    rng = np.random.default_rng(0)
    slope, target = rng.normal(size=(5, 30)), rng.dirichlet(np.ones(5))
    errors = []
    for spread in (1e-2, 1e-3):
        points = target + spread * rng.normal(size=(10, 5))
        errors.append(np.abs(extrapolate(points, points @ slope, target) - target @ slope).max())
    assert errors[0] < 1e-3 * 1e-2 * np.abs(slope).max() * 100
    assert errors[1] < 0.05 * errors[0]


def test_known_weights_give_their_own_values():
    points, values = np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    guess = extrapolate(points, values, np.array([0.2, 0.8]))
    assert guess.tolist() == [3.0, 4.0]
    guess[:] = 0.0
    assert values[1].tolist() == [3.0, 4.0]


def test_late_guesses_are_much_closer_than_the_last_values():
    problem = problem_of()
    planner = FeaturePlanner(problem)
    rng = np.random.default_rng(1)
    centre = np.array([0.4, 0.3, 0.2, 0.1])
    for _ in range(8):
        move = 1e-3 * rng.normal(size=4)
        last = planner.cut(centre + move - move.mean(), 1e-12, 1e-9).values
    exact = problem.mdp.plan(problem.costs.table @ centre, 1e-12).values
    guess = planner._solved.likely_values(centre)
    assert np.abs(guess - exact).mean() < 0.1 * np.abs(last - exact).mean()


def test_cuts_are_valid_and_certified_whatever_came_before():
    problem = problem_of()
    rng = np.random.default_rng(2)
    planner = FeaturePlanner(problem)
    for k in range(15):  # more than are remembered
        weights = rng.dirichlet(np.ones(4))
        cut = planner.cut(weights, 1e-9, 1e-10, certify=k % 2 == 0)
        alone = FeaturePlanner(problem).cut(weights, 1e-11, 1e-11)
        value = float(weights @ alone.row)
        assert weights @ cut.row >= value - 1e-9
        assert cut.lower_bound <= value + 1e-11
        if k % 2 == 0:
            assert cut.lower_bound >= value - 2e-9
        occupancy = problem.mdp.state_occupancy(cut.actions, 1e-12)
        assert cut.state_occupancy == pytest.approx(occupancy, abs=1e-10)


def test_rough_cuts_are_cheaper_and_still_valid():
    problem = problem_of(size=40, discount=0.99)
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    best = float(weights @ FeaturePlanner(problem).cut(weights, 1e-10, 1e-10).row)
    rough = FeaturePlanner(problem).cut(weights, 1e-3, 1e-10, certify=False)
    assert -1e-10 <= float(weights @ rough.row) - best <= 1e-3
    assert rough.lower_bound <= best
