"""Generative models that borrow an environment agree with it, and leave it as it was."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import acrobot
from gymnasium.envs.classic_control.pendulum import PendulumEnv

import lfd_gym as lfd
from lfd_gym.envs.acrobot_repair import repair_acrobot
from lfd_gym.envs.simulator import borrowed
from lfd_gym.testing import check_generative_model

CLASSIC_IDS = ["CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1", "Pendulum-v1"]


def fingerprint(env):
    """Return what must not change: the attributes, the contents of arrays, the stream."""
    env = env.unwrapped
    contents = {name: value.copy() for name, value in vars(env).items() if isinstance(value, np.ndarray)}
    stream = env._np_random.bit_generator.state if env._np_random is not None else None
    return dict(vars(env)), contents, stream


def assert_untouched(env, before):
    attributes, contents, stream = before
    now, now_contents, now_stream = fingerprint(env)
    assert now.keys() == attributes.keys()
    assert all(now[name] is attributes[name] for name in attributes)
    for name, content in contents.items():
        np.testing.assert_array_equal(now_contents[name], content)
    assert now_stream == stream


# -- classic control ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", CLASSIC_IDS)
def test_classic_control_passes_the_checker(env_id):
    env = gym.make(env_id)
    check_generative_model(lfd.as_generative_model(env), env=env)


@pytest.mark.parametrize("env_id", CLASSIC_IDS)
def test_classic_control_agrees_with_episodes(env_id):
    """Transitions are those of the environment, bit for bit; MountainCarContinuous rounds its states to float32."""
    env = gym.make(env_id).unwrapped
    model = lfd.as_generative_model(gym.make(env_id))
    env.action_space.seed(0)
    tolerance = 1e-7 if env_id == "MountainCarContinuous-v0" else 0
    rng = np.random.default_rng(0)
    for seed in range(3):
        observation, _ = env.reset(seed=seed)
        for _ in range(60):
            state = np.asarray(env.state, dtype=np.float64)
            np.testing.assert_array_equal(model.observe([state])[0], observation)
            action = env.action_space.sample()
            observation, _, terminated, _, _ = env.step(action)
            drawn = model.sample_next([state], [action], rng)[0]
            if terminated:
                assert np.isnan(drawn).all()
                break
            np.testing.assert_allclose(drawn, np.asarray(env.state), rtol=0, atol=tolerance)


@pytest.mark.parametrize("env_id", CLASSIC_IDS)
def test_classic_control_initial_states_are_those_of_reset(env_id):
    env = gym.make(env_id).unwrapped
    model = lfd.as_generative_model(gym.make(env_id))
    env.reset(seed=7)
    env.np_random = np.random.default_rng(5)
    expected = []
    for _ in range(4):
        env.reset()
        expected.append(env.state)
    np.testing.assert_array_equal(model.sample_initial(4, np.random.default_rng(5)), expected)


def test_acrobot_steps_also_where_gymnasium_asks_numpy_for_a_name_it_has_dropped():
    env = gym.make("Acrobot-v1")
    env.reset(seed=0)
    assert env.step(0)[1:4] == (-1.0, False, False)
    repaired = acrobot.rk4
    repair_acrobot()
    assert acrobot.rk4 is repaired  # once is enough
    model = lfd.as_generative_model(env)
    states = model.sample_initial(1, np.random.default_rng(0))
    assert (model.sample_next(states, [0], np.random.default_rng(0)) != states).all()


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="NumPy 1 has the name")
def test_nothing_but_acrobot_is_given_the_name_that_numpy_has_dropped():
    assert not hasattr(np, "float_")


def test_cart_pole_ends_in_the_absorbing_state():
    model = lfd.as_generative_model(gym.make("CartPole-v1"))
    rng = np.random.default_rng(0)
    states = np.array([[2.39, 5.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [np.nan] * 4, [3.0, 0.0, 0.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # CartPole warns of steps after an end
        successors = model.sample_next(states, [1, 1, 1, 1], rng)
    np.testing.assert_array_equal(model.is_absorbing(successors), [True, False, True, True])
    np.testing.assert_array_equal(np.isnan(successors).all(axis=1), [True, False, True, True])
    again = model.sample_next(successors, [0, 0, 0, 0], rng)
    np.testing.assert_array_equal(model.is_absorbing(again), [True, False, True, True])
    observations = model.observe(successors)
    assert observations.dtype == np.float32
    np.testing.assert_array_equal(np.isnan(observations).all(axis=1), [True, False, True, True])


@pytest.mark.parametrize("env_id", CLASSIC_IDS)
@pytest.mark.parametrize("reset_first", [True, False])
def test_attributes_and_streams_stay(env_id, reset_first):
    env = gym.make(env_id)
    if reset_first:
        env.reset(seed=3)
    before = fingerprint(env)
    model = lfd.as_generative_model(env)
    states = model.sample_initial(3, np.random.default_rng(0))
    model.observe(states)
    actions = [env.action_space.high if hasattr(env.action_space, "high") else 0] * 3
    model.sample_next(states, actions, np.random.default_rng(0))
    model.sample_rewarded(states, actions, np.random.default_rng(0))
    assert_untouched(env, before)


def test_an_environment_that_fails_is_returned_too():
    class Failing(PendulumEnv):
        def step(self, u):
            self.state = self.np_random.random(2)
            self.history = [1]
            self.table[0] = -1.0
            raise RuntimeError("out of order")

    env = Failing()
    env.table = np.arange(3.0)
    env.reset(seed=0)
    before = fingerprint(env)
    with pytest.raises(RuntimeError, match="out of order"):
        lfd.as_generative_model(env).sample_next([[0.0, 0.0]], [[0.0]], np.random.default_rng(0))
    assert_untouched(env, before)


class WindyPendulum(PendulumEnv):
    """A pendulum pushed at random, out of its own stream."""

    def step(self, u):
        return super().step(np.clip(u + self.np_random.normal(size=1), -2, 2))


def test_random_dynamics_draw_from_the_callers_stream():
    env = WindyPendulum()
    model = lfd.as_generative_model(env)
    check_generative_model(model, env=env)
    states, actions = np.zeros((5, 2)), np.zeros((5, 1))
    drawn = [model.sample_next(states, actions, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()
    assert len(np.unique(drawn[0][:, 1])) == 5


def test_nothing_is_rendered():
    env = gym.make("CartPole-v1")
    env.reset(seed=0)
    env.unwrapped.render_mode = "human"
    env.unwrapped.render = lambda: pytest.fail("rendered")
    model = lfd.as_generative_model(env)
    model.observe(
        model.sample_next(model.sample_initial(2, np.random.default_rng(0)), [0, 1], np.random.default_rng(0))
    )
    assert env.unwrapped.render_mode == "human"


def test_a_time_limit_is_no_end():
    env = gym.wrappers.TimeLimit(gym.make("CartPole-v1"), 1)
    env.reset(seed=0)
    assert env.step(0)[3]
    model = lfd.as_generative_model(env)
    assert not model.is_absorbing(model.sample_next(np.zeros((1, 4)), [0], np.random.default_rng(0))).any()


@pytest.mark.parametrize(
    ("env_id", "states", "actions", "message"),
    [
        ("CartPole-v1", np.zeros((2, 3)), [0, 0], r"states must have shape \(n, 4\), got \(2, 3\)"),
        ("CartPole-v1", [[0, 0, 0, np.nan]], [0], r"states must lie in Box.*got nan at index \(0, 3\)"),
        ("CartPole-v1", [["a"] * 4], [0], "states must be of a type that fits float64, got <U1"),
        ("CartPole-v1", np.zeros((1, 4)), [2], r"actions must lie in Discrete\(2\), got 2 at index \(0,\)"),
        ("CartPole-v1", np.zeros((1, 4)), [0.0], "actions must be of a type that fits int64, got float64"),
        ("CartPole-v1", np.zeros((2, 4)), [0], "states and actions must have the same length, got 2 and 1"),
        ("Pendulum-v1", np.zeros((1, 2)), [[2.5]], r"actions must lie in Box.*got 2.5 at index \(0, 0\)"),
        ("Pendulum-v1", np.zeros((1, 2)), [[np.nan]], r"actions must lie in Box.*got nan at index \(0, 0\)"),
        ("Pendulum-v1", np.zeros((1, 2)), [0.0], r"actions must have shape \(n, 1\), got \(1,\)"),
    ],
)
def test_bad_arguments_are_named(env_id, states, actions, message):
    model = lfd.as_generative_model(gym.make(env_id))
    with pytest.raises(ValueError, match=message):
        model.sample_next(states, actions, np.random.default_rng(0))


def test_seeds_are_not_taken_for_streams():
    model = lfd.as_generative_model(gym.make("CartPole-v1"))
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        model.sample_initial(2, 0)
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        model.sample_next(np.zeros((1, 4)), [0], None)


# -- resettable environments -------------------------------------------------------------------------------------------


class Resettable(gym.Env):
    """The methods of seals' ResettablePOMDP, for a walk with random steps that ends in its last state."""

    def __init__(self, state_space=None, ends=True):
        self.state_space = self.observation_space = state_space or gym.spaces.Discrete(4)
        self.action_space = gym.spaces.Discrete(2)
        self.ends = ends

    def initial_state(self):
        return self.state_space.dtype.type(self.np_random.integers(2)) + np.zeros(self.state_space.shape, int)

    def transition(self, state, action):
        return np.minimum(state + action * self.np_random.integers(2), 3)

    def terminal(self, state, n_actions_taken):
        return n_actions_taken >= 5 or bool(self.ends and np.all(state == 3))  # five: a time limit

    def obs_from_state(self, state):
        return state


@pytest.mark.parametrize("ends", [True, False])
def test_resettable_environment_with_numbered_states(ends):
    env = Resettable(ends=ends)
    model = lfd.as_generative_model(env)
    n = 5 if ends else 4
    assert model.state_space == model.observation_space == gym.spaces.Discrete(n)
    transitions = np.zeros((n, 2, n))
    for state in range(n):
        last = n - 1 if state >= 2 else state + 1  # state 3 is never left alive: it ends, or is the last one
        transitions[state, 0, state if state < 3 else n - 1] = 1.0
        transitions[state, 1, state if state < 3 else n - 1] += 0.5
        transitions[state, 1, last] += 0.5
    absorbing = n - 1 if ends else None
    mdp = lfd.FiniteMDP(transitions, [0.5, 0.5] + [0.0] * (n - 2), 0.9, absorbing)
    check_generative_model(model, mdp=mdp, n_draws=20_000)
    np.testing.assert_array_equal(model.is_absorbing(np.arange(n)), np.arange(n) == absorbing)


def test_resettable_environment_with_vectors():
    env = Resettable(gym.spaces.Box(0.0, 3.0, (2,), np.float32))
    model = lfd.as_generative_model(env)
    check_generative_model(model)
    successors = model.sample_next([[2.0, 2.0]] * 20, [1] * 20, np.random.default_rng(0))
    np.testing.assert_array_equal(np.unique(model.is_absorbing(successors)), [False, True])
    np.testing.assert_array_equal(np.isnan(model.observe(successors)).all(axis=1), model.is_absorbing(successors))


def test_integer_vectors_cannot_stand_for_the_end():
    model = lfd.as_generative_model(Resettable(gym.spaces.MultiDiscrete([4, 4])))
    np.testing.assert_array_equal(model.sample_next([[1, 0]], [0], np.random.default_rng(0)), [[1, 0]])
    with pytest.raises(TypeError, match="has no element to stand for that"):
        model.sample_next([[2, 2]] * 20, [1] * 20, np.random.default_rng(0))


def test_random_observations_are_refused():
    class Noisy(Resettable):
        def obs_from_state(self, state):
            return state + self.np_random.integers(2)

    model = lfd.as_generative_model(Noisy())
    states = model.sample_next(model.sample_initial(3, np.random.default_rng(0)), [0, 1, 1], np.random.default_rng(0))
    with pytest.raises(TypeError, match=r"observations of .* are random"):
        model.observe(states)


def test_spaces_that_hold_no_arrays_are_refused():
    env = Resettable()
    env.action_space = gym.spaces.Text(3)
    with pytest.raises(TypeError, match=r"action_space must be Box, Discrete, MultiDiscrete or MultiBinary.*got Text"):
        lfd.as_generative_model(env)


def test_actions_of_many_parts_are_flat_arrays():
    class Sum(Resettable):
        """A walk moved by the first part of its action, if the second says so."""

        def transition(self, state, action):
            return np.minimum(state + action["step"] * int(action["go"][0] > 0), 3)

    env = Sum()
    env.action_space = gym.spaces.Dict(step=gym.spaces.Discrete(3), go=gym.spaces.Box(-1, 1, (1,), np.float32))
    model = lfd.as_generative_model(env)
    actions = [
        gym.spaces.flatten(env.action_space, {"step": step, "go": [go]}) for step, go in [(1, 1), (2, 1), (2, -1)]
    ]
    np.testing.assert_array_equal(model.sample_next([0, 0, 0], actions, np.random.default_rng(0)), [1, 2, 0])


def test_borrowing_keeps_read_only_arrays():
    env = Resettable()
    env.table = np.arange(3)
    env.table.flags.writeable = False
    with borrowed(env, np.random.default_rng(0)):
        env.table = None
    np.testing.assert_array_equal(env.table, np.arange(3))
