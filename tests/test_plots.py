"""Pictures over finite states, of runs and of comparisons show the numbers they are given."""

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym import plots

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def world():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=4, cost_seed=1)
    mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    expert = mdp.optimal_policy(env.unwrapped.cost_features[:, 0])
    demos = lfd.collect(env, expert, 20, 50, np.random.default_rng(0))
    return lfd.Task(env, demos, discount=0.9, expert=expert), mdp, expert


def test_occupancy_on_a_grid(world):
    task, mdp, expert = world
    (image,) = plots.draw_occupancy(expert, task).get_images()
    np.testing.assert_allclose(np.asarray(image.get_array()).ravel(), mdp.occupancy(expert).sum(axis=1))


def test_arrows_point_where_actions_lead(world):
    task, _, _ = world
    for action, (right, down) in enumerate([(0, -1), (0, 1), (-1, 0), (1, 0)]):
        always = np.zeros((16, 4))
        always[:, action] = 1
        arrows = plots.draw_policy(always, task).collections[0]
        assert arrows.N == 16
        assert np.all(np.sign(arrows.U) == right)
        assert np.all(np.sign(arrows.V) == down)


def test_frozen_lake_counts_its_actions_otherwise():
    env = gym.make("FrozenLake-v1")
    demos = lfd.collect(env, lambda seen: np.full(len(seen), 2), 5, 20, np.random.default_rng(0))
    always_right = np.tile([0.0, 0.0, 1.0, 0.0], (16, 1))
    arrows = plots.draw_policy(always_right, lfd.Task(env, demos, discount=0.9)).collections[0]
    assert np.all(arrows.U > 0)


def test_values_and_policies_where_there_is_no_grid():
    env = gym.make("lfd_gym/Garnet-v0", n_states=7, n_actions=3, n_successors=2)
    policy = np.full((7, 3), 1 / 3)
    task = lfd.Task(env, lfd.collect(env, policy, 2, 10, np.random.default_rng(0)), discount=0.9)
    bars = plots.draw_values(np.arange(7.0), task).patches
    assert [bar.get_height() for bar in bars] == list(range(7))
    (image,) = plots.draw_policy(policy, task).get_images()
    np.testing.assert_allclose(np.asarray(image.get_array()), policy.T)
    with pytest.raises(ValueError, match="values must have shape"):
        plots.draw_values(np.arange(6.0), task)


def test_residuals_are_those_of_the_run(world):
    task, mdp, _ = world
    problem = lfd.SaddlePointProblem.tabular(mdp, task.costs, task.expert_features().values)
    solution = lfd.solve_mirror_descent(
        problem, task.simulator, n_iterations=20_000, rng=np.random.default_rng(0), progress=False
    )
    curve = plots.draw_residuals(solution).get_lines()[0]
    np.testing.assert_array_equal(np.column_stack(curve.get_data()), np.array(solution.residual_history))


def test_comparison_has_a_bar_each_and_refuses_what_is_not_known(world):
    task, _, expert = world
    found = {
        "expert": lfd.evaluate(expert, task),
        "random": lfd.evaluate(np.full((16, 4), 0.25), task),
    }
    axes = plots.draw_comparison(found)
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([1.0, 0.0])
    with pytest.raises(ValueError, match="have a episode_return"):
        plots.draw_comparison(found, "episode_return")
