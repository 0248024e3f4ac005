"""Episodes of Stable-Baselines3's vector environments, and of environments that need an extra."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor, VecNormalize

from lfd_gym import collect
from lfd_gym.demonstrations.environments import is_environment, single_spaces, time_limit


def lean(observations):
    """Keep the pole up on the left; on the right push on until it falls, after some ten steps."""
    return ((observations[:, 2] > 0) | (observations[:, 0] > 0)).astype(np.int64)


def cartpole():
    return gym.make("CartPole-v1", max_episode_steps=12)


def pendulum():
    return gym.make("Pendulum-v1", max_episode_steps=7)


@pytest.mark.parametrize("kind", ["dummy", "subprocess", "monitored", "made"])
def test_episodes_of_vec_envs_are_those_of_gymnasium(kind):
    """Seeds, dynamics and ends agree with Gymnasium's own vector environment; CartPole's ends are of both sorts."""
    make = {
        "dummy": lambda: DummyVecEnv([cartpole] * 3),
        "subprocess": lambda: SubprocVecEnv([cartpole] * 3),
        "monitored": lambda: VecMonitor(DummyVecEnv([cartpole] * 3)),
        "made": lambda: make_vec_env(cartpole, n_envs=3),
    }[kind]
    venv = make()
    assert is_environment(venv)
    assert single_spaces(venv) == (venv.observation_space, venv.action_space)
    assert time_limit(venv) == 12
    demos = collect(venv, lean, 8, rng=np.random.default_rng(3))
    wanted = collect(gym.vector.SyncVectorEnv([cartpole] * 3), lean, 8, rng=np.random.default_rng(3))
    for name in ("observations", "actions", "rewards", "offsets", "terminated", "truncated", "horizon"):
        np.testing.assert_array_equal(getattr(demos, name), getattr(wanted, name))
    assert demos.provenance.env_id == "CartPole-v1"
    assert demos.terminated.any()
    assert demos.truncated.any()
    assert collect(venv, lean, 8, rng=np.random.default_rng(3)) == demos
    venv.close()


def test_what_a_vec_env_wrapper_changes_is_recorded_as_it_changes_it():
    venv = DummyVecEnv([pendulum] * 2)
    normalised = VecNormalize(venv, training=False, norm_reward=False)
    normalised.obs_rms.mean = np.array([0.5, 0.5, 0.5])
    normalised.obs_rms.var = np.full(3, 4.0)
    still = lambda seen: np.zeros((len(seen), 1))  # noqa: E731
    plain = collect(venv, still, 3, rng=np.random.default_rng(0))
    seen = collect(normalised, still, 3, rng=np.random.default_rng(0))
    assert seen.actions.dtype == np.float32
    np.testing.assert_allclose(seen.observations, (plain.observations - 0.5) / 2, atol=1e-5)
    np.testing.assert_allclose(seen.rewards, plain.rewards)
    assert plain.lengths.tolist() == [7, 7, 7]
    assert plain.horizon == 7
    assert collect(venv, still, 3, 4, np.random.default_rng(0)).lengths.tolist() == [4, 4, 4]


class Goal(gym.Env):
    """One level of a Dict, as Stable-Baselines3 takes it."""

    observation_space = spaces.Dict({"left": spaces.Discrete(9), "speed": spaces.Box(-9, 9, (2,), np.float32)})
    action_space = spaces.Discrete(2)

    def _see(self):
        return {"left": self.left, "speed": np.array([self.left, 1], dtype=np.float32)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 1 + int(self.np_random.integers(8))
        return self._see(), {}

    def step(self, action):
        self.left -= 1
        return self._see(), 0.0, self.left == 0, False, {}


def test_dict_observations_of_a_vec_env_are_flattened():
    demos = collect(
        DummyVecEnv([Goal] * 3), lambda seen: np.zeros(len(seen), dtype=int), 8, rng=np.random.default_rng(0)
    )
    assert demos.terminated.all()
    assert demos.observation_space.shape == (11,)
    assert demos.provenance.env_id is None
    assert demos.horizon is None
    for episode in demos:
        left = [int(spaces.unflatten(Goal.observation_space, row)["left"]) for row in episode.observations]
        assert left == list(range(len(episode.actions), -1, -1))
        assert episode.observations[:, -2].tolist() == left


def lunar_lander():
    try:
        return gym.make("LunarLander-v3")
    except gym.error.DeprecatedEnv:
        raise
    except gym.error.Error:
        return gym.make("LunarLander-v2")


@pytest.mark.parametrize("n_envs", [1, 2])
def test_box2d_and_mujoco(n_envs):
    pytest.importorskip("Box2D")
    demos = collect(
        lunar_lander(), lambda seen: np.zeros(len(seen), dtype=int), 3, rng=np.random.default_rng(0), n_envs=n_envs
    )
    assert demos.terminated.all()  # it falls
    assert demos.rewards.min() <= -100
    assert demos.provenance.env_id.startswith("LunarLander")
    pytest.importorskip("mujoco")
    cheetah = gym.make("HalfCheetah-v4", max_episode_steps=9)
    demos = collect(cheetah, lambda seen: np.zeros((len(seen), 6)), 3, rng=np.random.default_rng(0), n_envs=n_envs)
    assert demos.lengths.tolist() == [9] * 3
    assert demos.truncated.all()


def test_statistics_of_vec_normalize_are_held_while_episodes_are_played():
    envs = VecNormalize(DummyVecEnv([lambda: gym.make("CartPole-v1")] * 2))
    envs.reset()
    for _ in range(30):
        envs.step(np.array([0, 1]))
    count, mean = envs.obs_rms.count, envs.obs_rms.mean.copy()
    first, second = (collect(envs, lambda seen: (seen[:, 2] > 0) * 1, 4, 20, np.random.default_rng(0)) for _ in "12")
    assert first == second
    assert envs.obs_rms.count == count
    np.testing.assert_array_equal(envs.obs_rms.mean, mean)
    envs.step(np.array([0, 1]))
    assert envs.obs_rms.count > count
