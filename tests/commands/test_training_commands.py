"""Run folders, policy files, and the commands that write and read them, without torch."""

import json
import signal
import sys

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym import cli
from lfd_gym.commands.certification import Certify
from lfd_gym.commands.training import Evaluate, Train
from lfd_gym.commands.workers import Workers
from lfd_gym.policies.files import load_policy, save_policy
from lfd_gym.solvers.descent.descent_run import DescentRun
from lfd_gym.training.run_folder import read_config, read_policy

ENV = "lfd_gym/StochasticGridworld-v0"
KWARGS = ("size=6", "cost_seed=1")


@pytest.fixture
def demonstrations(tmp_path):
    env = gym.make(ENV, size=6, cost_seed=1)
    mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    expert = mdp.optimal_policy(env.unwrapped.cost_features[:, 0])
    path = tmp_path / "demos.npz"
    lfd.collect(env, expert, 20, 100, np.random.default_rng(0)).save(path)
    return str(path)


def test_train_writes_a_folder_that_evaluate_reads(demonstrations, tmp_path, capsys):
    out = tmp_path / "run"
    Train(env=ENV, demonstrations=demonstrations, out=out, env_kwargs=KWARGS).run()
    files = {path.name for path in out.iterdir()}
    assert files == {"config.json", "policy.npz", "weights.json", "certificate.json", "metrics.json", "log.txt"}
    config = read_config(out)
    assert config["learner"] == "cutting_plane"
    assert config["versions"]["lfd-gym"] == lfd.__version__
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["resources"]["n_demonstrations"] == 20
    assert metrics["evaluation"]["normalised_score"] > 0.9
    certificate = json.loads((out / "certificate.json").read_text())
    assert metrics["evaluation"]["cost_distance"] <= certificate["cost_distance_bound"]
    assert sum(json.loads((out / "weights.json").read_text())["cost_weights"]) == pytest.approx(1.0)
    assert "learner: cutting_plane (the model is known: the exact apprentice)" in (out / "log.txt").read_text()

    table = tmp_path / "evaluation.json"
    Evaluate(source=out, out=table).run()
    assert "normalised score" in capsys.readouterr().out
    again = json.loads(table.read_text())
    assert metrics["evaluation"] == again


def test_only_the_first_steps_may_count(demonstrations, tmp_path, capsys):
    Train(demonstrations=demonstrations, discount=1.0, horizon=15, learner="tabular_bc", out=tmp_path / "run").run()
    assert "discount 1, first 15 steps" in capsys.readouterr().out
    Certify(source=str(tmp_path / "run")).run()
    assert "discount 1, first 15 steps" in capsys.readouterr().out
    Evaluate(source=str(tmp_path / "run"), horizon=3).run()
    assert "discount 1, first 3 steps" in capsys.readouterr().out
    with pytest.raises(ValueError, match="horizon must be at least 1"):
        Train(demonstrations=demonstrations, horizon=0, out=tmp_path / "other").run()


def test_the_environment_is_that_of_the_demonstrations(demonstrations, tmp_path):
    Train(demonstrations=demonstrations, out=tmp_path / "run").run()
    config = read_config(tmp_path / "run")
    assert (config["env"], sorted(config["env_kwargs"])) == (ENV, ["cost_seed=1", "size=6"])
    assert Evaluate(source=tmp_path / "run").evaluation().normalised_score > 0.9
    anonymous = lfd.Demonstrations.load(demonstrations).with_provenance(env_id=None)
    anonymous.save(tmp_path / "anonymous.npz")
    with pytest.raises(ValueError, match="--env must be given: the demonstrations do not say"):
        Train(demonstrations=str(tmp_path / "anonymous.npz"), out=tmp_path / "other").run()
    anonymous.with_provenance(env_id="antigravity:Fly-v0").save(tmp_path / "importing.npz")
    with pytest.raises(ValueError, match="names a module to import, antigravity:Fly-v0"):
        Train(demonstrations=str(tmp_path / "importing.npz"), out=tmp_path / "other").run()
    assert "antigravity" not in sys.modules


def test_evaluate_takes_a_policy_file(tmp_path):
    save_policy(np.full((36, 4), 0.25), tmp_path / "uniform.npz")
    evaluation = Evaluate(source=tmp_path / "uniform.npz", env=ENV, env_kwargs=KWARGS).evaluation()
    assert evaluation.normalised_score == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ValueError, match="--env must be given"):
        Evaluate(source=tmp_path / "uniform.npz").run()


def test_toy_text_and_cost_files(tmp_path):
    env = gym.make("FrozenLake-v1")
    mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    costs = np.column_stack([lfd.normalise_costs(lfd.reward_cost(env)), np.zeros(68)])
    np.save(tmp_path / "costs.npy", costs)
    lfd.collect(env, mdp.optimal_policy(costs[:, 0]), 20, 100, np.random.default_rng(0)).save(tmp_path / "demos.npz")
    arguments = {"env": "FrozenLake-v1", "demonstrations": str(tmp_path / "demos.npz"), "learner": "tabular_bc"}
    Train(out=tmp_path / "own", **arguments).run()
    Train(out=tmp_path / "given", cost_features=tmp_path / "costs.npy", **arguments).run()
    assert Evaluate(source=tmp_path / "own").evaluation().expected_costs.shape == (5,)
    assert Evaluate(source=tmp_path / "given").evaluation().expected_costs.shape == (2,)
    assert not (tmp_path / "own" / "weights.json").exists()  # counting explains nothing


def test_folders_are_not_overwritten_by_accident(demonstrations, tmp_path):
    arguments = {"env": ENV, "demonstrations": demonstrations, "out": tmp_path / "run", "env_kwargs": KWARGS}
    Train(**arguments).run()
    with pytest.raises(FileExistsError, match="--force"):
        Train(**arguments).run()
    Train(**arguments, learner="mwal", settings=("step_factor=10",), budget=20, force=True).run()
    assert read_config(tmp_path / "run")["learner"] == "mwal"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_failed_run_leaves_nothing(demonstrations, tmp_path):
    with pytest.raises(ValueError, match="has no setting"):
        Train(env=ENV, demonstrations=demonstrations, out=tmp_path / "run", learner="mwal", settings=("speed=1",)).run()
    with pytest.raises(ValueError, match="--learner must be given"):
        Train(env=ENV, demonstrations=demonstrations, out=tmp_path / "run", settings=("speed=1",)).run()
    assert not (tmp_path / "run").exists()


def test_tables_survive_saving_bit_exactly(tmp_path):
    table = np.random.default_rng(0).dirichlet(np.ones(4), size=9)
    save_policy(table, tmp_path / "table.npz")
    np.testing.assert_array_equal(load_policy(tmp_path / "table.npz"), table)
    with pytest.raises(FileExistsError):
        save_policy(table, tmp_path / "table.npz")
    with pytest.raises(ValueError, match=r"must end in \.npz"):
        save_policy(table, tmp_path / "table.pt")
    with pytest.raises(ValueError, match="sum to 1"):
        save_policy(2 * table, tmp_path / "wrong.npz")


def test_files_that_are_no_policies_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="not a policy saved by"):
        load_policy(tmp_path / "other.npz")
    np.savez(tmp_path / "pickled.npz", description=np.array([{"format": "x"}], dtype=object))
    with pytest.raises(ValueError, match=r"is not a policy .*allow_pickle"):
        load_policy(tmp_path / "pickled.npz")
    with pytest.raises(FileNotFoundError, match="not the folder of a training run"):
        read_config(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_policy(tmp_path)


@pytest.fixture
def lake(tmp_path):
    """FrozenLake through a wrapper that nobody knows, so that only episodes tell: demonstrations, others, a policy."""
    env = gym.make("FrozenLake-v1")
    best = lfd.FiniteMDP.from_env(env, discount=0.9).optimal_policy(lfd.Task(env, discount=0.9).cost_table[:, 0])
    files = tmp_path / "shown.npz", tmp_path / "others.npz", tmp_path / "policy.npz"
    for seed, file in enumerate(files[:2]):
        lfd.collect(env, best, 20, 60, np.random.default_rng(seed)).save(file)
    save_policy(lfd.as_policy(best), files[2])
    return tuple(map(str, files))


def test_without_an_environment_held_out_demonstrations_tell(lake, capsys):
    shown, others, policy = lake
    asked = {"env": "none", "held_out": others}
    Certify(source=policy, demonstrations=shown, **asked).run()
    assert "It rests on 20 held-out demonstrations, and how long the policy does as they do" in capsys.readouterr().out
    with pytest.raises(ValueError, match="--demonstrations must be given with --env none: those that the policy was"):
        Certify(source=policy, **asked).run()


@pytest.mark.parametrize("command", [Evaluate, Certify])
def test_rollouts_are_spread_over_workers_with_the_same_result(command, tmp_path, capsys):
    env = gym.make("MountainCar-v0")
    demonstrations = lfd.datasets.load("mountaincar-expert").select(range(3))
    demonstrations.save(tmp_path / "shown.npz")
    save_policy(lfd.policies.tables.UniformPolicy(env.action_space), tmp_path / "policy.npz")
    asked = {"source": str(tmp_path / "policy.npz"), "env": "MountainCar-v0", "rollouts": 4, "discount": 0.9}
    said = []
    for workers in (1, 2):
        command(**asked, demonstrations=str(tmp_path / "shown.npz"), where=Workers(workers=workers)).run()
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert "4 rollouts" in said[0]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (Workers(workers=0), "--workers must be at least 1, got 0"),
        (Workers(address="auto"), "--address is that of a Ray cluster: it needs --engine ray"),
    ],
)
def test_workers_that_cannot_be_are_refused(where, message, demonstrations, tmp_path):
    Train(demonstrations=demonstrations, out=tmp_path / "run").run()
    with pytest.raises(ValueError, match=message):
        Certify(source=tmp_path / "run", where=where).run()


def test_a_run_that_is_stopped_goes_on_where_it_was(demonstrations, tmp_path, monkeypatch, capsys):
    line = f"train --demonstrations {demonstrations} --learner mirror_descent --budget 200000 --out {tmp_path}".split()
    whole, run = tmp_path / "whole", tmp_path / "run"
    line[-1] = str(whole)
    assert cli.main(line) == 0
    line[-1] = str(run)
    assert cli.main([*line, "--resume"]) == 2
    assert "there is no" in capsys.readouterr().err
    advance = DescentRun.advance

    def interrupted(descent, n_iterations):
        advance(descent, n_iterations)
        if descent.iteration > 50_000:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(DescentRun, "advance", interrupted)
        assert cli.main(line) == 130
    assert f"the same call with --resume goes on from {run}.checkpoint" in capsys.readouterr().err
    assert not run.exists()
    assert cli.main(line) == 2
    assert "--resume goes on with it; to begin anew, remove it" in capsys.readouterr().err
    assert cli.main([*line, "--resume"]) == 0
    assert "going on from" in (run / "log.txt").read_text()
    assert not (tmp_path / "run.checkpoint").exists()
    for file in ("weights.json", "certificate.json"):
        assert (run / file).read_bytes() == (whole / file).read_bytes()
    assert (read_policy(run).table == read_policy(whole).table).all()


def test_what_keeps_no_checkpoints_cannot_be_resumed(demonstrations, tmp_path):
    with pytest.raises(ValueError, match="--resume must not be given: cutting_plane keeps nothing"):
        Train(demonstrations=demonstrations, out=tmp_path / "run", resume=True).run()
