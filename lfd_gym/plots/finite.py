"""Policies, occupancies and values over finitely many states: on the grid if they lie on one, else as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lfd_gym.plots.axes import axes_or_new, grid_shape
from lfd_gym.policies.conversion import policy_table
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_UP, _DOWN, _LEFT, _RIGHT = (0, -1), (0, 1), (-1, 0), (1, 0)
#: Where the actions of known grids lead, in columns and rows, by the name of the environment's class.
_DIRECTIONS = {
    "StochasticGridworldEnv": (_UP, _DOWN, _LEFT, _RIGHT),
    "FrozenLakeEnv": (_LEFT, _DOWN, _RIGHT, _UP),
    "CliffWalkingEnv": (_UP, _RIGHT, _DOWN, _LEFT),
}
#: Arrows less probable than this are not drawn, and how long the others are at most, in cells.
_FAINTEST, _LENGTH = 0.02, 0.42


def over_states(values: FloatArray, task: Task, axes: Axes | None, label: str, colours: str) -> Axes:
    """Draw one number for each state."""
    axes, shape = axes_or_new(axes), _shape(task)
    if shape is None:
        axes.bar(np.arange(values.size), values, width=1.0)
        axes.set_xlabel("state")
        axes.set_ylabel(label)
        return axes
    image = axes.imshow(values[: shape[0] * shape[1]].reshape(shape), cmap=colours)  # an absorbing state may follow
    axes.figure.colorbar(image, ax=axes, label=label)
    axes.set_xticks([])
    axes.set_yticks([])
    return axes


def policy_over_states(policy: Any, task: Task, axes: Axes | None) -> Axes:
    """Draw arrows over where the policy goes if the states lie on a grid, else the probabilities of the actions."""
    assert task.dynamics is not None
    table, shape = policy_table(policy, task.dynamics), _shape(task)
    directions = _DIRECTIONS.get(type(_source(task)).__name__)
    if shape is None or directions is None:
        axes = axes_or_new(axes)
        image = axes.imshow(table.T, aspect="auto", vmin=0, vmax=1, cmap="viridis", interpolation="nearest")
        axes.figure.colorbar(image, ax=axes, label="probability")
        axes.set_xlabel("state")
        axes.set_ylabel("action")
        axes.set_yticks(range(table.shape[1]))
        return axes
    axes = over_states(occupancy_of_states(policy, task), task, axes, "share of the time", "Blues")
    rows, columns = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    states, actions = np.nonzero(table[: rows.size] > _FAINTEST)
    right, down = _LENGTH * table[states, actions] * np.array(directions)[actions].T
    axes.quiver(
        columns[states], rows[states], right, down, angles="xy", scale_units="xy", scale=1, color="#D55E00", width=0.004
    )
    return axes


def occupancy_of_states(policy: Any, task: Task) -> FloatArray:
    """Return (S,) the discounted shares of time."""
    occupancy = task.model.occupancy(policy_table(policy, task.model))
    return np.asarray(occupancy.sum(axis=1))


def _shape(task: Task) -> tuple[int, int] | None:
    return grid_shape(_source(task))


def _source(task: Task) -> Any:
    return getattr(task.env, "unwrapped", None)
