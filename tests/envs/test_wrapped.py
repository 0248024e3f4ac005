"""Wrappers change the task: known ones are carried over into generative models, any other is in the way."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

import lfd_gym as lfd
from lfd_gym.envs import StochasticGridworldEnv
from lfd_gym.envs.env_costs import own_costs, true_cost
from lfd_gym.envs.wrapped import WrappedModel
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.testing import check_generative_model

wrappers = gym.wrappers
OLD = issubclass(gym.vector.VectorEnv, gym.Env)  # Gymnasium 0.29


def transformed(env, function, space=None):
    return wrappers.TransformObservation(env, function, *([] if OLD else [space]))


class Split(CartPoleEnv):
    """CartPole that shows places, speeds and its side by name."""

    def __init__(self, render_mode=None):
        super().__init__(render_mode=render_mode)
        vectors = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.observation_space = gym.spaces.Dict(place=vectors, speed=vectors, side=gym.spaces.Discrete(2))

    def _get_obs(self):
        state = np.asarray(self.state, dtype=np.float32)
        return {"place": state[::2], "side": np.int64(state[0] > 0), "speed": state[1::2]}

    def reset(self, **kwargs):
        _, info = super().reset(**kwargs)
        return self._get_obs(), info

    def step(self, action):
        _, *rest = super().step(action)
        return self._get_obs(), *rest


def make(name, **kwargs):
    return lambda: gym.make(name, **kwargs)


GRID = make("lfd_gym/StochasticGridworld-v0", size=4, intended_probability=1.0)
LAKE = make("FrozenLake-v1", is_slippery=False)
WRAPPED = {
    "bare dict": Split,
    "time limit": lambda: wrappers.TimeLimit(CartPoleEnv(), 1000),
    "order": lambda: wrappers.OrderEnforcing(CartPoleEnv()),
    "checker": lambda: wrappers.PassiveEnvChecker(CartPoleEnv()),
    "statistics": lambda: wrappers.RecordEpisodeStatistics(gym.make("CartPole-v1")),
    "frames": lambda: wrappers.RenderCollection(gym.make("CartPole-v1", render_mode="rgb_array")),
    "flat lake": lambda: wrappers.FlattenObservation(LAKE()),
    "flat grid": lambda: wrappers.FlattenObservation(GRID()),
    "flat vectors": lambda: wrappers.FlattenObservation(gym.make("CartPole-v1")),
    "flat dict": lambda: wrappers.FlattenObservation(Split()),
    "filtered": lambda: wrappers.FilterObservation(Split(), ["speed"]),
    "filtered, flat": lambda: wrappers.FlattenObservation(wrappers.FilterObservation(Split(), ["speed", "side"])),
    "transformed": lambda: transformed(gym.make("CartPole-v1"), lambda seen: seen[::-1] / 2),
    "transformed grid": lambda: transformed(GRID(), lambda seen: 15 - seen),
    "transformed lake": lambda: transformed(LAKE(), lambda seen: 15 - seen),
    "rescaled": lambda: wrappers.RescaleAction(gym.make("Pendulum-v1"), -1.0, 3.0),
    "clipped": lambda: wrappers.ClipAction(gym.make("Pendulum-v1")),
    "clipped, rescaled": lambda: wrappers.ClipAction(wrappers.RescaleAction(gym.make("Pendulum-v1"), -0.5, 0.5)),
    "both": lambda: wrappers.TimeLimit(
        transformed(wrappers.RescaleAction(gym.make("Pendulum-v1"), -1.0, 1.0), np.tanh), 300
    ),
}


def as_array(env, observation):
    return gym.spaces.flatten(env.observation_space, observation) if isinstance(observation, dict) else observation


@pytest.mark.filterwarnings("ignore::UserWarning")  # of Gymnasium: functions of observations leave the space
@pytest.mark.parametrize("kind", WRAPPED)
def test_the_model_steps_as_the_wrapped_environment(kind):
    env, model = WRAPPED[kind](), lfd.as_generative_model(WRAPPED[kind]())
    env.action_space.seed(0)
    n_steps = n_ends = 0
    for seed in range(5):
        is_grid = "Grid" in str(env)
        observation, _ = env.reset(seed=seed, options={"state": seed} if is_grid else None)
        stream, _ = gym.utils.seeding.np_random(seed)
        state = np.array([seed]) if is_grid else model.sample_initial(1, stream)
        for _ in range(60):
            np.testing.assert_array_equal(model.observe(state)[0], as_array(env, observation))
            action = env.action_space.sample()
            observation, _, terminated, _, _ = env.step(action)
            state = model.sample_next(state, [action], np.random.default_rng(0))
            assert model.is_absorbing(state)[0] == terminated
            n_steps += 1
            if terminated:
                n_ends += 1
                break
    assert n_steps > 20
    assert n_ends == (0 if "Pendulum" in str(env) or "Grid" in str(env) else 5)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", WRAPPED)
def test_models_pass_the_checker(kind):
    env = WRAPPED[kind]()
    if (
        "transformed" not in kind and kind != "both"
    ):  # Gymnasium leaves the old space where the function leads out of it
        has_names = isinstance(env.observation_space, gym.spaces.Dict)  # the checker compares arrays of env itself
        check_generative_model(lfd.as_generative_model(env), env=None if has_names else env)
    assert lfd.as_generative_model(env).action_space == env.action_space


def test_the_end_survives_maps_of_observations():
    model = lfd.as_generative_model(transformed(gym.make("CartPole-v1"), lambda seen: np.nan_to_num(seen) + 1))
    ended = np.full((1, 4), np.nan)
    assert np.isnan(model.observe(ended)).all()
    assert model.is_absorbing(ended).all()
    flat_lake = lfd.as_generative_model(wrappers.FlattenObservation(LAKE()))
    np.testing.assert_array_equal(flat_lake.observe([16]), np.zeros((1, 16)))
    lake = lfd.as_generative_model(transformed(LAKE(), lambda seen: 15 - seen))
    assert lake.observation_space == gym.spaces.Discrete(17)
    np.testing.assert_array_equal(lake.observe([0, 16]), [15, 16])
    assert lfd.as_generative_model(transformed(GRID(), lambda seen: 15 - seen)).observation_space.n == 16


@pytest.mark.parametrize("n", [0, 1, 3])
def test_batches_of_actions_are_mapped(n):
    model = lfd.as_generative_model(wrappers.RescaleAction(gym.make("Pendulum-v1"), -1.0, 1.0))
    bare = lfd.as_generative_model(gym.make("Pendulum-v1"))
    states, actions = np.zeros((n, 2)), np.linspace(-1, 1, n, dtype=np.float32)[:, None]
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(model.sample_next(states, actions, rng), bare.sample_next(states, 2 * actions, rng))
    with pytest.raises(ValueError, match=r"actions must lie in Box.*got 1\.5"):
        model.sample_next(np.zeros((1, 2)), [[1.5]], rng)


def test_tables_stay_tables_where_nothing_changes():
    for env in (LAKE(), wrappers.RecordEpisodeStatistics(wrappers.TimeLimit(LAKE(), 7))):
        assert isinstance(lfd.as_generative_model(env), lfd.TabularModel)
    flat = wrappers.FlattenObservation(wrappers.TimeLimit(GRID(), 7))
    assert isinstance(lfd.as_generative_model(flat), WrappedModel)
    assert FiniteDynamics.known_of(flat)
    bare = FiniteDynamics.from_env(GRID())
    np.testing.assert_array_equal(FiniteDynamics.from_env(flat).transitions.toarray(), bare.transitions.toarray())
    np.testing.assert_array_equal(own_costs(flat), flat.unwrapped.cost_features)
    np.testing.assert_array_equal(true_cost(flat), flat.unwrapped.cost_features[:, 0])


def test_what_only_renders_has_no_effect():
    env = wrappers.HumanRendering(gym.make("CartPole-v1", render_mode="rgb_array"))
    assert lfd.as_generative_model(env).env is env.unwrapped


# -- in the way --------------------------------------------------------------------------------------------------------


class Turned(gym.ActionWrapper):
    """Every move goes to another side than said."""

    def action(self, action):
        return (action + 1) % 4


class OwnTimeLimit(wrappers.TimeLimit):
    """A subclass of a known wrapper, which might do anything."""


UNKNOWN = {
    "Turned": Turned,
    "OwnTimeLimit": lambda env: OwnTimeLimit(env, 5),
    "TransformReward": lambda env: wrappers.TransformReward(env, lambda reward: -reward),
    "NormalizeReward": wrappers.NormalizeReward,
    "AutoResetWrapper" if OLD else "Autoreset": wrappers.AutoResetWrapper if OLD else wrappers.Autoreset,
}


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("around", [lambda env: env, lambda env: wrappers.TimeLimit(env, 9)])
def test_an_unknown_wrapper_is_named(name, around):
    env = around(UNKNOWN[name](make("lfd_gym/StochasticGridworld-v0", size=8)()))
    with pytest.raises(TypeError, match=f"is wrapped in `{name}`, whose effect is not known, so only episodes can be"):
        lfd.as_generative_model(env)
    for tabular in (lambda env: lfd.FiniteMDP.from_env(env, 0.9), lfd.reward_cost):
        with pytest.raises(TypeError, match=f"is wrapped in `{name}`, whose effect is not known"):
            tabular(env)
    assert not FiniteDynamics.known_of(env)
    assert own_costs(env) is None
    assert true_cost(env) is None


def test_a_task_under_an_unknown_wrapper_knows_no_model():
    env = Turned(make("lfd_gym/StochasticGridworld-v0", size=8)())
    task = lfd.Task(env, discount=0.9)
    assert task.access == "episodes"
    assert task.dynamics is None
    assert lfd.Task(env.env, discount=0.9).access == "model"


def test_states_that_are_renamed_have_no_table():
    env = transformed(GRID(), lambda seen: 15 - seen)
    with pytest.raises(TypeError, match="`TransformObservation`, which changes what is seen or done"):
        lfd.FiniteMDP.from_env(env, 0.9)
    assert not FiniteDynamics.known_of(env)
    assert own_costs(env) is None
    assert lfd.Task(env, discount=0.9).access == "simulator"


class RunningMean:
    """A function that remembers what it has seen."""

    def __init__(self):
        self.total, self.count = 0.0, 0

    def __call__(self, seen):
        self.total, self.count = self.total + seen, self.count + 1
        return seen - self.total / self.count


def in_place(seen):
    seen *= 2
    return seen.copy()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "function",
    [RunningMean(), in_place, lambda seen: seen + np.random.default_rng().normal(size=4)],
    ids=["remembers", "in place", "draws"],
)
def test_functions_that_do_not_give_the_same_twice_are_refused(function):
    with pytest.raises(TypeError, match="`TransformObservation`, whose function does not give the same twice"):
        lfd.as_generative_model(transformed(gym.make("CartPole-v1"), function))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("function", [lambda seen: seen[:1], lambda seen: seen.astype(complex)])
def test_functions_that_show_something_else_than_said_are_refused(function):
    with pytest.raises(TypeError, match="whose function leads out of its observation_space Box"):
        lfd.as_generative_model(transformed(gym.make("CartPole-v1"), function))


def test_a_wrapper_that_answers_for_itself_is_taken():
    class OwnModel(Turned):
        """A wrapper with the methods of a generative model."""

        def __init__(self, env):
            super().__init__(env)
            self.inner = lfd.as_generative_model(env)
            self.state_space = self.inner.state_space

        def sample_initial(self, n, rng):
            return self.inner.sample_initial(n, rng)

        def sample_next(self, states, actions, rng):
            return self.inner.sample_next(states, (np.asarray(actions) + 1) % 4, rng)

        def observe(self, states):
            return self.inner.observe(states)

        def is_absorbing(self, states):
            return self.inner.is_absorbing(states)

    env = OwnModel(GRID())
    assert lfd.as_generative_model(wrappers.TimeLimit(env, 5)) is env


def test_vector_environments_allow_episodes_only():
    sync = gym.vector.SyncVectorEnv([make("CartPole-v1")] * 2)
    grids = lfd.envs.FiniteVectorEnv(GRID().unwrapped, 2)
    for envs in (sync, grids):
        with pytest.raises(TypeError, match="is a vector environment, so only episodes can be played in it"):
            lfd.as_generative_model(envs)


# -- states from observations ------------------------------------------------------------------------------------------

TELLS_STATES = {
    **{name: make(name) for name in ("CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1")},
    **{name: WRAPPED[name] for name in ("flat lake", "flat grid", "time limit", "rescaled", "clipped, rescaled")},
    "grid": GRID,
}


@pytest.mark.parametrize("kind", TELLS_STATES)
def test_states_of_observations_show_them(kind):
    env = TELLS_STATES[kind]()
    model = lfd.as_generative_model(env)
    env.action_space.seed(0)
    seen = []
    for seed in range(3):
        seen.append(env.reset(seed=seed)[0])
        for _ in range(30):
            observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
            seen.append(observation)
            if terminated or truncated:
                break
    states = model.states_of(np.array(seen))
    assert states.shape == (len(seen), *model.state_space.shape)
    assert states.dtype == model.state_space.dtype
    np.testing.assert_allclose(model.observe(states), seen, rtol=1e-6, atol=1e-6)


def test_angles_of_acrobot():
    model = lfd.as_generative_model(gym.make("Acrobot-v1"))
    rng = np.random.default_rng(0)
    states = rng.uniform([-np.pi, -np.pi, -12, -28], [np.pi, np.pi, 12, 28], (50, 4))
    np.testing.assert_allclose(model.states_of(model.observe(states)), states, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["filtered", "transformed", "bare dict", "flat dict", "transformed grid"])
def test_no_states_where_observations_do_not_tell_them(kind):
    assert not hasattr(lfd.as_generative_model(WRAPPED[kind]()), "states_of")


def test_what_is_no_one_hot_vector_is_refused():
    model = lfd.as_generative_model(wrappers.FlattenObservation(GRID()))
    with pytest.raises(ValueError, match="observations must be one-hot vectors"):
        model.states_of(np.ones((1, 16), dtype=np.int64))


# -- subclasses of classic control -------------------------------------------------------------------------------------


class Blind(CartPoleEnv):
    """CartPole that hides its speeds."""

    def step(self, action):
        observation, *rest = super().step(action)
        return observation * np.float32([1, 0, 1, 0]), *rest


class Windy(CartPoleEnv):
    """CartPole with a wind that each episode draws."""

    def reset(self, **kwargs):
        observation, info = super().reset(**kwargs)
        self.force_mag = self.np_random.uniform(5, 15)
        return observation, info


@pytest.mark.parametrize("kind", [Blind, Windy])
def test_subclasses_with_more_than_a_state_are_refused(kind):
    with pytest.raises(TypeError, match=f"{kind.__name__}.*depend on more than its `state`, so only episodes"):
        lfd.as_generative_model(kind())


class TurnedLake(FrozenLakeEnv):
    def step(self, action):
        return super().step((action + 1) % 4)


class TurnedGrid(StochasticGridworldEnv):
    def step(self, action):
        return super().step((action + 1) % 4)


class JumpingGrid(StochasticGridworldEnv):
    def _draw_next(self, state, action):
        return 0


class LakeOfMyOwn(FrozenLakeEnv):
    """It changes the table, by which it steps."""

    def __init__(self):
        super().__init__(is_slippery=False)
        self.P = {state: {a: list(self.P[state][0]) for a in range(4)} for state in self.P}


@pytest.mark.parametrize("kind", [TurnedLake, TurnedGrid, JumpingGrid])
def test_a_subclass_that_steps_in_a_way_of_its_own_has_no_table(kind):
    env = kind()
    method = "_draw_next" if kind is JumpingGrid else "step"
    with pytest.raises(TypeError, match=f"`{method}` of its own"):
        lfd.FiniteMDP.from_env(env, 0.9)
    with pytest.raises(TypeError, match=f"`{method}` of its own"):
        lfd.as_generative_model(env)
    task = lfd.Task(env, discount=0.9)
    assert task.access == "episodes"
    assert task.true_cost is None
    assert lfd.Task(LakeOfMyOwn(), discount=0.9).access == "model"


def test_episodes_of_a_subclass_are_its_own():
    gym.register("TurnedGrid-v0", TurnedGrid, kwargs={"size": 4, "intended_probability": 1.0}, max_episode_steps=9)
    try:
        env, bare = gym.make("TurnedGrid-v0"), GRID()
        ours = lfd.collect(env, lambda seen: np.zeros(len(seen), int), 3, 9, np.random.default_rng(0))
    finally:
        del gym.registry["TurnedGrid-v0"]
    for episode in ours:
        seen = [bare.reset(options={"state": int(episode.observations[0])})[0]]
        seen += [bare.step(1)[0] for _ in episode.actions]
        np.testing.assert_array_equal(episode.observations, seen)


LOOKS = {
    "state": lambda env, seen: np.append(seen, np.float32(env.unwrapped.state[1])),
    "time": lambda env, seen: np.append(seen, np.float32(env._elapsed_steps)),
}


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_functions_that_look_at_more_than_the_observation_are_refused(look, started):
    """While the model is asked, the environment stays where it is, and the function would show that place."""
    env = gym.make("Pendulum-v1")
    space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    shown = transformed(env, lambda seen: look(env, seen), space)
    shown.observation_space = space
    before = shown.reset(seed=3)[0] if started else None
    with pytest.raises(TypeError, match="looks at more"):
        lfd.as_generative_model(shown)
    if started:  # it is left where it was
        np.testing.assert_array_equal(look(env, env.unwrapped._get_obs()), before)


# -- rewards -----------------------------------------------------------------------------------------------------------


def test_rewards_are_those_of_the_actions_within():
    env = wrappers.RescaleAction(gym.make("Pendulum-v1"), -1.0, 1.0)
    model, inner = lfd.as_generative_model(env), lfd.as_generative_model(gym.make("Pendulum-v1"))
    states, rng = np.array([[0.5, 1.0], [3.0, -2.0]]), np.random.default_rng(0)
    found = model.sample_rewarded(states, np.array([[-1.0], [0.5]], dtype=np.float32), rng)
    expected = inner.sample_rewarded(states, np.array([[-2.0], [1.0]], dtype=np.float32), rng)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_model_without_rewards_has_none_under_wrappers():
    assert not hasattr(lfd.as_generative_model(wrappers.FlattenObservation(GRID())), "sample_rewarded")
