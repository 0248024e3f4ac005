"""What the bounds promise of the policy of Algorithm 1, beside what is true, without approximation of μ and u.

Each run of Algorithm 1 has demonstrations of its own, on a gridworld so small that all fits into one picture. The
bounds are on the 𝒞-distance of its policy to the expert and hold with probability 1 − δ each:

- Theorem 1, for the paper's schedule: ε(N, m), known before the run, plus the approximation terms of Proposition 4;
- Proposition 4, from the residual that was reached and the features;
- the certificate, from the policy and the demonstrations, whatever the features are.

The expert is optimal for the first cost feature, so it is an apprentice itself, with α* = 0 (Lemma 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from lfd_gym.assessment.bounds import ProblemSize, accuracy_after
from lfd_gym.assessment.point_certificate import certify_saddle_point
from lfd_gym.benchmark import figures
from lfd_gym.benchmark.presets import PAPER_HORIZON, small_gridworld
from lfd_gym.benchmark.spec import named_stream
from lfd_gym.benchmark.tasks import environment_task
from lfd_gym.demonstrations.collection import collect
from lfd_gym.paper.curve_files import save_figure, write_table
from lfd_gym.solvers.descent.mirror_descent import solve_mirror_descent
from lfd_gym.solvers.descent.step_sizes import Schedule
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DELTA = 0.05


@dataclass(frozen=True)
class BoundPoint:
    """One run: bounds on the 𝒞-distance of its policy to the expert, and the distance itself."""

    schedule: Schedule
    n_iterations: int
    run: int
    theorem_1: float | None
    proposition_4: float
    certificate: float
    cost_distance: float


def bound_points(
    size: int, iterations: Sequence[int], n_demonstrations: int, n_runs: int, discount: float
) -> list[BoundPoint]:
    """Run Algorithm 1 with both schedules, ``n_runs`` times for each number of iterations, and bound its policies.

    Examples
    --------
    >>> point = bound_points(size=2, iterations=(10_000,), n_demonstrations=100, n_runs=1, discount=0.5)[0]
    >>> point.cost_distance < point.certificate < point.proposition_4 < point.theorem_1
    True
    """
    task = environment_task(small_gridworld(size, discount))
    return [
        _point(task, schedule, n_iterations, n_demonstrations, run)
        for schedule in get_args(Schedule)
        for n_iterations in iterations
        for run in range(n_runs)
    ]


def _point(task: Task, schedule: Schedule, n_iterations: int, n_demonstrations: int, run: int) -> BoundPoint:
    rng = named_stream(f"bound, {schedule}, {n_iterations}, {n_demonstrations}, {run}")
    expert: Any = task.expert
    demonstrations = collect(task.simulator, expert, n_demonstrations, PAPER_HORIZON, rng)
    estimate = replace(task, demonstrations=demonstrations).expert_features()
    problem = SaddlePointProblem.tabular(task.model, task.costs, estimate.values)
    found = solve_mirror_descent(problem, task.simulator, n_iterations, rng, schedule=schedule, progress=False)
    certificate = certify_saddle_point(
        problem,
        found.point._replace(occupancy_weights=found.policy_weights),  # Proposition 4 holds at the policy's own θ, too
        expert=estimate,
        delta=DELTA,
        apprentice_occupancy=task.model.occupancy(expert),
    )
    difference = task.expected_costs(found.policy).values - task.expected_costs(expert).values
    assert certificate.excess_bound is not None  # because an apprentice's occupancy was given
    assert certificate.approximation is not None
    theorem = None
    if schedule == "paper":
        accuracy = accuracy_after(ProblemSize.of(problem), n_iterations, n_demonstrations, PAPER_HORIZON, DELTA)
        theorem = accuracy + certificate.approximation.total
    return BoundPoint(
        schedule=schedule,
        n_iterations=n_iterations,
        run=run,
        theorem_1=theorem,
        proposition_4=certificate.excess_bound,
        certificate=certificate.cost_distance_bound,
        cost_distance=float(task.costs.weights.support(difference)),
    )


def write_bound_curve(folder: Path, points: Sequence[BoundPoint]) -> list[Path]:
    """Write ``bound.csv`` and the figure."""
    columns = [field.name for field in fields(BoundPoint)]
    written = write_table(folder / "bound.csv", columns, map(astuple, points))
    return [written, *save_figure(bound_figure(points), folder / "bound")]


def bound_figure(points: Sequence[BoundPoint]) -> Figure:
    """Draw bounds and truth against the iterations, one panel for each schedule: means over runs."""
    figure, panels = figures.new_panels(2, "iterations $N$", "distance to the expert, bounds and truth")
    quantities = {
        "theorem_1": "Theorem 1",
        "proposition_4": "Proposition 4",
        "certificate": "certificate",
        "cost_distance": "true distance",
    }
    styles = figures.learner_styles(list(quantities))
    counts = sorted({point.n_iterations for point in points})
    for axes, schedule in zip(panels, get_args(Schedule), strict=True):
        for quantity, label in quantities.items():
            values = [
                [getattr(p, quantity) for p in points if p.schedule == schedule and p.n_iterations == n] for n in counts
            ]
            if values[0][0] is not None:
                axes.plot(counts, np.mean(values, axis=1), label=label, **styles[quantity].line())
        axes.set_title(f"{schedule} schedule", fontsize=10)
        axes.set_xscale("log")
    panels[0].set_yscale("log")
    panels[0].set_ylim(bottom=1e-3)  # a distance may be zero
    panels[0].legend()
    return figure
