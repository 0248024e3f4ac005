"""Episodes of every kind of environment: alone, wrapped, copied, in vector environments of both lines."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from lfd_gym import collect
from lfd_gym.demonstrations.environments import is_environment, known_spec, single_spaces, time_limit
from lfd_gym.demonstrations.episodes import play_episodes
from lfd_gym.envs import StochasticGridworldEnv
from lfd_gym.policies.policy import Policy

OLD_GYMNASIUM = issubclass(gym.vector.VectorEnv, gym.Env)  # 0.29
SYNC = {"vectorization_mode": "sync"}


class DictCounter(gym.Env):
    """Counts up from a seeded start to 6; observations and actions are of nested spaces, and every part shows."""

    observation_space = spaces.Dict(
        {"count": spaces.Discrete(7), "at": spaces.Tuple((spaces.Box(-9, 9, (2,), np.float32), spaces.MultiBinary(3)))}
    )
    action_space = spaces.Dict({"push": spaces.Box(-1, 1, (1,), np.float32), "gear": spaces.Discrete(3)})

    def _see(self):
        bits = np.array([self.count >> k & 1 for k in range(3)], dtype=np.int8)
        return {"count": self.count, "at": (np.array([self.count, -self.count], dtype=np.float32), bits)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = int(self.np_random.integers(4))
        return self._see(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.count += 1
        return self._see(), float(action["gear"]) + float(action["push"][0]), self.count == 6, False, {}


class Shapes(gym.Env):
    """An environment over any spaces that says whether actions lie in its own; lasts three steps."""

    def __init__(self, observation_space, action_space):
        self.observation_space, self.action_space = observation_space, action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.t = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), (action, self.action_space)
        self.t += 1
        return self.observation_space.sample(), 1.0, False, self.t == 3, {}


def lean(observations):
    return (observations[:, 2] > 0).astype(np.int64)


def pushes(observations):
    """A float64 action, as most policies written by hand give."""
    return np.clip(-observations[:, 2:3], -2, 2).astype(np.float64)


def sources():
    """Environments of every kind that are the same CartPole of at most 30 steps."""
    made = lambda: gym.make("CartPole-v1", max_episode_steps=30)  # noqa: E731
    yield "alone", made
    yield "SyncVectorEnv", lambda: gym.vector.SyncVectorEnv([made] * 3)
    yield "AsyncVectorEnv", lambda: gym.vector.AsyncVectorEnv([made] * 2)
    if OLD_GYMNASIUM:
        yield "experimental", lambda: gym.experimental.vector.SyncVectorEnv([made] * 3)
        recording = gym.wrappers.RecordEpisodeStatistics
        yield "wrapped vector", lambda: recording(gym.vector.SyncVectorEnv([made] * 3))
        yield "starts anew by itself", lambda: gym.make("CartPole-v1", max_episode_steps=30, autoreset=True)
        return
    for mode in gym.vector.AutoresetMode:
        yield mode.name, lambda mode=mode: gym.vector.SyncVectorEnv([made] * 3, autoreset_mode=mode)
    asleep = gym.vector.AutoresetMode.DISABLED
    yield "async DISABLED", lambda: gym.vector.AsyncVectorEnv([made] * 2, autoreset_mode=asleep)
    yield "entry point", lambda: gym.make_vec("CartPole-v1", 3, max_episode_steps=30)
    yield "starts anew by itself", lambda: gym.wrappers.Autoreset(made())
    recording = gym.wrappers.vector.RecordEpisodeStatistics
    yield "wrapped vector", lambda: recording(gym.vector.SyncVectorEnv([made] * 3))


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in sources()])
def test_every_kind_of_environment_gives_whole_episodes_of_its_own_dynamics(make):
    """Replayed step by step in a bare CartPole, each recorded trajectory is what the dynamics give."""
    source = make()
    assert is_environment(source)
    demos = collect(source, lean, 8, rng=np.random.default_rng(3))
    bare = gym.make("CartPole-v1").unwrapped
    bare.reset(seed=0)
    assert len(demos) == 8
    assert demos.truncated.any()
    for episode in demos:
        assert np.abs(episode.observations[0]).max() <= 0.05
        assert len(episode.actions) == 30 or episode.terminated
        for t, action in enumerate(episode.actions):
            bare.state = episode.observations[t].astype(np.float64)
            bare.steps_beyond_terminated = None
            after, _, terminated, *_ = bare.step(int(action))
            np.testing.assert_allclose(episode.observations[t + 1], after, atol=1e-5)
            assert terminated == (episode.terminated and t == len(episode.actions) - 1)
        assert (episode.rewards == 1).all()
    assert demos.horizon == 30
    assert time_limit(source) == 30
    again = collect(source, lean, 8, rng=np.random.default_rng(3))
    assert again == demos
    assert collect(source, lean, 8, rng=np.random.default_rng(4)) != demos
    source.close()


@pytest.mark.parametrize("mode", [None, *(m.name for m in getattr(gym.vector, "AutoresetMode", []))])
def test_one_environment_its_copies_and_vectors_agree_where_seeds_decide(mode):
    """Pendulum is deterministic after its seeded start, and copy k is seeded by the seed plus k."""
    settings = {} if mode is None else {"autoreset_mode": gym.vector.AutoresetMode[mode]}
    env = gym.make("Pendulum-v1", max_episode_steps=7)
    vector = gym.vector.SyncVectorEnv([lambda: gym.make("Pendulum-v1", max_episode_steps=7)] * 2, **settings)
    copies = collect(env, pushes, 5, rng=np.random.default_rng(0), n_envs=2)
    given = collect(vector, pushes, 5, rng=np.random.default_rng(0))
    assert copies.actions.dtype == np.float32
    assert copies.lengths.tolist() == [7] * 5
    for name in ("observations", "actions", "rewards", "offsets", "truncated", "horizon"):
        np.testing.assert_array_equal(getattr(copies, name), getattr(given, name))


def test_make_vec():
    """The vector environments of 0.29's make_vec are no `gymnasium.vector.VectorEnv`."""
    envs = gym.make_vec("Pendulum-v1", num_envs=3, **SYNC)
    demos = collect(envs, pushes, 4, 9, np.random.default_rng(0))
    assert demos.lengths.tolist() == [9] * 4
    assert demos.horizon == 9
    assert single_spaces(envs) == (envs.single_observation_space, envs.single_action_space)
    assert time_limit(envs) == 200
    assert demos.provenance.env_id == "Pendulum-v1"
    assert dict(demos.provenance.env_kwargs) == {}
    with pytest.raises(ValueError, match=r"n_envs is for single environments; .* has 3 already"):
        collect(envs, pushes, 4, 9, np.random.default_rng(0), n_envs=2)


@pytest.mark.skipif(not OLD_GYMNASIUM, reason="1.x says what was observed last")
def test_a_vector_environment_that_hides_the_end_is_refused():
    envs = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="custom")
    with pytest.raises(ValueError, match="does not say what was observed last"):
        collect(envs, lambda seen: np.ones(len(seen), dtype=int), 2, rng=np.random.default_rng(0))


def test_arguments_that_a_vector_entry_point_did_not_pass_on_are_not_recorded():
    settings = {"vector_kwargs": {"size": 4}, "vectorization_mode": "custom"} if OLD_GYMNASIUM else {"size": 4}
    envs = gym.make_vec("lfd_gym/StochasticGridworld-v0", num_envs=2, **settings)
    demos = collect(envs, np.full((16, 4), 0.25), 3, 5, np.random.default_rng(0))
    if OLD_GYMNASIUM:
        assert known_spec(envs) is None
        assert demos.provenance.env_id is None
    else:
        assert dict(demos.provenance.env_kwargs) == {"size": 4}


# -- spaces -----------------------------------------------------------------------------------------------------------


def counting(observations):
    """Flat actions of `DictCounter`: gear = count % 3 as one-hot, push = 0.5; keys are sorted by Gymnasium."""
    count = observations[:, -7:].argmax(axis=1)
    return np.hstack([np.eye(3)[count % 3], np.full((len(count), 1), 0.5)])


@pytest.mark.parametrize("n_envs", [0, 1, 3])
@pytest.mark.parametrize("mode", ["default", "SAME_STEP", "DISABLED"])
def test_dict_and_tuple_spaces_are_flattened_and_back(n_envs, mode):
    if OLD_GYMNASIUM and mode != "default":
        pytest.skip("modes came with 1.1")
    settings = {} if mode == "default" else {"autoreset_mode": gym.vector.AutoresetMode[mode]}
    source = gym.vector.SyncVectorEnv([DictCounter] * n_envs, **settings) if n_envs else DictCounter()
    demos = collect(source, counting, 7, rng=np.random.default_rng(0))
    assert demos.observation_space.shape == (12,)
    assert demos.action_space.shape == (4,)
    assert single_spaces(source) == (demos.observation_space, demos.action_space)
    assert demos.terminated.all()
    assert len(set(demos.lengths)) > 1
    for episode in demos:
        back = [spaces.unflatten(DictCounter.observation_space, row) for row in episode.observations]
        counts = [int(seen["count"]) for seen in back]
        assert counts == list(range(counts[0], 7))
        assert [seen["at"][0].tolist() for seen in back] == [[count, -count] for count in counts]
        assert [seen["at"][1].tolist() for seen in back] == [[c & 1, c >> 1 & 1, c >> 2 & 1] for c in counts]
        assert episode.rewards.tolist() == [count % 3 + 0.5 for count in counts[:-1]]


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (), np.float64),
        spaces.Box(0, 255, (2, 3, 1), np.uint8),
        spaces.Discrete(3),
        spaces.MultiDiscrete([2, 5]),
        spaces.MultiBinary([2, 2]),
    ],
    ids=str,
)
@pytest.mark.parametrize("n_envs", [0, 2])
def test_spaces_of_arrays_stay_as_they_are(space, n_envs):
    make = lambda: Shapes(space, space)  # noqa: E731
    source = gym.vector.SyncVectorEnv([make] * n_envs) if n_envs else make()
    rows = {}

    def repeat(observations):
        rows["asked"] = observations.shape[1:]
        return observations

    demos = collect(source, repeat, 3, rng=np.random.default_rng(0))
    assert rows["asked"] == space.shape
    assert demos.observation_space == demos.action_space == space
    assert demos.actions.dtype == space.dtype
    np.testing.assert_array_equal(demos.acted_on, demos.actions)
    assert demos.lengths.tolist() == [3, 3, 3]
    assert demos.truncated.all()


def test_what_is_not_supported_is_refused_by_name():
    with pytest.raises(ValueError, match=r"observation_space .* got Text"):
        collect(Shapes(spaces.Text(3), spaces.Discrete(2)), lean, 1, rng=np.random.default_rng(0))
    varying = spaces.Dict({"words": spaces.Sequence(spaces.Discrete(3))})
    with pytest.raises(ValueError, match="observation_space has parts of no fixed size"):
        collect(Shapes(varying, spaces.Discrete(2)), lean, 1, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="action_space must count from 0"):
        collect(Shapes(spaces.Discrete(2), spaces.Discrete(2, start=1)), lean, 1, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"actions of a type that fits Discrete\(3\), got float64"):
        collect(Shapes(spaces.Discrete(2), spaces.Discrete(3)), lambda s: s * 1.5, 1, rng=np.random.default_rng(0))
    with pytest.raises(TypeError, match=r"source must be a Gymnasium environment, .* got int"):
        play_episodes(3, None, 1, None, np.random.default_rng(0), None)


# -- wrappers and limits ----------------------------------------------------------------------------------------------


def test_wrappers_are_played_as_given():
    """Under (a + 1) % 4 the recorded action is the policy's, what happens is the wrapper's."""
    bare = gym.make("FrozenLake-v1", is_slippery=False)
    if OLD_GYMNASIUM:
        turned = type("Turned", (gym.ActionWrapper,), {"action": lambda self, action: (action + 1) % 4})(bare)
    else:
        turned = gym.wrappers.TransformAction(bare, lambda action: (action + 1) % 4, bare.action_space)
    demos = collect(turned, lambda seen: np.zeros(len(seen), dtype=int), 2, rng=np.random.default_rng(0))
    assert not demos.actions.any()
    assert demos.observations.tolist() == [0, 4, 8, 12] * 2  # down into a hole, although the policy says left
    assert demos.terminated.all()
    if OLD_GYMNASIUM:
        with pytest.raises(ValueError, match=r"n_envs must be 1 .* wrapper Turned does not say how it was made"):
            collect(turned, lean, 2, rng=np.random.default_rng(0), n_envs=2)


@pytest.mark.parametrize("kind", [gym.wrappers.TimeLimit, gym.wrappers.OrderEnforcing, gym.wrappers.PassiveEnvChecker])
def test_subclasses_of_the_usual_wrappers_are_played_as_given(kind):
    """The spec does not list them, since those of `gymnasium.make` are not listed either."""

    class AlwaysFirst(kind):
        def step(self, action):
            return super().step(0)

    env = AlwaysFirst(
        gym.make("lfd_gym/StochasticGridworld-v0", size=4, intended_probability=1.0, max_episode_steps=9),
        *([9] if kind is gym.wrappers.TimeLimit else []),
    )
    shown = [collect(env, lambda seen, a=a: np.full(len(seen), a), 5, 9, np.random.default_rng(0)) for a in range(4)]
    for demos in shown[1:]:
        np.testing.assert_array_equal(demos.observations, shown[0].observations)


def test_limits():
    limited = gym.wrappers.TimeLimit
    assert time_limit(gym.make("CartPole-v1")) == 500
    assert time_limit(limited(gym.make("CartPole-v1"), 50)) == 50
    assert time_limit(limited(gym.make("CartPole-v1"), 900)) == 500
    assert time_limit(limited(DictCounter(), 3)) == 3
    assert time_limit(DictCounter()) is None
    assert time_limit(gym.vector.SyncVectorEnv([lambda: limited(gym.make("CartPole-v1"), 40)])) == 40
    assert time_limit(None) is None
    asynchronous = gym.vector.AsyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2)
    assert time_limit(asynchronous) == 500
    asynchronous.close()


def test_limits_by_hand_cut_where_they_say():
    grid = gym.make("lfd_gym/StochasticGridworld-v0", size=4, max_episode_steps=20)
    for env, length in ((gym.wrappers.TimeLimit(grid, 12), 12), (gym.wrappers.TimeLimit(grid, 30), 20), (grid, 20)):
        demos = collect(env, np.full((16, 4), 0.25), 3, rng=np.random.default_rng(0))
        assert demos.lengths.tolist() == [length] * 3
        assert demos.truncated.all()
        assert demos.horizon == length


def test_a_limit_that_does_not_apply_is_not_the_horizon():
    """The spec of an unwrapped environment names a limit that nobody enforces."""
    bare = gym.make("Pendulum-v1").unwrapped
    assert collect(bare, pushes, 2, 250, np.random.default_rng(0)).horizon == 250


def test_rng_and_horizon():
    env = StochasticGridworldEnv(size=3)
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        collect(env, np.full((9, 4), 0.25), 1, 5)
    from lfd_gym import as_generative_model

    with pytest.raises(ValueError, match="horizon must be given: a generative model has no time limit"):
        collect(as_generative_model(env), np.full((9, 4), 0.25), 1, rng=np.random.default_rng(0))


# -- policies with memory ---------------------------------------------------------------------------------------------


class OnceAnEpisode(Policy):
    """Draws one action when an episode begins, and keeps to it."""

    def sample(self, observations, rng):
        raise AssertionError("episodes must be begun with start")

    greedy = sample

    def start(self, n, rng, *, deterministic=False):
        kept = rng.integers(2, size=n)
        return lambda who, observations: kept[who]


@pytest.mark.parametrize("n_envs", [1, 3])
def test_policies_begin_every_episode(n_envs):
    env = gym.make("CartPole-v1")
    demos = collect(env, OnceAnEpisode(), 20, rng=np.random.default_rng(0), n_envs=n_envs)
    assert [len(set(episode.actions)) for episode in demos] == [1] * 20
    assert len({int(episode.actions[0]) for episode in demos}) == 2
    from lfd_gym import as_generative_model

    on_model = collect(as_generative_model(env), OnceAnEpisode(), 20, 50, np.random.default_rng(0))
    assert [len(set(episode.actions)) for episode in on_model] == [1] * 20
    assert len({int(episode.actions[0]) for episode in on_model}) == 2


# -- initial states ---------------------------------------------------------------------------------------------------


def test_initial_states_are_recorded_where_observations_do_not_tell_them():
    from lfd_gym import as_generative_model

    model = as_generative_model(gym.make("Pendulum-v1"))
    demos = collect(model, pushes, 5, 4, np.random.default_rng(0))
    assert demos.initial_states.shape == (5, 2)
    np.testing.assert_array_equal(model.observe(demos.initial_states), demos.observations[::5])
    for episode in demos:
        state = episode.initial_state[None]
        for t, action in enumerate(episode.actions):
            np.testing.assert_array_equal(model.observe(state)[0], episode.observations[t])
            state = model.sample_next(state, action[None], np.random.default_rng(0))
    grid = as_generative_model(gym.make("lfd_gym/StochasticGridworld-v0", size=3))
    for policy in (np.full((9, 4), 0.25), lambda seen: np.zeros(len(seen), dtype=int)):
        assert collect(grid, policy, 3, 4, np.random.default_rng(0)).initial_states is None


NORMALISED = {
    "single": lambda: gym.wrappers.NormalizeReward(gym.wrappers.NormalizeObservation(gym.make("CartPole-v1"))),
    "inside a vector": lambda: gym.vector.SyncVectorEnv(
        [lambda: gym.wrappers.NormalizeObservation(gym.make("CartPole-v1"))] * 2
    ),
}
if not OLD_GYMNASIUM:
    NORMALISED["around a vector"] = lambda: gym.wrappers.vector.NormalizeObservation(
        gym.make_vec("CartPole-v1", 2, **SYNC)
    )


@pytest.mark.parametrize("make", NORMALISED.values(), ids=NORMALISED)
def test_running_statistics_are_held_while_episodes_are_played(make):
    env = make()
    env.reset(seed=0)
    for _ in range(30):  # they have run on for a while
        env.action_space.seed(0)
        env.step(env.action_space.sample())
    first, second = (collect(env, lean, 4, 20, np.random.default_rng(0)) for _ in range(2))
    assert first == second
    inner = env.envs[0] if isinstance(env, gym.vector.SyncVectorEnv) else env
    while not hasattr(inner, "obs_rms"):
        inner = inner.env
    before = inner.obs_rms.mean.copy()
    env.reset(seed=1)
    assert (inner.obs_rms.mean != before).any()  # and run on afterwards
