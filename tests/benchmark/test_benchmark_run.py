"""A benchmark runs, resumes after a kill with the results of an undisturbed run, and keeps its failures."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from benchmark_rows import Here, deterministic_part

import lfd_gym as lfd
from lfd_gym.benchmark import (
    BenchmarkSpec,
    EnvironmentSpec,
    LearnerSpec,
    ProcessEngine,
    ResultsFolder,
    format_tables,
    run_benchmark,
    summarise,
)
from lfd_gym.benchmark.report import write_report
from lfd_gym.benchmark.runner import Job, _true_weights

GRID = EnvironmentSpec("grid5", "lfd_gym/StochasticGridworld-v0", 0.9, 30, {"size": 5})
LAKE = EnvironmentSpec("lake", "FrozenLake-v1", 0.95, 50)


def spec(**changes):
    axes = {
        "environments": (GRID, LAKE),
        "learners": (LearnerSpec("expert"), LearnerSpec("random"), LearnerSpec("tabular_bc")),
        "n_demonstrations": (2, 20),
        "seeds": (0, 1, 2),
    }
    return BenchmarkSpec(**(axes | changes))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run_benchmark(spec(), tmp_path_factory.mktemp("run"), ProcessEngine(2), progress_bar=False)


def test_rows_make_sense(undisturbed):
    rows = undisturbed.rows()
    assert len(rows) == 36
    assert {row["status"] for row in rows} == {"ok"}
    for row in rows:
        score = row["evaluation"]["normalised_score"]
        assert score == pytest.approx({"expert": 1.0, "random": 0.0}.get(row["learner"], score), abs=1e-9)
        assert row["facts"]["certified_distance"] >= row["evaluation"]["cost_distance"]
        assert row["facts"]["true_weights"] == [1.0, 0.0, 0.0, 0.0, 0.0]  # both environments list it first
        assert {"config", "revision", "machine", "versions"} == set(row["provenance"])
    assert len({row["provenance"]["config"] for row in rows}) == 36
    assert undisturbed.policy(rows[0]["cell"]).table.sum(axis=1) == pytest.approx(1.0)


def test_config_hash_sees_every_setting(undisturbed, tmp_path):
    longer = spec(environments=(replace(GRID, horizon=31),), learners=(LearnerSpec("expert"),))
    changed = run_benchmark(longer, tmp_path, ProcessEngine(1), progress_bar=False).rows()
    known = {row["cell"]: row["provenance"]["config"] for row in undisturbed.rows()}
    assert all(row["provenance"]["config"] != known[row["cell"]] for row in changed)


def test_results_do_not_depend_on_order_or_workers(undisturbed, tmp_path):
    turned = spec(seeds=(2, 0, 1), learners=(LearnerSpec("tabular_bc"), LearnerSpec("expert"), LearnerSpec("random")))
    other = run_benchmark(turned, tmp_path, ProcessEngine(1), progress_bar=False)
    by_cell = {row["cell"]: row for row in deterministic_part(other.rows())}
    assert deterministic_part(undisturbed.rows()) == [by_cell[row["cell"]] for row in undisturbed.rows()]


class Noting(Here):
    """Runs everything here, and notes what came first."""

    def __init__(self):
        self.noted = []

    def run(self, function, items, time_limit, prepare=None):
        self.noted += [item.cell for item in items if isinstance(item, Job)]
        return super().run(function, items, time_limit, prepare)


def test_all_learners_are_compared_on_one_seed_before_the_next(tmp_path):
    engine = Noting()
    asked = spec(seeds=(2, 0), n_demonstrations=(2,), environments=(GRID,))
    results = run_benchmark(asked, tmp_path, engine, progress_bar=False)
    order = [(cell.seed, cell.learner.label) for cell in engine.noted]
    assert order == [(seed, learner) for seed in (2, 0) for learner in ("expert", "random", "tabular_bc")]
    assert [row["cell"] for row in results.rows()] == [cell.id for cell in asked.cells()]


def test_killed_and_resumed_it_ends_like_an_undisturbed_run(undisturbed, tmp_path):
    (tmp_path / "spec.json").write_text(json.dumps(spec().to_dict()))
    code = """
import sys
from lfd_gym.benchmark import ProcessEngine, read_spec, run_benchmark
run_benchmark(read_spec(sys.argv[1]), sys.argv[2], ProcessEngine(2))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "spec.json"), str(tmp_path / "out")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    results = tmp_path / "out" / "results.jsonl"
    deadline = time.time() + 120
    while process.poll() is None and time.time() < deadline and not (results.exists() and results.stat().st_size > 0):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = len(ResultsFolder.open(tmp_path / "out").rows())
    assert 0 < before < 36
    resumed = run_benchmark(spec(), tmp_path / "out", ProcessEngine(2), progress_bar=False)
    assert deterministic_part(resumed.rows()) == deterministic_part(undisturbed.rows())
    for row in resumed.rows():
        np.testing.assert_array_equal(resumed.policy(row["cell"]), undisturbed.policy(row["cell"]))


@pytest.mark.filterwarnings("error:No artists with labels")
def test_a_failing_learner_is_recorded_and_can_be_retried(tmp_path):
    broken = spec(environments=(GRID,), learners=(LearnerSpec("expert"), LearnerSpec("no_such_learner")), seeds=(0,))
    results = run_benchmark(broken, tmp_path, ProcessEngine(1), progress_bar=False)
    failed = [row for row in results.rows() if row["status"] == "failed"]
    assert [row["learner"] for row in failed] == ["no_such_learner"] * 2
    assert "there is no learner 'no_such_learner'" in failed[0]["error"]
    assert "no_such_learner" in write_report(tmp_path).read_text()
    again = run_benchmark(broken, tmp_path, ProcessEngine(1), retry_failed=True, progress_bar=False)
    assert len(again.rows()) == 4


def test_environments_and_learners_of_others_are_found_by_their_module(tmp_path, monkeypatch):
    module = """
import gymnasium as gym, numpy as np
from lfd_gym.baselines import Learner, LearningResult, register_learner
from lfd_gym.envs import TabularEnv

def swap():
    return TabularEnv(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), [1.0, 0.0], [[0.5], [-0.5]])

class Lazy(Learner):
    def learn(self, task, budget, rng):
        return LearningResult(np.ones((2, 1)))

gym.register("Swap-v0", entry_point=swap, max_episode_steps=10)
register_learner("lazy", Lazy)
"""
    (tmp_path / "their_module.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    theirs = spec(
        environments=(EnvironmentSpec("swap", "their_module:Swap-v0", 0.5, 10),),
        learners=(LearnerSpec("their_module:lazy"),),
    )
    rows = run_benchmark(theirs, tmp_path / "run", ProcessEngine(2), progress_bar=False).rows()
    assert {row["status"] for row in rows} == {"ok"}
    assert rows[0]["cell"] == "swap/lazy/m=2/seed=0"
    assert rows[0]["evaluation"]["true_gap"] == pytest.approx(0.0)


def test_summary_orders_by_score(undisturbed):
    summary = summarise(undisturbed.rows())
    assert [entry.learner for entry in summary] == ["expert", "tabular_bc", "random"]
    assert summary[1].score.low <= summary[1].score.value <= summary[1].score.high
    assert summary[1].n_runs == 12
    assert (summary[0].n_reached, summary[0].n_groups, summary[2].n_reached) == (4, 4, 0)
    assert summary[0].knows == "the expert"
    assert summary[1].knows == "data only"


def test_tables_show_every_environment_number_and_learner(undisturbed):
    blocks = format_tables(undisturbed.rows()).split("\n\n")
    assert [block.partition(":")[0] for block in blocks] == ["grid5", "lake"]
    head, *lines = [line.split() for line in blocks[0].splitlines()[1:]]
    assert head == ["learner", "knows", "m=2", "m=20", "steps", "CPU", "s"]
    assert [line[0] for line in lines] == ["expert", "tabular_bc", "random"]
    assert lines[0][3:7] == ["1.000", "(1.000)", "1.000", "(1.000)"]


def test_report_is_one_page_with_everything_inside(undisturbed):
    page = write_report(undisturbed.path).read_text()
    assert page.count("<svg") >= 6
    assert page.count("data:image/png;base64,") == 3  # the expert's policy, and where two learners differ from it
    assert "as the expert everywhere" in page
    row = undisturbed.rows()[-1]["facts"]
    assert row["certified_found"] + sum(row["certified_parts"].values()) == pytest.approx(row["certified_distance"])
    for part in ("m2part0", "m20part0"):
        assert f'id="parts-grid5~tabular_bc~{part}"' in page
    for outside in ('src="http', 'href="http', "@import", "url(http"):
        assert outside not in page
    assert {path.suffix for path in (undisturbed.path / "figures").iterdir()} == {".png", ".svg"}
    for beside in ("results.jsonl", "spec.json", "figures/", "policies/", "demonstrations/"):
        assert f'href="{beside}"' in page


def test_the_true_cost_may_come_anywhere_among_the_costs_or_not_at_all():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=3)
    table = env.unwrapped.cost_features
    assert _true_weights(lfd.Task(env, discount=0.9, costs=table[:, [2, 0, 1]])) == [0.0, 1.0, 0.0]
    assert _true_weights(lfd.Task(env, discount=0.9, costs=table[:, [2, 1]])) is None
