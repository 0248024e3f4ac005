"""Environments given by arrays."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from strategies import mdps_with_costs

from lfd_gym import FiniteMDP
from lfd_gym.envs import TabularEnv
from lfd_gym.envs.examples import self_loops, stay_or_switch
from lfd_gym.envs.tabular import invert_cumulative


def corridor():
    """States 0, 1, 2 in a row; action 1 goes on, action 0 stays; state 2 ends the episode."""
    transitions = np.zeros((3, 2, 3))
    for state in range(3):
        transitions[state, 0, state] = transitions[state, 1, min(state + 1, 2)] = 1.0
    cost_features = np.array([[0.5, 0.0], [1.0, 0.1], [-0.25, 0.2], [-1.0, 0.3], [0.0, 0.0], [0.0, 0.0]])
    return TabularEnv(transitions, [1.0, 0.0, 0.0], cost_features, absorbing_state=2)


@settings(max_examples=30, deadline=None)
@given(mdps_with_costs(), st.integers(0, 2**32 - 1))
def test_round_trip_through_an_environment(mdp_and_costs, seed):
    mdp, cost_features = mdp_and_costs
    env = TabularEnv.from_mdp(mdp, cost_features)
    again = FiniteMDP.from_env(env, mdp.discount)
    np.testing.assert_allclose(again.transitions.toarray(), mdp.transitions.toarray(), rtol=1e-15)
    np.testing.assert_allclose(again.initial_distribution, mdp.initial_distribution, rtol=1e-15)
    np.testing.assert_array_equal(env.cost_features, cost_features)
    state, _ = env.reset(seed=seed)
    assert mdp.initial_distribution[state] > 0
    for action in np.random.default_rng(seed).integers(mdp.n_actions, size=20):
        successor, reward, _, _, info = env.step(int(action))
        assert reward == -cost_features[state * mdp.n_actions + action, 0]
        assert mdp.transitions[[state * mdp.n_actions + action], :].toarray()[0, successor] > 0
        np.testing.assert_array_equal(info["cost_features"], env.pair_features[successor])
        state = successor


def test_draws_follow_the_arrays():
    law = np.array([0.5, 0.3, 0.0, 0.2])
    env = TabularEnv(np.tile(law, (4, 1)), law[::-1], np.zeros((4, 1)))
    env.reset(seed=0)
    for counts, expected in (
        (np.bincount([env.step(0)[0] for _ in range(2000)], minlength=4), law),
        (np.bincount([env.reset()[0] for _ in range(2000)], minlength=4), law[::-1]),
    ):
        assert counts[expected == 0].sum() == 0
        assert chisquare(counts[expected > 0], 2000 * expected[expected > 0]).pvalue > 1e-3


@pytest.mark.parametrize("law", [[0.0, 0.3, 0.7, 0.0], [0.0, 0.1, 0.2, 0.3, 0.4], [0.0, 1 / 3, 1 / 3, 1 / 3, 0.0]])
def test_extreme_uniform_numbers_hit_possible_states(law):
    positive = np.flatnonzero(law)
    cumulative = np.cumsum(law)  # may miss 1 by rounding
    assert invert_cumulative(cumulative, 0.0) == positive[0]
    assert invert_cumulative(cumulative, np.nextafter(1.0, 0.0)) == positive[-1]


def test_the_absorbing_state_ends_the_episode():
    env = corridor()
    env.reset(seed=0)
    assert [env.step(action)[:4] for action in (0, 1, 0, 1)] == [
        (0, -0.5, False, False),
        (1, -1.0, False, False),
        (1, 0.25, False, False),
        (2, 1.0, True, False),
    ]
    assert FiniteMDP.from_env(env, discount=0.9).absorbing_state == 2


def test_costs_after_the_end_are_refused():
    env = corridor()
    costs = env.cost_features.copy()
    costs[4, 1] = 0.5
    with pytest.raises(ValueError, match="cost_features must be zero in the absorbing state 2"):
        TabularEnv(env.transitions, env.initial_distribution, costs, absorbing_state=2)
    with pytest.raises(ValueError, match=r"cost_features must have shape \(6, any\)"):
        TabularEnv(env.transitions, env.initial_distribution, costs[:3])


def test_the_callers_arrays_stay_the_callers():
    costs = np.zeros((2, 1))
    env = TabularEnv(np.eye(2), [1.0, 0.0], costs)
    costs[0] = 1.0
    assert not env.cost_features.any()
    with pytest.raises(ValueError, match="read-only"):
        env.cost_features[0] = 1.0


def test_gymnasium_checker_accepts_it():
    env = gym.wrappers.TimeLimit(corridor(), max_episode_steps=10)
    check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("discount", [0.3, 0.9])
@pytest.mark.parametrize("success", [0.25, 1.0])
def test_stay_or_switch_has_its_closed_form(discount, success):
    mdp = stay_or_switch(discount, success)
    occupancy = mdp.occupancy([[0.0, 1.0], [1.0, 0.0]])
    share = (1 - discount) / (1 - discount * (1 - success))
    np.testing.assert_allclose(occupancy, [[0.0, share], [1 - share, 0.0]], atol=1e-12)
    assert mdp.optimal_policy([1.0, 1.0, 0.0, 0.0]).tolist()[0] == [0.0, 1.0]


def test_self_loops_keep_the_initial_distribution():
    mdp = self_loops(n_states=3, n_actions=2, discount=0.8)
    policy = np.array([[0.5, 0.5], [1.0, 0.0], [0.2, 0.8]])
    np.testing.assert_allclose(mdp.occupancy(policy), policy / 3, atol=1e-12)
