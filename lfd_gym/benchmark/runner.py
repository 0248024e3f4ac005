"""Running a benchmark: every cell in a process of its own, every result kept.

``run_benchmark(spec, folder, engine)`` runs the cells that the folder does not hold yet. A cell that fails, hangs or
runs out of memory is recorded with its error, and the rest goes on. Killed at any moment and started again, a run ends
with the results of a run that was never disturbed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import subprocess
import sys
import warnings
from dataclasses import asdict
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tqdm import tqdm

from lfd_gym.assessment.evaluation import evaluate
from lfd_gym.baselines import Learner, Task, make_learner, run_learner
from lfd_gym.benchmark.engines import Engine
from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.benchmark.spec import BenchmarkSpec, Cell, EnvironmentSpec, LearnerSpec
from lfd_gym.benchmark.world import World
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.estimation import feature_expectations
from lfd_gym.policies.policies import policy_table
from lfd_gym.validation import FloatArray

#: Certificates of a benchmark hold with this probability each.
CONFIDENCE = 0.95

_PACKAGES = (
    "lfd-gym",
    "numpy",
    "scipy",
    "numba",
    "gymnasium",
    "torch",
    "stable-baselines3",
    "imitation",
    "joblib",
    "ray",
)


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
        for cell, outcome in engine.run(run_cell, pending, spec.time_limit):
            row, policy = ({}, None) if outcome.error else outcome.value
            results.append(_heading(cell, outcome.error) | row, policy)
            bar.set_postfix_str(cell.id, refresh=False)
            bar.update()
    results.put_in_order()
    return results


def run_cell(cell: Cell) -> tuple[dict[str, Any], FloatArray]:
    """Run one cell and return its row (without the heading) and its policy, (S, A)."""
    with warnings.catch_warnings():
        # What imitation tells its developers would drown the progress of a benchmark.
        warnings.filterwarnings("ignore", module=r"imitation\.")
        return _run_cell(cell)


def _run_cell(cell: Cell) -> tuple[dict[str, Any], FloatArray]:
    if ":" not in cell.learner.name:
        _rehearse(cell.learner.name)
    world = World.from_spec(cell.environment)
    demonstrations = world.demonstrations(cell)
    learner = _make_learner(cell.learner)
    learned = run_learner(learner, _task(world, demonstrations, learner), cell.learner_stream(), cell.learner.budget)
    policy = policy_table(learned.policy, world.mdp)
    evaluation = evaluate(policy, world.mdp, world.cost_features, expert=world.expert, resources=learned.resources)
    estimate = feature_expectations(demonstrations, world.cost_features, discount=cell.environment.discount)
    excess = evaluation.expected_costs - estimate.values + estimate.radius(1 - CONFIDENCE)
    weights = learned.cost_weights
    facts = {
        **learned.facts,
        "certified_distance": float(excess.max()),
        "cost_weights": None if weights is None else weights.tolist(),
    }
    return {"evaluation": evaluation.to_dict(), "facts": facts, "provenance": _provenance(cell)}, policy


@cache
def _rehearse(name: str) -> None:
    """Run a learner of this package on a tiny problem, once in a process.

    What it imports and compiles, which may take longer than learning, then does not count as its time.
    """
    tiny = Cell(
        EnvironmentSpec("tiny", "lfd_gym/StochasticGridworld-v0", 0.9, 10, {"size": 3}), LearnerSpec(name), 2, 0
    )
    world = World.from_spec(tiny.environment)
    learner = make_learner(name)
    budget = None if learner.default_budget is None else max(learner.default_budget // 100, 100)
    run_learner(learner, _task(world, world.demonstrations(tiny), learner), tiny.learner_stream(), budget)


def _task(world: World, demonstrations: Demonstrations, learner: Learner) -> Task:
    expert = world.expert if learner.queries_expert else None
    return Task(demonstrations, world.env, world.mdp.discount, world.cost_features, world.mdp, expert)


def _make_learner(spec: LearnerSpec) -> Learner:
    module, _, name = spec.name.rpartition(":")
    if module:
        import_module(module)
    return make_learner(name, **spec.settings)


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
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": _versions(),
    }


@cache
def _versions() -> dict[str, str]:
    installed = {dist.metadata["Name"].lower(): dist.version for dist in importlib.metadata.distributions()}
    return {name: installed[name] for name in _PACKAGES if name in installed}


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
