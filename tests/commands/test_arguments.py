"""What is given on the command line: understood as meant, or refused in a line."""

import os
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym import cli
from lfd_gym.commands.arguments import as_words, parse_kwargs
from lfd_gym.training.run_folder import read_config

GRID = "lfd_gym/StochasticGridworld-v0"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*words):
    return cli.main([str(word) for word in words])


def refused(capsys, *words):
    """Return the one line that a command ends with."""
    capsys.readouterr()
    assert run(*words) == 2
    error = capsys.readouterr().err
    assert error.startswith("lfd-gym: ")
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("a=8", 8),
        ("a=-0.5", -0.5),
        ("a=False", False),
        ("a=false", False),
        ("a=True", True),
        ("a=None", None),
        ("a=null", None),
        ("a=[1, 2]", [1, 2]),
        ("a=(1, 2)", (1, 2)),
        ("a=['SF', 'FG']", ["SF", "FG"]),
        ('a={"b": [true]}', {"b": [True]}),
        ("a={'b': True}", {"b": True}),
        ("a=4x4", "4x4"),
        ("a=maps/small-1.txt", "maps/small-1.txt"),
        ("a=module:Name", "module:Name"),
        ("a='two words'", "two words"),
        ('a="False"', "False"),
    ],
)
def test_values_are_json_or_python(word, value):
    found = parse_kwargs([word])
    assert found == {"a": value}
    assert type(found["a"]) is type(value)
    again = parse_kwargs(as_words(found))["a"]
    assert again == value or list(again) == list(value)  # tuples are lists in JSON


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("size=[8", r"env_kwargs size must be a number, .* got '\[8'"),
        ("size=", "env_kwargs size must be a number"),
        ("size=8 9", "env_kwargs size must be a number"),
        ("size=two words", "needs quotes"),
        ("size=FALSE", "env_kwargs size must be False, got FALSE"),
        ("size=TRUE", "env_kwargs size must be True, got TRUE"),
        ("size=none", "env_kwargs size must be None, got none"),
        ("size=__import__('os')", "env_kwargs size must be a number"),
        ("size", "env_kwargs must be NAME=VALUE, got 'size'"),
        ("si ze=3", "env_kwargs must be NAME=VALUE"),
    ],
)
def test_what_is_no_value_is_refused(word, message):
    with pytest.raises(ValueError, match=message):
        parse_kwargs([word])


def test_an_argument_is_given_once():
    with pytest.raises(ValueError, match="env_kwargs must give size once"):
        parse_kwargs(["size=3", "size=4"])


def test_false_is_false(capsys):
    assert run("collect", "--env", "FrozenLake-v1", "--env-kwargs", "is_slippery=False", "--out", "lake.npz") == 0
    assert "environment: FrozenLake-v1 with is_slippery=False\n" in capsys.readouterr().out
    demos = lfd.Demonstrations.load("lake.npz")
    assert demos.provenance.env_kwargs["is_slippery"] is False
    assert demos.lengths.tolist() == [6] * 10  # nothing slips: the shortest way each time


def test_mistakes_in_arguments_are_one_line(capsys):
    collect = ["collect", "--expert", "random", "--out", "x.npz", "--env"]
    said = refused(capsys, *collect, GRID, "--env-kwargs", "sise=3")
    assert said.startswith(f"lfd-gym: env_kwargs: {GRID} has no argument 'sise'; it takes size,")
    said = refused(capsys, *collect, "FrozenLake-v1", "--env-kwargs", "is_slippery=no")
    assert "env_kwargs is_slippery of FrozenLake-v1 must be True or False, got the text 'no'" in said
    said = refused(capsys, *collect, "FrozenLake-v1", "--env-kwargs", "map_name=5x5")
    assert "env_kwargs: FrozenLake-v1 cannot be made with map_name='5x5': KeyError: '5x5'" in said
    assert "at least 1" in refused(capsys, *collect, GRID, "--horizon", 0)
    assert "`Nowhere` doesn't exist" in refused(capsys, *collect, "Nowhere-v0")


@pytest.fixture
def grid_demos():
    env = gym.make(GRID, size=4, cost_seed=2)
    expert = lfd.FiniteMDP.from_env(env, 0.9).optimal_policy(env.unwrapped.cost_features[:, 0])
    lfd.collect(env, expert, 5, 30, np.random.default_rng(0)).save("grid.npz")


def test_arguments_override_those_that_are_recorded(grid_demos, capsys):
    train = ["train", "--demonstrations", "grid.npz", "--learner", "tabular_bc", "--force", "--out", "run"]
    said = refused(capsys, *train, "--env-kwargs", "cost_seed=3")
    assert "with cost_seed=2, but env is" in said
    assert "with cost_seed=3: if they are meant" in said
    assert "--allow-mismatch" in said
    assert run(*train, "--env-kwargs", "cost_seed=3", "--allow-mismatch") == 0
    assert f"environment: {GRID} with size=4, cost_seed=3" in capsys.readouterr().out
    config = read_config(lfd_path("run"))
    assert sorted(config["env_kwargs"]) == ["cost_seed=3", "size=4"]
    assert run(*train) == 0
    for command in ("evaluate", "certify"):
        assert "with cost_seed=3" in refused(capsys, command, "run", "--env-kwargs", "cost_seed=3")
        capsys.readouterr()
        assert run(command, "run", "--env-kwargs", "cost_seed=3", "--allow-mismatch") == 0
        assert f"environment: {GRID} with size=4, cost_seed=3" in capsys.readouterr().out


def lfd_path(name):
    from pathlib import Path

    return Path(name)


def test_other_mistakes_are_one_line_each(grid_demos, capsys):
    assert "but env is CartPole-v1" in refused(
        capsys, "train", "--demonstrations", "grid.npz", "--env", "CartPole-v1", "--out", "other"
    )
    assert run("train", "--demonstrations", "grid.npz", "--learner", "tabular_bc", "--out", "run") == 0
    assert "run is the folder of a training run, which holds a policy" in refused(capsys, "inspect", "run")
    assert "--env must be given for run/policy.npz" in refused(capsys, "evaluate", "run/policy.npz")
    assert "no policy: give a run folder" in refused(capsys, "evaluate", "walk", "--env", GRID)
    assert "no setting 'sped'" in refused(
        capsys, "train", "--demonstrations", "grid.npz", "--learner", "mwal", "--settings", "sped=1", "--out", "other"
    )
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        lfd.learn(lfd.Task(gym.make("CartPole-v1"), None, discount=0.9), rng=0)


def test_a_person_needs_a_screen(capsys, monkeypatch):
    pytest.importorskip("pygame").quit()
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    for env in ("FrozenLake-v1", "CartPole-v1"):
        said = refused(capsys, "collect", "--env", env, "--expert", "human", "--out", "mine.npz")
        assert "a window needs a screen, and there is none" in said
    assert "a window needs a screen" in refused(capsys, "show", "CartPole-v1", "--window")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="others always have a screen")
def test_a_machine_without_a_screen_says_so_in_one_line():
    """SDL's own complaints, which no Python code sees, are not among it."""
    pytest.importorskip("pygame")
    hidden = {"DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "XDG_RUNTIME_DIR"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}

    def called(*words):
        line = [sys.executable, "-m", "lfd_gym.cli", *words]
        return subprocess.run(line, capture_output=True, text=True, env=environment, timeout=200)

    done = called("collect", "--env", "FrozenLake-v1", "--expert", "human", "--out", "mine.npz")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("lfd-gym: a window needs a screen, and there is none")
    done = called("show", "FrozenLake-v1", "--out", "lake.png")
    assert (done.returncode, done.stderr) == (0, "")


def test_collecting_goes_to_the_limit_of_the_environment():
    for words, horizon in (([], 500), (["--horizon", 7], 7)):
        assert run("collect", "--env", "CartPole-v1", "--expert", "random", "--out", "c.npz", "--force", *words) == 0
        assert lfd.Demonstrations.load("c.npz").horizon == horizon


def test_a_policy_that_is_no_better_than_random_play_is_named(capsys, grid_demos):
    lfd.save_policy(np.full((16, 4), 0.25), "uniform.npz")
    words = ["uniform.npz", "--env", GRID, "--env-kwargs", "size=4", "cost_seed=2"]
    assert run("evaluate", *words) == 0
    assert "note: the policy is no better than random play: its score is" in capsys.readouterr().out
    train = ["train", "--demonstrations", "grid.npz", "--force", "--out", "run", "--learner"]
    assert run(*train, "random") == 0
    assert "no better than random play" in (lfd_path("run") / "log.txt").read_text()
    assert run(*train, "cutting_plane") == 0
    assert "no better than random play" not in (lfd_path("run") / "log.txt").read_text()


def test_a_learner_that_stops_at_its_limit_is_named(capsys, grid_demos):
    train = ["train", "--demonstrations", "grid.npz", "--force", "--out", "run", "--learner", "cutting_plane"]
    assert run(*train, "--budget", 1) == 0
    log = (lfd_path("run") / "log.txt").read_text()
    assert "note: cutting_plane stopped with status 'iteration_limit'" in log
    assert run(*train) == 0
    assert "stopped with status" not in (lfd_path("run") / "log.txt").read_text()
