"""Demonstrations against the real imitation, the real Hugging Face datasets, the real Minari and Stable-Baselines3."""

import dataclasses
import json
import multiprocessing
import os
import shutil
import signal
import time

import gymnasium as gym
import jsonpickle
import minari
import numpy as np
import pytest
import torch
import tyro
from gymnasium.envs.registration import EnvSpec
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from imitation.data import rollout, serialize, types
from minari.data_collector import EpisodeBuffer
from minari.dataset.minari_storage import MinariStorage
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

import lfd_gym
from lfd_gym import Demonstrations, FiniteMDP, as_generative_model, collect
from lfd_gym.commands.demonstrations import Collect, Convert, Inspect
from lfd_gym.demonstrations.forms import as_demonstrations
from lfd_gym.demonstrations.interop_minari import list_datasets
from lfd_gym.demonstrations.sb3_expert import train_expert

# imitation 1.0.1 calls jsonpickle in a way that jsonpickle 4 announces to change.
pytestmark = pytest.mark.filterwarnings("ignore:keys will default to True:DeprecationWarning")

GRIDWORLD = "lfd_gym/StochasticGridworld-v0"
BOX = gym.spaces.Box(-np.inf, np.inf, (2, 3), np.float32)


def discrete_demonstrations(rewards=True):
    """Terminated, truncated, both, and a fragment."""
    rng = np.random.default_rng(0)
    lengths = np.array([4, 1, 3, 2])
    return Demonstrations(
        observations=rng.integers(9, size=14),
        actions=rng.integers(4, size=10),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        terminated=[True, False, True, False],
        truncated=[False, True, False, False],
        observation_space=gym.spaces.Discrete(9),
        action_space=gym.spaces.Discrete(4),
        rewards=rng.normal(size=10) if rewards else None,
    )


def box_demonstrations(dtype=np.float32):
    rng = np.random.default_rng(1)
    return Demonstrations(
        observations=rng.normal(size=(9, 2, 3)).astype(dtype),
        actions=rng.normal(size=(7, 2)).astype(dtype),
        offsets=[0, 3, 7],
        terminated=[True, False],
        truncated=[False, True],
        observation_space=gym.spaces.Box(-np.inf, np.inf, (2, 3), dtype),
        action_space=gym.spaces.Box(-1, 1, (2,), dtype),
        rewards=rng.normal(size=7).astype(dtype),
    )


def multi_demonstrations():
    rng = np.random.default_rng(2)
    return Demonstrations(
        observations=rng.integers(3, size=(9, 2)),
        actions=rng.integers(2, size=(7, 3)).astype(np.int8),
        offsets=[0, 3, 7],
        terminated=[True, False],
        truncated=[False, True],
        observation_space=gym.spaces.MultiDiscrete([3, 4]),
        action_space=gym.spaces.MultiBinary(3),
    )


ALL = {
    "multi": multi_demonstrations(),
    "discrete": discrete_demonstrations(),
    "discrete without rewards": discrete_demonstrations(rewards=False),
    "float32": box_demonstrations(),
    "float64": box_demonstrations(np.float64),
}


@pytest.fixture(params=ALL)
def demos(request):
    return ALL[request.param]


def back(source, demos):
    return Demonstrations.from_imitation(source, demos.observation_space, demos.action_space)


# -- imitation --------------------------------------------------------------------------------------------------------


def test_trajectories_there_and_back(demos):
    trajectories = demos.to_imitation()
    wanted = types.Trajectory if demos.rewards is None else types.TrajectoryWithRew
    assert all(type(trajectory) is wanted for trajectory in trajectories)
    assert [t.terminal for t in trajectories] == (demos.terminated | demos.truncated).tolist()
    assert back(trajectories, demos) == demos
    assert back(trajectories, demos).to_imitation() == trajectories


def test_transitions_there_and_back(demos):
    transitions = demos.to_transitions()
    flatten = rollout.flatten_trajectories if demos.rewards is None else rollout.flatten_trajectories_with_rew
    by_imitation = flatten(demos.to_imitation())
    assert type(transitions) is type(by_imitation)
    for name in vars(by_imitation):
        ours, theirs = getattr(transitions, name), getattr(by_imitation, name)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    assert back(transitions, demos) == demos
    assert back(by_imitation, demos) == demos


def test_saved_datasets_there_and_back(demos, tmp_path):
    serialize.save(tmp_path / "theirs", demos.to_imitation())
    assert back(tmp_path / "theirs", demos) == demos
    demos.save_imitation(tmp_path / "ours")
    assert back(str(tmp_path / "ours"), demos) == demos
    loaded = serialize.load(tmp_path / "ours")
    assert len(loaded) == len(demos)
    for ours, theirs in zip(demos.to_imitation(), loaded, strict=True):
        np.testing.assert_array_equal(ours.obs, theirs.obs)
        np.testing.assert_array_equal(ours.acts, theirs.acts)
        assert ours.terminal == theirs.terminal
    assert sorted(os.listdir(tmp_path)) == ["ours", "theirs"]


def test_datasets_that_imitation_has_loaded(tmp_path):
    demos = discrete_demonstrations()
    demos.save_imitation(tmp_path / "saved")
    assert back(serialize.load(tmp_path / "saved"), demos) == demos


def test_nan_and_negative_zero_survive(tmp_path):
    demos = Demonstrations(
        observations=np.array([[np.nan], [-0.0], [np.inf]]),
        actions=[0, 0],
        offsets=[0, 2],
        terminated=[True],
        truncated=[False],
        observation_space=gym.spaces.Box(-np.inf, np.inf, (1,), np.float64),
        action_space=gym.spaces.Discrete(1),
    )
    demos.save_imitation(tmp_path / "saved")
    assert back(tmp_path / "saved", demos) == demos
    assert back(demos.to_imitation(), demos) == demos


def test_rollouts_of_imitation_are_read_as_they_happened():
    """CartPole pushed to one side falls; FrozenLake standing still is cut by its time limit."""
    venv = DummyVecEnv([lambda: gym.make("CartPole-v1")])
    rng = np.random.default_rng(0)
    until = rollout.make_sample_until(min_episodes=2)
    fallen = rollout.rollout(lambda o, s, d: (np.ones(len(o), dtype=int), None), venv, until, rng, unwrap=False)
    demos = Demonstrations.from_imitation(fallen, venv.observation_space, venv.action_space)
    assert demos.terminated.all()
    assert not demos.truncated.any()
    assert (demos.rewards == 1).all()
    venv = DummyVecEnv([lambda: gym.make("FrozenLake-v1", is_slippery=False, max_episode_steps=7)])
    stay = lambda o, s, d: (np.zeros(len(o), dtype=int), None)  # noqa: E731
    marked = rollout.rollout(stay, venv, until, rng, unwrap=False, exclude_infos=False)
    unmarked = rollout.rollout(stay, venv, until, rng, unwrap=False)
    assert unmarked[0].infos is None
    for trajectories, horizon in ((marked, None), (marked, 7), (unmarked, 7)):
        demos = Demonstrations.from_imitation(trajectories, venv.observation_space, venv.action_space, horizon)
        assert demos.truncated.all()
        assert not demos.terminated.any()
        assert set(demos.lengths) == {7}


def test_terminating_at_the_horizon_is_told_from_being_cut(tmp_path):
    demos = Demonstrations(
        observations=[0, 1, 2, 0, 1, 1],
        actions=[0, 1, 0, 1],
        offsets=[0, 2, 4],
        terminated=[True, False],
        truncated=[False, True],
        observation_space=gym.spaces.Discrete(3),
        action_space=gym.spaces.Discrete(2),
        horizon=2,
    )
    demos.save_imitation(tmp_path / "saved")
    for source in (demos.to_imitation(), demos.to_transitions(), tmp_path / "saved"):
        read = Demonstrations.from_imitation(source, demos.observation_space, demos.action_space, horizon=2)
        assert read == demos


def test_time_limits_need_not_fit_to_be_told():
    """The time limit of an environment is handed over for data of any length; it is the horizon only if it fits."""
    spaces = (gym.spaces.Discrete(3), gym.spaces.Discrete(2))
    make = lambda n, terminal: types.Trajectory(  # noqa: E731
        obs=np.zeros(n + 1, dtype=int), acts=np.zeros(n, dtype=int), infos=None, terminal=terminal
    )
    for lengths, terminal, truncated, horizon in [
        ([5, 5], [True, True], [True, True], 5),
        ([5, 3], [True, True], [True, False], 5),
        ([5, 3], [True, False], [True, False], None),  # a fragment
        ([5, 8], [True, True], [True, False], None),  # made under another limit
    ]:
        source = [make(n, done) for n, done in zip(lengths, terminal, strict=True)]
        for demos in (Demonstrations.from_imitation(source, *spaces, 5), as_demonstrations(source, *spaces, horizon=5)):
            assert demos.truncated.tolist() == truncated
            assert demos.terminated.tolist() == [a and not b for a, b in zip(terminal, truncated, strict=True)]
            assert demos.horizon == horizon
    assert as_demonstrations([make(5, True)], *spaces).terminated.all()  # nobody said that there is a limit


@st.composite
def tiny_demonstrations(draw):
    """Two states, so that trajectories and fragments often stop where the next one starts."""
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    n, m = sum(lengths), len(lengths)
    return Demonstrations(
        observations=draw(hnp.arrays(np.int64, n + m, elements=st.integers(0, 1))),
        actions=draw(hnp.arrays(np.int64, n, elements=st.integers(0, 1))),
        offsets=np.cumsum([0, *lengths]),
        terminated=draw(hnp.arrays(bool, m)),
        truncated=draw(hnp.arrays(bool, m)),
        observation_space=gym.spaces.Discrete(2),
        action_space=gym.spaces.Discrete(2),
    )


@settings(deadline=None)
@given(tiny_demonstrations(), st.none() | st.integers(1, 3))
def test_the_round_trip_keeps_fragments_apart(demos, horizon):
    spaces = (demos.observation_space, demos.action_space)
    flat = demos.to_transitions()
    batches = [
        {name: getattr(flat, name)[k : k + 2] for name in ("obs", "acts", "next_obs", "dones", "infos")}
        for k in range(0, len(flat), 2)
    ]
    for source in (demos.to_imitation(), flat, rollout.flatten_trajectories(demos.to_imitation()), batches):
        read = as_demonstrations(source, *spaces, horizon=horizon)
        assert dataclasses.replace(read, horizon=None) == demos


def foreign(episodes, dones):
    """Flattened transitions of others, without infos that say anything."""
    return types.Transitions(
        obs=np.concatenate([episode[:-1] for episode in episodes]),
        next_obs=np.concatenate([episode[1:] for episode in episodes]),
        acts=np.zeros(sum(len(episode) - 1 for episode in episodes), dtype=int),
        dones=np.concatenate([[False] * (len(e) - 2) + [done] for e, done in zip(episodes, dones, strict=True)]),
        infos=np.array([{}] * sum(len(episode) - 1 for episode in episodes)),
    )


def test_fragments_of_others_are_not_joined_by_chance():
    spaces = (gym.spaces.Discrete(3), gym.spaces.Discrete(2))
    whole = Demonstrations.from_imitation(foreign([[0, 1, 0], [0, 2]], [True, True]), *spaces)
    assert whole.lengths.tolist() == [2, 1]
    last = Demonstrations.from_imitation(foreign([[0, 1, 0], [0, 2]], [True, False]), *spaces)
    assert (last.lengths.tolist(), last.terminated.tolist()) == ([2, 1], [True, False])
    with pytest.raises(ValueError, match=r"1 of 3 pieces stop without being done.*pass trajectories"):
        Demonstrations.from_imitation(foreign([[0, 1], [1, 2], [0, 2], [0, 1]], [False, False, True, True]), *spaces)
    met = foreign([[0, 1, 0], [0, 2, 1]], [False, True])
    assert Demonstrations.from_imitation(met, *spaces).lengths.tolist() == [4]  # nothing tells them apart
    with pytest.raises(ValueError, match="transitions 0 to 3 follow each other for longer than the time limit of 3"):
        Demonstrations.from_imitation(met, *spaces, horizon=3)
    with pytest.raises(ValueError, match="longer than the time limit of 3"):
        as_demonstrations(met, *spaces, horizon=3)
    box = gym.spaces.Box(-1, 1, (1,), np.float64)
    apart = [np.array([[0.1], [0.2]]), np.array([[0.3], [0.4]])]
    assert len(Demonstrations.from_imitation(foreign(apart, [False, True]), box, spaces[1])) == 2


def test_the_end_of_a_model_is_one_observation_more():
    """FrozenLake by its model ends on state 64 of Discrete(65); its environment shows Discrete(64)."""
    env = gym.make("FrozenLake-v1", map_name="8x8", is_slippery=True)
    model = as_generative_model(env)
    demos = collect(model, np.full((65, 4), 0.25), 20, 50, np.random.default_rng(0))
    assert demos.terminated.any()
    for source in (demos.to_imitation(), demos.to_transitions()):
        assert Demonstrations.from_imitation(source, env.observation_space, env.action_space, 50) == demos
    two = (gym.spaces.Discrete(2), gym.spaces.Discrete(1))
    make = lambda obs, terminal: types.Trajectory(  # noqa: E731
        obs=np.array(obs), acts=np.zeros(len(obs) - 1, dtype=int), infos=None, terminal=terminal
    )
    assert Demonstrations.from_imitation([make([0, 1, 2], True)], *two).observation_space.n == 3
    for wrong in (make([0, 1, 2], False), make([0, 2, 2], True), make([0, 1, 3], True)):
        with pytest.raises(ValueError, match=r"observations must lie in \[0, 2\)"):
            Demonstrations.from_imitation([wrong], *two)


@pytest.mark.parametrize("form", ["trajectories", "transitions"])
def test_the_trainer_takes_frozen_lake_by_its_model(form):
    env = gym.make("FrozenLake-v1", map_name="8x8", is_slippery=True)
    mdp = FiniteMDP.from_env(env, 0.95)
    expert = mdp.optimal_policy(lfd_gym.reward_cost(env))
    demos = collect(as_generative_model(env), expert, 30, 200, np.random.default_rng(0))
    assert demos.terminated.any()
    given = demos.to_imitation() if form == "trajectories" else demos.to_transitions()
    trainer = lfd_gym.PrimalDualTrainer(demonstrations=given, env=env, discount=0.95, rng=np.random.default_rng(0))
    trainer.train()
    action, _ = trainer.policy.predict(np.array(0), deterministic=True)
    assert env.action_space.contains(int(action))


def test_dict_observations_of_imitation_are_flattened():
    space = gym.spaces.Dict({"at": gym.spaces.Box(-9, 9, (2,), np.float32), "left": gym.spaces.Discrete(3)})
    obs = types.DictObs({"at": np.arange(6, dtype=np.float32).reshape(3, 2), "left": np.array([2, 1, 0])})
    trajectory = types.Trajectory(obs=obs, acts=np.array([0, 1]), infos=None, terminal=True)
    wanted = [[0, 1, 0, 0, 1], [2, 3, 0, 1, 0], [4, 5, 1, 0, 0]]
    for source in ([trajectory], rollout.flatten_trajectories([trajectory])):
        demos = as_demonstrations(source, space, gym.spaces.Discrete(2))
        assert demos.observations.tolist() == wanted
        assert demos.observation_space == gym.spaces.flatten_space(space)
        assert demos.terminated.tolist() == [True]
    back = as_demonstrations(demos.to_imitation(), space, gym.spaces.Discrete(2))  # flat ones are taken as they are
    assert back == demos
    with pytest.raises(ValueError, match="give the environment's own space"):
        as_demonstrations([trajectory], gym.spaces.flatten_space(space), gym.spaces.Discrete(2))


def test_shuffled_transitions_become_fragments():
    demos = box_demonstrations()
    transitions = demos.to_transitions()[::-1]
    pieces = back(transitions, demos)
    assert pieces.lengths.tolist() == [1] * 7
    assert pieces.n_transitions == demos.n_transitions


def test_a_trajectory_without_actions_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    demos = Demonstrations([0], [], [0, 0], [True], [False], gym.spaces.Discrete(2), gym.spaces.Discrete(2))
    with pytest.raises(ValueError, match="trajectory 0 has no actions, which imitation does not allow"):
        demos.to_imitation()
    with pytest.raises(ValueError, match="trajectory 0 has no actions, which Minari does not allow"):
        demos.to_minari("empty-v0")


class Payload:
    """Makes a folder when jsonpickle decodes it."""

    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return os.mkdir, (self.marker,)


def test_infos_of_a_dataset_do_not_run(tmp_path):
    marker = tmp_path / "was_run"
    infos = np.array([{"TimeLimit.truncated": True, "evil": Payload(marker)}] * 2)
    trajectory = types.Trajectory(obs=np.array([0, 1, 2]), acts=np.array([0, 1]), infos=infos, terminal=True)
    serialize.save(tmp_path / "hostile", [trajectory])
    spaces = (gym.spaces.Discrete(3), gym.spaces.Discrete(2))
    read = Demonstrations.from_imitation(tmp_path / "hostile", *spaces)
    assert read.truncated.all()
    assert not read.terminated.any()
    lazily = Demonstrations.from_imitation(serialize.load(tmp_path / "hostile"), *spaces)
    assert lazily == read
    assert not marker.exists()
    serialize.load(tmp_path / "hostile")[0].infos[0]  # the payload is real
    assert marker.exists()
    assert "py/reduce" in jsonpickle.encode(Payload(marker))


def test_damaged_datasets_are_named(tmp_path):
    demos = discrete_demonstrations()
    spaces = (demos.observation_space, demos.action_space)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        Demonstrations.from_imitation(tmp_path / "nowhere", *spaces)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty.state\.json is not that of a saved dataset"):
        Demonstrations.from_imitation(tmp_path / "empty", *spaces)
    demos.save_imitation(tmp_path / "saved")
    with pytest.raises(FileExistsError, match="saved exists already"):
        demos.save_imitation(tmp_path / "saved")
    demos.save_imitation(tmp_path / "saved", overwrite=True)
    with pytest.raises(ValueError, match=r"actions must lie in \[0, 2\)"):
        Demonstrations.from_imitation(tmp_path / "saved", spaces[0], gym.spaces.Discrete(2))
    arrow = next((tmp_path / "saved").glob("*.arrow"))
    content = arrow.read_bytes()
    arrow.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"\.arrow is damaged or no Arrow file"):
        Demonstrations.from_imitation(tmp_path / "saved", *spaces)
    arrow.write_bytes(content)
    state = tmp_path / "saved" / "state.json"
    state.write_text(json.dumps({"_data_files": [{"filename": "../saved/" + arrow.name}]}))
    with pytest.raises(ValueError, match="outside the folder"):
        Demonstrations.from_imitation(tmp_path / "saved", *spaces)


# -- Minari -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def minari_root(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


def test_minari_there_and_back(demos, minari_root):
    demos = demos.with_provenance(env_id=GRIDWORLD, env_kwargs={"size": 3}, seed=4, policy="optimal")
    dataset = demos.to_minari("grid/expert-v0")
    assert Demonstrations.from_minari(dataset) == demos
    assert Demonstrations.from_minari("grid/expert-v0") == demos
    assert list(list_datasets()) == ["grid/expert-v0"]
    assert minari.load_dataset("grid/expert-v0").total_steps == demos.n_transitions


@pytest.mark.parametrize("name", ["main_data.hdf5", "metadata.json"])
def test_damaged_minari_datasets_are_named(demos, minari_root, name):
    demos.to_minari("grid/expert-v0")
    file = minari_root / "grid" / "expert-v0" / "data" / name
    content = file.read_bytes()
    for damaged in (content[: len(content) // 2], b"{}" + content, b""):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"expert-v0.data"):
            Demonstrations.from_minari("grid/expert-v0")


def test_minari_datasets_that_claim_to_be_huge_are_refused_before_they_take_memory(minari_root):
    import h5py

    discrete_demonstrations().to_minari("grid/expert-v0")
    data = minari_root / "grid" / "expert-v0" / "data"
    described = json.loads((data / "metadata.json").read_text())
    (data / "metadata.json").write_text(json.dumps({**described, "total_episodes": 10**10}))
    with pytest.raises(ValueError, match=r"metadata\.json cannot be right: it counts 10000000000 episodes"):
        Demonstrations.from_minari("grid/expert-v0")
    (data / "metadata.json").write_text(json.dumps(described))
    with h5py.File(data / "main_data.hdf5", "r+") as file:
        file.create_dataset("episode_0/infos/huge", shape=(2**40,), dtype="u1", chunks=(2**20,))
    with pytest.raises(ValueError, match=r"main_data\.hdf5 is not read: with /episode_0/infos/huge its arrays take"):
        Demonstrations.from_minari("grid/expert-v0")


def test_dict_spaces_of_minari_are_flattened(minari_root):
    space = gym.spaces.Dict({"at": gym.spaces.Box(-9, 9, (2,), np.float32), "left": gym.spaces.Discrete(3)})
    observations = {"at": np.arange(6, dtype=np.float32).reshape(3, 2), "left": np.array([2, 1, 0])}
    ends = {"terminations": np.array([False, True]), "truncations": np.array([False, False])}
    buffer = EpisodeBuffer(observations=observations, actions=np.array([0, 1]), rewards=np.array([1.0, 2.0]), **ends)
    given = {"observation_space": space, "action_space": gym.spaces.Discrete(2)}
    minari.create_dataset_from_buffers("dict/expert-v0", [buffer], **given)
    demos = Demonstrations.from_minari("dict/expert-v0")
    assert demos.observations.tolist() == [[0, 1, 0, 0, 1], [2, 3, 0, 1, 0], [4, 5, 1, 0, 0]]
    assert demos.terminated.tolist() == [True]
    assert list(list_datasets()) == ["dict/expert-v0"]


def test_images_are_not_compressed_away(minari_root):
    rng = np.random.default_rng(0)
    demos = Demonstrations(
        observations=rng.integers(256, size=(4, 40, 40, 3)).astype(np.uint8),
        actions=[0, 1, 0],
        offsets=[0, 3],
        terminated=[False],
        truncated=[True],
        observation_space=gym.spaces.Box(0, 255, (40, 40, 3), np.uint8),
        action_space=gym.spaces.Discrete(2),
        horizon=3,
    )
    assert Demonstrations.from_minari(demos.to_minari("images-v0")) == demos


def test_minari_reads_what_minari_wrote(minari_root):
    """A dataset created by Minari's own functions, with infos, and its metadata against ours."""
    env = gym.make(GRIDWORLD, size=3, max_episode_steps=5)
    demos = collect(env, np.full((9, 4), 0.25), 3, 5, np.random.default_rng(0)).with_provenance(policy="random")
    buffers = [
        EpisodeBuffer(
            observations=episode.observations,
            actions=episode.actions,
            rewards=episode.rewards,
            terminations=np.zeros(5, dtype=bool),
            truncations=np.arange(5) == 4,
            infos={"number": np.arange(6)},
        )
        for episode in demos
    ]
    filled = {
        "author": "A",
        "author_email": "a@example.org",
        "code_permalink": "https://example.org",
        "description": "D",
    }
    theirs = minari.create_dataset_from_buffers(
        "grid/theirs-v0",
        buffers,
        env=gym.make(GRIDWORLD, size=3),
        algorithm_name="random",
        eval_env=GRIDWORLD,
        **filled,
    )
    read = Demonstrations.from_minari("grid/theirs-v0")
    for name in ("observations", "actions", "offsets", "terminated", "truncated", "rewards"):
        np.testing.assert_array_equal(getattr(read, name), getattr(demos, name))
    assert read.provenance.policy == "random"
    assert read.provenance.env_id == GRIDWORLD
    assert read.provenance.env_kwargs["size"] == 3
    ours = demos.to_minari("grid/ours-v0", **filled)
    known = set(theirs.storage.metadata) - {"eval_env_spec"}
    assert known <= set(ours.storage.metadata)
    for key in known - {"dataset_id", "dataset_size", "jpeg_encoding"}:
        assert ours.storage.metadata[key] == theirs.storage.metadata[key], key
    assert ours.recover_environment().unwrapped.size == 3
    assert list(list_datasets()) == ["grid/ours-v0", "grid/theirs-v0"]


def test_minari_names_and_overwriting(minari_root):
    demos = discrete_demonstrations()
    demos.to_minari("expert-v0")
    with pytest.raises(FileExistsError, match="expert-v0 exists already"):
        demos.to_minari("expert-v0")
    demos.with_provenance(seed=1).to_minari("expert-v0", overwrite=True)
    assert Demonstrations.from_minari("expert-v0").provenance.seed == 1
    for wrong in ("expert", "expert-v", "../expert-v0"):
        with pytest.raises(ValueError, match="dataset_id must be of the form"):
            demos.to_minari(wrong)
    with pytest.raises(FileNotFoundError, match="there is no local Minari dataset 'other-v0'"):
        Demonstrations.from_minari("other-v0")
    assert os.listdir(minari_root) == ["expert-v0"]


def test_unknown_environments_are_neither_imported_nor_made(minari_root, tmp_path):
    """An id from a file could name a module; it is looked up among the registered environments only."""
    (tmp_path / "hostile_module.py").write_text("raise SystemExit('was run')")
    demos = discrete_demonstrations().with_provenance(env_id="hostile_module:Env-v0")
    dataset = demos.to_minari("hostile-v0")
    assert dataset.env_spec is None
    assert Demonstrations.from_minari("hostile-v0") == demos


def test_a_hostile_minari_dataset_does_not_run(minari_root, tmp_path):
    """Without its spaces Minari would make the environment that the dataset names, that is, call what it names."""
    marker = tmp_path / "was_run"
    discrete_demonstrations().to_minari("hostile-v0")
    metadata = minari_root / "hostile-v0" / "data" / "metadata.json"
    content = json.loads(metadata.read_text())
    del content["observation_space"]
    spec = EnvSpec("Hostile-v0", entry_point="os:mkdir", kwargs={"path": str(marker)}, disable_env_checker=True)
    content["env_spec"] = spec.to_json()
    metadata.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="does not say its observation_space"):
        Demonstrations.from_minari("hostile-v0")
    assert not marker.exists()
    with pytest.raises(Exception):  # noqa: B017, PT011  (whatever becomes of it, the payload is real)
        MinariStorage.read(minari_root / "hostile-v0" / "data")
    assert marker.exists()


# -- killed while writing ---------------------------------------------------------------------------------------------


def save_for_ever(write):
    while True:
        write()


@pytest.mark.parametrize("kind", ["imitation", "minari"])
def test_killed_while_writing(kind, tmp_path, minari_root):
    n, m = 20_000, 200
    demos = Demonstrations(
        observations=np.arange(n + m) % 9,
        actions=np.arange(n) % 4,
        offsets=np.arange(0, n + 1, n // m),
        terminated=np.ones(m, dtype=bool),
        truncated=np.zeros(m, dtype=bool),
        observation_space=gym.spaces.Discrete(9),
        action_space=gym.spaces.Discrete(4),
    )
    if kind == "imitation":
        folder, target = tmp_path, tmp_path / "saved"
        write = lambda: demos.save_imitation(target, overwrite=True)  # noqa: E731
        read = lambda: back(target, demos)  # noqa: E731
    else:
        minari_root.mkdir()
        folder, target = minari_root, minari_root / "saved-v0"
        write = lambda: demos.to_minari("saved-v0", overwrite=True)  # noqa: E731
        read = lambda: Demonstrations.from_minari("saved-v0")  # noqa: E731
    rng = np.random.default_rng(0)
    leftovers = 0
    for _ in range(5):
        writer = multiprocessing.get_context("fork").Process(target=save_for_ever, args=(write,))
        writer.start()
        time.sleep(rng.uniform(0.2, 0.8))
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        if target.exists():
            assert read() == demos
        for name in set(os.listdir(folder)) - {target.name, "minari"}:
            assert name.startswith(".")
            assert name.endswith(".unfinished")
            leftovers += 1
            shutil.rmtree(folder / name)
        if kind == "minari":
            assert set(list_datasets()) <= {"saved-v0"}
    assert leftovers, "no writer was killed in the middle of a write"


# -- the commands -----------------------------------------------------------------------------------------------------


def test_commands_move_between_all_formats(tmp_path, minari_root, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    grid = ["--env", GRIDWORLD, "--env-kwargs", "size=3"]
    run(Collect, *grid, "--out", "grid.npz", "--trajectories", "4", "--horizon", "9")
    demos = Demonstrations.load("grid.npz")
    run(Convert, "grid.npz", "--format", "minari", "--out", "grid/expert-v0")
    run(Convert, "minari:grid/expert-v0", "--format", "imitation", "--out", "saved")
    run(Convert, "saved", "--format", "npz", "--out", "back.npz", *grid)
    assert Demonstrations.from_minari("grid/expert-v0") == demos
    read = Demonstrations.load("back.npz")
    for name in ("observations", "actions", "offsets", "terminated", "truncated", "rewards"):
        np.testing.assert_array_equal(getattr(read, name), getattr(demos, name))
    capsys.readouterr()
    run(Inspect, "minari:")
    assert "grid/expert-v0" in capsys.readouterr().out
    for place in ("minari:grid/expert-v0", "saved"):
        run(Inspect, place, *grid)
        assert "4 (0 terminated, 4 truncated)" in capsys.readouterr().out
    with pytest.raises(FileExistsError, match="--force replaces it"):
        run(Convert, "grid.npz", "--format", "minari", "--out", "grid/expert-v0")
    run(Convert, "grid.npz", "--format", "minari", "--out", "grid/expert-v0", "--force")


def run(command, *words):
    tyro.cli(command, args=list(words)).run()


# -- Stable-Baselines3 ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained():
    env = gym.make(GRIDWORLD, size=4, cost_seed=1, max_episode_steps=20)
    return env, train_expert(env, "ppo", 6_000, 0, n_steps=500, batch_size=250, gamma=0.9, learning_rate=3e-3)


@pytest.mark.parametrize("deterministic", [True, False])
def test_networks_are_collected_on_the_model_and_on_the_environment(trained, deterministic):
    """On the model by its table, on the environment by batches: the same frequencies of actions in each state."""
    env, ppo = trained
    table = lfd_gym.policies.conversion.policy_table(ppo, FiniteMDP.from_env(env, 0.9), deterministic=deterministic)
    for source in (as_generative_model(env), env):
        demos = collect(source, ppo, 500, 20, np.random.default_rng(0), deterministic=deterministic)
        visits = np.zeros((16, 4))
        np.add.at(visits, (demos.acted_on, demos.actions), 1)
        totals = visits.sum(axis=1, keepdims=True)
        error = np.sqrt(table * (1 - table) / np.maximum(totals, 1)) + 1e-9
        assert (np.abs(visits - totals * table) <= 5 * totals * error).all()
        again = collect(source, ppo, 500, 20, np.random.default_rng(0), deterministic=deterministic)
        assert again == demos


def test_torch_draws_from_the_given_generator_and_is_left_alone():
    env = gym.make("Pendulum-v1")
    ppo = PPO("MlpPolicy", env, seed=0, device="cpu")
    before = torch.random.get_rng_state()
    one = collect(env, ppo, 2, 10, np.random.default_rng(0))
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(123)
    assert collect(env, ppo, 2, 10, np.random.default_rng(0)) == one
    assert collect(env, ppo, 2, 10, np.random.default_rng(1)) != one
    calm = collect(env, ppo, 2, 10, np.random.default_rng(0), deterministic=True)
    np.testing.assert_allclose(calm.actions, ppo.predict(calm.acted_on, deterministic=True)[0], rtol=1e-5)
