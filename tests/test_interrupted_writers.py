"""Writers that are killed at any file operation, or find no room: what is read is the old or the new, whole."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.benchmark import BenchmarkSpec, EnvironmentSpec, LearnerSpec
from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.policies.tables import TablePolicy
from lfd_gym.solvers.descent.solver_checkpoint import load_checkpoint, save_checkpoint
from lfd_gym.training.run_folder import RunLog, read_config, read_policy, write_run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
SPEC = BenchmarkSpec(
    environments=(EnvironmentSpec("grid", "lfd_gym/StochasticGridworld-v0", 0.9, 20),),
    learners=(LearnerSpec("tabular_bc"),),
    n_demonstrations=(2,),
    seeds=(0, 1),
)


def demonstrations(seed):
    model = lfd.TabularModel(np.array([[0.0, 1.0], [1.0, 0.0]]), [1.0, 0.0])
    return lfd.collect(model, np.ones((2, 1)), 3 + seed, 5, np.random.default_rng(seed))


def table(version):
    return np.eye(2)[[version, 1 - version]]


def write_a_run(folder, version):
    write_run(
        folder / "run",
        config={"version": version},
        policy=TablePolicy(table(version)),
        cost_weights=None,
        certificate=None,
        metrics={},
        log=RunLog(),
        overwrite=True,
    )


def add_row(folder, version):
    results = ResultsFolder(folder / "bench", SPEC)
    cell = SPEC.cells()[version].id
    if cell not in {row["cell"] for row in results.rows()}:
        results.append({"cell": cell, "status": "ok"}, TablePolicy(table(version)))


def read_rows(folder):
    results = ResultsFolder.open(folder / "bench")
    rows = results.rows()
    assert all(np.array_equal(results.policy(row["cell"]).table, table(k)) for k, row in enumerate(rows))
    return len(rows) - 1


#: What is written: version 0, then version 1 over it; and what says which is there.
WRITERS = {
    "demonstrations": (
        lambda folder, version: demonstrations(version).save(folder / "demos.npz", overwrite=True),
        lambda folder: len(lfd.Demonstrations.load(folder / "demos.npz")) - 3,
    ),
    "policy": (
        lambda folder, version: lfd.save_policy(table(version), folder / "policy.npz", overwrite=True),
        lambda folder: int(lfd.load_policy(folder / "policy.npz").table[0, 1]),
    ),
    "checkpoint": (
        lambda folder, version: save_checkpoint(folder / "run.npz", {"n": version}, {"a": np.zeros(9)}),
        lambda folder: load_checkpoint(folder / "run.npz")[0]["n"],
    ),
    "run": (
        write_a_run,
        lambda folder: (read_config(folder / "run")["version"] + int(read_policy(folder / "run").table[0, 1])) / 2,
    ),
    "results": (add_row, read_rows),
}
#: Events that Python announces before it does something to files.
OPERATIONS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate", "shutil.rmtree")


def killed_at(number, write, folder):
    """Write version 1 in a child that kills itself before its file operation ``number``; False if it has fewer."""
    child = os.fork()
    if child == 0:
        left = number

        def count(event, arguments):
            nonlocal left
            if event in OPERATIONS and str(folder) in str(arguments[0]):
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        status = 1
        try:
            write(folder, 1)
            status = 0
        finally:
            os._exit(status)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.parametrize("name", WRITERS)
def test_killed_at_every_file_operation(tmp_path, name):
    write, read = WRITERS[name]
    number, found = 0, []
    while True:
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder, 0)
        assert read(folder) == 0
        killed = killed_at(number, write, folder)
        if name == "run" and killed and not (folder / "run").exists():  # between moving the old away and the new in
            kept = next(folder.glob(".run.*/old"))
            assert read_config(kept)["version"] == 0
            found.append(0)
        else:
            found.append(read(folder))
            write(folder, 1)  # whoever comes next is not disturbed by what was left
            assert read(folder) == 1
            if name != "results":
                assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
        if not killed:
            break
        number += 1
    assert number >= 3
    assert set(found) == {0, 1}
    assert found == sorted(found)


@pytest.fixture
def small_disk(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small disk")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("may not mount a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("pages", range(5))
def test_a_full_disk_leaves_the_old(small_disk, name, pages):
    """Room for ``pages`` of 4 KiB is left: the write goes well or fails with an OSError, and nothing is between."""
    write, read = WRITERS[name]
    write(small_disk, 0)
    free = os.statvfs(small_disk).f_bavail - pages
    (small_disk / "filler").write_bytes(bytes(4096 * max(free, 0)))
    before = sorted(path.name for path in small_disk.rglob("*"))
    failed = None
    try:
        write(small_disk, 1)
    except OSError as error:
        failed = str(error)
    if failed is not None:
        assert "No space left" in failed
        assert read(small_disk) == 0
        if name != "results":  # there a row is made of two files
            assert sorted(path.name for path in small_disk.rglob("*")) == before
        (small_disk / "filler").unlink()
        write(small_disk, 1)
    assert read(small_disk) == 1
