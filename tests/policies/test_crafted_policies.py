"""Policy files that were cut, changed or made to do harm are refused by one type of error that names the file."""

import json

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.files import FileContentError
from lfd_gym.policies.tables import TablePolicy, UniformPolicy
from lfd_gym.policies.tiles import TileGrid, TilePolicy

TABLE = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]])
POLICIES = {
    "table": TablePolicy(TABLE),
    "tiles": TilePolicy(TileGrid([0.0], [1.0], (3,)), TABLE),
    "uniform": UniformPolicy(gym.spaces.Box(-1, 1, (2,))),
    "mixture": lfd.MixturePolicy([TABLE, TABLE], [0.5, 0.5]),
}


def rewrite(path, change):
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    data = json.loads(str(arrays.pop("description")))
    change(data, arrays)
    np.savez(path, description=np.array(json.dumps(data)), **arrays)


def refused(path):
    with pytest.raises(FileContentError) as caught:
        lfd.load_policy(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["table", "tiles"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_numbers_that_are_no_probabilities_are_refused(tmp_path, kind, value):
    path = tmp_path / "policy.npz"
    lfd.save_policy(POLICIES[kind], path)
    rewrite(path, lambda data, arrays: arrays["table"].__setitem__((0, 0), value))
    refused(path)


@pytest.mark.parametrize("kind", POLICIES)
def test_wrong_shapes_and_missing_parts_are_refused(tmp_path, kind):
    path = tmp_path / "policy.npz"
    lfd.save_policy(POLICIES[kind], path)
    content = path.read_bytes()
    with np.load(path) as archive:
        names = [name for name in archive.files if name != "description"]
        parts = list(json.loads(str(archive["description"])))
    for name in names:
        for change in (lambda d, a: a.pop(name), lambda d, a: a.update({name: np.zeros((1, 1, 1, 1))})):  # noqa: B023
            path.write_bytes(content)
            rewrite(path, change)
            refused(path)
    for part in ("kind", "rng", "format"):
        path.write_bytes(content)
        rewrite(path, lambda d, a: d.pop(part))  # noqa: B023
        refused(path)
    assert {"kind", "rng", "format"} <= set(parts)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(kind=["table"]),
        lambda data: data.update(kind="os:system"),
        lambda data: data.update(rng={"bit_generator": "PCG64", "state": 3}),
        lambda data: data.update(rng={"bit_generator": "MT19937"}),
        lambda data: data.update(observation_space={"discrete": 10**40}),
        lambda data: data.update(action_space={"tuple": 3}),
    ],
)
def test_crafted_descriptions_are_refused(tmp_path, change):
    path = tmp_path / "policy.npz"
    lfd.save_policy(POLICIES["table"], path)
    rewrite(path, lambda data, arrays: change(data))
    refused(path)


def test_policies_nested_too_deeply_are_refused(tmp_path):
    path = tmp_path / "policy.npz"
    lfd.save_policy(POLICIES["mixture"], path)

    rewrite(path, lambda data, arrays: data.update(policies=[{"kind": "mixture", "policies": [{"kind": "mixture"}]}]))
    refused(path)
    np.savez(path, description=np.array('{"format":' + "[" * 50_000))
    refused(path)


def test_cut_and_changed_files_are_refused_or_the_same(tmp_path):
    path = tmp_path / "policy.npz"
    lfd.save_policy(POLICIES["table"], path)
    content = path.read_bytes()
    for size in range(0, len(content), 31):
        path.write_bytes(content[:size])
        refused(path)
    rng = np.random.default_rng(0)
    n_refused = 0
    for position in rng.integers(len(content), size=200):
        damaged = bytearray(content)
        damaged[position] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            policy = lfd.load_policy(path)
        except FileContentError:
            n_refused += 1
        else:
            np.testing.assert_array_equal(policy.table, TABLE)  # names and dates of the archive
    assert n_refused > 100


def test_what_a_policy_may_take_has_a_limit(tmp_path):
    path = tmp_path / "policy.npz"
    lfd.save_policy(POLICIES["table"], path)
    with pytest.raises(FileContentError, match="more than max_bytes = 100, which can be raised"):
        lfd.load_policy(path, max_bytes=100)
    assert lfd.load_policy(path, max_bytes=10_000).table.shape == (3, 2)
