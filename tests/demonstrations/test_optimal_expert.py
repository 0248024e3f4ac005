"""Policies that plan for the reward: optimal on tables, as good as trained networks in classic control."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers
from simulators import DubinsCar, Line

import lfd_gym as lfd
from lfd_gym.demonstrations.optimal_expert import optimal_policy
from lfd_gym.grids.policies import GridPolicy, LookaheadPolicy
from lfd_gym.policies.tables import TablePolicy


def plan(env, discount=0.99, seed=0, **settings):
    return optimal_policy(env, discount, rng=np.random.default_rng(seed), **settings)


def mean_return(env, policy, n_episodes=100):
    demos = lfd.collect(env, policy, n_episodes, rng=np.random.default_rng(1), n_envs=25)
    return demos.rewards.sum() / n_episodes


class RewardedLine(Line):
    """A line on which it is best to be at 0.7: steps tell their rewards."""

    def sample_rewarded(self, states, actions, rng):
        following = self.sample_next(states, actions, rng)
        return following, np.where(np.isnan(following[:, 0]), 0.0, -np.abs(np.asarray(states)[:, 0] - 0.7))


# -- classic control ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env_id", "discount", "settings", "reached"),
    [  # a hundredth of the way to random play below what networks trained with Stable-Baselines3 get
        ("CartPole-v1", 0.99, {"n_points": 15}, 495),
        ("Pendulum-v1", 0.99, {"n_points": 101}, -167),
        ("MountainCar-v0", 0.99, {}, -98.4),
        ("MountainCarContinuous-v0", 0.999, {}, 95.4),
    ],
)
def test_experts_are_as_good_as_trained_networks(env_id, discount, settings, reached):
    env = gym.make(env_id)
    assert mean_return(env, plan(env, discount, **settings)) > reached


@pytest.mark.slow
@pytest.mark.parametrize(("env_id", "reached"), [("CartPole-v1", 495), ("Acrobot-v1", -88.4)])
@pytest.mark.parametrize("seed", [0, 1])
def test_so_are_those_of_four_dimensions_with_nothing_given(env_id, reached, seed):
    env = gym.make(env_id)
    assert mean_return(env, plan(env, seed=seed)) > reached


def test_wrapped_environments_are_planned_as_they_are():
    env = wrappers.RescaleAction(gym.make("Pendulum-v1"), -1.0, 1.0)
    policy = plan(env, n_points=21, n_actions=3)
    assert policy.action_space == env.action_space
    assert mean_return(env, policy, 25) > -300


def test_the_same_seed_gives_the_same_policy_and_leaves_the_environment_as_it_was():
    env = gym.make("MountainCar-v0")
    env.reset(seed=0)
    state = env.unwrapped.state
    seen = np.random.default_rng(9).uniform([-1.2, -0.07], [0.6, 0.07], (500, 2))
    tables = [plan(env, seed=seed, n_points=21).greedy(seen) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(tables[0], tables[1])
    assert (tables[0] != tables[2]).any()
    assert env.unwrapped.state is state


def test_a_vote_is_saved_and_acts_without_the_simulator(tmp_path):
    env = gym.make("Pendulum-v1")
    policy = plan(env, n_points=31)
    assert isinstance(policy, GridPolicy)
    lfd.save_policy(policy, tmp_path / "expert.npz")
    seen = lfd.as_generative_model(env).observe(np.random.default_rng(0).uniform(-3, 3, (50, 2)))
    np.testing.assert_array_equal(lfd.load_policy(tmp_path / "expert.npz").greedy(seen), policy.greedy(seen))


def test_what_is_given_is_used():
    env = gym.make("Pendulum-v1")
    angles, speeds = np.linspace(-np.pi, np.pi, 24, endpoint=False), np.linspace(-8, 8, 25)
    grid = lfd.Grid([angles, speeds], periods=[2 * np.pi, 0])
    policy = plan(env, grid=grid, n_actions=3, repeat=2)
    assert isinstance(policy, GridPolicy | LookaheadPolicy)
    assert policy.actions.actions.ravel().tolist() == [-2.0, 0.0, 2.0]
    used = policy.grid if isinstance(policy, GridPolicy) else policy.model.grid
    assert used is grid


def test_a_grid_that_is_left_is_warned_of():
    grid = lfd.Grid([np.linspace(-np.pi, np.pi, 11)[:-1], np.linspace(-1, 1, 11)], periods=[2 * np.pi, 0])
    with pytest.warns(lfd.LfdGymWarning, match="of the states that the policy visits lie outside of the grid"):
        plan(gym.make("Pendulum-v1"), grid=grid)


# -- simulators of one's own -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_any_simulator_that_tells_rewards_can_be_planned_in(noise):
    line = RewardedLine(noise=noise)
    policy = plan(line, 0.9)
    assert isinstance(policy, GridPolicy)
    np.testing.assert_array_equal(policy.greedy(np.array([[-0.1], [0.5], [0.9]])), [1, 1, 0])


def test_an_end_is_worth_nothing():
    """Beside costs at every step, an end is sought; it is not where every step is worth something."""

    class Sought(RewardedLine):
        sign = -1.0

        def sample_rewarded(self, states, actions, rng):
            return self.sample_next(states, actions, rng), np.full(len(states), self.sign)

    class Shunned(Sought):
        sign = 1.0

    near_the_end = np.array([[0.42], [-0.42]])
    np.testing.assert_array_equal(plan(Sought(end=0.5), 0.9).greedy(near_the_end), [1, 0])
    np.testing.assert_array_equal(plan(Shunned(end=0.5), 0.9).greedy(near_the_end), [0, 1])


# -- tables ------------------------------------------------------------------------------------------------------------


def test_a_table_is_solved_exactly():
    env = gym.make("FrozenLake-v1")
    policy = plan(env, 0.9)
    assert isinstance(policy, TablePolicy)
    expected = lfd.FiniteMDP.from_env(env, 0.9).optimal_policy(lfd.reward_cost(env))
    np.testing.assert_array_equal(policy.table, expected)
    shown = plan(wrappers.FlattenObservation(env), 0.9)
    np.testing.assert_array_equal(shown.predict(np.eye(16, dtype=np.int64))[0], expected[:16].argmax(axis=1))


# -- what is refused ---------------------------------------------------------------------------------------------------


class Images(RewardedLine):
    """A simulator whose states are images."""

    def __init__(self):
        super().__init__()
        self.state_space = self.observation_space = gym.spaces.Box(0.0, 1.0, (8, 8, 3))


class Unseen(RewardedLine):
    """A simulator that does not tell its states."""

    def __getattribute__(self, name):
        if name == "states_of":
            raise AttributeError(name)
        return super().__getattribute__(name)


@pytest.mark.parametrize(
    ("env", "settings", "error", "message"),
    [
        (DubinsCar(), {}, ValueError, r"env must tell its rewards.*add sample_rewarded\(states, actions, rng\)"),
        (Images(), {}, ValueError, "states must be vectors in a Box for a grid"),
        (RewardedLine(n_dimensions=9), {}, ValueError, "9 dimensions at 7 points are 40,353,607 states"),
        (RewardedLine(n_dimensions=9), {"n_points": 20}, ValueError, r"more than memory=2 GB"),
        (Unseen(), {}, ValueError, "its observations do not tell the states of the simulator"),
        (wrappers.TransformReward(gym.make("Pendulum-v1"), abs), {}, TypeError, "wrapped in `TransformReward`"),
        (gym.make("Pendulum-v1"), {"discount": 1.0}, ValueError, "discount"),
        (gym.make("Pendulum-v1"), {"repeat": 0}, ValueError, "repeat must be at least 1, got 0"),
        (gym.make("Pendulum-v1"), {"n_points": 1}, ValueError, "n_points must be at least 2, got 1"),
        (gym.make("FrozenLake-v1"), {"n_points": 9, "repeat": 2}, ValueError, "n_points, repeat must not be given"),
    ],
)
def test_what_cannot_be_planned_is_refused(env, settings, error, message):
    with pytest.raises(error, match=message):
        plan(env, **settings)


def test_a_seed_is_no_generator():
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        optimal_policy(gym.make("Pendulum-v1"), 0.9, rng=0)
