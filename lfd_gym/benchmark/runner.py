"""Running a benchmark: every cell in a process of its own, every result kept.

``run_benchmark(spec, folder, engine)`` makes experts and demonstrations, once for all learners, and runs the cells that
the folder does not hold yet. A cell that fails, hangs or runs out of memory is recorded with its error, and the rest
goes on. Killed at any moment and started again, a run ends with the results of a run that was never disturbed.
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
import warnings
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
from tqdm import tqdm

from lfd_gym.assessment.certificate import certify
from lfd_gym.assessment.evaluation import Evaluation, evaluate
from lfd_gym.assessment.statements import Certificate
from lfd_gym.baselines import make_learner
from lfd_gym.baselines.learner import Learner, LearningResult
from lfd_gym.benchmark.checkpoints import best_by_episodes, best_on_table, takes_best_actions
from lfd_gym.benchmark.experts import References, Showing, Shown, if_kept, show, side_by_side
from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.benchmark.spec import BenchmarkSpec, Cell, EnvironmentSpec, LearnerSpec
from lfd_gym.benchmark.tasks import cell_task
from lfd_gym.engines import Engine
from lfd_gym.learning import learn
from lfd_gym.policies.conversion import policy_table
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import TablePolicy
from lfd_gym.resources import machine, versions
from lfd_gym.task import Access, Task
from lfd_gym.validation import LfdGymWarning

#: Certificates of a benchmark hold with this probability each.
CONFIDENCE = 0.95
#: Episodes that a policy is judged by where the model is not known, and as many for its certificate.
N_EPISODES = 100
#: A rehearsal plays at least so many episodes: learners with networks play four side by side.
_FEWEST_EPISODES = 5
#: Learners, and environments without a table, that this process has been through once.
_REHEARSED: set[tuple[str, str]] = set()


@dataclass(frozen=True, eq=False)
class Job:
    """A cell, and what is shown in it."""

    cell: Cell
    shown: Shown


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
    # Seed by seed: a run that is broken off has compared all learners, if on fewer seeds.
    first = {seed: k for k, seed in enumerate(spec.seeds)}
    pending = sorted((cell for cell in spec.cells() if cell.id not in done), key=lambda cell: first[cell.seed])
    total = len(spec.cells())
    pace = 0.1 if sys.stderr.isatty() else 10.0  # seconds between looks: a log needs fewer than a screen
    with tqdm(total=total, initial=len(done), unit="run", disable=not progress_bar, mininterval=pace) as bar:
        bar.set_postfix_str("experts and demonstrations")
        shown, refused = _shown(results, pending, engine)
        for cell in pending:
            if cell.environment.label in refused:
                results.append(_heading(cell, refused[cell.environment.label]))
                bar.update()
        jobs = [Job(cell, shown[cell.environment.label]) for cell in pending if cell.environment.label in shown]
        for job, outcome in engine.run(run_job, jobs, spec.time_limit, prepare_job):
            row, policy = ({}, None) if outcome.error else outcome.value
            results.append(_heading(job.cell, outcome.error) | row, policy)
            bar.set_postfix_str(job.cell.id, refresh=False)
            bar.update()
    results.put_in_order()
    return results


def _shown(results: ResultsFolder, pending: list[Cell], engine: Engine) -> tuple[dict[str, Shown], dict[str, str]]:
    """Return what is shown in each environment, as the folder keeps it or made now; and where that failed, why."""
    found: dict[str, Shown] = {}
    missing: list[Showing] = []
    for environment in dict.fromkeys(cell.environment.label for cell in pending):
        cells = [cell for cell in pending if cell.environment.label == environment]
        wanted = tuple(dict.fromkeys((cell.n_demonstrations, cell.seed) for cell in cells))
        kept = results.shown(environment, wanted)
        if kept is None:
            missing.append(Showing(cells[0].environment, wanted))
        else:
            found[environment] = kept
    refused = {}
    for showing, outcome in engine.run(show, missing, results.spec.time_limit) if missing else ():
        if outcome.error:
            refused[showing.environment.label] = f"nothing could be demonstrated: {outcome.error}"
        else:
            results.keep_shown(showing.environment.label, outcome.value)
            found[showing.environment.label] = outcome.value
    return found, refused


def prepare_job(job: Job) -> None:
    """Import and compile what the learner of a cell needs, which may take longer than learning: no time of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if ":" not in job.cell.learner.name:
            has_model = cell_task(job.cell, job.shown).access == "model"
            _rehearse(job.cell.learner.name, None if has_model else job.cell.environment)


def run_job(job: Job) -> tuple[dict[str, Any], Policy | None]:
    """Run one cell with what is shown in it."""
    return run_cell(job.cell, job.shown)


def run_cell(cell: Cell, shown: Shown | None = None) -> tuple[dict[str, Any], Policy | None]:
    """Run one cell and return its row (without the heading) and its policy, if a file can keep it."""
    with warnings.catch_warnings(record=True) as caught:
        # What imitation tells its developers is nothing for the user of a benchmark.
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", LfdGymWarning)
        row, policy = _run_cell(cell, shown)
    said = dict.fromkeys(str(each.message) for each in caught if issubclass(each.category, LfdGymWarning))
    return row | {"warnings": list(said)}, policy


def _run_cell(cell: Cell, shown: Shown | None) -> tuple[dict[str, Any], Policy | None]:
    task = cell_task(cell, shown)
    learner = make_learner(cell.learner.name, **cell.learner.settings).quiet()
    learned = learn(task, learner, rng=cell.learner_stream(), budget=cell.learner.budget)
    if task.access == "model":
        policy: Policy = TablePolicy(policy_table(learned.policy, task.model))
        evaluation = evaluate(policy, task, resources=learned.resources)
        certificate = certify(policy, task, delta=1 - CONFIDENCE)
        best = best_on_table(learned.checkpoints, task, evaluation)
    else:
        policy, references = learned.policy, None if shown is None else shown.references
        evaluation, certificate = _judged(cell, task, learned, references)
        best = None
        if references is not None:
            best = best_by_episodes(
                learned.checkpoints, task, evaluation, references, N_EPISODES, cell.checkpoint_stream
            )
    weights = learned.cost_weights
    facts = {
        **learned.facts,
        "certified_distance": certificate.cost_distance_bound,
        "certified_about": certificate.about,
        "certified_found": certificate.cost_distance,
        "certified_parts": dict(certificate.strongest.parts),
        "certificate_empty": certificate.empty,
        "random_distance": certificate.random_distance,
        "cost_weights": None if weights is None else weights.tolist(),
        "true_weights": _true_weights(task),
    }
    row = {
        "knows": knows(task, learner, learned),
        "evaluation": evaluation.to_dict(),
        "best": None if best is None else best.to_dict(),
        "facts": facts,
    }
    return _json({**row, "provenance": _provenance(cell)}), if_kept(policy)


def _judged(
    cell: Cell, task: Task, learned: LearningResult, references: References | None
) -> tuple[Evaluation, Certificate]:
    """Judge a policy by episodes, the same ones for every learner; networks take their best actions."""
    rng = cell.judging_stream()
    judged = replace(task, env=side_by_side(cell.environment, N_EPISODES), expert=None)
    best = takes_best_actions(learned.policy)
    evaluation = evaluate(
        learned.policy, judged, resources=learned.resources, deterministic=best, n_rollouts=N_EPISODES, rng=rng
    )
    certificate = certify(
        learned.policy, judged, delta=1 - CONFIDENCE, deterministic=best, n_rollouts=N_EPISODES, rng=rng
    )
    if references is None or evaluation.episode_return is None or evaluation.sampling is None:
        return evaluation, certificate
    ends = evaluation.sampling.episode_return or ()
    low, high = ([references.score(end) for end in ends] or [None, None])[:2]
    interval = None if low is None or high is None else (low, high)
    scored = replace(
        evaluation,
        normalised_score=references.score(evaluation.episode_return),
        expert_return=references.expert_return,
        random_return=references.random_return,
        sampling=replace(evaluation.sampling, normalised_score=interval),
    )
    return scored, certificate


def knows(task: Task, learner: Learner, learned: LearningResult) -> dict[str, Any]:
    """Say what a learner was told: the access it asks for or made use of, and whose costs it weighed, if any."""
    used: Access = "demonstrations"
    steps = learned.resources
    if steps.uses_model:
        used = "model"
    elif steps.oracle_calls:
        used = "simulator"
    elif steps.env_steps:
        used = "episodes"
    order: tuple[Access, ...] = get_args(Access)
    access = min(used, learner.needs, key=order.index)  # the first knows most
    costs = None
    if learned.cost_weights is not None and task.costs is not None:
        costs = "generic" if task.costs.chosen_from_demonstrations else "told"
    return {"access": access, "costs": costs, "expert": learner.asks_expert}


def _true_weights(task: Task) -> list[float] | None:
    """Return the weights that make the true cost, if it is one of the costs."""
    if task.true_cost is None or task.costs is None or task.costs.table is None:
        return None
    same = (task.cost_table == task.true_cost.table).all(axis=0)
    return np.eye(same.size)[same.argmax()].tolist() if same.any() else None


def _rehearse(name: str, environment: EnvironmentSpec | None) -> None:
    """Run a learner of this package on a tiny problem, once in a process.

    What it imports and compiles, which may take longer than learning, then does not count as its time. Where there is
    a table that is a tiny gridworld; elsewhere the environment itself, with a hundredth of the usual budget.
    """
    rehearsed = (name, "" if environment is None else environment.label)
    if rehearsed in _REHEARSED:
        return
    tiny = EnvironmentSpec("tiny", "lfd_gym/StochasticGridworld-v0", 0.9, 10, {"size": 3})
    cell = Cell(environment or tiny, LearnerSpec(name), 2 if environment is None else 1, 0)
    learner = make_learner(name, **({"n_points": 7} if name == "grid" else {})).quiet()
    task = cell_task(cell)
    least = 100 if environment is None else 6
    if environment is not None and learner.budget_unit == "environment steps":
        least = _FEWEST_EPISODES * task.episode_length
    budget = max(learner.default_budget // 100, least) if learner.budget_unit else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LfdGymWarning)
        learn(task, learner, rng=cell.learner_stream(), budget=budget)
    _REHEARSED.add(rehearsed)


def _json(value: Any) -> Any:
    """Return results as JSON has them: numbers that are none become null."""
    if isinstance(value, dict):
        return {key: _json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_json(part) for part in value]
    if isinstance(value, np.generic | np.ndarray):
        return _json(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
