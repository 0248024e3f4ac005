"""Batches of MuJoCo spread over processes."""

import gymnasium as gym
import numpy as np

import lfd_gym as lfd
from lfd_gym.envs.processes import sample_next_in_processes


def test_mujoco_steps_the_same_in_any_number_of_processes():
    env = gym.make("InvertedPendulum-v4" if gym.__version__.startswith("0.") else "InvertedPendulum-v5")
    model = lfd.as_generative_model(env)
    rng = np.random.default_rng(0)
    states = model.sample_initial(600, rng) * rng.uniform(0, 30, size=(600, 1))
    actions = rng.uniform(-3, 3, size=(600, 1)).astype(np.float32)
    before = env.unwrapped.data.qpos.copy()
    expected = model.sample_next(states, actions, rng)  # which draws nothing
    assert 0 < model.is_absorbing(expected).sum() < 600
    for n_processes in (1, 2):
        found = sample_next_in_processes(model, states, actions, np.random.default_rng(0), n_processes)
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(env.unwrapped.data.qpos, before)
