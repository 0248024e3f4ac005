"""The recovered cost as a function, and as the reward of an environment."""

import importlib.util

import gymnasium as gym
import numpy as np
import pytest
from reward_cases import REWARD_CASES, recovered_cost

import lfd_gym as lfd
from lfd_gym.costs.recovered import RecoveredCost


@pytest.mark.parametrize("name", REWARD_CASES)
def test_rewards_are_minus_the_cost_of_what_was_seen_before_the_step(name):
    make = REWARD_CASES[name]
    cost = recovered_cost(make())
    wrapped, bare = cost.reward_wrapper(make()), make()
    wrapped.action_space.seed(1)
    seen, _ = wrapped.reset(seed=1)
    bare.reset(seed=1)
    n_episodes = 0
    for _ in range(100):
        action = wrapped.action_space.sample()
        flat = gym.spaces.flatten(bare.observation_space, seen) if name == "a Dict" else np.asarray(seen)
        expected = -cost(flat[None], np.asarray(action)[None])[0]
        following, reward, terminated, truncated, info = wrapped.step(action)
        other, original, *ends, _ = bare.step(action)
        assert reward == pytest.approx(expected, abs=1e-12)
        assert isinstance(reward, float)
        assert info["original_reward"] == original
        assert [terminated, truncated] == ends
        np.testing.assert_equal(following, other)
        seen = following
        if terminated or truncated:
            n_episodes += 1
            seen, _ = wrapped.reset()
            bare.reset()
    assert n_episodes >= 4
    assert wrapped.unwrapped.spec.id == bare.unwrapped.spec.id


def test_what_the_caller_does_to_an_observation_later_does_not_matter():
    env = gym.make("Pendulum-v1")
    cost = recovered_cost(env)
    wrapped = cost.reward_wrapper(env)
    seen, _ = wrapped.reset(seed=0)
    expected = -cost(seen[None], np.array([[0.5]]))[0]
    seen[:] = 0.0
    assert wrapped.step(np.array([0.5], dtype=np.float32))[1] == pytest.approx(expected)


def test_a_step_before_the_reset_is_refused():
    wrapped = recovered_cost(gym.make("CartPole-v1")).reward_wrapper(gym.make("CartPole-v1"))
    with pytest.raises(gym.error.ResetNeeded):
        wrapped.step(0)


def test_a_table_takes_states_and_their_one_hot_vectors():
    cost = recovered_cost(gym.make("lfd_gym/StochasticGridworld-v0", size=3))
    states, actions = np.arange(9), np.zeros(9, dtype=int)
    table = cost.costs.table.reshape(9, 4, 5)
    np.testing.assert_allclose(cost(states, actions), table[:, 0] @ cost.weights)
    np.testing.assert_array_equal(cost(np.eye(9), actions), cost(states, actions))
    for wrong in (np.ones((1, 9)), np.full((1, 9), 1 / 9)):
        with pytest.raises(ValueError, match="observations must be states or their one-hot vectors"):
            cost(wrong, np.array([0]))


def test_costs_of_observations_alone_need_no_actions():
    space = gym.spaces.Box(-1, 1, (2,))
    costs = lfd.FourierCosts.from_spaces(space, None, n_frequencies=2)
    cost = RecoveredCost(costs, [0.0, 0.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(cost(np.zeros((3, 2))), 0.5)
    np.testing.assert_allclose(cost(np.zeros((3, 2)), np.ones(3)), 0.5)


def test_it_shows_its_largest_weights():
    costs = lfd.TableCosts(np.eye(4), n_actions=1, names=("a", "b", "c", "d"))
    assert repr(RecoveredCost(costs, [0.1, -0.6, 0.0, 0.3])) == "RecoveredCost(-0.6 b + 0.3 d + 0.1 a)"
    assert repr(RecoveredCost(costs, [0.5, -0.2, 0.1, 0.3])) == "RecoveredCost(0.5 a + 0.3 d - 0.2 b + 1 more)"
    assert repr(RecoveredCost(costs, np.zeros(4))) == "RecoveredCost(0)"
    function = lfd.FunctionCosts(lambda seen, done: np.ones((len(seen), 2)))
    assert repr(RecoveredCost(function, [0.0, 1.0])) == "RecoveredCost(1 c1)"


@pytest.mark.parametrize("weights", [[1.0], [[1.0, 0.0]], [np.nan, 0.0]])
def test_bad_weights_are_named(weights):
    with pytest.raises(ValueError, match="weights must"):
        RecoveredCost(lfd.TableCosts(np.eye(2), n_actions=1), weights)


@pytest.mark.skipif(importlib.util.find_spec("stable_baselines3") is not None, reason="Stable-Baselines3 is installed")
def test_without_the_extra_it_is_said_what_to_install():
    cost = RecoveredCost(lfd.TableCosts(np.eye(2), n_actions=1), [1.0, 0.0])
    with pytest.raises(ImportError, match=r"pip install 'lfd-gym\[sb3\]'"):
        cost.vec_env(None)
