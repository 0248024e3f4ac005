"""The task of each cell of a benchmark."""

from __future__ import annotations

from dataclasses import replace

import gymnasium as gym

from lfd_gym.benchmark.experts import Showing, Shown, make_expert, show
from lfd_gym.benchmark.spec import Cell, EnvironmentSpec
from lfd_gym.task import Task


def environment_task(spec: EnvironmentSpec) -> Task:
    """Make the environment with a table, and the expert that is optimal for its true cost; no demonstrations yet."""
    task = Task(gym.make(spec.env_id, **spec.kwargs), discount=spec.discount)
    return replace(task, expert=make_expert(spec, task)) if task.access == "model" else task


def cell_task(cell: Cell, shown: Shown | None = None) -> Task:
    """Return the task of a cell, with what is ``shown`` to all learners there; made anew if it is not given."""
    spec, pair = cell.environment, (cell.n_demonstrations, cell.seed)
    shown = show(Showing(spec, (pair,))) if shown is None else shown
    demonstrations = shown.demonstrations[pair]
    task = Task(gym.make(spec.env_id, **spec.kwargs), discount=spec.discount)
    if task.access == "model":
        return replace(task, expert=shown.expert, demonstrations=demonstrations)
    horizon = task.time_limit if spec.horizon is None else spec.horizon
    return Task(task.env, demonstrations, discount=spec.discount, horizon=horizon, expert=shown.expert)
