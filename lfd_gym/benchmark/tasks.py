"""The task of each environment of a benchmark, and the demonstrations of each cell."""

from __future__ import annotations

from dataclasses import replace

import gymnasium as gym

from lfd_gym.benchmark.spec import Cell, EnvironmentSpec
from lfd_gym.demonstrations.collection import collect
from lfd_gym.task import Task


def environment_task(spec: EnvironmentSpec) -> Task:
    """Make the environment, and solve it for the expert that is optimal for its true cost; no demonstrations yet."""
    task = Task(gym.make(spec.env_id, **spec.kwargs), discount=spec.discount)
    task.needs("model", f"the expert of {spec.label}, an optimal policy,")
    if task.true_cost is None:
        raise ValueError(
            f"environment {spec.label} has no reward to be optimal for: it offers neither P nor cost_features"
        )
    return replace(task, expert=task.model.optimal_policy(task.true_cost.table[:, 0]))


def cell_task(cell: Cell) -> Task:
    """Return the task of a cell; its demonstrations are the same for all its learners."""
    task = environment_task(cell.environment)
    demonstrations = collect(
        task.simulator,
        task.expert,  # type: ignore[arg-type]
        n_trajectories=cell.n_demonstrations,
        horizon=cell.environment.horizon,
        rng=cell.demonstration_stream(),
    )
    return replace(task, demonstrations=demonstrations)
