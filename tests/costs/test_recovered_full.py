"""The recovered cost under Stable-Baselines3: rewards step by step, and training on it."""

import gymnasium as gym
import numpy as np
import pytest
from reward_cases import REWARD_CASES, recovered_cost
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper

import lfd_gym as lfd
from lfd_gym.costs.recovered import RecoveredCost

DISCOUNT = 0.9


@pytest.mark.parametrize("name", REWARD_CASES)
def test_the_vector_environment_pays_what_single_ones_pay(name):
    """Step by step, and across the ends of episodes: two environments side by side, and each of them alone."""
    make = REWARD_CASES[name]
    cost = recovered_cost(make())
    venv = cost.vec_env(DummyVecEnv([make, make]))
    assert isinstance(venv, VecEnvWrapper)
    venv.seed(3)
    venv.reset()
    alone = [cost.reward_wrapper(make()) for _ in range(2)]
    for i, env in enumerate(alone):
        env.reset(seed=3 + i)  # as SB3 seeds them
        env.action_space.seed(i)
    n_ends, paid = 0, []
    for _ in range(60):
        actions = np.array([env.action_space.sample() for env in alone])
        _, rewards, dones, infos = venv.step(actions)
        paid.append(rewards)
        for env, action, reward, done, info in zip(alone, actions, rewards, dones, infos, strict=True):
            _, expected, terminated, truncated, expected_info = env.step(action)
            assert reward == pytest.approx(expected, abs=1e-6)  # single precision
            assert done == (terminated or truncated)
            assert info["original_reward"] == pytest.approx(expected_info["original_reward"], rel=1e-6)
            if done:
                n_ends += 1
                env.reset()
    assert n_ends >= 4
    assert np.std(paid) > 0
    assert rewards.dtype == np.float32


def test_a_step_before_the_reset_is_refused():
    venv = recovered_cost(gym.make("CartPole-v1")).vec_env(DummyVecEnv([lambda: gym.make("CartPole-v1")]))
    with pytest.raises(RuntimeError, match="call reset before the first step"):
        venv.step(np.array([0]))


@pytest.fixture(scope="module")
def recovered_gridworld_cost():
    """What explains an expert of the 5 x 5 gridworld: the game's own solution, from its exact expected costs."""
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=5, cost_seed=0)
    mdp, costs = lfd.FiniteMDP.from_env(env, discount=DISCOUNT), lfd.Task(env, discount=DISCOUNT).costs
    expert = mdp.optimal_policy(costs.table[:, 0])
    expert_features = costs.table.T @ mdp.occupancy(expert).ravel()
    return RecoveredCost(costs, lfd.solve_cutting_plane(mdp, costs, expert_features).cost_weights)


@pytest.mark.parametrize("intended_probability", [0.7, 0.95], ids=["here", "in a changed environment"])
def test_ppo_learns_from_the_recovered_cost(recovered_gridworld_cost, intended_probability):
    """Near the best policy *for this cost* in the environment it is trained in, judged exactly."""
    cost = recovered_gridworld_cost
    settings = {"size": 5, "cost_seed": 0, "intended_probability": intended_probability}
    venv = make_vec_env("lfd_gym/StochasticGridworld-v0", n_envs=8, seed=0, env_kwargs=settings)
    network = PPO(
        "MlpPolicy", cost.vec_env(venv), n_steps=64, batch_size=128, learning_rate=3e-3, gamma=DISCOUNT, gae_lambda=0.8,
        policy_kwargs={"net_arch": [32]}, seed=0, device="cpu",
    ).learn(12_000)  # fmt: skip
    mdp = lfd.FiniteMDP.from_env(gym.make("lfd_gym/StochasticGridworld-v0", **settings), discount=DISCOUNT)
    table = cost.costs.table @ cost.weights
    actions, _ = network.predict(np.arange(25), deterministic=True)
    learned, best, random = (
        mdp.expected_cost(policy, table)
        for policy in (np.eye(4)[actions], mdp.optimal_policy(table), np.full((25, 4), 0.25))
    )
    assert best < random - 0.1
    assert learned < best + 0.15 * (random - best)


def test_sac_runs_on_the_recovered_cost_of_pendulum():
    env = gym.make("Pendulum-v1")
    cost = recovered_cost(env)
    network = SAC(
        "MlpPolicy", cost.reward_wrapper(env), learning_starts=100, policy_kwargs={"net_arch": [16]}, seed=0,
        device="cpu",
    ).learn(300)  # fmt: skip
    stored = network.replay_buffer
    seen, done = stored.observations[:300, 0], network.policy.unscale_action(stored.actions[:300, 0])
    np.testing.assert_allclose(stored.rewards[:300, 0], -cost(seen, done), atol=1e-5)
    assert stored.rewards[:300].std() > 0


@pytest.mark.parametrize("wrong", ["CartPole-v1", gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")])])
def test_only_vector_environments_of_stable_baselines_are_wrapped_as_such(wrong):
    cost = RecoveredCost(lfd.TableCosts(np.eye(2), n_actions=1), [1.0, 0.0])
    with pytest.raises(TypeError, match="venv must be a VecEnv of Stable-Baselines3, as make_vec_env makes"):
        cost.vec_env(wrong)
