"""Policies over tables, without a trainer."""

import gymnasium as gym
import numpy as np

import lfd_gym as lfd


def test_policy_draws_from_its_table():
    table = np.array([[0.1, 0.9], [1.0, 0.0]])
    policy = lfd.TabularPolicy(gym.spaces.Discrete(2), gym.spaces.Discrete(2), table, np.random.default_rng(0))
    actions, _ = policy.predict(np.zeros(20_000, dtype=int))
    assert abs((actions == 0).mean() - 0.1) < 0.01  # more than 4 standard deviations
    assert policy.predict(np.array([0, 1]), deterministic=True)[0].tolist() == [1, 0]
    single, _ = policy.predict(1)
    assert single == 0
    assert single.shape == ()


def test_tile_policies_survive_saving(tmp_path):
    space = gym.spaces.Box(-1.0, 1.0, (2,), dtype=np.float64)
    grid = lfd.features.TileGrid([-1.0, -1.0], [1.0, 1.0], (2, 2))
    table = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.2, 0.8]])
    policy = lfd.TabularPolicy(space, gym.spaces.Discrete(2), table, np.random.default_rng(0), grid)
    policy.save(tmp_path / "tiles.npz")
    loaded = lfd.TabularPolicy.load(tmp_path / "tiles.npz")
    points = np.random.default_rng(1).uniform(-1, 1, (50, 2))
    np.testing.assert_array_equal(policy.predict(points)[0], loaded.predict(points)[0])
    np.testing.assert_array_equal(loaded.action_probabilities(np.array([[-0.5, 0.5]])), [[0.0, 1.0]])
