"""A real Ray on this machine gives the same outcomes as local processes, and a benchmark the same rows."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from benchmark_rows import deterministic_part
from engine_cases import square_or_misbehave

import lfd_gym as lfd
from lfd_gym.benchmark import ResultsFolder
from lfd_gym.cli import main
from lfd_gym.engines import ProcessEngine, RayEngine

SPEC = """
n_demonstrations = [5]
seeds = [0, 1]
[[environments]]
label = "grid5"
env_id = "lfd_gym/StochasticGridworld-v0"
discount = 0.9
horizon = 30
kwargs = { size = 5 }
[[environments]]
label = "lake"
env_id = "FrozenLake-v1"
discount = 0.95
horizon = 50
[[learners]]
name = "tabular_bc"
[[learners]]
name = "bc"
budget = 50
[[learners]]
name = "cutting_plane"
[[learners]]
name = "plug_in"
budget = 10000
[[learners]]
name = "mirror_descent"
budget = 20000
[[learners]]
name = "grid"
"""


def test_ray_runs_and_survives_like_processes(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))  # where Ray's workers find engine_cases
    items = [1, "fail", 2, "die", 3]
    local = dict(ProcessEngine(2).run(square_or_misbehave, items, time_limit=20.0))
    remote = dict(RayEngine(n_workers=2).run(square_or_misbehave, items, time_limit=20.0))
    assert {item: outcome.value for item, outcome in remote.items()} == {i: o.value for i, o in local.items()}
    assert remote["fail"].error.startswith("ValueError: no good")
    assert "worker process died" in remote["die"].error


def test_a_benchmark_has_the_same_rows_and_policies_on_ray(tmp_path):
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    for engine in ("processes", "ray"):
        arguments = ["--spec", str(spec), "--out", str(tmp_path / engine), "--engine", engine, "--workers", "2"]
        assert main(["benchmark", *arguments]) == 0
    local, remote = (ResultsFolder.open(tmp_path / engine) for engine in ("processes", "ray"))
    rows = local.rows()
    assert [row["status"] for row in rows].count("ok") == 20
    assert [row["status"] for row in rows].count("failed") == 4
    for ours, theirs in zip(deterministic_part(rows), deterministic_part(remote.rows()), strict=True):
        assert ours == theirs
    for row in rows:
        if row["status"] == "ok":
            np.testing.assert_array_equal(local.policy(row["cell"]), remote.policy(row["cell"]))


def test_rollouts_of_a_certificate_are_the_same_on_ray():
    env, rng = gym.make("FrozenLake-v1"), np.random.default_rng(0)
    demos = lfd.collect(env, np.full((16, 4), 0.25), 5, 20, rng)
    episodes = gym.wrappers.TransformReward(env, float)
    task = lfd.Task(episodes, demos, discount=0.8, costs=lfd.Task(env, discount=0.8).costs)
    assert task.access == "episodes"
    uniform = np.full((16, 4), 0.25)
    local, remote = (
        task.expected_costs(uniform, rng=np.random.default_rng(1), n_rollouts=60, engine=engine)
        for engine in (ProcessEngine(1), RayEngine(n_workers=2))
    )
    np.testing.assert_array_equal(local.trajectory_values, remote.trajectory_values)


SLEEPY = """
import os, sys, time
from lfd_gym.engines import RayEngine

def sleep(folder):
    open(os.path.join(folder, str(os.getpid())), "w").close()
    time.sleep(300)

if __name__ == "__main__":
    list(RayEngine(n_workers=1).run(sleep, [sys.argv[1]], 300.0))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_of_a_local_ray_end_with_their_parent(tmp_path, number):
    (tmp_path / "sleepy.py").write_text(SLEEPY)
    folder = tmp_path / "pids"
    folder.mkdir()
    parent = subprocess.Popen([sys.executable, str(tmp_path / "sleepy.py"), str(folder)])
    wait_until(lambda: any(folder.iterdir()), 120)
    (worker,) = (int(file.name) for file in folder.iterdir())
    parent.send_signal(number)
    parent.wait(timeout=60)
    wait_until(lambda: not is_running(worker), 60)


def wait_until(true, seconds):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def is_running(process):
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
