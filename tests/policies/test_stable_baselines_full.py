"""Our policies in the shape of Stable-Baselines3."""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from stable_baselines3 import PPO
from stable_baselines3.common.envs import (
    BitFlippingEnv,
    IdentityEnvBox,
    IdentityEnvMultiBinary,
    IdentityEnvMultiDiscrete,
)
from stable_baselines3.common.evaluation import evaluate_policy

import lfd_gym as lfd
from lfd_gym.policies.mixtures import MixturePolicy
from lfd_gym.policies.stable_baselines import StableBaselinesPolicy
from lfd_gym.policies.tables import UniformPolicy

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


@pytest.mark.parametrize(
    "env",
    [
        IdentityEnvMultiDiscrete(4, ep_length=5),
        IdentityEnvMultiBinary(3, ep_length=5),
        IdentityEnvBox(-2, 1, ep_length=5),
    ],
    ids=lambda env: type(env).__name__,
)
def test_every_kind_of_action(env, tmp_path):
    uniform = UniformPolicy(env.action_space, env.observation_space)
    policy = StableBaselinesPolicy(uniform, rng=np.random.default_rng(0))
    seen = np.array([env.observation_space.sample() for _ in range(20)])
    actions, _ = policy.predict(seen)
    assert len(np.unique(actions, axis=0)) > 1
    assert all(env.action_space.contains(action) for action in actions)
    assert policy.predict(seen[0])[0].shape == env.action_space.shape
    assert tuple(policy(th.as_tensor(seen)).shape) == actions.shape
    policy.save(tmp_path / "uniform.npz")
    np.testing.assert_array_equal(
        StableBaselinesPolicy.load(tmp_path / "uniform.npz").predict(seen)[0], policy.predict(seen)[0]
    )
    _, lengths = evaluate_policy(policy, env, 2, deterministic=False, warn=False, return_episode_rewards=True)
    assert lengths == [5, 5]


def test_numbers_are_clipped_as_there():
    env = IdentityEnvBox(-2, 1)
    policy = StableBaselinesPolicy(lambda seen: seen * 100, env.observation_space, env.action_space)
    assert policy.predict(np.array([[0.5], [-1.5]], dtype=np.float32))[0].tolist() == [[1.0], [-2.0]]


def test_networks_draw_with_the_generator_of_the_policy():
    """What is drawn elsewhere with torch's global stream neither changes the actions nor is changed by them."""
    network = PPO("MlpPolicy", gym.make("Pendulum-v1"), device="cpu", seed=0)
    seen, drawn = np.zeros((5, 3), dtype=np.float32), []
    for disturbance in (0, 3):
        policy = StableBaselinesPolicy(network, rng=np.random.default_rng(0))
        th.rand(disturbance)
        state = th.get_rng_state()
        drawn.append([policy.predict(seen)[0] for _ in range(2)])
        assert th.equal(state, th.get_rng_state())
    np.testing.assert_array_equal(*drawn)
    assert (drawn[0][0] != drawn[0][1]).all()


class RecordedActions(gym.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.taken = []

    def step(self, action):
        self.taken.append(int(action))
        return super().step(action)


def test_a_mixture_plays_whole_episodes():
    """Every member takes the same action in every state, so that the actions of an episode are all alike."""
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=4, max_episode_steps=6)
    tables = [np.eye(4)[[action] * 16] for action in range(4)]
    mixture = MixturePolicy(tables, np.full(4, 0.25))
    for policy in (mixture, StableBaselinesPolicy(mixture, rng=np.random.default_rng(1))):
        recorded = RecordedActions(env)
        evaluate_policy(policy, recorded, 30, warn=False)
        episodes = np.array(recorded.taken).reshape(30, 6)
        assert (episodes == episodes[:, :1]).all()
        assert set(episodes[:, 0]) == {0, 1, 2, 3}


def test_observations_in_parts():
    env = BitFlippingEnv(3)
    policy = StableBaselinesPolicy(lambda seen: seen[:, 0].astype(int), env.observation_space, env.action_space)
    assert policy.observation_space == env.observation_space
    shown = {key: np.array([[1, 0, 1], [0, 1, 0]], dtype=np.int8) for key in env.observation_space.spaces}
    assert policy.predict(shown)[0].tolist() == [1, 0]
    assert policy({key: th.as_tensor(part) for key, part in shown.items()}).tolist() == [1, 0]
    _, lengths = evaluate_policy(policy, env, 2, deterministic=False, warn=False, return_episode_rewards=True)
    assert len(lengths) == 2
