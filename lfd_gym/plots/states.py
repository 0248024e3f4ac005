"""Costs and policies over the states of simulators, where these have two dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym.plots.axes import axes_or_new
from lfd_gym.policies.conversion import as_policy
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Left, right, bottom, top.
_Edges = tuple[float, float, float, float]
#: Points along each axis of a picture, and how much wider than the demonstrations it is on each side.
_N_ALONG, _WIDER = 201, 0.2


def over_simulator(
    values: Callable[[NDArray[Any]], Any],
    task: Task,
    axes: Axes | None,
    label: str,
    colours: str,
    policy: Any = None,
    scale: Mapping[str, Any] | None = None,
) -> Axes:
    """Draw a function of observations over the states, with the demonstrations on top.

    ``scale`` holds the ends of the colours, ``vmin`` and ``vmax``, and the ``ticks`` beside them, where they are known.
    """
    states, shape, extent = _states_to_draw(task, policy)
    found = np.asarray(values(task.simulator.observe(states)), dtype=np.float64)
    return _draw_over_states(found.reshape(shape), extent, task, axes, label, colours, scale or {})


def actions_of(policy: Any, observations: NDArray[Any]) -> NDArray[Any]:
    """Return one action for each observation, the same whenever it is asked."""
    acting, rng = as_policy(policy), np.random.default_rng(0)
    with acting.acting(rng):
        return np.asarray(acting.start(len(observations), rng)(np.arange(len(observations)), observations))


def _states_to_draw(task: Task, policy: Any) -> tuple[FloatArray, tuple[int, int], _Edges]:
    """Return (n, 2) states row after row, the shape of the picture, and its edges: the policy's grid if it has one."""
    shown = _demonstrated(task)
    grid = getattr(policy, "grid", None)
    if grid is None:
        low, high = shown.min(axis=0), shown.max(axis=0)
        wider = _WIDER * np.where(high > low, high - low, 1.0)
        low, high = low - wider, high + wider
    else:
        low, high = grid.bounds
    x, y = (np.linspace(low[j], high[j], _N_ALONG) for j in range(2))
    across, up = np.meshgrid(x, y)
    extent = float(low[0]), float(high[0]), float(low[1]), float(high[1])
    return np.column_stack([across.ravel(), up.ravel()]), across.shape, extent


def _demonstrated(task: Task) -> FloatArray:
    states_of = getattr(task.simulator, "states_of", None) if task.access in ("simulator", "model") else None
    if states_of is None or task.simulator.state_space.shape != (2,):
        raise ValueError("task must have a simulator whose states are told by observations and have two dimensions")
    return np.asarray(states_of(task.demonstrations.acted_on), dtype=np.float64)


def _draw_over_states(
    values: FloatArray,
    extent: _Edges,
    task: Task,
    axes: Axes | None,
    label: str,
    colours: str,
    scale: Mapping[str, Any],
) -> Axes:
    axes = axes_or_new(axes)
    low, high = scale.get("vmin"), scale.get("vmax")
    image = axes.imshow(values, origin="lower", extent=extent, aspect="auto", cmap=colours, vmin=low, vmax=high)
    axes.figure.colorbar(image, ax=axes, label=label, ticks=scale.get("ticks"))
    shown, offsets = _demonstrated(task), task.demonstrations.offsets
    for first, last in pairwise(offsets):
        along = shown[first:last].copy()
        along[1:][np.abs(np.diff(along[:, 0])) > np.pi] = np.nan  # an angle that goes round is not drawn across
        axes.plot(*along.T, color="black", linewidth=1)
    axes.set_xlim(extent[:2])
    axes.set_ylim(extent[2:])
    axes.set_xlabel("state[0]")
    axes.set_ylabel("state[1]")
    return axes
