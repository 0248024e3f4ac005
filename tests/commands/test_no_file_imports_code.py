"""What files name is never imported: only what the user types on this call may be."""

import json
import sys

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym import cli
from lfd_gym.benchmark import BenchmarkSpec, EnvironmentSpec, LearnerSpec, ProcessEngine, run_benchmark
from lfd_gym.envs.named import check_named_environment, check_named_learner

GRID = "lfd_gym/StochasticGridworld-v0"


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A module that leaves a mark when it is imported, and registers an environment and a learner."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "evil_module.py").write_text(
        f"""
import pathlib, gymnasium as gym
pathlib.Path({str(tmp_path / "was_imported")!r}).touch()
from lfd_gym.envs import StochasticGridworldEnv
gym.register("Evil-v0", entry_point="evil_module:make", disable_env_checker=True)
def make(**kwargs):
    return StochasticGridworldEnv(**kwargs)
"""
    )
    monkeypatch.syspath_prepend(folder)
    yield tmp_path / "was_imported"
    sys.modules.pop("evil_module", None)
    gym.registry.pop("Evil-v0", None)


def demonstrations(path, env_id=GRID, kwargs=None):
    env = gym.make(GRID, size=3)
    expert = lfd.FiniteMDP.from_env(env, 0.9).optimal_policy(env.unwrapped.cost_features[:, 0])
    demos = lfd.collect(env, expert, 3, 20, np.random.default_rng(0))
    demos.with_provenance(env_id=env_id, env_kwargs=kwargs or {"size": 3}).save(path)
    return str(path)


def run(*words):
    return cli.main([str(word) for word in words])


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        ("evil_module:Evil-v0", {}),
        ("evil_module:CartPole-v1", {}),
        ("GymV26Environment-v0", {"env_id": "evil_module:Evil-v0"}),
        ("GymV21Environment-v0", {"env_id": "CartPole-v0"}),
        ("gymnasium:GymV26Environment-v0", {"env_id": "evil"}),
        (GRID, {"size": "evil_module:x"}),
        (GRID, {"size": {"deep": ["evil_module:x"]}}),
        ("Nobody-v0", {}),
    ],
)
def test_demonstrations_do_not_import(tmp_path, evil, capsys, env_id, kwargs):
    place = demonstrations(tmp_path / "demos.npz", env_id, kwargs)
    assert run("train", "--demonstrations", place, "--out", tmp_path / "run") == 2
    assert "--env must be given" in capsys.readouterr().err
    assert not evil.exists()
    assert not (tmp_path / "run").exists()


def trained(tmp_path, **config):
    folder = tmp_path / "run"
    if not folder.exists():
        place = demonstrations(tmp_path / "demos.npz")
        assert run("train", "--demonstrations", place, "--out", folder, "--learner", "tabular_bc") == 0
    known = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(known | config))
    return folder


@pytest.mark.parametrize("command", ["evaluate", "certify"])
def test_the_folder_of_a_run_does_not_import(tmp_path, evil, capsys, command):
    folder = trained(tmp_path)
    assert run(command, folder) == 0
    trained(tmp_path, env="evil_module:Evil-v0")
    assert run(command, folder) == 2
    assert "--import evil_module" in capsys.readouterr().err
    trained(tmp_path, env=GRID, env_kwargs=['size="evil_module:x"'])
    assert run(command, folder) == 2
    trained(tmp_path, env=GRID, env_kwargs=3)
    assert run(command, folder) == 2
    trained(tmp_path, env=["x"], env_kwargs=[])
    assert run(command, folder) == 2
    assert not evil.exists()
    trained(tmp_path, env="evil_module:Evil-v0", env_kwargs=["size=3"])
    capsys.readouterr()
    run(command, folder, "--import", "evil_module")  # the user named it; its demonstrations are of another one
    assert evil.exists()
    assert "--import" not in capsys.readouterr().err


def test_what_the_user_types_may_import(tmp_path, evil):
    folder = trained(tmp_path)
    run("evaluate", folder, "--env", "evil_module:Evil-v0")
    assert evil.exists()


def spec(**changes):
    parts = {
        "environments": (EnvironmentSpec("grid", GRID, 0.9, 20, {"size": 3}),),
        "learners": (LearnerSpec("tabular_bc"),),
        "n_demonstrations": (2,),
        "seeds": (0,),
    }
    return BenchmarkSpec(**parts | changes)


def test_the_folder_of_a_benchmark_does_not_import(tmp_path, evil, capsys):
    folder = tmp_path / "bench"
    run_benchmark(spec(), folder, ProcessEngine(1))
    assert run("report", folder) == 0
    known = json.loads((folder / "spec.json").read_text())
    for changes in (
        {"environments": [known["environments"][0] | {"env_id": "evil_module:Evil-v0"}]},
        {"environments": [known["environments"][0] | {"kwargs": {"size": "evil_module:x"}}]},
        {"learners": [{"name": "evil_module:tabular_bc", "label": "tabular_bc"}]},
    ):
        (folder / "spec.json").write_text(json.dumps(known | changes))
        assert run("report", folder) == 2
        assert run("benchmark", "--spec", folder / "spec.json", "--out", tmp_path / "again") == 2
        assert "--import evil_module" in capsys.readouterr().err
    assert not evil.exists()
    (folder / "spec.json").write_text(json.dumps(known | {"learners": [{"name": "evil_module:tabular_bc"}]}))
    assert run("report", folder, "--import", "evil_module") == 0
    assert evil.exists()


def test_entry_points_of_modules_that_are_not_loaded_are_refused(evil):
    gym.register("Evil-v0", entry_point="evil_module:make")
    with pytest.raises(ValueError, match=r"names Evil-v0, which imports evil_module:make; give --import evil_module"):
        check_named_environment("file", "Evil-v0", {})
    check_named_environment("file", "Evil-v0", {}, ["evil_module"])
    gym.registry.pop("Evil-v0")
    gym.register("Evil-v0", entry_point=lambda: None)  # of a program of one's own: nothing is imported
    check_named_environment("file", "Evil-v0", {})
    assert not evil.exists()


def test_learners_are_named_by_texts():
    check_named_learner("file", "bc")
    check_named_learner("file", "mine.learners:bc", ["mine"])
    for wrong in ("mine:bc", "minelike:bc"):
        with pytest.raises(ValueError, match="file names a module to import"):
            check_named_learner("file", wrong, ["min"])
    with pytest.raises(ValueError, match="must name a learner by a text"):
        check_named_learner("file", 3)


def test_an_id_of_another_version_is_told_which_there_are():
    with pytest.raises(ValueError, match=r"FrozenLake-v0, which nothing .*; what is installed has FrozenLake-v1"):
        check_named_environment("a.toml", "FrozenLake-v0", {})
    with pytest.raises(ValueError, match=r"Nowhere-v0, which nothing .* if a module of yours does"):
        check_named_environment("a.toml", "Nowhere-v0", {})
