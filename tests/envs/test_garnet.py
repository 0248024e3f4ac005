"""Garnet random MDPs."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from lfd_gym import FiniteMDP
from lfd_gym.envs import GarnetEnv, garnet


@settings(deadline=None)  # the first call compiles
@given(st.data(), st.integers(1, 12), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_each_pair_has_so_many_successors(data, n_states, n_actions, seed):
    n_successors = data.draw(st.integers(1, n_states))
    mdp = garnet(n_states, n_actions, n_successors, 0.9, np.random.default_rng(seed))
    assert (mdp.n_states, mdp.n_actions, mdp.discount) == (n_states, n_actions, 0.9)
    assert (np.diff(mdp.transitions.indptr) == n_successors).all()
    np.testing.assert_allclose(mdp.initial_distribution, np.full(n_states, 1 / n_states), rtol=1e-15)


def test_successors_are_uniform_subsets_with_uniform_probabilities():
    mdp = garnet(5, 4000, 3, 0.9, np.random.default_rng(0))
    successors = mdp.transitions.indices.reshape(-1, 3)
    _, counts = np.unique(successors @ [25, 5, 1], return_counts=True)
    assert counts.size == 10  # of 5 choose 3
    assert chisquare(counts).pvalue > 1e-3
    probabilities = mdp.transitions.data.reshape(-1, 3)
    for member in probabilities.T:  # a marginal of the uniform distribution on the simplex of three is Beta(1, 2)
        assert kstest(member, "beta", args=(1, 2)).pvalue > 1e-3


def test_same_seed_same_mdp():
    def draw(seed):
        return garnet(50, 3, 4, 0.9, np.random.default_rng(seed)).transitions

    assert (draw(1) != draw(1)).nnz == 0
    assert (draw(1) != draw(2)).nnz > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_states": 0}, "n_states must be an integer of at least 1, got 0"),
        ({"n_actions": 1.5}, "n_actions must be an integer, got 1.5"),
        ({"n_successors": 11}, "n_successors must be at most n_states = 10, got 11"),
        ({"n_successors": 0}, "n_successors must be an integer of at least 1, got 0"),
    ],
)
def test_wrong_sizes_are_named(arguments, message):
    sizes = {"n_states": 10, "n_actions": 2, "n_successors": 3, **arguments}
    with pytest.raises(ValueError, match=message):
        garnet(**sizes, discount=0.9, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match=message):
        GarnetEnv(**sizes)


def test_environment_is_registered_and_checked():
    env = gym.make("lfd_gym/Garnet-v0", n_states=20, n_actions=3, n_successors=2, n_costs=4, mdp_seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    assert env.spec.max_episode_steps == 200
    features = env.unwrapped.cost_features
    assert features.shape == (60, 4)
    assert np.abs(features).max() <= 1
    mdp = FiniteMDP.from_env(env, discount=0.9)
    assert (np.diff(mdp.transitions.indptr) == 2).all()
    again = GarnetEnv(n_states=20, n_actions=3, n_successors=2, n_costs=4, mdp_seed=1)
    np.testing.assert_array_equal(again.cost_features, features)
    np.testing.assert_allclose(again.transitions.toarray(), mdp.transitions.toarray(), rtol=1e-15)
    assert (GarnetEnv(n_states=20, n_actions=3, n_successors=2, mdp_seed=2).transitions != again.transitions).nnz > 0
