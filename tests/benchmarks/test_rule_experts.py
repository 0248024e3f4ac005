"""The rules that benchmarks take as experts reach what is said of them, alone and in batches."""

import gymnasium as gym
import numpy as np
import pytest
from experts import RULES, ReferenceReturns, episode_returns, load_expert, random_and_expert_returns

#: Mean returns that a few episodes exceed.
REACHED = {
    "CartPole-v1": 499,
    "MountainCar-v0": -125,
    "MountainCarContinuous-v0": 94,
    "Acrobot-v1": -130,
    "Pendulum-v1": -250,
}


@pytest.mark.parametrize("env_id", REACHED)
def test_rules_are_good(env_id):
    assert episode_returns(env_id, load_expert(env_id, "rule"), 10, seed=3).mean() > REACHED[env_id]


@pytest.mark.parametrize("env_id", REACHED)
def test_rules_decide_for_each_observation_by_itself(env_id):
    env = gym.make(env_id)
    observations = np.stack([env.reset(seed=seed)[0] for seed in range(20)])
    actions = RULES[env_id](observations)
    np.testing.assert_array_equal(actions, np.concatenate([RULES[env_id](row[None]) for row in observations]))
    assert all(env.action_space.contains(action.astype(env.action_space.dtype)) for action in actions)


def test_scores_are_0_for_random_and_1_for_the_expert():
    found = random_and_expert_returns("CartPole-v1", "rule", n_episodes=5)
    assert found.score(found.expert.mean()) == 1
    assert found.score(found.random.mean()) == 0
    assert ReferenceReturns(np.array([-200.0]), np.array([-100.0, -110.0])).score(-147.5) == pytest.approx(
        0.5526, abs=1e-4
    )


def test_unknown_experts_are_refused():
    with pytest.raises(ValueError, match="there are experts of CartPole-v1"):
        load_expert("Taxi-v3", "rule")
    with pytest.raises(ValueError, match="kind must be 'rule' or 'sb3'"):
        load_expert("CartPole-v1", "human")
