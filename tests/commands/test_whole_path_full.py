"""Collect, train, evaluate and certify by the command line, on every kind of environment; budgets are tiny."""

import json
import re
import shutil
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from imitation.data import serialize
from imitation.data.types import Trajectory

import lfd_gym as lfd
from lfd_gym import cli
from lfd_gym.commands.arguments import read_demonstrations

pytest.importorskip("stable_baselines3")

EXPERTS = Path(__file__).parents[2] / "benchmarks" / "experts"
OLD_LINE = gym.__version__.startswith("0.")
LANDER = "LunarLander-v2" if OLD_LINE else "LunarLander-v3"
INVERTED = "InvertedPendulum-v4" if OLD_LINE else "InvertedPendulum-v5"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(line):
    assert cli.main(line.split()) == 0, line


#: How to collect, how to train, what is picked (None: it was said), and whether the model is known.
PATHS = {
    "gridworld": (
        "--env lfd_gym/StochasticGridworld-v0 --env-kwargs size=4 cost_seed=1 --trajectories 20",
        "--discount 0.9",
        "cutting_plane",
        True,
    ),
    "FrozenLake": ("--env FrozenLake-v1 --discount 0.99 --trajectories 20", "--discount 0.95", "cutting_plane", True),
    "CartPole": (f"--env CartPole-v1 --expert {EXPERTS}/CartPole-v1.npz --trajectories 3", "--learner bc", None, False),
    "Pendulum": (
        f"--env Pendulum-v1 --expert policy:{EXPERTS}/Pendulum-v1.npz --deterministic --trajectories 4",
        "--learner grid --settings n_points=9 --budget 5",
        None,
        False,
    ),
    "LunarLander": (
        f"--env {LANDER} --train-expert dqn --steps 600 --trajectories 3 --horizon 80",
        "--learner bc --budget 100",
        None,
        False,
    ),
    "MuJoCo": (
        f"--env {INVERTED} --expert {EXPERTS}/InvertedPendulum-v5.npz --deterministic --trajectories 2 --horizon 100",
        "--learner bc --budget 100",
        None,
        False,
    ),
}


@pytest.mark.parametrize("name", PATHS)
def test_from_collecting_to_a_certificate(name, capsys):
    collect, train, picked, known = PATHS[name]
    if name == "LunarLander":
        pytest.importorskip("Box2D")
    if name == "MuJoCo":
        pytest.importorskip("mujoco")
    few = "" if known else " --rollouts 4"
    run(f"collect {collect} --out demos.npz")
    run("inspect demos.npz --discount 0.9")
    run(f"train --demonstrations demos.npz {train} --out run{few}")
    said = capsys.readouterr().out
    if picked:
        assert f"learner: {picked} (" in said
    run(f"evaluate run --out evaluation.json{few}")
    run(f"certify run --out certificate.json --picture certificate.png{few}")
    evaluation = json.loads(Path("evaluation.json").read_text())
    certificate = json.loads(Path("certificate.json").read_text())
    assert 0 <= evaluation["cost_distance"] <= certificate["cost_distance_bound"]
    if known:
        assert evaluation["normalised_score"] > 0.8
        assert evaluation["discounted_return"] is not None
    else:
        low, high = evaluation["sampling"]["episode_return"]
        assert low <= evaluation["episode_return"] <= high
        assert evaluation["episode_length"] >= 1
        assert evaluation["random_return"] is not None
    if name in ("CartPole", "Pendulum"):  # whole episodes were demonstrated
        assert evaluation["normalised_score"] is not None
        assert evaluation["expert_return"] == pytest.approx(mean_return("demos.npz"))
    assert Path("certificate.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.skipif(not OLD_LINE, reason="the page names the environments of the older line")
def test_the_documented_way_from_an_expert_to_a_certificate_is_run_literally():
    lines = lines_of("From an expert to a certificate")
    assert len(lines) == 14
    for line in lines:
        run(line)


def chapter(title):
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
    return page.split(f"## {title}")[1].split("\n## ")[0]


def lines_of(title):
    """Return what a chapter of the page on the command line tells the reader to type."""
    blocks = re.findall(r"```sh\n(.*?)```", chapter(title), re.DOTALL)
    return [line.removeprefix("lfd-gym ") for block in blocks for line in block.splitlines()]


@pytest.mark.timeout(900)
def test_the_other_lines_of_the_page_are_run_literally():
    """With the files that lines before them would have left; those of modules of one's own have a test elsewhere."""
    shutil.copy(EXPERTS / "CartPole-v1.npz", "pole.expert.npz")
    for name, seed in (("pole", 0), ("others", 1)):
        run(f"collect --env CartPole-v1 --expert pole.expert.npz --trajectories 3 --seed {seed} --out {name}.npz")
    run("collect --env FrozenLake-v1 --trajectories 5 --out lake.npz")
    run("train --demonstrations lake.npz --learner tabular_bc --out lake")
    lines = [line for title in ("Experts", "Clone", "Arguments", "Films") for line in lines_of(title)]
    assert [line.split()[0] for line in lines] == ["evaluate", "certify", "train", "evaluate", "show"]
    for line in lines:
        run(line)
    (program,) = re.findall(r"```text\n(.*?)```", chapter("Clone, then fine-tune"), re.DOTALL)
    assert program.count("learn(50_000)") == 1
    exec(program.replace("50_000", "100"), {})
    assert Path("pole.gif").exists()


def mean_return(path):
    demos = lfd.Demonstrations.load(path)
    return demos.rewards.sum() / len(demos)


def test_acrobot_steps_whatever_numpy_there_is():
    run("collect --env Acrobot-v1 --expert random --trajectories 2 --horizon 20 --out acrobot.npz")
    assert lfd.Demonstrations.load("acrobot.npz").lengths.tolist() == [20, 20]


@pytest.mark.parametrize("kind", ["policy:own.npz", "sb3:model.zip", None])
def test_a_trained_expert_is_kept_where_it_is_said(kind, capsys):
    collect = "collect --env lfd_gym/StochasticGridworld-v0 --env-kwargs size=3 --trajectories 3 --horizon 9 --steps 50"
    given = "" if kind is None else f" --expert {kind}"
    run(f"{collect} --train-expert dqn --out demos.npz{given}")
    kept = kind or "demos.expert.npz"
    assert f"expert: {kept.split(':')[-1]}" in capsys.readouterr().out
    demos = lfd.Demonstrations.load("demos.npz")
    assert demos.provenance.policy == "dqn (50 steps)"
    again = f"{collect} --expert {kept} --out again.npz --force".split()
    assert cli.main(again) == 0
    assert (lfd.Demonstrations.load("again.npz").actions == demos.actions).all()  # the very same network
    assert cli.main([*again, "--train-expert", "dqn"]) == 0
    assert cli.main(f"{collect} --train-expert dqn --expert {kept} --out other.npz".split()) == 2
    assert "--force trains and saves it anew" in capsys.readouterr().err


def test_models_of_stable_baselines_are_judged_as_they_are(capsys):
    from stable_baselines3 import PPO

    PPO("MlpPolicy", "CartPole-v1", device="cpu", seed=0, policy_kwargs={"net_arch": [8]}).save("model.zip")
    run("collect --env CartPole-v1 --expert sb3:model.zip --trajectories 5 --out demos.npz")
    judge = "sb3:model.zip --env CartPole-v1 --demonstrations demos.npz --rollouts 5"
    run(f"evaluate {judge}")
    assert "episode return" in capsys.readouterr().out
    run(f"certify {judge}")
    PPO("MlpPolicy", "Pendulum-v1", device="cpu", seed=0, use_sde=True).save("sde.zip")
    pendulum = "collect --env Pendulum-v1 --trajectories 2 --horizon 5 --force --out swings.npz --expert"
    assert cli.main(f"{pendulum} sde.zip".split()) == 2
    assert "must be given as sb3:sde.zip" in capsys.readouterr().err
    assert cli.main(f"{pendulum} sb3:sde.zip".split()) == 2
    said = capsys.readouterr().err
    assert "runs whatever code is in it; if you trust where it comes from, allow that with --trust" in said
    assert said.count("\n") == 1
    run(f"{pendulum} sb3:sde.zip --trust")
    assert cli.main(f"{pendulum} sb3:model.zip".split()) == 2
    assert "observation_space of shape [4], but that of the environment is Box" in capsys.readouterr().err
    assert cli.main(f"{pendulum} {EXPERTS}/CartPole-v1.npz".split()) == 2
    assert "acts in Discrete(2), but the environment takes Box" in capsys.readouterr().err


def test_the_time_limit_of_what_imitation_saved_is_no_end(tmp_path):
    seen = np.linspace(-0.1, 0.1, 501 * 4, dtype=np.float32).reshape(501, 4)
    both = [seen, seen[:31]]  # one ran to the limit, which infos would say if they were kept; one fell
    serialize.save("saved", [Trajectory(each, np.zeros(len(each) - 1, int), None, terminal=True) for each in both])
    read = read_demonstrations("saved", "CartPole-v1")
    assert (read.terminated.tolist(), read.truncated.tolist()) == ([False, True], [True, False])
