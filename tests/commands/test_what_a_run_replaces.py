"""Folders and files on the way: what is checked before learning, what is replaced, what the dead leave behind."""

import copy
import os
import pickle
import platform
import signal
import subprocess
import sys
import time

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym import cli
from lfd_gym.files import append_line, replacing_file, replacing_folder
from lfd_gym.solvers.highs import LinearProgramError


@pytest.fixture
def demos(tmp_path):
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=3)
    expert = lfd.FiniteMDP.from_env(env, 0.9).optimal_policy(env.unwrapped.cost_features[:, 0])
    found = lfd.collect(env, expert, 3, 20, np.random.default_rng(0))
    found.save(tmp_path / "demos.npz")
    return found


def train(tmp_path, out, *words):
    place = ["--demonstrations", str(tmp_path / "demos.npz"), "--learner", "tabular_bc"]
    return cli.main(["train", *place, "--out", str(out), *words])


def test_out_is_checked_before_learning(tmp_path, demos, capsys, monkeypatch):
    monkeypatch.setattr("lfd_gym.commands.training.learn", lambda *args, **kwargs: pytest.fail("it learned first"))
    assert train(tmp_path, tmp_path / "nowhere" / "run") == 2
    assert "does not exist" in capsys.readouterr().err
    (tmp_path / "file").write_text("mine")
    assert train(tmp_path, tmp_path / "file") == 2
    assert train(tmp_path, tmp_path / "file" / "run") == 2
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("what", ["photo", "config", "folder", "file", "link"])
def test_force_replaces_only_what_a_run_wrote(tmp_path, demos, capsys, what):
    out = tmp_path / "photos"
    if what == "file":
        out.write_text("mine")
    else:
        out.mkdir()
    if what == "photo":
        (out / "holiday.jpg").write_text("mine")
    elif what == "config":
        (out / "config.json").write_text('{"mine": true}')
    elif what == "folder":
        (out / "log.txt").mkdir()
    elif what == "link":
        (tmp_path / "link").symlink_to(out)
        out = tmp_path / "link"
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    assert train(tmp_path, out, "--force") == 2
    assert "not replaced" in capsys.readouterr().err
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_force_replaces_an_earlier_run(tmp_path, demos):
    out = tmp_path / "run"
    assert train(tmp_path, out) == 0
    assert train(tmp_path, out) == 2
    assert train(tmp_path, out, "--force") == 0
    assert (out / "policy.npz").is_file()


def dead_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_leftovers_of_dead_processes_are_removed(tmp_path):
    target, host = tmp_path / "result.json", platform.node()
    dead = tmp_path / f".result.json.{host}-{dead_process()}.abc.unfinished"
    alive = tmp_path / f".result.json.{host}-{os.getppid()}.abc.unfinished"
    elsewhere = tmp_path / ".result.json.another-1.abc.unfinished"
    strange = tmp_path / ".other.json.unfinished"
    for file in (dead, alive, elsewhere, strange):
        file.touch()
    with replacing_file(target) as unfinished:
        unfinished.write_text("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        path.name for path in (alive, elsewhere, strange, target)
    )
    folder = tmp_path / f".run.{host}-{dead_process()}.abc.unfinished"
    (folder / "new").mkdir(parents=True)
    precious = tmp_path / f".run.{host}-{dead_process()}.def.unfinished"
    (precious / "old").mkdir(parents=True)
    with replacing_folder(tmp_path / "run") as unfinished:
        unfinished.mkdir()
    assert not folder.exists()
    assert precious.exists()


def test_a_line_that_finds_no_room_leaves_none_of_it(tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    append_line(path, "first")
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, content[:3]))
    with pytest.raises(OSError, match=r"rows\.jsonl: only 3 of 7 bytes found room"):
        append_line(path, "second")
    monkeypatch.undo()
    append_line(path, "third")
    assert path.read_text() == "first\nthird\n"


@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy])
def test_demonstrations_and_errors_pickle_and_copy(demos, again):
    other = again(demos)
    assert other == demos
    assert not other.observations.flags.writeable
    assert again(demos.provenance) == demos.provenance
    with pytest.raises(TypeError):
        again(demos.provenance).env_kwargs["size"] = 4
    error = again(LinearProgramError("time_limit", "too slow"))
    assert (error.status, str(error)) == ("time_limit", "the linear program ended with status 'time_limit': too slow")


@pytest.mark.parametrize("words", [["collect", "--help"], ["envs"]])
def test_a_closed_pipe_ends_quietly(words):
    code = f"import sys; sys.argv = ['lfd-gym', *{words!r}]; from lfd_gym.cli import main; sys.exit(main())"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()  # nobody reads
    error = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=60)
    assert "Traceback" not in error
    assert "Broken pipe" not in error


SLEEPY = """
import os, sys, time
from lfd_gym.benchmark import ProcessEngine

def sleep(folder):
    open(os.path.join(folder, str(os.getpid())), "w").close()
    time.sleep(60)

if __name__ == "__main__":
    list(ProcessEngine(2).run(sleep, [sys.argv[1]] * 2, 120.0))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent(tmp_path, number):
    (tmp_path / "sleepy.py").write_text(SLEEPY)
    folder = tmp_path / "pids"
    folder.mkdir()
    parent = subprocess.Popen([sys.executable, str(tmp_path / "sleepy.py"), str(folder)])
    deadline = time.monotonic() + 60
    while len(list(folder.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = [int(file.name) for file in folder.iterdir()]
    assert len(workers) == 2
    parent.send_signal(number)
    parent.wait(timeout=20)
    deadline = time.monotonic() + 15
    while any(map(_runs, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(_runs, workers))


def _runs(process):
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
