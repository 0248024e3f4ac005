"""The figure of the paper's Appendix E, from benchmark results."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lfd_gym.atomic_files import replacing_file
from lfd_gym.benchmark import figures
from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.validation import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The columns of the paper's data file.
COLUMNS = ("n_traj", "rho_mean", "rho_std", "rho_min", "rho_max")


def write_figure(results: ResultsFolder) -> list[Path]:
    """Write ``sample_traj.csv`` and the figure (PNG, SVG, PDF) of the first learner; of all, if there are several."""
    rows = results.rows()
    failed = [row["cell"] for row in rows if row["status"] != "ok"]
    if failed:
        raise ValueError(f"{len(failed)} runs failed, the first of them {failed[0]}: see {results.results_file}")
    first = results.spec.learners[0].label
    table = figure_table([row for row in rows if row["learner"] == first])
    expert = float(rows[0]["evaluation"]["expert_costs"][0])
    written = [results.path / "sample_traj.csv"]
    with replacing_file(written[0], overwrite=True) as unfinished, open(unfinished, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        writer.writerows([int(line[0]), *(f"{value:.6f}" for value in line[1:])] for line in table)
    written += _save(figures.paper_figure(table, expert), results.path / "figure")
    if len(results.spec.learners) > 1:
        styles = figures.learner_styles([learner.label for learner in results.spec.learners])
        comparison = figures.curves_over_demonstrations(rows, styles)
        comparison.axes[0].legend(fontsize=8)
        written += _save(comparison, results.path / "comparison")
    return written


def figure_table(rows: list[dict[str, Any]]) -> FloatArray:
    """Return the paper's columns, one line per number of demonstrations; the deviation is over runs (n − 1)."""
    counts = sorted({row["n_demonstrations"] for row in rows})
    lines = []
    for count in counts:
        costs = [row["evaluation"]["expected_costs"][0] for row in rows if row["n_demonstrations"] == count]
        deviation = float(np.std(costs, ddof=1)) if len(costs) > 1 else 0.0
        lines.append([count, np.mean(costs), deviation, min(costs), max(costs)])
    return np.array(lines, dtype=np.float64)


def _save(figure: Figure, stem: Path) -> list[Path]:
    written = []
    for suffix in ("png", "svg", "pdf"):
        path = stem.with_suffix(f".{suffix}")
        with replacing_file(path, overwrite=True) as unfinished:
            figure.savefig(unfinished, format=suffix, dpi=150)
        written.append(path)
    return written
