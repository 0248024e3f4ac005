"""Every registered learner can be benchmarked, also on environments whose episodes end."""

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3 as sb3

from lfd_gym.baselines import learner_names, make_learner
from lfd_gym.benchmark import Cell, EnvironmentSpec, LearnerSpec, checkpoints, experts, preset, runner
from lfd_gym.benchmark.experts import Showing, show
from lfd_gym.benchmark.presets import NOT_ON_TABLES
from lfd_gym.benchmark.runner import run_cell

LAKE = EnvironmentSpec("lake", "FrozenLake-v1", 0.95, 30)


#: Those that learn on tables.
NAMES = [name for name in learner_names() if name not in NOT_ON_TABLES]


@pytest.mark.parametrize("name", NAMES)
def test_every_learner_runs_in_a_cell(name):
    learner = make_learner(name)
    budget = max(learner.default_budget // 100, 100) if learner.budget_unit else None
    row, policy = run_cell(Cell(LAKE, LearnerSpec(name, budget=budget), n_demonstrations=10, seed=0))
    assert policy.table.shape == (17, 4)  # sixteen cells and the end
    np.testing.assert_allclose(policy.table.sum(axis=1), 1, atol=1e-6)
    assert np.isfinite(row["evaluation"]["normalised_score"])
    assert row["facts"]["certified_distance"] >= row["evaluation"]["cost_distance"]


@pytest.mark.parametrize("name", NOT_ON_TABLES)
def test_the_others_run_where_there_is_no_table(name, monkeypatch):
    monkeypatch.setattr(runner, "N_EPISODES", 10)
    monkeypatch.setattr(checkpoints, "N_CHOOSING", 2)
    settings = {"cloning_steps": 500} if name == "primal_dual_rl" else {}
    learner = LearnerSpec(name, budget=1500 if name != "grid" else 6, settings=settings)
    car = EnvironmentSpec("car", "MountainCar-v0", 0.99, expert="data:mountaincar-expert")
    row, policy = run_cell(Cell(car, learner, n_demonstrations=1, seed=0))
    assert np.isfinite(row["evaluation"]["normalised_score"])
    assert row["evaluation"]["deterministic"] == (name != "grid")
    assert policy is not None or name == "grid"


def test_presets_name_learners_and_environments_that_exist():
    assert {learner.name for learner in preset("paper").learners} == {"cutting_plane", "mirror_descent"}
    quick = preset("quick")
    assert {cell.learner.label for cell in quick.cells() if cell.environment.label == "cartpole"} == {"bc", "grid"}
    assert {cell.environment.label for cell in quick.cells() if cell.learner.label == "gail"} == {"gridworld16"}
    assert {cell.n_demonstrations for cell in quick.cells() if cell.environment.label == "pendulum"} == {1, 5}
    classic = {"cartpole", "mountaincar", "acrobot", "pendulum"}
    assert {environment.label for environment in preset("classic").environments} == classic
    assert {"bc", "gail", "grid"} <= {learner.name for learner in preset("classic").learners}
    assert {cell.learner.label for cell in preset("control").cells() if cell.environment.label == "lunarlander"} >= {
        "bc"
    }
    full = preset("full")
    assert {environment.label for environment in full.environments} == classic | {
        "gridworld16", "gridworld32", "frozenlake8", "cliffwalking", "taxi", "garnet",
    }  # fmt: skip
    on_tables = {cell.learner.name for cell in full.cells() if cell.environment.label == "taxi"}
    assert on_tables == {name for name in learner_names() if name not in NOT_ON_TABLES}
    with pytest.raises(ValueError, match="preset must be quick, paper, classic, control or full, got 'fast'"):
        preset("fast")


@pytest.fixture
def few_references(monkeypatch):
    monkeypatch.setattr(experts, "N_REFERENCES", 10)


def shown_by(expert):
    """Return what is shown once by an expert of the car."""
    return show(Showing(EnvironmentSpec("car", "MountainCar-v0", 0.99, expert=expert), ((1, 0),)))


def test_models_of_stable_baselines3_demonstrate(tmp_path, few_references):
    env = gym.make("MountainCar-v0")
    for algorithm in (sb3.PPO, sb3.DQN):
        model = algorithm("MlpPolicy", env, device="cpu", seed=3)
        model.save(tmp_path / "model.zip")
        demonstrations = shown_by(f"sb3:{tmp_path / 'model.zip'}").demonstrations[(1, 0)]
        done = model.predict(demonstrations.acted_on, deterministic=True)[0]
        np.testing.assert_array_equal(demonstrations.actions, done)


def test_an_expert_is_trained_and_is_the_same_again(few_references):
    shown, again = (shown_by("trained:dqn:600") for _ in range(2))
    assert shown.demonstrations[(1, 0)] == again.demonstrations[(1, 0)]
    assert shown.references == again.references
    acted_on = shown.demonstrations[(1, 0)].acted_on
    np.testing.assert_array_equal(shown.expert.greedy(acted_on), shown.demonstrations[(1, 0)].actions)
    assert shown.expert.to_data()  # so that the folder of the run keeps it
