"""Files of demonstrations made to do harm: refused by one type of error that names the file, before anything runs."""

import json
import subprocess
import sys
import zipfile

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.baselines import make_learner
from lfd_gym.demonstrations import files as demonstration_files
from lfd_gym.demonstrations.estimation import discounted_sums
from lfd_gym.files import FileContentError
from lfd_gym.model.criterion import Criterion
from lfd_gym.policies.tiles import TileGrid


def small(**changes):
    columns = {
        "observations": np.array([0, 1, 2]),
        "actions": np.array([1, 0]),
        "offsets": [0, 2],
        "terminated": [False],
        "truncated": [True],
        "observation_space": gym.spaces.Discrete(3),
        "action_space": gym.spaces.Discrete(2),
    }
    return lfd.Demonstrations(**columns | changes)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "demos.npz"
    small().save(path)
    return path


def rewrite(path, change):
    """Change the header and the arrays of a file, with a checksum that fits."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(arrays.pop("header").tobytes())
    header.pop("checksum")
    change(header, arrays)
    header["checksum"] = demonstration_files.checksum(header, arrays)
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays)


def nested(depth):
    space = {"discrete": 2}
    for _ in range(depth):
        space = {"tuple": [space]}
    return space


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda header, _: header.update(observation_space={"discrete": 2**62 + 64}), "at most .* pairs"),
        (lambda header, _: header.update(observation_space={"discrete": 10**30}), None),
        (lambda header, _: header.update(observation_space={"discrete": 0}), None),
        (lambda header, _: header.update(observation_space={"discrete": float("inf")}), None),
        (lambda header, _: header.update(observation_space=nested(200)), None),
        (lambda header, _: header.update(observation_space=None), None),
        (lambda header, _: header.update(observation_space={"box": "O"}), None),
        (lambda header, _: header.update(observation_space={"multi_discrete": [-1]}), None),
        (lambda header, _: header.update(observation_space={"multi_binary": -3}), None),
        (lambda header, _: header.pop("provenance"), "'provenance' is missing"),
        (lambda header, _: header.update(provenance={"env_id": ["x"]}), "env_id must be a text or None"),
        (lambda header, _: header.update(provenance={"seed": 0.5}), "seed must be an integer or None"),
        (lambda header, _: header.update(provenance={"env_kwargs": 3}), "env_kwargs must be a mapping"),
        (lambda header, _: header.update(horizon=float("nan")), "horizon must be an integer"),
        (lambda header, _: header.update(horizon=True), "horizon must be an integer"),
        (lambda _, arrays: arrays.update(offsets=np.array([0, 2**62])), None),
        (lambda _, arrays: arrays.update(offsets=np.zeros((0,), int)), "offsets"),
        (lambda _, arrays: arrays.update(actions=np.array(["a", "b"])), "actions must be an array of numbers"),
        (lambda _, arrays: arrays.update(terminated=np.array(True)), "terminated must be 1 booleans"),
    ],
)
def test_crafted_content_is_refused(path, change, reason):
    rewrite(path, change)
    with pytest.raises(FileContentError, match=reason) as caught:
        lfd.Demonstrations.load(path)
    assert str(path) in str(caught.value)


def deep_header(path):
    np.savez(path, header=np.frombuffer(b"[" * 100_000, dtype=np.uint8))


def no_member(path):
    with zipfile.ZipFile(path, "w"):
        pass


def short_array(path):
    with zipfile.ZipFile(path, "w") as archive, archive.open("header.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (2**50,)})


def negative_shape(path):
    with zipfile.ZipFile(path, "w") as archive, archive.open("header.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (-1, -1)})


@pytest.mark.parametrize(
    "make", [deep_header, no_member, short_array, negative_shape, lambda path: path.write_bytes(b"")]
)
def test_archives_that_are_none_are_refused(path, make):
    make(path)
    with pytest.raises(FileContentError) as caught:
        lfd.Demonstrations.load(path)
    assert str(path) in str(caught.value)


def bomb(path, n_bytes):
    """An archive of some kilobytes whose one array takes ``n_bytes``, written without ever holding them."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("header.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (n_bytes,)})
        for _ in range(n_bytes // 2**20):
            file.write(bytes(2**20))


def test_what_would_take_too_much_is_refused_before_it_is_taken(path):
    size = 2**26
    bomb(path, size)
    assert path.stat().st_size < size / 500
    code = f"""
import resource, lfd_gym as lfd
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    lfd.Demonstrations.load({str(path)!r}, max_bytes={size // 2})
except ValueError as error:
    assert "more than max_bytes = {size // 2}, which can be raised" in str(error), error
else:
    raise SystemExit("it was read")
taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert taken < 2**13, taken  # kilobytes
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    with pytest.raises(FileContentError, match="header is not JSON"):  # a limit that is not reached
        lfd.Demonstrations.load(path, max_bytes=2 * size)


def test_the_limit_is_a_gibibyte_or_a_hundred_times_the_file(path, monkeypatch):
    assert lfd.Demonstrations.load(path) == small()
    monkeypatch.setattr("lfd_gym.files.MAX_BYTES", 1)
    assert lfd.Demonstrations.load(path) == small()  # a hundred times its size is enough for it
    bomb(path, 2**24)
    with pytest.raises(FileContentError, match="more than max_bytes"):
        lfd.Demonstrations.load(path)


def test_so_many_pairs_that_their_numbers_overflow_are_refused():
    huge = gym.spaces.Discrete(2**62 + 64)
    with pytest.raises(ValueError, match="observation_space and action_space must have at most"):
        small(observation_space=huge, action_space=gym.spaces.Discrete(4))
    assert small(observation_space=huge, actions=None, action_space=None).observation_space == huge
    with pytest.raises(ValueError, match="counts must make tiles that 64-bit integers can number"):
        TileGrid([0, 0], [1, 1], (2**32, 2**32))


@pytest.mark.parametrize("rows", [[0, 3], [-1, 0], [2**62, 0], [0]])
def test_the_kernel_of_discounted_sums_gets_rows_of_its_table_only(rows):
    with pytest.raises(ValueError, match="rows must be 2 rows of a table of 3"):
        discounted_sums(np.ones((3, 1)), np.array(rows), np.array([0, 2]), Criterion(0.5))


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint64, np.int32])
def test_integers_of_every_kind_count_alike(kind):
    """Neither do small ones overflow in x·A + a, nor do unsigned ones become floats."""
    spaces = {"observation_space": gym.spaces.Discrete(120), "action_space": gym.spaces.Discrete(4)}
    columns = {"observations": np.array([3, 119, 100]), "actions": np.array([3, 2])}
    wide, narrow = small(**spaces, **columns), small(**spaces, **{k: v.astype(kind) for k, v in columns.items()})
    costs = np.random.default_rng(0).uniform(-1, 1, (480, 3))
    values = [lfd.feature_expectations(demos, costs, 0.9).values for demos in (wide, narrow)]
    np.testing.assert_array_equal(*values)
    learned = [
        lfd.learn(
            lfd.Task(None, demos, discount=0.9, costs=costs), make_learner("tabular_bc"), rng=np.random.default_rng(0)
        )
        for demos in (wide, narrow)
    ]
    np.testing.assert_array_equal(*(result.policy.table for result in learned))
