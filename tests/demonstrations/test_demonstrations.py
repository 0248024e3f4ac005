"""The container, its file and what a damaged or hostile file can do (nothing)."""

import dataclasses
import json
import multiprocessing
import os
import signal
import time
import zipfile

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lfd_gym import Demonstrations, Provenance
from lfd_gym.demonstrations import files as demonstration_files
from lfd_gym.demonstrations.demonstrations import Episode
from lfd_gym.demonstrations.summary import summary_lines


def small(**changes):
    parts = {
        "observations": np.array([0, 1, 2, 0, 1]),
        "actions": np.array([1, 1, 0]),
        "offsets": np.array([0, 2, 3]),
        "terminated": np.array([True, False]),
        "truncated": np.array([False, True]),
        "observation_space": gym.spaces.Discrete(3),
        "action_space": gym.spaces.Discrete(2),
    }
    return Demonstrations(**(parts | changes))


def large(seed=0, n=200_000):
    rng = np.random.default_rng(seed)
    return Demonstrations(
        observations=rng.normal(size=(n + 1, 8)),
        actions=rng.integers(4, size=n),
        offsets=[0, n],
        terminated=[False],
        truncated=[True],
        observation_space=gym.spaces.Box(-np.inf, np.inf, (8,), np.float64),
        action_space=gym.spaces.Discrete(4),
        provenance=Provenance(seed=seed),
    )


@st.composite
def demonstrations(draw):
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    n, m = sum(lengths), len(lengths)

    def column(length):
        kind = draw(st.sampled_from(["discrete", "multi_discrete", "multi_binary", "box"]))
        if kind == "discrete":
            dtype = draw(st.sampled_from([np.int64, np.int32, np.uint8]))
            return gym.spaces.Discrete(7), draw(hnp.arrays(dtype, length, elements=st.integers(0, 6)))
        if kind == "multi_discrete":
            return gym.spaces.MultiDiscrete([3, 5]), draw(hnp.arrays(np.int64, (length, 2), elements=st.integers(0, 2)))
        if kind == "multi_binary":
            values = draw(hnp.arrays(np.int8, (length, 2, 2), elements=st.integers(0, 1)))
            return gym.spaces.MultiBinary([2, 2]), values
        dtype = draw(st.sampled_from([np.float32, np.float64]))
        shape = draw(st.sampled_from([(), (2,), (2, 3)]))
        width = np.dtype(dtype).itemsize * 8
        elements = st.floats(width=width, allow_nan=True, allow_infinity=True)
        low = draw(st.sampled_from([-np.inf, -1.5]))
        return gym.spaces.Box(low, np.inf, shape, dtype), draw(hnp.arrays(dtype, (length, *shape), elements=elements))

    observation_space, observations = column(n + m)
    action_space, actions = column(n)
    rewards = draw(st.none() | hnp.arrays(np.float32, n, elements=st.floats(-1000, 1000, width=32)))
    states = draw(st.none() | hnp.arrays(np.float64, (m, 3), elements=st.floats()))
    if draw(st.booleans()):
        actions, action_space = None, draw(st.sampled_from([None, action_space]))
    return Demonstrations(
        observations=observations,
        actions=actions,
        offsets=np.cumsum([0, *lengths]),
        terminated=draw(hnp.arrays(bool, m)),
        truncated=draw(hnp.arrays(bool, m)),
        observation_space=observation_space,
        action_space=action_space,
        rewards=rewards,
        initial_states=states,
        provenance=Provenance(
            env_id=draw(st.none() | st.text(max_size=5)),
            env_kwargs=draw(
                st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.text(max_size=3), max_size=2)
            ),
            seed=draw(st.none() | st.integers(0, 2**70)),
            policy=draw(st.none() | st.text(max_size=5)),
        ),
    )


# -- the container ----------------------------------------------------------------------------------------------------


def test_trajectories_are_cut_out_at_the_offsets():
    demos = small(rewards=np.array([1.0, 2.0, 3.0]))
    first, second = demos
    assert (first.observations.tolist(), first.actions.tolist(), first.rewards.tolist()) == ([0, 1, 2], [1, 1], [1, 2])
    assert (first.terminated, first.truncated) == (True, False)
    assert (second.observations.tolist(), second.actions.tolist(), second.truncated) == ([0, 1], [0], True)
    assert demos[-1].actions.tolist() == [0]
    assert (len(demos), demos.n_transitions, demos.lengths.tolist()) == (2, 3, [2, 1])
    assert demos.acted_on.tolist() == [0, 1, 0]
    assert demos.trajectory_indices.tolist() == [0, 0, 1]
    with pytest.raises(IndexError, match="no trajectory 2"):
        demos[2]


def test_nobody_can_change_them():
    observations = np.array([0, 1, 2, 0, 1])
    demos = small(observations=observations)
    observations[0] = 2
    assert demos.observations[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        demos.actions[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        demos.actions = np.array([0, 0, 0])
    with pytest.raises(TypeError):
        demos.provenance.env_kwargs["size"] = 1


@settings(deadline=None)
@given(demonstrations(), st.randoms())
def test_select_and_concatenate_are_inverse(demos, random):
    order = list(range(len(demos)))
    random.shuffle(order)
    shuffled = demos.select(order)
    assert shuffled.select(np.argsort(order)) == demos
    assert Demonstrations.concatenate([demos.select([k]) for k in range(len(demos))]) == demos


def test_actions_may_be_unknown():
    demos = small(rewards=np.array([1.0, 2.0, 3.0]), initial_states=[[0.5], [1.5]])
    seen = demos.without_actions()
    assert seen.actions is None
    assert seen.action_space == demos.action_space
    assert (len(seen), seen.n_transitions, seen.lengths.tolist()) == (2, 3, [2, 1])
    assert seen.acted_on.tolist() == demos.acted_on.tolist()
    assert seen[1].actions is None
    assert demos.actions_for("cloning") is demos.actions
    assert seen[1].rewards.tolist() == [3]
    assert seen != demos
    assert "unknown actions" in repr(seen)
    assert any(line.split() == ["actions", "unknown"] for line in summary_lines(seen))
    nowhere = dataclasses.replace(seen, action_space=None)
    assert Demonstrations.from_episodes(nowhere, nowhere.observation_space, None) == nowhere
    with pytest.raises(ValueError, match="trajectories 0 and 2 disagree on whether there are actions"):
        Demonstrations.concatenate([demos, seen])
    with pytest.raises(ValueError, match="imitation needs actions, but these demonstrations have none"):
        seen.to_imitation()
    with pytest.raises(ValueError, match="imitation needs actions, but these demonstrations have none"):
        seen.to_transitions()
    with pytest.raises(ValueError, match="Minari needs actions, but these demonstrations have none"):
        seen.to_minari("seen-v0")


def test_initial_states_stay_with_their_trajectories():
    demos = small(initial_states=[[0.5], [1.5]])
    assert demos.select([1]).initial_states.tolist() == [[1.5]]
    assert demos[1].initial_state.tolist() == [1.5]
    assert Demonstrations.concatenate([demos, demos]).initial_states.tolist() == [[0.5], [1.5], [0.5], [1.5]]
    assert Demonstrations.concatenate([demos, small()]).initial_states is None
    with pytest.raises(ValueError, match="read-only"):
        demos.initial_states[0] = 0


def test_joining_forgets_what_differs():
    one, other = small(horizon=None), small().with_provenance(seed=3)
    joined = Demonstrations.concatenate([one, other])
    assert len(joined) == 4
    assert joined.provenance == Provenance()
    with pytest.raises(ValueError, match="must be over the same spaces"):
        Demonstrations.concatenate([one, small(observation_space=gym.spaces.Discrete(4))])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observations": [0, 1, 2, 0]}, r"observations must have shape \(5,\), got \(4,\)"),
        ({"observations": [0, 1, 3, 0, 1]}, r"observations must lie in \[0, 3\), got 3 at index 2"),
        ({"observations": [0.0, 1, 2, 0, 1]}, "observations must be integers"),
        ({"actions": [1, -1, 0]}, r"actions must lie in \[0, 2\), got -1 at index 1"),
        ({"offsets": [0, 3, 2]}, "offsets must be a vector that starts at 0 and never falls"),
        ({"offsets": [1, 2, 3]}, "offsets must"),
        ({"terminated": [1, 0]}, "terminated must be 2 booleans"),
        ({"truncated": [True]}, "truncated must be 2 booleans"),
        ({"rewards": np.array([1, 2, 3])}, "rewards must be 3 floats"),
        ({"observation_space": gym.spaces.Discrete(3, start=1)}, "observation_space must count from 0"),
        ({"action_space": gym.spaces.Text(2)}, "action_space must be a Box, Discrete, MultiDiscrete or MultiBinary"),
        ({"action_space": None}, "action_space must be a Box, Discrete, .* space, got None"),
        (
            {"actions": [[0, 1], [0, 2], [1, 1]], "action_space": gym.spaces.MultiDiscrete([2, 2])},
            r"actions must lie in \[0, 2\), got 2 at index \(1, 1\)",
        ),
        (
            {"actions": [[0, 1], [0, 1], [-1, 1]], "action_space": gym.spaces.MultiBinary(2)},
            r"actions must lie in \[0, 2\), got -1 at index \(2, 0\)",
        ),
        ({"initial_states": [[0.5]]}, "initial_states must be 2 arrays of numbers, one for each trajectory"),
        ({"initial_states": ["a", "b"]}, "initial_states must be an array of numbers"),
        ({"horizon": 2}, "horizon is 2, but trajectory 1 has 1 actions and is not terminated"),
        ({"horizon": 1}, "horizon is 1, but trajectory 0 has 2 actions and is terminated"),
        ({"horizon": 0}, "horizon must be an integer of at least 1"),
    ],
)
def test_wrong_columns_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        small(**changes)


def test_episodes_must_fit_together():
    spaces = (gym.spaces.Discrete(3), gym.spaces.Discrete(2))
    fine = Episode(np.array([0, 1]), np.array([0]), None, True, False)
    for wrong, message in [
        (fine._replace(observations=np.array([0])), "trajectory 1 must have one more observation"),
        (fine._replace(rewards=np.array([1.0])), "disagree on whether there are rewards"),
        (fine._replace(actions=np.array([0], dtype=np.int8)), "other dtypes"),
    ]:
        with pytest.raises(ValueError, match=message):
            Demonstrations.from_episodes([fine, wrong], *spaces)
    with pytest.raises(ValueError, match="at least one trajectory"):
        Demonstrations.from_episodes([], *spaces)


def test_whole_numbers_are_rewards_too():
    spaces = (gym.spaces.Discrete(3), gym.spaces.Discrete(2))
    demos = Demonstrations.from_episodes([([0, 1], [0], [1], True, False), ([0, 1], [0], [0.5], True, False)], *spaces)
    assert demos.rewards.tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([0, 1], [0]), r"\(observations, actions, rewards, terminated, truncated, initial_state\).*got 2: "),
        (([0], [0], None, True, False), "if that was not recorded, leave out the last action"),
        (
            ([0, 1], [0], None, [True], False),
            r"terminated of episodes\[0\] must be .* whole episode, got an array",
        ),
        (([0, 1], [0], None, "False", False), r"terminated of episodes\[0\] must be True or False, .*got 'False'"),
        (([0, 1], [0], None, True, np.nan), r"truncated of episodes\[0\] must be True or False, .*got nan"),
        (([0, 1], [0], None, True, None), r"truncated of episodes\[0\] must be True or False, .*got None"),
    ],
)
def test_wrong_episodes_say_what_is_right(parts, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Demonstrations.from_episodes([parts], gym.spaces.Discrete(3), gym.spaces.Discrete(2))


def test_episodes_of_other_dtypes_say_how_to_convert_them():
    box = gym.spaces.Box(-1, 1, (1,))
    one = (np.zeros((2, 1), np.float32), [0], None, True, False)
    other = (np.zeros((2, 1), np.float64), [0], None, True, False)
    with pytest.raises(ValueError, match=r"of float64, not float32; convert all to one, .*dtype=np\.float64"):
        Demonstrations.from_episodes([one, other], box, gym.spaces.Discrete(2))


def test_provenance_holds_json_only():
    assert Provenance(env_kwargs={"map": ("SF", "FG")}).env_kwargs["map"] == ["SF", "FG"]
    with pytest.raises(ValueError, match="JSON values only"):
        Provenance(env_kwargs={"rng": np.random.default_rng(0)})


# -- the file ---------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(demos=demonstrations())
def test_file_round_trip_is_exact(demos, tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "demos.npz"
    demos.save(path)
    assert Demonstrations.load(path) == demos


def test_equality_sees_every_part():
    demos = small(rewards=np.array([1.0, 2.0, -0.5]))
    assert demos == small(rewards=np.array([1.0, 2.0, -0.5]))
    for other in (
        small(),
        small(rewards=np.array([1.0, 2.0, 3.0])),
        small(rewards=np.array([1.0, 2.0, -0.5], dtype=np.float32)),
        small(rewards=demos.rewards, action_space=gym.spaces.Discrete(3)),
        demos.with_provenance(seed=1),
    ):
        assert demos != other


def test_same_demonstrations_same_bytes(tmp_path):
    small().save(tmp_path / "a.npz")
    small().save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_existing_files_stay_unless_asked(tmp_path):
    path = tmp_path / "demos.npz"
    small().save(path)
    with pytest.raises(FileExistsError, match=r"demos\.npz exists already"):
        small().with_provenance(seed=1).save(path)
    assert Demonstrations.load(path).provenance.seed is None
    small().with_provenance(seed=1).save(path, overwrite=True)
    assert Demonstrations.load(path).provenance.seed == 1
    assert os.listdir(tmp_path) == ["demos.npz"]
    with pytest.raises(ValueError, match=r"must end in \.npz"):
        small().save(tmp_path / "demos.zip")
    with pytest.raises(FileNotFoundError, match=r"folder .* does not exist"):
        small().save(tmp_path / "nowhere" / "demos.npz")


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        small().save(tmp_path / "demos.npz")
    assert os.listdir(tmp_path) == []


def test_the_flag_that_older_numpy_wrote_into_the_file_is_no_damage(tmp_path):
    """NumPy before 2.2 stored ``allow_pickle=False`` of ``savez_compressed`` as one more array."""
    path = tmp_path / "demos.npz"
    small().save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    with zipfile.ZipFile(path, "a") as archive, archive.open("allow_pickle.npy", "w") as member:
        np.save(member, np.array(False))
    with np.load(path) as archive:
        assert set(archive.files) == {*arrays, "allow_pickle"}
    assert Demonstrations.load(path) == small()


def test_every_cut_of_a_file_is_noticed(tmp_path):
    path = tmp_path / "demos.npz"
    small().save(path)
    content = path.read_bytes()
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"demos\.npz"):
            Demonstrations.load(path)


def test_every_flipped_byte_is_noticed_or_harmless(tmp_path):
    path = tmp_path / "demos.npz"
    demos = small(rewards=np.array([1.0, 2.0, 3.0]), provenance=Provenance("env", {"size": 3}, 1, "optimal"))
    demos.save(path)
    content = bytearray(path.read_bytes())
    noticed = 0
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x15
        path.write_bytes(damaged)
        try:
            loaded = Demonstrations.load(path)
        except ValueError:
            noticed += 1
        else:
            assert loaded == demos  # dates and other fields of the archive that nobody reads
    assert noticed > len(content) // 2


def rewrite(path, change):
    """Change the members of a file, and make its checksum fit again if there still is a header."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(arrays.pop("header").tobytes())
    header.pop("checksum")
    change(header, arrays)
    header["checksum"] = demonstration_files.checksum(header, arrays)
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda header, arrays: header.update(version=2),
            "is in version 2 of the format, this lfd_gym reads version 1",
        ),
        (lambda header, arrays: header.update(format="other"), "does not say 'lfd_gym demonstrations'"),
        (lambda header, arrays: arrays.pop("offsets"), "does not hold valid demonstrations: 'offsets'"),
        (lambda header, arrays: arrays.update(actions=np.array([1, 1, 9])), r"actions must lie in \[0, 2\)"),
        (lambda header, arrays: header.update(provenance={"unknown": 1}), "does not hold valid demonstrations"),
        (lambda header, arrays: header.update(observation_space={"box": "<f8"}), "does not hold valid demonstrations"),
        (lambda header, arrays: header.update(horizon="two"), "does not hold valid demonstrations"),
    ],
)
def test_files_made_by_others_are_named_and_refused(tmp_path, change, message):
    path = tmp_path / "demos.npz"
    small().save(path)
    rewrite(path, lambda header, arrays: None)
    assert Demonstrations.load(path) == small()
    rewrite(path, change)
    with pytest.raises(ValueError, match=message) as caught:
        Demonstrations.load(path)
    assert str(path) in str(caught.value)


def test_foreign_files_are_named_and_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nowhere\.npz"):
        Demonstrations.load(tmp_path / "nowhere.npz")
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez(tmp_path / "arrays.npz", observations=np.zeros(3))
    np.savez(tmp_path / "header.npz", header=np.frombuffer(b"not json", dtype=np.uint8))
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("header", "text")
    for name, message in [
        ("array.npy", "is not a demonstration file, or not all of one"),
        ("arrays.npz", "has no header of lfd_gym"),
        ("header.npz", "its header is not JSON"),
        ("text.npz", "is not a demonstration file, or not all of one: .*magic string"),
    ]:
        with pytest.raises(ValueError, match=f"{name} .*{message}"):
            Demonstrations.load(tmp_path / name)


class Payload:
    """Makes a folder when it is unpickled."""

    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return os.mkdir, (self.marker,)


@pytest.mark.parametrize("member", ["observations", "header", "extra"])
def test_a_pickle_in_the_file_does_not_run(tmp_path, member):
    path, marker = tmp_path / "demos.npz", tmp_path / "was_run"
    small().save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays[member] = np.array([Payload(marker)], dtype=object)
    np.savez(path, allow_pickle=True, **arrays)
    with pytest.raises(ValueError, match=r"demos\.npz is not a demonstration file.*allow_pickle=False"):
        Demonstrations.load(path)
    assert not marker.exists()
    with np.load(path, allow_pickle=True) as archive:  # the payload is real
        archive[member]
    assert marker.exists()


def test_a_pickle_instead_of_the_file_does_not_run(tmp_path):
    import pickle

    path, marker = tmp_path / "demos.npz", tmp_path / "was_run"
    path.write_bytes(pickle.dumps(Payload(marker)))
    with pytest.raises(ValueError, match="is not a demonstration file"):
        Demonstrations.load(path)
    assert not marker.exists()


def save_for_ever(path):
    seed = 0
    while True:
        large(seed, n=50_000).save(path, overwrite=True)
        seed += 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system with fork and SIGKILL")
def test_killed_while_writing(tmp_path):
    """Whenever the writer is killed, the file is absent or whole, and what is left over does not look like one."""
    path = tmp_path / "demos.npz"
    rng = np.random.default_rng(0)
    leftovers = set()  # the next writer removes those of dead ones
    for _ in range(8):
        writer = multiprocessing.get_context("fork").Process(target=save_for_ever, args=(path,))
        writer.start()
        time.sleep(rng.uniform(0.05, 0.5))
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        if path.exists():
            loaded = Demonstrations.load(path)
            assert loaded == large(loaded.provenance.seed, n=50_000)
        leftovers.update(name for name in os.listdir(tmp_path) if name != "demos.npz")
    assert leftovers, "no writer was killed in the middle of a write"
    assert all(name.startswith(".") and name.endswith(".unfinished") for name in leftovers)


def test_a_table_of_ones_own_is_led_to_from_episodes(tmp_path):
    (tmp_path / "drives.csv").write_text("speed,push\n1,0\n")
    with pytest.raises(ValueError, match=r"drives.csv is not a demonstration file, .*Demonstrations.from_episodes"):
        Demonstrations.load(tmp_path / "drives.csv")
