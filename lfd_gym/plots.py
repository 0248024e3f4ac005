"""Pictures of demonstrations, of costs and policies over states with two dimensions, and of certificates."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.assessment.statements import Certificate
from lfd_gym.costs.recovered import RecoveredCost
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.envs.gridworld import StochasticGridworldEnv
from lfd_gym.envs.rendering import render_grid
from lfd_gym.files import replacing_file
from lfd_gym.policies.conversion import as_policy
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Left, right, bottom, top.
_Edges = tuple[float, float, float, float]
#: Points along each axis of a picture, and how much wider than the demonstrations it is on each side.
_N_ALONG, _WIDER = 201, 0.2
#: Points of a curve over the number of demonstrations or rollouts, and how many times as many there are at its end.
_N_OVER, _TIMES = 40, 100.0
#: Parts of a bound that are a smaller share of it are not drawn.
_SEEN = 1e-3


def visit_counts(demonstrations: Demonstrations) -> IntArray:
    """(S,) how often an action was taken in each state of a finite space."""
    space = demonstrations.observation_space
    if not isinstance(space, gym.spaces.Discrete):
        raise ValueError(f"demonstrations must be over a Discrete space to be counted, got {space}")
    return np.bincount(demonstrations.acted_on, minlength=int(space.n))


def save_visit_map(demonstrations: Demonstrations, path: str | Path, env: gym.Env[Any, Any] | None = None) -> None:
    """Write a PNG heat map of where the expert acted.

    Gridworlds are drawn as grids (this package's with their true cost), other finite spaces as bars, and Box spaces as
    a histogram of their first two coordinates.

    Parameters
    ----------
    demonstrations
        At least one action.
    path
        The file; an existing one is replaced.
    env
        The environment, to know the shape of its grid.
    """
    source: Any = None if env is None else env.unwrapped
    with replacing_file(path, overwrite=True) as unfinished:
        if isinstance(source, StochasticGridworldEnv):
            from matplotlib.image import imsave

            visits = visit_counts(demonstrations)
            imsave(unfinished, render_grid(source.state_costs[:, 0], source.size, occupancy=visits), format="png")
        else:
            _draw_visits(demonstrations, source).savefig(unfinished, format="png")


def _draw_visits(demonstrations: Demonstrations, source: Any) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.add_subplot()
    if isinstance(demonstrations.observation_space, gym.spaces.Discrete):
        visits, shape = visit_counts(demonstrations), _grid_shape(source)
        if shape is None:
            axes.bar(np.arange(visits.size), visits, width=1.0)
            axes.set_xlabel("state")
            axes.set_ylabel("visits")
        else:
            grid = visits[: shape[0] * shape[1]].reshape(shape)  # an absorbing state may follow
            figure.colorbar(axes.imshow(grid), ax=axes, label="visits")
            axes.set_xticks([])
            axes.set_yticks([])
    else:
        points = demonstrations.acted_on.reshape(demonstrations.n_transitions, -1)
        if points.shape[1] == 1:
            axes.hist(points[:, 0], bins=50)
            axes.set_ylabel("visits")
        else:
            *_, image = axes.hist2d(points[:, 0], points[:, 1], bins=50, cmin=1)
            figure.colorbar(image, ax=axes, label="visits")
            axes.set_ylabel("observation[1]")
        axes.set_xlabel("observation[0]")
    return figure


def _grid_shape(source: Any) -> tuple[int, int] | None:
    """Return the grid of FrozenLake (``nrow``, ``ncol``) and CliffWalking (``shape``)."""
    if hasattr(source, "nrow") and hasattr(source, "ncol"):
        return int(source.nrow), int(source.ncol)
    shape = getattr(source, "shape", None)
    return (int(shape[0]), int(shape[1])) if isinstance(shape, tuple) and len(shape) == 2 else None


def draw_certificate(certificate: Certificate, axes: Axes | None = None) -> Axes:
    """Draw the bound of a certificate over the number of demonstrations, or rollouts, with what it consists of.

    Where the bound is about the expert, the demonstrations are counted, else the rollouts. What is not known yet is a
    forecast, as `Certificate.needed` makes it.

    Parameters
    ----------
    certificate
        Of any policy.
    axes
        To draw on, by default new ones.
    """
    said = certificate.strongest
    of_expert = said.about == "expert"
    now = said.n_demonstrations if of_expert else certificate.n_rollouts
    if now is None:
        raise ValueError("certificate must rest on rollouts or demonstrations to be drawn over their number")
    times = np.geomspace(1 / now, _TIMES, _N_OVER)
    bounds = np.array([certificate.forecast(*((each, 1.0) if of_expert else (1.0, each))) for each in times])
    grows = "demonstrations" if of_expert else "rollouts"
    steady = {reason: part for reason, part in said.parts.items() if reason != grows}
    axes = _new_axes() if axes is None else axes
    level = np.full(times.size, said.found)
    axes.fill_between(now * times, np.minimum(level, 0.0), level, alpha=0.5, label="distance found")
    for reason, part in steady.items():
        if part > _SEEN * said.bound:
            top = np.clip(level + part, level, np.maximum(bounds, level))  # where others make it smaller, not above it
            axes.fill_between(now * times, level, top, alpha=0.5, label=f"+ {reason}")
            level = top
    axes.fill_between(now * times, level, np.maximum(bounds, level), alpha=0.5, label=f"+ {grows}")
    axes.plot(now * times, bounds, color="black", label="at most")
    axes.plot([now], [said.bound], "o", color="black", label=f"now, {now:,} {grows}")
    if certificate.random_distance is not None:
        axes.axhline(certificate.random_distance, color="grey", linestyle="--", label="random play")
    axes.set_xscale("log")
    axes.set_xlabel(f"number of {grows}")
    axes.set_ylabel(f"cost distance to the {said.about}")
    axes.set_title(f"probability {1 - certificate.delta:g}")
    axes.legend(fontsize="small")
    return axes


def draw_cost(cost: RecoveredCost, policy: Any, task: Task, axes: Axes | None = None) -> Axes:
    """Draw a recovered cost over the states of a simulator that have two dimensions, where the policy acts.

    Parameters
    ----------
    cost
        ``result.cost`` of a learner; of its actions those of ``policy`` are drawn.
    policy
        Anything that acts.
    task
        With the simulator; the demonstrations are drawn too.
    axes
        To draw on, by default new ones.
    """
    states, shape, extent = _states_to_draw(task, policy)
    observations = task.simulator.observe(states)
    actions = _actions(policy, observations) if cost.costs.uses_actions else None
    return _draw_over_states(
        cost(observations, actions).reshape(shape), extent, task, axes, "recovered cost", "magma_r"
    )


def draw_policy(policy: Any, task: Task, axes: Axes | None = None) -> Axes:
    """Draw how a policy acts over the states of a simulator that have two dimensions; if it draws, one draw of each.

    Parameters
    ----------
    policy
        Anything that acts, with actions that are numbers.
    task, axes
        As in `draw_cost`.
    """
    states, shape, extent = _states_to_draw(task, policy)
    actions = _actions(policy, task.simulator.observe(states)).astype(np.float64)
    if actions.size != len(states):
        raise ValueError(f"policy must act by one number to be drawn, its actions have shape {actions.shape[1:]}")
    return _draw_over_states(actions.reshape(shape), extent, task, axes, "action", "coolwarm")


def _actions(policy: Any, observations: NDArray[Any]) -> NDArray[Any]:
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


def save_figure(axes: Axes, path: str | Path) -> None:
    """Write the figure that ``axes`` are on as a PNG file."""
    from matplotlib.figure import Figure

    figure = axes.figure
    assert isinstance(figure, Figure)
    figure.savefig(path, format="png")


def _new_axes() -> Axes:
    from matplotlib.figure import Figure

    return Figure(figsize=(6, 5), layout="constrained").add_subplot()


def _draw_over_states(
    values: FloatArray, extent: _Edges, task: Task, axes: Axes | None, label: str, colours: str
) -> Axes:
    axes = _new_axes() if axes is None else axes
    image = axes.imshow(values, origin="lower", extent=extent, aspect="auto", cmap=colours)
    axes.figure.colorbar(image, ax=axes, label=label)
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
