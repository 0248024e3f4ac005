"""Where the expert has been."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from lfd_gym.arguments import checked
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.envs.gridworld import StochasticGridworldEnv
from lfd_gym.envs.rendering import render_grid
from lfd_gym.files import replacing_file
from lfd_gym.plots.axes import grid_shape
from lfd_gym.validation import IntArray


@checked
def visit_counts(demonstrations: Demonstrations) -> IntArray:
    """(S,) how often an action was taken in each state of a finite space."""
    space = demonstrations.observation_space
    if not isinstance(space, gym.spaces.Discrete):
        raise ValueError(f"demonstrations must be over a Discrete space to be counted, got {space}")
    return np.bincount(demonstrations.acted_on, minlength=int(space.n))


@checked
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
        visits, shape = visit_counts(demonstrations), grid_shape(source)
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
