"""Our policies in the shape of Stable-Baselines3."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.evaluation import evaluate_policy

import lfd_gym as lfd
from lfd_gym.policies.stable_baselines import StableBaselinesPolicy

TABLE = np.array([[0.1, 0.9], [1.0, 0.0]])


def test_policy_draws_from_its_table():
    policy = StableBaselinesPolicy(TABLE, rng=np.random.default_rng(0))
    actions, _ = policy.predict(np.zeros(20_000, dtype=int))
    assert abs((actions == 0).mean() - 0.1) < 0.01  # more than 4 standard deviations
    assert policy.predict(np.array([0, 1]), deterministic=True)[0].tolist() == [1, 0]
    single, _ = policy.predict(1)
    assert single == 0
    assert single.shape == ()


def test_tile_policies_survive_saving(tmp_path):
    space = gym.spaces.Box(-1.0, 1.0, (2,), dtype=np.float64)
    grid = lfd.features.TileGrid([-1.0, -1.0], [1.0, 1.0], (2, 2))
    tiles = lfd.features.TilePolicy(grid, np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.2, 0.8]]))
    policy = StableBaselinesPolicy(tiles, space, gym.spaces.Discrete(2), np.random.default_rng(0))
    policy.save(tmp_path / "tiles.npz")
    loaded = StableBaselinesPolicy.load(tmp_path / "tiles.npz")
    assert loaded.observation_space == space
    points = np.random.default_rng(1).uniform(-1, 1, (50, 2))
    np.testing.assert_array_equal(policy.predict(points)[0], loaded.predict(points)[0])
    np.testing.assert_array_equal(loaded.inner.probabilities(np.array([[-0.5, 0.5]])), [[0.0, 1.0]])


def test_both_shapes_play_in_stable_baselines():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=4, max_episode_steps=20)
    mdp = lfd.FiniteMDP.from_env(env, 0.9)
    best = mdp.optimal_policy(env.unwrapped.cost_features[:, 0])
    for policy in (lfd.as_policy(best), StableBaselinesPolicy(best)):
        mean, _ = evaluate_policy(policy, env, n_eval_episodes=5, warn=False)
        assert mean > 0


def test_spaces_must_be_known():
    with pytest.raises(ValueError, match="observation_space must be given"):
        StableBaselinesPolicy(lambda seen: seen)
