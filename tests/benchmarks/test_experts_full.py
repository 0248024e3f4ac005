"""The trained experts that benchmarks use are small files that load, act deterministically and reach what is said."""

import gymnasium as gym
import numpy as np
import pytest
from experts import FOLDER, RULES, episode_returns, installed_id, load_expert

import lfd_gym as lfd

pytest.importorskip("stable_baselines3")
pytest.importorskip("mujoco")

#: Mean returns that a few episodes exceed.
REACHED = {
    "CartPole-v1": 499,
    "MountainCar-v0": -125,
    "MountainCarContinuous-v0": 90,
    "Acrobot-v1": -110,
    "Pendulum-v1": -250,
    "InvertedPendulum-v5": 990,
}
#: Whose demonstrations are kept in single precision.
RUNNERS = {"halfcheetah": "HalfCheetah-v5", "hopper": "Hopper-v5"}


@pytest.mark.parametrize("env_id", REACHED)
def test_trained_experts_are_good(env_id):
    assert episode_returns(env_id, load_expert(env_id, "sb3"), 10, seed=3).mean() > REACHED[env_id]


def test_the_rule_for_the_inverted_pendulum_is_good():
    assert episode_returns("InvertedPendulum-v5", load_expert("InvertedPendulum-v5", "rule"), 3, seed=3).mean() > 990


def test_either_version_of_the_inverted_pendulum_has_an_expert():
    env = gym.make(installed_id("InvertedPendulum-v5"))
    seen = np.stack([env.reset(seed=seed)[0] for seed in range(5)])
    experts = [load_expert(f"InvertedPendulum-v{version}", "sb3") for version in (4, 5)]
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(*[expert.sample(seen, rng) for expert in experts])


@pytest.mark.parametrize("env_id", RULES)
def test_files_are_small(env_id):
    assert (FOLDER / f"{env_id}.npz").stat().st_size < 100_000


@pytest.mark.parametrize("env_id", RULES)
def test_trained_experts_draw_nothing(env_id):
    env, expert = gym.make(installed_id(env_id)), load_expert(env_id, "sb3")
    seen = np.stack([env.reset(seed=seed)[0] for seed in range(5)])
    np.testing.assert_array_equal(*[expert.sample(seen, np.random.default_rng(seed)) for seed in (0, 1)])


@pytest.mark.parametrize("name", RUNNERS)
def test_single_precision_changes_nothing_of_what_a_runner_does(name):
    """The network acts on what its demonstrations hold as it did when they were recorded."""
    demos, expert = lfd.datasets.load(f"{name}-expert"), load_expert(RUNNERS[name], "sb3")
    again = expert.greedy(demos.acted_on)
    assert np.abs(again - demos.actions).max() < 1e-4
    assert (FOLDER / f"{RUNNERS[name]}.npz").stat().st_size < 150_000
