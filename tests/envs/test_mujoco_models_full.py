"""Generative models of MuJoCo environments, v4 and (on newer Gymnasium) v5."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.mujoco.mujoco_env import MujocoEnv

import lfd_gym as lfd
from lfd_gym.testing import check_generative_model
from lfd_gym.validation import LfdGymWarning

#: Environments whose observations are functions of (qpos, qvel), and how far the second and later steps of an episode
#: may be from those of the model: contacts are solved iteratively.
FULLY_OBSERVED = {"InvertedPendulum": 1e-12, "HalfCheetah": 1e-9, "Hopper": 1e-9}
IDS = [f"{name}-v{v}" for name in FULLY_OBSERVED for v in (4, 5) if f"{name}-v{v}" in gym.registry]
FORCES_SHOWN = [env_id for env_id in ("Humanoid-v4", "Humanoid-v5", "Ant-v5", "Reacher-v4") if env_id in gym.registry]


@pytest.mark.parametrize("env_id", IDS)
def test_passes_the_checker(env_id):
    env = gym.make(env_id)
    check_generative_model(lfd.as_generative_model(env), env=env)


@pytest.mark.parametrize("env_id", IDS)
def test_agrees_with_episodes(env_id):
    """The first step of an episode agrees bit for bit, the others as far as the constraint solver goes."""
    env = gym.make(env_id).unwrapped
    model = lfd.as_generative_model(gym.make(env_id))
    env.action_space.seed(0)
    rng = np.random.default_rng(0)
    observation, _ = env.reset(seed=0)
    for step in range(30):
        state = env.state_vector()
        np.testing.assert_array_equal(model.observe([state])[0], observation)
        action = env.action_space.sample()
        observation, _, terminated, _, _ = env.step(action)
        drawn = model.sample_next([state], [action], rng)[0]
        if terminated:
            assert np.isnan(drawn).all()
            break
        tolerance = 0 if step == 0 else FULLY_OBSERVED[env_id.split("-")[0]]
        np.testing.assert_allclose(drawn, env.state_vector(), rtol=0, atol=tolerance)


@pytest.mark.parametrize("env_id", [env_id for env_id in IDS if env_id.startswith(("Hopper", "InvertedPendulum"))])
def test_ends(env_id):
    model = lfd.as_generative_model(gym.make(env_id))
    fallen = np.zeros(model.state_space.shape)
    fallen[1] = 0.5
    np.testing.assert_array_equal(
        model.is_absorbing(
            model.sample_next([fallen], np.zeros((1, *model.action_space.shape)), np.random.default_rng(0))
        ),
        [True],
    )


def test_initial_states_are_those_of_reset():
    env = gym.make(IDS[0]).unwrapped
    model = lfd.as_generative_model(gym.make(IDS[0]))
    env.reset(seed=3)
    env.np_random = np.random.default_rng(5)
    expected = []
    for _ in range(3):
        env.reset()
        expected.append(env.state_vector())
    np.testing.assert_array_equal(model.sample_initial(3, np.random.default_rng(5)), expected)


def test_simulation_data_stay_bit_for_bit():
    """Also what a reset would compute anew: after a step, positions in space lag behind the joints."""
    env = gym.make("HalfCheetah-v4")
    env.reset(seed=0)
    for _ in range(5):
        env.step(np.ones(6, dtype=np.float32))
    data = env.unwrapped.data
    before = {
        name: np.copy(getattr(data, name)) for name in ("qpos", "qvel", "xpos", "qacc_warmstart", "ctrl", "cfrc_ext")
    }
    time, stream = data.time, env.unwrapped.np_random.bit_generator.state
    model = lfd.as_generative_model(env)
    states = model.sample_initial(3, np.random.default_rng(0))
    model.observe(model.sample_next(states, np.zeros((3, 6)), np.random.default_rng(0)))
    assert env.unwrapped.data is data
    assert data.time == time
    assert env.unwrapped.np_random.bit_generator.state == stream
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(data, name), value)
    assert np.abs(before["xpos"]).sum() > 0


@pytest.mark.parametrize("env_id", FORCES_SHOWN)
def test_observations_beyond_the_state_are_announced(env_id):
    with pytest.warns(LfdGymWarning, match=r"entries of the observations of .* depend on more than its state"):
        model = lfd.as_generative_model(gym.make(env_id))
    states = model.sample_initial(2, np.random.default_rng(0))
    assert model.observe(states).shape == (2, *model.observation_space.shape)


@pytest.mark.parametrize("env_id", IDS)
def test_observations_of_the_state_alone_are_not(env_id):
    with warnings.catch_warnings():
        warnings.simplefilter("error", LfdGymWarning)
        lfd.as_generative_model(gym.make(env_id))


POINT_MASS = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody><body><joint name="x" type="slide"/><geom size="0.1"/></body></worldbody>
  <actuator><general joint="x" ctrlrange="-1 1" dyntype="{dynamics}"/></actuator>
</mujoco>
"""


class PointMass(MujocoEnv):
    """A mass on a rail, pushed by a motor."""

    metadata = {"render_modes": ["human", "rgb_array", "depth_array"], "render_fps": 50}  # noqa: RUF012 - Gymnasium's way

    def __init__(self, path, dynamics):
        path.write_text(POINT_MASS.format(dynamics=dynamics))
        super().__init__(str(path), 2, gym.spaces.Box(-np.inf, np.inf, (2,), np.float64))

    def step(self, action):
        self.do_simulation(action, self.frame_skip)
        return self._get_obs(), 0.0, False, False, {}

    def reset_model(self):
        self.set_state(self.init_qpos + self.np_random.normal(size=1), self.init_qvel)
        return self._get_obs()

    def _get_obs(self):
        return np.concatenate([self.data.qpos, self.data.qvel])


def test_own_environment(tmp_path):
    env = PointMass(tmp_path / "motor.xml", "none")
    check_generative_model(lfd.as_generative_model(env), env=env)


def test_hidden_activations_are_refused(tmp_path):
    env = PointMass(tmp_path / "integrator.xml", "integrator")
    assert env.model.na == 1
    with pytest.raises(TypeError, match=r"the state of .* is more than \(qpos, qvel\)"):
        lfd.as_generative_model(env)
