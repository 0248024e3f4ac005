"""What files of a run say of another kind than a run writes: one line that names the file, and never a traceback."""

import json

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym import cli
from lfd_gym.benchmark.reading import read_spec
from lfd_gym.files import FileContentError, read_array

GRID = "lfd_gym/StochasticGridworld-v0"
STRANGE = [
    True,
    -1,
    1e308,
    float("nan"),
    10**400,
    "",
    "../../etc/passwd",
    "\x00",
    [],
    {},
    [1],
    {"a": 1},
    [[[[]]]],
    "a:b",
]
SPEC = {
    "environments": [{"label": "grid", "env_id": GRID, "discount": 0.9, "horizon": 20, "kwargs": {"size": 3}}],
    "learners": [{"name": "tabular_bc"}],
    "n_demonstrations": [2],
    "seeds": [0],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crafted")
    env = gym.make(GRID, size=3)
    expert = lfd.FiniteMDP.from_env(env, 0.9).optimal_policy(env.unwrapped.cost_features[:, 0])
    lfd.collect(env, expert, 3, 20, np.random.default_rng(0)).save(folder / "demos.npz")
    place = ["--demonstrations", str(folder / "demos.npz"), "--out", str(folder / "run"), "--learner", "tabular_bc"]
    assert cli.main(["train", *place]) == 0
    return folder / "run"


@pytest.mark.parametrize("name", ["env", "env_kwargs", "demonstrations", "discount", "cost_features", "allow_mismatch"])
def test_every_entry_of_a_config_is_looked_at(run, name, capsys):
    file = run / "config.json"
    right = file.read_text()
    known = json.loads(right)
    assert name in known
    refused = 0
    for value in STRANGE:
        file.write_text(json.dumps(known | {name: value}))
        code = cli.main(["evaluate", str(run)])
        said = capsys.readouterr().err
        assert code in (0, 2)
        assert code == 0 or said.startswith("lfd-gym: ")
        refused += code == 2
    file.write_text(right)
    assert refused >= 10 or name == "allow_mismatch"
    assert cli.main(["evaluate", str(run)]) == 0


def places(part, path=()):
    yield path
    for key in part if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ():
        yield from places(part[key], (*path, key))


def changed(part, path, value):
    if not path:
        return value
    copy = json.loads(json.dumps(part))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


@pytest.mark.parametrize("path", list(places(SPEC)), ids=str)
def test_every_part_of_a_spec_is_looked_at(tmp_path, path):
    file = tmp_path / "spec.json"
    for value in STRANGE:
        file.write_text(json.dumps(changed(SPEC, path, value)))
        try:
            read_spec(file)
        except ValueError as error:
            assert "spec.json" in str(error)  # noqa: PT017 - some of these may be right


def header(shape):
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00v\x00" + text.ljust(117).encode() + b"\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (header("(1000000000000, 2)"), "length is greater than file size"),  # 16 TB, in 128 bytes
        (header("(-1,)"), ""),
        (b"text", ""),
        (b"", ""),
        (b"PK\x05\x06" + bytes(18), "it is an archive"),
    ],
)
def test_arrays_of_costs_are_read_with_suspicion(tmp_path, content, reason):
    path = tmp_path / "costs.npy"
    path.write_bytes(content)
    with pytest.raises(FileContentError, match=rf"costs\.npy is no array.*{reason}"):
        read_array(path, "is no array")


def test_arrays_of_objects_are_not_unpickled(tmp_path):
    path = tmp_path / "costs.npy"
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(FileContentError, match=r"costs\.npy is no array"):
        read_array(path, "is no array")
    np.save(path, np.eye(2))
    assert np.array_equal(read_array(path, "is no array"), np.eye(2))
