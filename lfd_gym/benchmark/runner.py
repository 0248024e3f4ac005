"""Running a benchmark: every cell in a process of its own, every result kept.

``run_benchmark(spec, folder, engine)`` runs the cells that the folder does not hold yet. A cell that fails, hangs or
runs out of memory is recorded with its error, and the rest goes on. Killed at any moment and started again, a run ends
with the results of a run that was never disturbed.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import warnings
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from lfd_gym.assessment.certificate import certify
from lfd_gym.assessment.evaluation import evaluate
from lfd_gym.baselines import make_learner
from lfd_gym.benchmark.engines import Engine
from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.benchmark.spec import BenchmarkSpec, Cell, EnvironmentSpec, LearnerSpec
from lfd_gym.benchmark.tasks import cell_task
from lfd_gym.learning import learn
from lfd_gym.policies.conversion import policy_table
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import TablePolicy
from lfd_gym.resources import machine, versions
from lfd_gym.task import Task

#: Certificates of a benchmark hold with this probability each.
CONFIDENCE = 0.95


def run_benchmark(
    spec: BenchmarkSpec,
    folder: str | Path,
    engine: Engine,
    *,
    retry_failed: bool = False,
    progress_bar: bool = True,
) -> ResultsFolder:
    """Run what is missing of ``spec`` in ``folder`` and return the folder with all results.

    Parameters
    ----------
    spec
        What to run.
    folder
        Where results are kept; made if need be. A folder with another spec is refused.
    engine
        `ProcessEngine` or `RayEngine`.
    retry_failed
        Whether cells that failed before are run again.
    progress_bar
        Whether to show one, with the estimated time left.
    """
    results = ResultsFolder(folder, spec)
    if retry_failed:
        results.forget_failures()
    done = {row["cell"] for row in results.rows()}
    pending = [cell for cell in spec.cells() if cell.id not in done]
    total = len(spec.cells())
    pace = 0.1 if sys.stderr.isatty() else 10.0  # seconds between looks: a log needs fewer than a screen
    with tqdm(total=total, initial=len(done), unit="run", disable=not progress_bar, mininterval=pace) as bar:
        for cell, outcome in engine.run(run_cell, pending, spec.time_limit, prepare_cell):
            row, policy = ({}, None) if outcome.error else outcome.value
            results.append(_heading(cell, outcome.error) | row, policy)
            bar.set_postfix_str(cell.id, refresh=False)
            bar.update()
    results.put_in_order()
    return results


def prepare_cell(cell: Cell) -> None:
    """Import and compile what the learner of a cell needs, which may take longer than learning: no time of its own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"imitation\.")
        if ":" not in cell.learner.name:
            _rehearse(cell.learner.name)


def run_cell(cell: Cell) -> tuple[dict[str, Any], Policy]:
    """Run one cell and return its row (without the heading) and its policy."""
    with warnings.catch_warnings():
        # What imitation tells its developers would drown the progress of a benchmark.
        warnings.filterwarnings("ignore", module=r"imitation\.")
        return _run_cell(cell)


def _run_cell(cell: Cell) -> tuple[dict[str, Any], Policy]:
    task = cell_task(cell)
    learner = make_learner(cell.learner.name, **cell.learner.settings).quiet()
    learned = learn(task, learner, rng=cell.learner_stream(), budget=cell.learner.budget)
    policy = TablePolicy(policy_table(learned.policy, task.model))
    evaluation = evaluate(policy, task, resources=learned.resources)
    weights = learned.cost_weights
    facts = {
        **learned.facts,
        "certified_distance": certify(policy, task, delta=1 - CONFIDENCE).cost_distance_bound,
        "cost_weights": None if weights is None else weights.tolist(),
        "true_weights": _true_weights(task),
    }
    return {"evaluation": evaluation.to_dict(), "facts": facts, "provenance": _provenance(cell)}, policy


def _true_weights(task: Task) -> list[float] | None:
    """Return the weights that make the true cost, if it is one of the costs."""
    same = (task.cost_table == task.true_cost.table).all(axis=0)
    return np.eye(same.size)[same.argmax()].tolist() if same.any() else None


@cache
def _rehearse(name: str) -> None:
    """Run a learner of this package on a tiny problem, once in a process.

    What it imports and compiles, which may take longer than learning, then does not count as its time.
    """
    tiny = Cell(
        EnvironmentSpec("tiny", "lfd_gym/StochasticGridworld-v0", 0.9, 10, {"size": 3}), LearnerSpec(name), 2, 0
    )
    learner = make_learner(name).quiet()
    budget = max(learner.default_budget // 100, 100) if learner.budget_unit else None
    learn(cell_task(tiny), learner, rng=tiny.learner_stream(), budget=budget)


def _heading(cell: Cell, error: str) -> dict[str, Any]:
    return {
        "cell": cell.id,
        "environment": cell.environment.label,
        "learner": cell.learner.label,
        "n_demonstrations": cell.n_demonstrations,
        "seed": cell.seed,
        "status": "failed" if error else "ok",
        "error": error,
    }


def _provenance(cell: Cell) -> dict[str, Any]:
    config = json.dumps(asdict(cell), sort_keys=True, default=dict)
    return {
        "config": hashlib.sha256(config.encode()).hexdigest()[:16],
        "revision": _revision(),
        "machine": machine(),
        "versions": versions(),
    }


@cache
def _revision() -> str:
    """Return the git revision of the sources, with a plus if they were changed since; unknown outside a checkout."""
    root = Path(__file__).parents[1]
    try:
        name = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty=+"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name.stdout.strip()
