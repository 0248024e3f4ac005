"""What others add without touching the package: a class of costs, and a learner."""

import gymnasium as gym
import numpy as np
import pytest
from l1_ball import L1Ball

import lfd_gym as lfd
from lfd_gym.baselines import learner as registry
from lfd_gym.benchmark import BenchmarkSpec, Cell, EnvironmentSpec, LearnerSpec, ProcessEngine, run_benchmark
from lfd_gym.benchmark.report import write_report
from lfd_gym.benchmark.runner import run_cell
from lfd_gym.cli import main
from lfd_gym.testing import check_learner

GRID = "lfd_gym/StochasticGridworld-v0"


# -- a class of costs: the hull of ±e_i -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def task():
    """The expert is optimal for *minus* the second cost, which no cost of the simplex explains."""
    env = gym.make(GRID, size=5, cost_seed=2)
    table = env.unwrapped.cost_features
    expert = lfd.FiniteMDP.from_env(env, 0.9).optimal_policy(-table[:, 1])
    demos = lfd.collect(env, expert, 200, 80, np.random.default_rng(0))
    costs = lfd.TableCosts(table, 4, weights=L1Ball())
    return lfd.Task(env, demos, discount=0.9, costs=costs, true_cost=-table[:, 1], expert=expert)


def test_the_exact_solver_takes_it(task):
    """The same problem over the simplex, with every cost and its negative."""
    rho = task.expert_features().values
    ours = lfd.solve_cutting_plane(task.model, task.costs, rho)
    both = lfd.solve_cutting_plane(task.model, np.hstack([task.cost_table, -task.cost_table]), np.append(rho, -rho))
    assert ours.status == both.status == "optimal"
    assert ours.apprentice_value == pytest.approx(both.apprentice_value, abs=1e-7)
    assert np.abs(ours.cost_weights).sum() <= 1 + 1e-9
    assert ours.cost_weights[1] < -0.5


def test_algorithm_1_takes_it(task):
    """Ten times the batches of draws: the residual falls like 1/√N, and the policy comes nearer."""
    learner = registry.make_learner("mirror_descent").quiet()
    runs = [lfd.learn(task, learner, rng=np.random.default_rng(0), budget=budget) for budget in (300, 3000)]
    assert all(np.abs(run.cost_weights).sum() <= 1 + 1e-9 for run in runs)
    few, many = (run.facts["residual"] for run in runs)
    assert 2 < few / many < 10
    few, many = (lfd.evaluate(run.policy, task).cost_distance for run in runs)
    assert many < few


def test_certificates_take_it(task):
    result = lfd.learn(task, rng=np.random.default_rng(0))
    evaluation, certificate = lfd.evaluate(result.policy, task), lfd.certify(result.policy, task)
    apart = task.expected_costs(result.policy).values - task.expected_costs(task.expert).values
    assert evaluation.cost_distance == pytest.approx(np.abs(apart).max())
    assert evaluation.cost_distance <= certificate.cost_distance_bound
    assert evaluation.normalised_score > 0.9


def test_a_cell_of_a_benchmark_takes_it():
    def signed_grid():
        env = gym.make(GRID, size=4).unwrapped
        env.costs = lfd.TableCosts(env.cost_features, 4, weights=L1Ball())
        return env

    gym.register("SignedGrid-v0", entry_point=signed_grid, max_episode_steps=50)
    try:
        environment = EnvironmentSpec("signed", "SignedGrid-v0", 0.9, 50)
        row, _ = run_cell(Cell(environment, LearnerSpec("cutting_plane"), n_demonstrations=50, seed=0))
    finally:
        del gym.registry["SignedGrid-v0"]
    assert row["facts"]["status"] == "optimal"
    assert row["evaluation"]["cost_distance"] <= row["facts"]["certified_distance"]
    assert row["evaluation"]["normalised_score"] > 0.9


# -- a learner in ten lines -------------------------------------------------------------------------------------------

LEARNER = """
import numpy as np
from lfd_gym.baselines import Learner, LearningResult, register_learner

class FavouriteAction(Learner):
    def learn(self, task, budget, rng):
        favourite = np.bincount(task.demonstrations.actions, minlength=task.action_space.n).argmax()
        return LearningResult(np.eye(task.action_space.n)[[favourite] * task.observation_space.n])

register_learner("favourite_action", FavouriteAction)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    assert len(LEARNER.strip().splitlines()) <= 10
    (tmp_path / "ten_lines.py").write_text(LEARNER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_LEARNERS", dict(registry._LEARNERS))
    monkeypatch.delitem(__import__("sys").modules, "ten_lines", raising=False)
    return "ten_lines:favourite_action"


def test_the_public_check_takes_it(module):
    check_learner(registry.make_learner(module))
    assert "favourite_action" in registry.learner_names()


def test_the_command_line_takes_it(module, tmp_path, capsys):
    demos = str(tmp_path / "demos.npz")
    assert main(["collect", "--env", GRID, "--out", demos, "--trajectories", "5", "--env-kwargs", "size=4"]) == 0
    assert main(["train", "--demonstrations", demos, "--out", str(tmp_path / "run"), "--learner", module]) == 0
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    assert "normalised score" in capsys.readouterr().out


def test_benchmark_and_report_take_it(module, tmp_path):
    spec = BenchmarkSpec(
        environments=(EnvironmentSpec("grid", GRID, 0.9, 20, {"size": 4}),),
        learners=(LearnerSpec("expert"), LearnerSpec(module)),
        n_demonstrations=(3,),
        seeds=(0,),
    )
    rows = run_benchmark(spec, tmp_path / "runs", ProcessEngine(1), progress_bar=False).rows()
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert "favourite_action" in write_report(tmp_path / "runs", imported=["ten_lines"]).read_text()
