"""Generative models of MuJoCo environments, v4 and (on newer Gymnasium) v5."""

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.envs.mujoco.half_cheetah_v4 import HalfCheetahEnv
from gymnasium.envs.mujoco.inverted_pendulum_v4 import InvertedPendulumEnv
from gymnasium.envs.mujoco.mujoco_env import MujocoEnv
from gymnasium.envs.mujoco.swimmer_v4 import SwimmerEnv

import lfd_gym as lfd
from lfd_gym.testing import check_generative_model

NAMES = [
    "Hopper",
    "HalfCheetah",
    "Walker2d",
    "Ant",
    "Swimmer",
    "Reacher",
    "Pusher",
    "InvertedPendulum",
    "InvertedDoublePendulum",
]


class RepairedSwimmer(SwimmerEnv):
    """The swimmer of Gymnasium 0.29, whose file has an attribute that newer MuJoCo does not take."""

    def _initialize_simulation(self):
        with open(self.fullpath) as file:
            text = file.read()
        model = mujoco.MjModel.from_xml_string(text.replace('collision="predefined"', ""))
        return model, mujoco.MjData(model)


def make(env_id):
    if env_id == "Swimmer-v4" and "Swimmer-v5" not in gym.registry:
        return gym.wrappers.TimeLimit(RepairedSwimmer(), 1000)
    return gym.make(env_id)


def makes(env_id):
    """Say whether this Gymnasium has the environment for this MuJoCo."""
    if env_id not in gym.registry:
        return False
    try:
        make(env_id)
    except ImportError:  # Pusher-v4 of newer Gymnasium is for older MuJoCo
        return False
    return True


IDS = [f"{name}-v{version}" for name in NAMES for version in (4, 5) if makes(f"{name}-v{version}")]
PLAIN = [env_id for env_id in IDS if env_id.startswith("InvertedPendulum")]


def test_every_environment_is_there():
    assert {env_id.split("-")[0] for env_id in IDS} == set(NAMES)


@pytest.mark.parametrize("env_id", ["HalfCheetah-v4", "Ant-v4", "Reacher-v4", *PLAIN])
def test_passes_the_checker(env_id):
    env = gym.make(env_id)
    check_generative_model(lfd.as_generative_model(env), env=env)


@pytest.mark.parametrize("env_id", IDS)
def test_from_a_restored_state_everything_goes_on_as_in_the_environment(env_id):
    """Observations, rewards and ends of 50 steps are the same to the last bit, from states all along an episode."""
    env, model = make(env_id), lfd.as_generative_model(make(env_id))
    restored = model.env
    env.action_space.seed(1)
    actions = [env.action_space.sample() for _ in range(100)]
    seen = [env.reset(seed=1)[0]]
    restored.reset(seed=2)  # another episode: its goals and noise are others
    states = model.sample_initial(1, as_reset(1))
    outcomes = []
    for action in actions:
        outcomes.append(env.step(action)[:3])
        seen.append(outcomes[-1][0])
        if outcomes[-1][2]:
            break
        states = np.concatenate([states, model.sample_next(states[-1:], [action], np.random.default_rng(0))])
    np.testing.assert_array_equal(model.observe(states), seen[: len(states)])
    for start in (0, 1, 7, 50):
        if start >= len(states):
            continue
        model._put_into(states[start])
        for action, (observation, reward, terminated) in zip(
            actions[start:], outcomes[start : start + 50], strict=False
        ):
            found = restored.step(action)
            np.testing.assert_array_equal(found[0], observation)
            assert found[1] == reward
            assert found[2] == terminated
    if outcomes[-1][2]:
        last = model.sample_next(states[-1:], [actions[len(outcomes) - 1]], np.random.default_rng(0))
        assert model.is_absorbing(last).all()


def as_reset(seed):
    """Return the stream that an environment draws from after ``reset(seed=seed)``."""
    return gym.utils.seeding.np_random(seed)[0]


@pytest.mark.parametrize("env_id", IDS)
def test_initial_states_look_as_after_a_reset(env_id):
    env = make(env_id)
    shown = [env.reset(seed=seed)[0] for seed in range(3)]
    model = lfd.as_generative_model(env)
    states = np.concatenate([model.sample_initial(1, as_reset(seed)) for seed in range(3)])
    np.testing.assert_array_equal(model.observe(states), shown)


@pytest.mark.parametrize("env_id", PLAIN)
def test_few_dimensions_stay_few(env_id):
    model = lfd.as_generative_model(gym.make(env_id))
    assert model.fields == ("qpos", "qvel")
    assert model.state_space.shape == (4,)


@pytest.mark.parametrize(
    ("env_id", "field"),
    [("HalfCheetah-v4", "qacc_warmstart"), ("Ant-v4", "xpos"), ("InvertedDoublePendulum-v4", "qfrc_constraint")],
)
def test_states_hold_what_matters(env_id, field):
    assert field in lfd.as_generative_model(gym.make(env_id)).fields


@pytest.mark.parametrize("env_id", PLAIN)
def test_states_of_observations(env_id):
    env = gym.make(env_id)
    model = lfd.as_generative_model(env)
    env.action_space.seed(0)
    seen = [env.reset(seed=0)[0]]
    while not (outcome := env.step(env.action_space.sample()))[2]:
        seen.append(outcome[0])
    np.testing.assert_array_equal(model.observe(model.states_of(seen)), seen)
    assert len(seen) > 3
    assert not hasattr(lfd.as_generative_model(gym.make("HalfCheetah-v4")), "states_of")


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


# -- what cannot be restored -------------------------------------------------------------------------------------------


class ToGoal(HalfCheetahEnv):
    """A cheetah paid for running at a speed that each episode draws, and does not show."""

    def reset_model(self):
        self.goal = self.np_random.uniform(0.0, 2.0)
        return super().reset_model()

    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, -abs(info["x_velocity"] - self.goal), terminated, truncated, info


class Changing(InvertedPendulumEnv):
    """A pendulum paid for changing its action."""

    last = 0.0

    def step(self, action):
        observation, _, *rest = super().step(action)
        change, self.last = abs(float(action[0]) - self.last), float(action[0])
        return observation, change, *rest


class Tiring(HalfCheetahEnv):
    """A cheetah that stops after eight steps."""

    steps = 0

    def reset_model(self):
        self.steps = 0
        return super().reset_model()

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        self.steps += 1
        return observation, reward, terminated or self.steps == 8, truncated, info


class Noisy(InvertedPendulumEnv):
    """A pendulum seen through noise."""

    def _get_obs(self):
        return super()._get_obs() + 0.01 * self.np_random.normal(size=4)


@pytest.mark.parametrize("kind", [ToGoal, Changing, Tiring, Noisy])
def test_what_depends_on_more_than_can_be_restored_is_refused(kind):
    env = kind()
    env.reset(seed=0)
    with pytest.raises(TypeError, match=f"{kind.__name__}.* does not go on as it did.*so only episodes can be played"):
        lfd.as_generative_model(env)


class Timed(InvertedPendulumEnv):
    """A pendulum whose reward rises with the time that MuJoCo keeps."""

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, self.data.time, *rest


def test_time_is_restored_where_it_matters():
    assert lfd.as_generative_model(Timed()).fields == ("qpos", "qvel", "time")


class Pushed(InvertedPendulumEnv):
    """A pendulum whose motor is as strong as chance has it."""

    def step(self, action):
        return super().step(action * self.np_random.uniform(0.5, 1.0))


def test_random_transitions_are_no_reason_to_refuse():
    env = Pushed()
    check_generative_model(lfd.as_generative_model(env), env=env)


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


def test_activations_are_part_of_the_state(tmp_path):
    env = PointMass(tmp_path / "integrator.xml", "integrator")
    assert env.model.na == 1
    model = lfd.as_generative_model(env)
    assert model.fields == ("qpos", "qvel", "act")
    check_generative_model(model, env=env)


def test_rewards_are_those_of_steps():
    env = make("Hopper-v4")
    model = lfd.as_generative_model(make("Hopper-v4"))
    rng = np.random.default_rng(0)
    env.action_space.seed(0)
    env.reset(seed=0)
    reader = lfd.as_generative_model(env)
    for _ in range(10):
        state, action = reader.current_state(), env.action_space.sample()
        _, reward, terminated, _, _ = env.step(action)
        (following,), (found,) = model.sample_rewarded([state], [action], rng)
        assert found == pytest.approx(reward, abs=1e-9)
        assert np.isnan(following).all() == terminated
