"""The figure of the paper's Appendix E, from benchmark results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lfd_gym.benchmark import figures
from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.paper.curve_files import save_figure, write_table
from lfd_gym.validation import FloatArray

#: The columns of the paper's data file.
COLUMNS = ("n_traj", "rho_mean", "rho_std", "rho_min", "rho_max")


def write_figure(results: ResultsFolder) -> list[Path]:
    """Write the paper's data file and figure of the first learner; of several, also the comparison.

    ``sample_traj.csv`` and ``figure.*`` are the paper's; ``comparison.csv`` has the same columns behind the learner's
    name, and ``comparison.*`` draws all learners.
    """
    rows = results.rows()
    failed = [row["cell"] for row in rows if row["status"] != "ok"]
    if failed:
        raise ValueError(f"{len(failed)} runs failed, the first of them {failed[0]}: see {results.results_file}")
    labels = [learner.label for learner in results.spec.learners]
    tables = {label: figure_table([row for row in rows if row["learner"] == label]) for label in labels}
    expert = float(rows[0]["evaluation"]["expert_true_cost"])
    written = [write_table(results.path / "sample_traj.csv", COLUMNS, _lines(tables[labels[0]]))]
    written += save_figure(figures.paper_figure(tables[labels[0]], expert, labels[0]), results.path / "figure")
    if len(labels) > 1:
        lines = [[label, *line] for label in labels for line in _lines(tables[label])]
        written.append(write_table(results.path / "comparison.csv", ("learner", *COLUMNS), lines))
        comparison = figures.curves_over_demonstrations(rows, figures.learner_styles(labels))
        written += save_figure(comparison, results.path / "comparison")
    return written


def figure_table(rows: list[dict[str, Any]]) -> FloatArray:
    """Return the paper's columns, one line per number of demonstrations; the deviation is over runs (n − 1)."""
    counts = sorted({row["n_demonstrations"] for row in rows})
    lines = []
    for count in counts:
        costs = [row["evaluation"]["true_cost"] for row in rows if row["n_demonstrations"] == count]
        deviation = float(np.std(costs, ddof=1)) if len(costs) > 1 else 0.0
        lines.append([count, np.mean(costs), deviation, min(costs), max(costs)])
    return np.array(lines, dtype=np.float64)


def _lines(table: FloatArray) -> list[list[int | float]]:
    return [[int(line[0]), *map(float, line[1:])] for line in table]
