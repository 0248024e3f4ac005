"""Compiled batches of classic control are the steps of Gymnasium, whatever the constants."""

import inspect

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import acrobot
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv

import lfd_gym as lfd
from lfd_gym.envs._classic_tasks import TASKS
from lfd_gym.envs.classic_control import CLASSIC_CONTROL
from lfd_gym.envs.simulator import SimulatorModel

#: How far from zero the entries of states are drawn: beyond where episodes end and where speeds are cut.
SPREAD = {
    AcrobotEnv: (7.0, 7.0, 15.0, 30.0),
    CartPoleEnv: (2.6, 5.0, 0.3, 5.0),
    Continuous_MountainCarEnv: (1.5, 0.1),
    MountainCarEnv: (1.5, 0.1),
    PendulumEnv: (10.0, 10.0),
}
CONSTANTS = [
    *((AcrobotEnv, name, 1.5) for name in ("LINK_LENGTH_1", "LINK_MASS_1", "LINK_MASS_2", "LINK_MOI")),
    *((AcrobotEnv, name, 0.75) for name in ("LINK_COM_POS_1", "LINK_COM_POS_2")),
    *((AcrobotEnv, name, 3) for name in ("MAX_VEL_1", "MAX_VEL_2")),
    *((AcrobotEnv, "AVAIL_TORQUE", value) for value in ([-2.0, 0.5, 2], (-2, 0, 2), np.array([-2.0, 0.0, 2.0]))),
    *((AcrobotEnv, "book_or_nips", "nips"), (AcrobotEnv, "torque_noise_max", 0.5), (AcrobotEnv, "dt", 0.1)),
    *((CartPoleEnv, name, 0.3) for name in ("masspole", "polemass_length", "length", "theta_threshold_radians", "tau")),
    *((CartPoleEnv, name, 5) for name in ("gravity", "total_mass", "force_mag")),
    *((CartPoleEnv, "gravity", np.float64(5)), (CartPoleEnv, "gravity", np.float32(5.1))),
    *((CartPoleEnv, "x_threshold", 1.5), (CartPoleEnv, "kinematics_integrator", "semi-implicit")),
    *((MountainCarEnv, name, 0.01) for name in ("force", "gravity", "max_speed")),
    *((MountainCarEnv, name, value) for name, value in [("min_position", -0.7), ("max_position", 0.3)]),
    *((MountainCarEnv, name, value) for name, value in [("goal_position", 0), ("goal_velocity", 0.02)]),
    *((Continuous_MountainCarEnv, name, 0.01) for name in ("power", "max_speed")),
    *((Continuous_MountainCarEnv, "power", type_(0.011)) for type_ in (np.float64, np.float32)),
    *((Continuous_MountainCarEnv, name, v) for name, v in [("min_position", -0.7), ("max_position", 0.3)]),
    *((Continuous_MountainCarEnv, name, v) for name, v in [("goal_position", 0), ("goal_velocity", 0.02)]),
    *((Continuous_MountainCarEnv, "min_action", v) for v in (-0.3, 2.0)),
    *((Continuous_MountainCarEnv, "max_action", v) for v in (0.3, -2)),
    *((PendulumEnv, name, value) for name, value in [("g", 5), ("m", 0.3), ("l", 0.7), ("dt", 0.1), ("max_speed", 3)]),
    *((PendulumEnv, name, value) for name, value in [("max_torque", 1.1), ("m", np.float64(0.3)), ("m", 3)]),
]


@pytest.fixture
def by_itself(monkeypatch):
    """Return the sizes of the batches that an environment steps by itself, as they come."""
    sizes, sample_next = [], SimulatorModel.sample_next

    def counted(model, states, *arguments):
        sizes.append(len(states))
        return sample_next(model, states, *arguments)

    monkeypatch.setattr(SimulatorModel, "sample_next", counted)  # `sample_rewarded` draws by itself, uncounted
    return sizes


def pairs(env, n):
    """Return states and actions of all sorts."""
    rng = np.random.default_rng(0)
    spread = np.array(SPREAD[next(kind for kind in CLASSIC_CONTROL if isinstance(env, kind))])
    states = rng.uniform(-spread, spread, size=(n, len(spread)))
    space = env.action_space
    if isinstance(space, gym.spaces.Discrete):
        return states, rng.integers(space.n, size=n)
    actions = rng.uniform(space.low, space.high, size=(n, 1)).astype(np.float32)
    actions[:2] = [space.low, space.high]
    return states, actions


def stepped(env, states, actions, seed=0):
    """Return what the environment has for a state after each step, NaN where it says that the episode has ended."""
    return stepped_and_rewarded(env, states, actions, seed)[0]


def stepped_and_rewarded(env, states, actions, seed=0):
    """Return what `stepped` does, and the rewards."""
    env.reset()
    env.np_random = np.random.default_rng(seed)
    successors, rewards = np.full_like(states, np.nan), np.empty(len(states))
    for k, (state, action) in enumerate(zip(states, actions, strict=True)):
        env.state, env.steps_beyond_terminated = state, None
        _, rewards[k], ended, _, _ = env.step(action)
        if not ended:
            successors[k] = env.state
    return successors, rewards


def assert_same(env, model, n):
    states, actions = pairs(env, n)
    expected, rewards = stepped_and_rewarded(env, states.copy(), actions)
    found = model.sample_next(states, actions, np.random.default_rng(0))
    again, rewarded = model.sample_rewarded(states, actions, np.random.default_rng(0))
    np.testing.assert_array_equal(again, found)
    np.testing.assert_allclose(rewarded, rewards, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    if isinstance(env, Continuous_MountainCarEnv):  # what it keeps is float32
        np.testing.assert_array_equal(found, expected)
    return found


@pytest.mark.parametrize("kind", CLASSIC_CONTROL)
def test_a_hundred_thousand_steps_are_those_of_gymnasium(kind, by_itself):
    env = kind()
    found = assert_same(env, lfd.as_generative_model(env), 100_000)
    assert by_itself == []
    ended = np.isnan(found).all(axis=1).mean()
    assert ended == 0 if kind is PendulumEnv else 0.05 < ended < 0.95


@pytest.mark.parametrize(("kind", "name", "value"), CONSTANTS)
def test_constants_count_also_when_changed_later(kind, name, value, by_itself):
    env = kind()
    model = lfd.as_generative_model(env)
    before = assert_same(env, model, 500)
    setattr(env, name, value)
    assert not np.array_equal(assert_same(env, model, 500), before, equal_nan=True)
    assert_same(env, lfd.as_generative_model(env), 500)
    # NumPy's own types may lead to other roundings, which only the environment knows.
    float32_actions = kind in (Continuous_MountainCarEnv, PendulumEnv)
    strange = isinstance(value, np.ndarray | np.float32) or (float32_actions and isinstance(value, np.float64))
    assert by_itself == ([500, 500] if strange else [])


def test_every_constant_of_a_kernel_is_changed_above():
    changed = {(kind, name) for kind, name, _ in CONSTANTS}
    needed = {(task.kind, name) for task in TASKS.values() for name in (*task.names, *(task.choice or ())[:1])}
    assert needed <= changed


@pytest.mark.parametrize("kind", CLASSIC_CONTROL)
def test_subclasses_and_replaced_methods_step_by_themselves(kind, by_itself, monkeypatch):
    original = kind.step

    def weaker(self, action):
        result = original(self, action)
        self.state = np.asarray(self.state) / 2
        return result

    mine = type("Mine", (kind,), {})()
    assert_same(mine, lfd.as_generative_model(mine), 50)
    env = kind()
    model = lfd.as_generative_model(env)
    env.step = lambda action: weaker(env, action)
    assert_same(env, model, 50)
    del env.step
    monkeypatch.setattr(kind, "step", weaker)
    assert_same(env, model, 50)
    assert by_itself == [50, 50, 50]


@pytest.mark.parametrize("kind", CLASSIC_CONTROL)
def test_a_gymnasium_with_other_constants_steps_by_itself(kind, by_itself, monkeypatch):
    monkeypatch.setattr(kind, "friction", 0.1, raising=False)
    env = kind()
    assert_same(env, lfd.as_generative_model(env), 50)
    assert by_itself == [50]


def test_a_gymnasium_that_integrates_otherwise_steps_by_itself(by_itself, monkeypatch):
    monkeypatch.setattr(acrobot, "rk4", lambda derivs, y, t: (y + (t[1] - t[0]) * np.asarray(derivs(y)))[:4])
    env = AcrobotEnv()
    assert_same(env, lfd.as_generative_model(env), 50)
    assert by_itself == [50]


def test_other_actions_than_the_usual_are_left_to_the_environment(by_itself):
    env = PendulumEnv()
    env.action_space = gym.spaces.Box(-3.0, 3.0, (1,), np.float64)
    model = lfd.as_generative_model(env)
    expected = stepped(env, np.ones((1, 2)), [np.array([0.1])])
    np.testing.assert_array_equal(model.sample_next([[1.0, 1.0]], [[0.1]], np.random.default_rng(0)), expected)
    assert by_itself == [1]


def test_wider_actions_of_the_same_type_are_compiled(by_itself):
    env = PendulumEnv()
    env.max_torque = 5.0
    env.action_space = gym.spaces.Box(-5.0, 5.0, (1,), np.float32)
    assert_same(env, lfd.as_generative_model(env), 500)
    assert by_itself == []


@pytest.mark.parametrize(
    ("kind", "extreme", "action"),
    [
        (AcrobotEnv, [2000.0, -2000.0, 1.0, 1.0], 0),
        (CartPoleEnv, [0.0, 0.0, 0.1, 1e200], 1),
        (MountainCarEnv, [1e300, 1e308], 2),
        (Continuous_MountainCarEnv, [1e300, -1e300], np.zeros(1, dtype=np.float32)),
        (PendulumEnv, [1e308, 1e308], np.zeros(1, dtype=np.float32)),
    ],
)
def test_extreme_states_are_those_of_gymnasium_too(kind, extreme, action):
    env = kind()
    model = lfd.as_generative_model(env)
    states = np.array([np.full(len(extreme), 0.1), extreme, np.full(len(extreme), np.nan)])
    with np.errstate(over="ignore"):
        expected = stepped(env, states[:2].copy(), [action] * 2)
        found = model.sample_next(states, [action] * 3, np.random.default_rng(0))
    np.testing.assert_allclose(found[:2], expected, rtol=1e-9)
    assert np.isnan(found[2]).all()


@pytest.mark.parametrize(("kind", "action"), [(MountainCarEnv, 0), (Continuous_MountainCarEnv, [0.5])])
def test_what_gymnasium_refuses_is_refused(kind, action):
    model = lfd.as_generative_model(kind())
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=r"math domain error|finite"):
        model.sample_next([[1e308, 0.0]], [action], np.random.default_rng(0))


def test_noise_of_torques_is_drawn_for_states_that_go_on():
    env = AcrobotEnv()
    env.torque_noise_max = 1.0
    model = lfd.as_generative_model(env)
    states, actions = pairs(env, 200)
    states[::3] = np.nan
    expected = SimulatorModel.sample_next(model, states, actions, np.random.default_rng(3))
    found = model.sample_next(states, actions, np.random.default_rng(3))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", CLASSIC_CONTROL)
def test_what_is_over_is_rewarded_no_more(kind):
    model = lfd.as_generative_model(kind())
    states, actions = pairs(model.env, 20)
    states[::2] = np.nan
    _, rewards = model.sample_rewarded(states, actions, np.random.default_rng(0))
    expected = SimulatorModel.sample_rewarded(model, states, actions, np.random.default_rng(0))[1]
    np.testing.assert_allclose(rewards, expected, rtol=0, atol=1e-9)
    assert (rewards[::2] == 0).all()
    assert model.sample_rewarded([], [], np.random.default_rng(0))[1].shape == (0,)


@pytest.mark.skipif("sutton_barto_reward" not in inspect.signature(CartPoleEnv).parameters, reason="of Gymnasium 1")
def test_cart_pole_may_reward_the_end_alone():
    env = CartPoleEnv(sutton_barto_reward=True)
    assert_same(env, lfd.as_generative_model(env), 500)


@pytest.mark.parametrize("kind", CLASSIC_CONTROL)
def test_starts_and_looks_are_those_of_gymnasium(kind):
    model = lfd.as_generative_model(kind())
    starts = [way.sample_initial(100, np.random.default_rng(0)) for way in (model, super(type(model), model))]
    np.testing.assert_array_equal(*starts)
    states, _ = pairs(model.env, 1000)
    states[5] = np.nan
    shown = model.observe(states)
    assert shown.dtype == np.float32
    np.testing.assert_allclose(shown, SimulatorModel.observe(model, states), rtol=1e-6)
    np.testing.assert_array_equal(model.is_absorbing(states), np.arange(1000) == 5)


def test_batches_come_in_any_layout_and_stay_as_they_were():
    model = lfd.as_generative_model(CartPoleEnv())
    states, actions = pairs(model.env, 50)
    states = states.astype(np.float32).astype(np.float64)
    kept = states.copy()
    expected = model.sample_next(states, actions, np.random.default_rng(0))
    np.testing.assert_array_equal(states, kept)
    wide = np.repeat(states, 2, axis=1)
    for same in (np.asfortranarray(states), states.tolist(), states.astype(np.float32), wide[:, ::2]):
        found = model.sample_next(same, actions.astype(np.int32), np.random.default_rng(0))
        np.testing.assert_array_equal(found, expected)
    for empty in ([], np.empty((0, 4))):
        assert model.sample_next(empty, [], np.random.default_rng(0)).shape == (0, 4)
        assert model.observe(empty).shape == (0, 4)
        assert model.is_absorbing(empty).shape == (0,)
