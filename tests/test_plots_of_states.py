"""Pictures of costs and policies over states with two dimensions."""

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym import plots
from lfd_gym.costs.recovered import RecoveredCost

pytest.importorskip("matplotlib")


def push(observations):
    return np.clip(10 * observations[:, 1], -1, 1)[:, None]


@pytest.fixture(scope="module")
def task():
    env = gym.make("MountainCarContinuous-v0")
    return lfd.Task(env, lfd.collect(env, push, 2, 50, np.random.default_rng(0)), discount=0.95)


def image_of(axes):
    (image,) = axes.get_images()
    return np.asarray(image.get_array()), image.get_extent()


def test_a_policy_is_drawn_as_it_acts(task):
    values, (left, right, bottom, top) = image_of(plots.draw_policy(push, task))
    states = task.simulator.states_of(task.demonstrations.acted_on)
    assert left < states[:, 0].min() < states[:, 0].max() < right
    assert bottom < states[:, 1].min() < states[:, 1].max() < top
    speeds = np.linspace(bottom, top, len(values))
    np.testing.assert_allclose(values, np.repeat(np.clip(10 * speeds, -1, 1)[:, None], values.shape[1], axis=1))


def test_a_cost_is_drawn_where_the_policy_acts(task):
    costs = lfd.FunctionCosts(lambda seen, done: np.column_stack([done[:, 0], seen[:, 0] / 2]), n_costs=2)
    values, (left, right, bottom, top) = image_of(plots.draw_cost(RecoveredCost(costs, [1.0, 1.0]), push, task))
    places, speeds = np.linspace(left, right, values.shape[1]), np.linspace(bottom, top, len(values))
    wanted = np.clip(10 * speeds, -1, 1)[:, None] + places[None] / 2
    np.testing.assert_allclose(values, wanted, atol=1e-6)


def test_given_axes_hold_every_demonstration(task):
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    assert plots.draw_policy(push, task, axes) is axes
    assert len(axes.get_lines()) == len(task.demonstrations)


def test_states_with_more_dimensions_are_refused():
    env = gym.make("CartPole-v1")
    still = lambda observations: np.zeros(len(observations), dtype=np.int64)  # noqa: E731
    task = lfd.Task(env, lfd.collect(env, still, 1, 10, np.random.default_rng(0)), discount=0.95)
    with pytest.raises(ValueError, match="have two dimensions"):
        plots.draw_policy(still, task)


def test_actions_have_the_same_colours_for_every_policy(task):
    car = gym.make("MountainCar-v0")
    left = lambda observations: np.zeros(len(observations), dtype=np.int64)  # noqa: E731
    choosing = lfd.Task(car, lfd.collect(car, left, 1, 50, np.random.default_rng(0)), discount=0.95)
    axes = plots.draw_policy(left, choosing)
    (image,) = axes.get_images()
    assert image.get_clim() == (0, 2)
    assert image.colorbar.get_ticks().tolist() == [0, 1, 2]
    (image,) = plots.draw_policy(lambda observations: np.full((len(observations), 1), 0.5), task).get_images()
    assert image.get_clim() == (-1, 1)
