"""Datasets of others that were changed by a byte or point to other files: refused, and the process lives on."""

import json
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.files import FileContentError


def demos(n=3):
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=3)
    return lfd.collect(env, np.full((9, 4), 0.25), n, 10, np.random.default_rng(0))


def test_changed_bytes_of_arrow_files_never_end_the_process(tmp_path):
    demos().save_imitation(tmp_path / "data")
    code = f"""
import json, numpy as np, gymnasium as gym, lfd_gym as lfd, pathlib
folder = pathlib.Path({str(tmp_path / "data")!r})
names = [file["filename"] for file in json.loads((folder / "state.json").read_text())["_data_files"]]
path = folder / names[0]
content, rng, counts = path.read_bytes(), np.random.default_rng(0), [0, 0]
spaces = gym.spaces.Discrete(9), gym.spaces.Discrete(4)
for _ in range(1500):
    damaged = bytearray(content)
    damaged[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    path.write_bytes(damaged)
    try:
        lfd.Demonstrations.from_imitation(folder, *spaces)
    except Exception:
        counts[0] += 1
    else:
        counts[1] += 1
print(json.dumps(counts))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-1000:]
    n_refused, n_read = json.loads(done.stdout)
    assert n_refused + n_read == 1500
    assert n_refused > 50


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    demos().to_minari("crafted/test-v0")
    (file,) = (tmp_path / "minari").rglob("*.hdf5")
    assert len(lfd.Demonstrations.from_minari("crafted/test-v0")) == 3
    return h5py, file


def test_external_links_are_refused(dataset, tmp_path):
    h5py, file = dataset
    with h5py.File(tmp_path / "secret.hdf5", "w") as other, h5py.File(file, "r+") as own:
        own.copy("episode_0", other)
        del own["episode_0"]
        own["episode_0"] = h5py.ExternalLink(str(tmp_path / "secret.hdf5"), "/episode_0")
    with pytest.raises(FileContentError, match=r"/episode_0 links to another file, .*secret\.hdf5"):
        lfd.Demonstrations.from_minari("crafted/test-v0")


@pytest.mark.parametrize("kind", ["external", "virtual"])
def test_datasets_stored_in_other_files_are_refused(dataset, tmp_path, kind):
    h5py, file = dataset
    with h5py.File(file, "r+") as own:
        values = own["episode_0/rewards"][:]
        del own["episode_0/rewards"]
        if kind == "external":
            values.tofile(tmp_path / "secret.bin")
            stored = [(str(tmp_path / "secret.bin"), 0, values.nbytes)]
            own["episode_0"].create_dataset("rewards", values.shape, values.dtype, external=stored)
        else:
            with h5py.File(tmp_path / "secret.hdf5", "w") as other:
                other["rewards"] = values
            layout = h5py.VirtualLayout(values.shape, values.dtype)
            layout[:] = h5py.VirtualSource(str(tmp_path / "secret.hdf5"), "rewards", values.shape, values.dtype)
            own["episode_0"].create_virtual_dataset("rewards", layout)
    with pytest.raises(FileContentError, match="/episode_0/rewards is stored in another file"):
        lfd.Demonstrations.from_minari("crafted/test-v0")


def test_damaged_hdf5_is_named(dataset):
    _, file = dataset
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(FileContentError, match="is damaged or no HDF5 file"):
        lfd.Demonstrations.from_minari("crafted/test-v0")


@pytest.mark.parametrize("what", ["photo", "folder", "link", "file"])
def test_only_datasets_of_imitation_are_replaced(tmp_path, what):
    out = tmp_path / "photos"
    if what == "file":
        out.write_text("mine")
    else:
        out.mkdir()
    if what == "photo":
        (out / "holiday.jpg").write_text("mine")
    elif what == "folder":
        (out / "2026").mkdir()
        (out / "2026" / "state.json").write_text("mine")
    elif what == "link":
        (tmp_path / "link").symlink_to(out)
        out = tmp_path / "link"
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(FileExistsError, match="is not replaced"):
        demos().save_imitation(out, overwrite=True)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
    demos(2).save_imitation(tmp_path / "own")
    demos(3).save_imitation(tmp_path / "own", overwrite=True)
    spaces = gym.spaces.Discrete(9), gym.spaces.Discrete(4)
    assert len(lfd.Demonstrations.from_imitation(tmp_path / "own", *spaces)) == 3


def test_only_minari_datasets_are_replaced(dataset):
    _, file = dataset
    demos(2).to_minari("crafted/test-v0", overwrite=True)
    assert len(lfd.Demonstrations.from_minari("crafted/test-v0")) == 2
    (file.parents[1] / "holiday.jpg").write_text("mine")
    with pytest.raises(
        FileExistsError, match=r"holiday\.jpg, which is no part of a Minari dataset, and is not replaced"
    ):
        demos().to_minari("crafted/test-v0", overwrite=True)
    assert (file.parents[1] / "holiday.jpg").read_text() == "mine"
