"""How the residual of Algorithm 1 falls with its iterations, on a small gridworld without approximation of μ and u.

Each point is a run of its own whose steps are made for its N, as Theorem 1 has it. The expert's feature expectations
are the true ones: there is no error but that of the optimisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np

from lfd_gym.benchmark import figures
from lfd_gym.benchmark.presets import small_gridworld
from lfd_gym.benchmark.spec import named_stream
from lfd_gym.benchmark.tasks import environment_task
from lfd_gym.paper.curve_files import save_figure, write_table
from lfd_gym.solvers.descent.mirror_descent import solve_mirror_descent_many
from lfd_gym.solvers.descent.step_sizes import Schedule
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ResidualPoint:
    """The residual of the averages after all iterations of one run, and the policy's distance to the expert."""

    schedule: Schedule
    n_iterations: int
    run: int
    residual: float
    cost_distance: float


def residual_points(size: int, iterations: Sequence[int], n_runs: int, discount: float) -> list[ResidualPoint]:
    """Run Algorithm 1 with both schedules, ``n_runs`` times for each number of iterations.

    Examples
    --------
    >>> points = residual_points(size=2, iterations=(1000, 100_000), n_runs=1, discount=0.9)
    >>> [(point.schedule, point.n_iterations) for point in points[:2]]
    [('paper', 1000), ('paper', 100000)]
    >>> points[3].residual < points[2].residual
    True
    """
    task = environment_task(small_gridworld(size, discount))
    expert = task.expected_costs(task.expert).values  # type: ignore[arg-type]
    problem = SaddlePointProblem.tabular(task.model, task.costs, expert)
    points = []
    for schedule in get_args(Schedule):
        for n_iterations in iterations:
            rngs = [named_stream(f"residual, {schedule}, {n_iterations}, {run}") for run in range(n_runs)]
            for run, found in enumerate(
                solve_mirror_descent_many(problem, task.simulator, n_iterations, rngs, schedule=schedule)
            ):
                assert found.residual is not None  # the model is known
                distance = float(task.costs.weights.support(task.expected_costs(found.policy).values - expert))
                points.append(ResidualPoint(schedule, n_iterations, run, found.residual, distance))
    return points


def write_residual_curve(folder: Path, points: Sequence[ResidualPoint]) -> list[Path]:
    """Write ``residual.csv`` and the figure."""
    columns = [field.name for field in fields(ResidualPoint)]
    written = write_table(folder / "residual.csv", columns, map(astuple, points))
    return [written, *save_figure(residual_figure(points), folder / "residual")]


def residual_figure(points: Sequence[ResidualPoint]) -> Figure:
    """Draw the residual against the iterations, both logarithmic, with 1/√N through the last mean of each schedule."""
    figure, axes = figures.new_axes("iterations $N$", "saddle-point residual of the averages")
    styles = figures.learner_styles(get_args(Schedule))
    counts = np.array(sorted({point.n_iterations for point in points}))
    for schedule, style in styles.items():
        runs = [[p.residual for p in points if p.schedule == schedule and p.n_iterations == n] for n in counts]
        means = np.array([np.mean(values) for values in runs])
        axes.plot(counts, means, label=f"{schedule} schedule", **style.line())
        axes.fill_between(counts, [min(r) for r in runs], [max(r) for r in runs], color=style.color, alpha=0.15, lw=0)
        axes.plot(counts, means[-1] * np.sqrt(counts[-1] / counts), color="0.45", linestyle=":")
    axes.plot([], [], color="0.45", linestyle=":", label=r"$\propto 1/\sqrt{N}$")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.legend()
    return figure
