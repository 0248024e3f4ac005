"""The vectorised environment against Gymnasium's own `SyncVectorEnv` and the exact transitions."""

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import chi2, chisquare

from lfd_gym.envs import FiniteVectorEnv, GarnetEnv, StochasticGridworldEnv, TabularEnv
from lfd_gym.envs.vector import RESETS_IN_SAME_STEP

ID = "lfd_gym/StochasticGridworld-v0"
NATIVE = "custom" if RESETS_IN_SAME_STEP else "vector_entry_point"  # the name of the mode in either Gymnasium line


def deterministic_env():
    """A ring of five states and an end: nothing is random, not even the first state, so that runs can be compared."""
    transitions = np.zeros((6, 3, 6))
    for state in range(5):
        transitions[state, 0, (state + 1) % 5] = transitions[state, 1, (state + 2) % 5] = transitions[state, 2, 5] = 1.0
    transitions[5, :, 5] = 1.0
    cost_features = np.random.default_rng(0).uniform(-1, 1, (18, 2))
    cost_features[15:] = 0.0
    return TabularEnv(transitions, np.eye(6)[2], cost_features, absorbing_state=5)


def assert_same_infos(ours, theirs):
    assert ours.keys() == theirs.keys()
    for key in ours:
        if key == "final_info":
            for our, their in zip(ours[key], theirs[key], strict=True):
                assert (our is None) == (their is None)
                if our is not None:
                    assert_same_infos(our, their)
        else:
            # Gymnasium 0.29 keeps arrays in an array of objects; ours is one array.
            np.testing.assert_array_equal(ours[key], np.stack(list(theirs[key])))


@pytest.mark.parametrize("limit", [1, 4, None])
def test_every_step_is_that_of_gymnasiums_own_vector_env(limit):
    def single():
        return deterministic_env() if limit is None else gym.wrappers.TimeLimit(deterministic_env(), limit)

    theirs = gym.vector.SyncVectorEnv([single] * 4)
    ours = FiniteVectorEnv(deterministic_env(), num_envs=4, max_episode_steps=limit)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.metadata.get("autoreset_mode") == theirs.metadata.get("autoreset_mode")
    rng = np.random.default_rng(1)
    endings = np.zeros(2, dtype=int)
    for _ in range(3):
        for our, their in zip(ours.reset(), theirs.reset(), strict=True):
            assert_same_infos(our, their) if isinstance(our, dict) else np.testing.assert_array_equal(our, their)
        for _ in range(40):
            actions = rng.choice(3, p=[0.5, 0.3, 0.2], size=4)
            our_step, their_step = ours.step(actions), theirs.step(actions)
            for our, their in zip(our_step[:4], their_step[:4], strict=True):
                np.testing.assert_array_equal(our, their)
                assert our.dtype == their.dtype
            assert_same_infos(our_step[4], their_step[4])
            endings += our_step[2].sum(), our_step[3].sum()
    assert endings[0] > 10  # terminations, and truncations where there is a limit
    assert (endings[1] > 10) == (limit is not None)


@pytest.mark.skipif(RESETS_IN_SAME_STEP, reason="Gymnasium 0.29 resets in the same step")
def test_the_extra_step_of_a_reset_ignores_its_action():
    envs = FiniteVectorEnv(deterministic_env(), num_envs=2)
    envs.reset()
    envs.step([2, 0])
    observations, rewards, terminated, truncated, _ = envs.step([-7, 0])
    assert (observations[0], rewards[0], terminated[0], truncated[0]) == (2, 0.0, False, False)
    assert envs.step([0, 0])[0][0] == 3


@pytest.mark.parametrize("env", [StochasticGridworldEnv(size=3), GarnetEnv(n_states=6, n_actions=3, n_successors=3)])
def test_transitions_have_the_exact_law(env):
    envs = FiniteVectorEnv(env, num_envs=64)
    states, _ = envs.reset(seed=0)
    rng = np.random.default_rng(1)
    counts = np.zeros((env.n_states * env.n_actions, env.n_states))
    for _ in range(600):
        actions = rng.integers(env.n_actions, size=64)
        successors, rewards, _, _, infos = envs.step(actions)
        pairs = states * env.n_actions + actions
        np.testing.assert_array_equal(rewards, -env.cost_features[pairs, 0])
        np.testing.assert_array_equal(infos["cost_features"], env.state_features[successors])
        np.add.at(counts, (pairs, successors), 1)
        states = successors
    law = env.transitions.toarray()
    assert counts[law == 0].sum() == 0
    expected = (counts.sum(axis=1, keepdims=True) * law)[law > 0]
    statistic = ((counts[law > 0] - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, df=(law > 0).sum() - len(law)) > 1e-3


def test_restarts_have_the_initial_law():
    envs = FiniteVectorEnv(StochasticGridworldEnv(size=3), num_envs=50, max_episode_steps=1)
    envs.reset(seed=3)
    counts = np.zeros(9)
    for step in range(100):
        observations = envs.step(np.zeros(50, dtype=int))[0]
        if RESETS_IN_SAME_STEP or step % 2 == 1:
            counts += np.bincount(observations, minlength=9)
    assert chisquare(counts).pvalue > 1e-3


def test_copies_are_independent():
    envs = FiniteVectorEnv(StochasticGridworldEnv(size=8), num_envs=2)
    envs.reset(seed=0)
    paths = np.array([envs.step([0, 0])[0] for _ in range(2000)])
    moved = (np.diff(paths, axis=0) != 0).astype(float)
    assert abs(np.corrcoef(moved.T)[0, 1]) < 0.1


def test_same_seed_same_run():
    def run(seed):
        envs = gym.make_vec(ID, num_envs=5, vectorization_mode=NATIVE)
        first, _ = envs.reset(seed=seed)
        return np.array([first] + [envs.step(np.full(5, k % 4))[0] for k in range(450)])  # over two restarts

    np.testing.assert_array_equal(run(3), run(3))
    assert (run(3) != run(4)).any()


def test_make_vec_builds_it_with_the_time_limit():
    envs = gym.make_vec(ID, num_envs=3, vectorization_mode=NATIVE)
    assert isinstance(envs.unwrapped, FiniteVectorEnv)
    assert envs.unwrapped.spec.id == ID
    envs.reset(seed=0)
    truncations = [envs.step(np.zeros(3, dtype=int))[3].all() for _ in range(200)]
    assert truncations == [False] * 199 + [True]
    envs.close()


def test_parameters_reach_the_copies_or_are_refused():
    if RESETS_IN_SAME_STEP:
        with pytest.raises(gym.error.Error, match=r"did not pass size=4 .* vector_kwargs=\{'size': 4\}"):
            gym.make_vec(ID, num_envs=2, vectorization_mode=NATIVE, size=4)
        envs = gym.make_vec(ID, num_envs=2, vectorization_mode=NATIVE, vector_kwargs={"size": 4})
    else:
        envs = gym.make_vec(ID, num_envs=2, vectorization_mode=NATIVE, size=4)
    assert envs.unwrapped.single_observation_space == gym.spaces.Discrete(16)


def test_episode_statistics_of_gymnasiums_wrapper():
    wrappers = gym.wrappers if RESETS_IN_SAME_STEP else gym.wrappers.vector
    envs = wrappers.RecordEpisodeStatistics(
        FiniteVectorEnv(StochasticGridworldEnv(size=4), num_envs=3, max_episode_steps=10)
    )
    envs.reset(seed=0)
    total = np.zeros(3)
    for _ in range(10):
        _, rewards, _, _, infos = envs.step(np.ones(3, dtype=int))
        total += rewards
    assert total.any()
    np.testing.assert_allclose(infos["episode"]["r"], total)


@pytest.mark.skipif(not RESETS_IN_SAME_STEP, reason="VectorEnvWrapper went with Gymnasium 1.0")
def test_wrappers_of_gymnasium_029_work():
    plain = FiniteVectorEnv(StochasticGridworldEnv(size=4), num_envs=3)
    wrapped = gym.vector.VectorEnvWrapper(FiniteVectorEnv(StochasticGridworldEnv(size=4), num_envs=3))
    np.testing.assert_array_equal(wrapped.reset(seed=5)[0], plain.reset(seed=5)[0])
    np.testing.assert_array_equal(wrapped.step([0, 1, 2])[0], plain.step([0, 1, 2])[0])


def test_reset_to_states():
    envs = FiniteVectorEnv(StochasticGridworldEnv(size=4), num_envs=3)
    assert envs.reset(options={"state": 7})[0].tolist() == [7, 7, 7]
    assert envs.reset(options={"state": [7, 0, 15]})[0].tolist() == [7, 0, 15]
    assert envs.states.tolist() == [7, 0, 15]
    for states in (16, [0, 1, -1], 2.0, [1, 2]):
        with pytest.raises(ValueError, match=r"states? must"):
            envs.reset(options={"state": states})
    assert envs.states.tolist() == [7, 0, 15]


def test_what_is_returned_is_the_callers_to_change():
    envs = FiniteVectorEnv(StochasticGridworldEnv(size=4), num_envs=3)
    for returned in (envs.reset(options={"state": 7})[0], envs.states):
        returned[:] = 99
    assert envs.states.tolist() == [7, 7, 7]
    observations, *_, infos = envs.step([0, 0, 0])
    before = envs.states
    observations[:] = 99
    infos["cost_features"][:] = 99
    np.testing.assert_array_equal(envs.states, before)
    assert np.abs(envs.step([0, 0, 0])[4]["cost_features"]).max() <= 1


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 4, 0], r"actions must lie in \[0, 4\), got \[0, 4, 0\]"),
        ([0, -1, 0], r"actions must lie in \[0, 4\)"),
        ([0, 1], r"actions must be 3 integers, got shape \(2,\)"),
        ([0.0, 1.0, 2.0], "actions must be 3 integers, got shape .* of float64"),
    ],
)
def test_wrong_actions_are_refused_and_change_nothing(actions, message):
    envs = FiniteVectorEnv(StochasticGridworldEnv(size=4), num_envs=3, max_episode_steps=2)
    with pytest.raises(gym.error.ResetNeeded):
        envs.step([0, 0, 0])
    envs.reset(seed=0)
    before = envs.states
    with pytest.raises(ValueError, match=message):
        envs.step(actions)
    np.testing.assert_array_equal(envs.states, before)
    assert not envs.step([0, 0, 0])[3].any()


def test_frames_show_every_copy():
    env = StochasticGridworldEnv(size=4, render_mode="ansi")
    envs = FiniteVectorEnv(env, num_envs=2)
    envs.reset(options={"state": [0, 5]})
    frames = envs.render()
    for state, frame in zip((0, 5), frames, strict=True):
        env.set_state(state)
        assert frame == env.render()
    with pytest.raises(ValueError, match="render_mode='human' shows one environment"):
        FiniteVectorEnv(StochasticGridworldEnv(render_mode="human"), num_envs=2)


@pytest.mark.parametrize(("name", "value"), [("num_envs", 0), ("max_episode_steps", 0), ("max_episode_steps", 1.5)])
def test_wrong_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=rf"{name} must be an integer .*, got {value}"):
        FiniteVectorEnv(StochasticGridworldEnv(size=2), **{name: value})
