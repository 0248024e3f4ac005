"""Pictures of policies over states with two dimensions: what each learner does where, with what it was shown on top."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

from lfd_gym.benchmark.checkpoints import takes_best_actions
from lfd_gym.benchmark.results import ResultsFolder, first_seeds
from lfd_gym.benchmark.tasks import cell_task
from lfd_gym.plots.axes import save_figure
from lfd_gym.plots.policies import draw_policy
from lfd_gym.policies.conversion import as_policy
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.task import Task

Row = dict[str, Any]


def phase_portraits(results: ResultsFolder, environment: str, rows: Sequence[Row]) -> Iterator[tuple[str, bytes]]:
    """Yield a caption and a PNG of each learner's policy, of its first seed with the fewest demonstrations.

    Only where a simulator has states of two dimensions that observations tell, and of policies that were kept.
    """
    from matplotlib.figure import Figure

    cells = {cell.id: cell for cell in results.spec.cells()}
    for learner, row in first_seeds(results, rows).items():
        cell = cells[row["cell"]]
        shown = results.shown(environment, ((cell.n_demonstrations, cell.seed),))
        task = cell_task(cell, shown) if shown is not None else None
        if task is None or not _can_be_drawn(task):
            return
        policy = results.policy(cell.id)
        if isinstance(policy, UniformPolicy):
            continue  # it does the same everywhere
        # As it was judged; small, so that its numbers can be read where it stands beside others.
        drawn = Figure(figsize=(4.2, 3.4), dpi=200, layout="constrained").add_subplot()
        draw_policy(as_policy(policy, deterministic=True) if takes_best_actions(policy) else policy, task, drawn)
        buffer = BytesIO()
        save_figure(drawn, buffer)
        yield f"{learner}: its action in each state; black: what it was shown", buffer.getvalue()


def _can_be_drawn(task: Task) -> bool:
    """Whether states have two dimensions, and actions are one number."""
    simulator = task.simulator if task.access == "simulator" else None
    one_number = task.action_space.shape in ((), (1,))
    return hasattr(simulator, "states_of") and simulator.state_space.shape == (2,) and one_number  # type: ignore[union-attr]
