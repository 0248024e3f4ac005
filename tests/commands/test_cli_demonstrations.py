"""The commands that collect, inspect and convert demonstrations, as a user calls them."""

import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import tyro

from lfd_gym import Demonstrations
from lfd_gym.commands.demonstrations import Collect, Convert, Inspect

SCRIPT = Path(__file__).parents[2] / "scripts" / "collect_rollouts.py"
GRIDWORLD = "lfd_gym/StochasticGridworld-v0"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(command, *words):
    tyro.cli(command, args=[str(word) for word in words]).run()


def grid(*words):
    run(Collect, "--env", GRIDWORLD, "--env-kwargs", "size=4", "cost_seed=2", "--out", "grid.npz", *words)


def test_collect_writes_demonstrations_a_picture_and_a_summary(capsys):
    grid("--trajectories", 7, "--horizon", 30, "--seed", 5)
    demos = Demonstrations.load("grid.npz")
    assert demos.lengths.tolist() == [30] * 7
    assert demos.provenance.env_id == GRIDWORLD
    assert dict(demos.provenance.env_kwargs) == {"size": 4, "cost_seed": 2}
    assert (demos.provenance.seed, demos.provenance.policy) == (5, "optimal")
    assert sorted(os.listdir()) == ["grid.npz", "grid.visits.png"]
    assert Path("grid.visits.png").read_bytes().startswith(b"\x89PNG")
    output = " ".join(capsys.readouterr().out.split())
    returns = demos.rewards.reshape(7, 30).sum(axis=1)
    assert f"mean return {returns.mean():.4f} ± " in output
    costs = -(0.1 * 0.9 ** np.arange(30) * demos.rewards.reshape(7, 30)).sum(axis=1)
    assert f"mean cost (discount 0.9) {costs.mean():.4f} ± " in output
    assert "7 (0 terminated, 7 truncated)" in output


def test_the_same_seed_gives_the_same_file():
    grid("--seed", 1)
    first = Path("grid.npz").read_bytes()
    grid("--seed", 1, "--force")
    assert Path("grid.npz").read_bytes() == first
    grid("--seed", 2, "--force")
    assert Path("grid.npz").read_bytes() != first


def test_nothing_is_overwritten_without_force():
    grid()
    before = Path("grid.npz").read_bytes()
    with pytest.raises(FileExistsError, match=r"grid\.npz exists already; --force replaces it"):
        grid("--seed", 9)
    os.remove("grid.npz")
    with pytest.raises(FileExistsError, match=r"grid\.visits\.png exists already"):
        grid("--seed", 9)
    assert not Path("grid.npz").exists()
    grid("--force")
    assert Path("grid.npz").read_bytes() == before


def test_experts_differ_in_what_they_cost():
    costs = {}
    for expert in ("optimal", "noisy", "soft", "random"):
        grid("--expert", expert, "--trajectories", 300, "--epsilon", 0.3, "--temperature", 0.2, "--force")
        demos = Demonstrations.load("grid.npz")
        costs[expert] = -demos.rewards.mean()
        assert demos.provenance.policy.startswith(expert)
    assert costs["optimal"] < costs["noisy"] < costs["random"]
    assert costs["optimal"] < costs["soft"] < costs["random"]


@pytest.mark.parametrize(
    ("env", "expert"),
    [
        ("FrozenLake-v1", "optimal"),
        ("Pendulum-v1", "optimal"),
        ("CartPole-v1", "random"),
        ("Pendulum-v1", "random"),
        ("Acrobot-v1", "random"),
    ],
)
def test_other_environments(env, expert):
    run(Collect, "--env", env, "--expert", expert, "--out", "demos.npz", "--trajectories", 20, "--horizon", 25)
    demos = Demonstrations.load("demos.npz")
    assert len(demos) == 20
    assert demos.lengths.max() <= 25
    assert demos.observation_space == gym.make(env).observation_space
    assert Path("demos.visits.png").exists()


def test_an_optimal_expert_needs_a_table_or_a_simulator():
    class Opaque(gym.Wrapper):
        pass

    gym.register("Opaque-v0", lambda **kwargs: Opaque(gym.make("CartPole-v1")))
    try:
        with pytest.raises(ValueError, match=r"the expert optimal needs a table or a simulator: .*`Opaque`"):
            run(Collect, "--env", "Opaque-v0", "--out", "demos.npz")
    finally:
        del gym.registry["Opaque-v0"]


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["--expert", "best"], ValueError, "expert must be optimal, noisy, soft, random, human, policy:PATH"),
        (["--env-kwargs", "size"], ValueError, "env_kwargs must be NAME=VALUE, got 'size'"),
        (["--out", "grid.csv"], ValueError, r"out must end in \.npz"),
        (["--out", "nowhere/grid.npz"], FileNotFoundError, "the folder nowhere does not exist"),
        (["--env", "CartPole-v1", "--env-kwargs", "--expert", "soft"], ValueError, "soft needs a tabular environment"),
        (["--env", "Nowhere-v0"], gym.error.Error, "Nowhere"),
        (["--trajectories", 0], ValueError, "trajectories must be at least 1"),
    ],
)
def test_wrong_arguments_are_named_and_nothing_is_written(words, error, message):
    with pytest.raises(error, match=message):
        grid(*words)
    assert os.listdir() == []


def test_inspect_and_convert(capsys):
    grid("--expert", "noisy")
    capsys.readouterr()
    run(Inspect, "grid.npz", "--discount", 0.5)
    output = capsys.readouterr().out
    for words in ("noisy (epsilon=0.1)", '{"size": 4, "cost_seed": 2}', "Discrete(16)", "mean cost (discount 0.5)"):
        assert words in output
    run(Convert, "grid.npz", "--out", "copy.npz", "--format", "npz")
    assert Demonstrations.load("copy.npz") == Demonstrations.load("grid.npz")
    with pytest.raises(FileExistsError):
        run(Convert, "grid.npz", "--out", "copy.npz", "--format", "npz")
    with pytest.raises(FileNotFoundError, match=r"there is no file other\.npz"):
        run(Inspect, "other.npz")
    os.mkdir("folder")
    with pytest.raises(ValueError, match="does not say its spaces: give --env"):
        run(Inspect, "folder")


def test_the_script_is_the_same_command():
    words = ["--env", GRIDWORLD, "--env-kwargs", "size=4", "cost_seed=2", "--out", "grid.npz"]
    done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    by_script = Demonstrations.load("grid.npz")
    grid("--force")
    assert by_script == Demonstrations.load("grid.npz")
    refused = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True)
    assert refused.returncode == 2
    assert refused.stderr.strip() == "lfd-gym: grid.npz exists already; --force replaces it"
