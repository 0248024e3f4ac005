"""The summary table of a benchmark: one line per learner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lfd_gym.assessment.statistics import Interval, run_interval
from lfd_gym.benchmark.spec import named_stream
from lfd_gym.validation import FloatArray

Row = dict[str, Any]


@dataclass(frozen=True)
class SummaryRow:
    """What a learner reached, over all its successful runs.

    Attributes
    ----------
    learner
        Its label.
    score
        Interquartile mean of the normalised score with its 95 % interval over runs, see `run_interval`.
    true_gap, cost_distance, agreement, samples, seconds
        Means over runs; samples are environment steps plus generative draws.
    n_runs
        How many runs succeeded.
    """

    learner: str
    score: Interval
    true_gap: float
    cost_distance: float
    agreement: float
    samples: float
    seconds: float
    n_runs: int


def summarise(rows: Sequence[Row]) -> list[SummaryRow]:
    """Summarise successful rows by learner, best score first."""
    learners = list(dict.fromkeys(row["learner"] for row in rows))
    summary = [_summary_of(learner, [row for row in rows if row["learner"] == learner]) for learner in learners]
    return sorted(summary, key=lambda entry: -entry.score.value)


def format_summary(summary: Sequence[SummaryRow]) -> str:
    """Return the summary as a text table."""
    names = ("learner", "score (IQM)", "95 % interval of runs", "true gap", "samples", "seconds", "runs")
    lines = ["{:18} {:>11} {:>22} {:>9} {:>12} {:>8} {:>5}".format(*names)]
    for entry in summary:
        interval = interval_text(entry.score)
        lines.append(
            f"{entry.learner:18} {entry.score.value:11.3f} {interval:>22} {entry.true_gap:+9.4f} "
            f"{entry.samples:12,.0f} {entry.seconds:8.2f} {entry.n_runs:5d}"
        )
    return "\n".join(lines)


def interval_text(interval: Interval) -> str:
    """Return the ends of an interval, with the number of runs it rests on; one run has none."""
    if interval.n_runs == 1:
        return "one run"
    return f"[{interval.low:.3f}, {interval.high:.3f}] of {interval.n_runs}"


def samples_of(row: Row) -> float:
    """Return the environment steps plus generative draws of a run."""
    used = row["evaluation"]["resources"]
    return float(used["env_steps"] + used["oracle_calls"])


def seconds_of(row: Row) -> float:
    """Return the wall seconds of a run's learning."""
    return float(row["evaluation"]["resources"]["wall_seconds"])


def _summary_of(learner: str, rows: Sequence[Row]) -> SummaryRow:
    def mean(value_of: Callable[[Row], float]) -> float:
        return float(np.mean([value_of(row) for row in rows]))

    return SummaryRow(
        learner=learner,
        score=_score_interval(learner, rows),
        true_gap=mean(lambda row: row["evaluation"]["true_gap"]),
        cost_distance=mean(lambda row: row["evaluation"]["cost_distance"]),
        agreement=mean(lambda row: row["evaluation"]["agreement"]),
        samples=mean(samples_of),
        seconds=mean(seconds_of),
        n_runs=len(rows),
    )


def _score_interval(learner: str, rows: Sequence[Row]) -> Interval:
    return run_interval(_score_matrix(rows), named_stream(f"bootstrap of {learner}"))


def _score_matrix(rows: Sequence[Row]) -> FloatArray:
    """Return the (runs, tasks) scores; where runs failed, every task keeps as many runs as the one with the fewest."""
    tasks: dict[tuple[str, int], list[float]] = {}
    for row in sorted(rows, key=lambda row: int(row["seed"])):
        task = (row["environment"], row["n_demonstrations"])
        tasks.setdefault(task, []).append(row["evaluation"]["normalised_score"])
    fewest = min(len(scores) for scores in tasks.values())
    return np.array([scores[:fewest] for scores in tasks.values()]).T
