"""The environments under Stable-Baselines3."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import A2C
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy

from lfd_gym import FiniteMDP

IDS = ["lfd_gym/StochasticGridworld-v0", "lfd_gym/Garnet-v0"]


@pytest.mark.parametrize("env_id", IDS)
def test_sb3_checker_has_nothing_to_say(env_id, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(env_id))


@pytest.mark.parametrize("env_id", IDS)
def test_sb3_learns_on_it(env_id):
    learner = A2C("MlpPolicy", gym.make(env_id), n_steps=20, seed=0, device="cpu")
    learner.learn(400)
    assert learner.num_timesteps == 400
    assert len(learner.ep_info_buffer) == 2  # episodes of 200 steps
    assert {episode["l"] for episode in learner.ep_info_buffer} == {200}


class TablePolicy:
    """Play the actions of a deterministic policy through SB3's `predict`."""

    def __init__(self, policy):
        self.actions = policy.argmax(axis=1)

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return self.actions[observation], state


def test_sb3_evaluates_the_expert_as_the_mdp_does():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=4, cost_seed=0)
    mdp = FiniteMDP.from_env(env, discount=0.9)
    cost = env.unwrapped.cost_features[:, 0]
    policy = mdp.optimal_policy(cost)
    # The expected sum of 200 rewards, by pushing the distribution of the state forward.
    chain = (policy[:, :, None] * mdp.transitions.toarray().reshape(16, 4, 16)).sum(axis=1)
    exact, states = 0.0, mdp.initial_distribution
    for _ in range(200):
        exact -= states @ (policy * cost.reshape(16, 4)).sum(axis=1)
        states = states @ chain
    env.reset(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SB3 would have the environment in a Monitor
        returns, _ = evaluate_policy(TablePolicy(policy), env, n_eval_episodes=60, return_episode_rewards=True)
    assert abs(np.mean(returns) - exact) < 4 * np.std(returns) / np.sqrt(len(returns))
