"""Certificates of policies that others have trained, with tiny networks, and of a clone of logged data."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO, SAC

import lfd_gym as lfd
from lfd_gym.policies.tables import UniformPolicy

NEWEST = int(gym.__version__.split(".")[0]) >= 1
SMALL = {"net_arch": [4]}


@pytest.mark.parametrize("name", ["lander", "cheetah"])
def test_models_of_stable_baselines(name):
    if name == "lander":
        env = gym.make("LunarLander-v3" if NEWEST else "LunarLander-v2", max_episode_steps=40)
        model = PPO("MlpPolicy", env, n_steps=32, batch_size=32, policy_kwargs=SMALL, seed=0, device="cpu").learn(32)
    else:
        env = gym.make("HalfCheetah-v4", max_episode_steps=40)
        model = SAC("MlpPolicy", env, learning_starts=8, policy_kwargs=SMALL, seed=0, device="cpu").learn(12)
    rng = np.random.default_rng(0)
    anybody = UniformPolicy(env.action_space)
    shown, held_out = (lfd.collect(env, anybody, m, None, rng) for m in (5, 20))
    task = lfd.Task(env, shown, discount=0.95, horizon=30)
    for deterministic in (False, True):
        certificate = lfd.certify(model, task, rng=rng, n_rollouts=20, held_out=held_out, deterministic=deterministic)
        bounds = [certificate.to_demonstrations, certificate.to_expert]
        assert all(each.found < each.bound <= task.costs.largest_distance for each in bounds)
        assert str(certificate).startswith("At most")
        assert certificate.n_rollouts == 20
    again = lfd.certify(model.policy, task, rng=np.random.default_rng(3), n_rollouts=20)
    assert again == lfd.certify(model, task, rng=np.random.default_rng(3), n_rollouts=20)
    env.close()


def test_a_policy_cloned_from_logged_data():
    env, rng = gym.make("CartPole-v1", max_episode_steps=30), np.random.default_rng(0)

    def lean(seen):
        return (seen[:, 2] + seen[:, 3] > 0).astype(int)

    shown, held_out = (lfd.collect(env, lean, m, None, rng) for m in (10, 200))
    data = lfd.Task(None, shown, discount=0.6)
    torch.manual_seed(0)
    cloned = lfd.learn(data, "bc", rng=rng, budget=1500).policy
    certificates = [
        lfd.certify(cloned, data, held_out=held_out, deterministic=deterministic, rng=rng)
        for deterministic in (False, True)
    ]
    assert not certificates[1].empty
    # It is true: of a class in which no cost is more than one, played in the environment that nobody had.
    costs = lfd.FunctionCosts(lambda seen, done: np.clip(np.abs(seen[:, [0, 2]]) * [1, 5], 0, 1), uses_actions=False)
    judged = lfd.Task(env, discount=0.6, costs=costs)
    ours, theirs = (
        judged.expected_costs(each, rng=rng, n_rollouts=100, deterministic=greedy).values
        for each, greedy in ((cloned, True), (lean, False))
    )
    assert (ours - theirs).max() < certificates[1].cost_distance_bound
