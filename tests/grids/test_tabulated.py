"""A table of steps: exact where steps are linear, near where they are smooth; what steps pair by pair is told apart."""

import gymnasium as gym
import numpy as np
import pytest
from simulators import CoupledTanks, DubinsCar, Line, OneByOne

import lfd_gym as lfd
from lfd_gym.grids.actions import ActionGrid
from lfd_gym.grids.stepping import steps_in_compiled_code, steps_pair_by_pair
from lfd_gym.grids.tabulated import TabulatedSimulator
from lfd_gym.testing import check_generative_model


def table_of(simulator, axes, n_actions=None, periods=None):
    grid = lfd.Grid(axes, periods, "simplex")
    return TabulatedSimulator(simulator, grid, ActionGrid(simulator.action_space, n_actions), np.random.default_rng(0))


def compared(simulator, table, low, high, n=300):
    """Return next states of random pairs, true and told."""
    rng = np.random.default_rng(1)
    states = rng.uniform(low, high, (n, len(low)))
    space = simulator.action_space
    discrete = isinstance(space, gym.spaces.Discrete)
    actions = rng.integers(space.n, size=n) if discrete else rng.uniform(space.low, space.high, (n, 1))
    return [each.sample_next(states, actions, rng) for each in (simulator, table)]


@pytest.mark.parametrize("action_space", [None, gym.spaces.Box(-1.0, 1.0, (1,))])
def test_linear_steps_are_exact_inside_and_outside(action_space):
    simulator = Line(n_dimensions=2, action_space=action_space)
    table = table_of(simulator, [[-1.0, 0.2, 1.0], [-1.0, 1.0]], n_actions=None if action_space is None else 2)
    np.testing.assert_allclose(*compared(simulator, table, [-3, -3], [3, 3]), atol=1e-6)
    assert table.error == pytest.approx(0, abs=1e-6)
    assert table.never_ends
    assert table.n_steps == 6 * 2 + 500
    check_generative_model(table)


def test_smooth_steps_are_near_and_nearer_with_more_points():
    tanks = CoupledTanks()
    tables = [table_of(tanks, [np.linspace(0, 2, n)] * 2, n_actions=3) for n in (5, 20)]
    errors = [np.abs(np.subtract(*compared(tanks, table, [0, 0], [2, 2]))).mean() for table in tables]
    assert errors[1] < 0.4 * errors[0] < 0.02
    assert tables[1].error < 0.5 * tables[0].error


def test_movement_across_the_seam_of_a_circle_is_short():
    """A heading that goes on beyond π does not come back around."""
    car = DubinsCar()
    around = 2 * np.pi * np.arange(9) / 9 - np.pi
    table = table_of(car, [np.linspace(-4, 4, 5)] * 2 + [around], periods=[0, 0, 2 * np.pi])
    true, told = compared(car, table, [1, 1, -np.pi], [3, 3, np.pi])
    np.testing.assert_allclose(true[:, 2], told[:, 2], atol=1e-9)


def test_an_end_is_where_most_of_the_weight_ends():
    simulator = Line(end=0.95)
    table = table_of(simulator, [np.linspace(-1, 1, 21)])
    following = table.sample_next([[0.9], [0.82], [np.nan]], [1, 1, 1], np.random.default_rng(0))
    assert table.is_absorbing(following).tolist() == [True, False, True]
    assert following[1, 0] == pytest.approx(0.92)
    assert not table.never_ends


def test_what_is_shown_is_what_the_simulator_shows():
    car = DubinsCar()
    table = table_of(car, [[-4.0, 4.0], [-4.0, 4.0], [-4.0, 4.0]])
    states = car.sample_initial(9, np.random.default_rng(0))
    np.testing.assert_array_equal(table.observe(states), car.observe(states))
    np.testing.assert_allclose(table.states_of(table.observe(states)), states)
    line = Line()
    np.testing.assert_array_equal(table_of(line, [[-1.0, 1.0]]).observe([[0.3]]), [[0.3]])


def test_numbers_that_are_none_are_refused():
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="simulator must lead to finite states"):
        table_of(Line(push=np.inf, n_dimensions=2), [[-1.0, 1.0]] * 2)


def test_what_steps_pair_by_pair_is_known_by_what_it_is():
    cart = lfd.as_generative_model(gym.make("CartPole-v1"))
    rescaled = lfd.as_generative_model(gym.wrappers.RescaleAction(gym.make("Pendulum-v1"), -1.0, 1.0))
    assert [steps_pair_by_pair(each) for each in (cart, rescaled, Line(), OneByOne(Line()))] == [False] * 3 + [True]
    table = table_of(Line(), [[-1.0, 1.0]])
    assert not steps_pair_by_pair(table)
    assert steps_in_compiled_code(table)
    assert steps_in_compiled_code(cart)
    assert not steps_in_compiled_code(Line())
