"""Pictures of the policies that a benchmark found on gridworlds."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.benchmark.tasks import environment_task
from lfd_gym.envs.gridworld import StochasticGridworldEnv
from lfd_gym.envs.rendering import render_grid
from lfd_gym.policies.conversion import policy_table

Row = dict[str, Any]


def policy_maps(results: ResultsFolder, environment: str, rows: Sequence[Row]) -> Iterator[tuple[str, bytes]]:
    """Yield a caption and a PNG of each learner's policy at the most demonstrations and its first seed.

    Environments other than gridworlds have no map.
    """
    task = environment_task(next(e for e in results.spec.environments if e.label == environment))
    grid = getattr(task.env, "unwrapped", None)
    if not isinstance(grid, StochasticGridworldEnv):
        return
    most = max(row["n_demonstrations"] for row in rows)
    chosen: dict[str, Row] = {}
    for row in rows:
        if row["n_demonstrations"] == most:
            chosen.setdefault(row["learner"], row)
    for learner, row in chosen.items():
        policy = policy_table(results.policy(row["cell"]), task.model)
        cost, occupancy = task.true_cost.table[:, 0], task.model.occupancy(policy)
        picture = render_grid(cost, grid.size, policy=policy, occupancy=occupancy, cell_size=24)
        yield f"{learner}: true gap {row['evaluation']['true_gap']:+.4f} with {most} demonstrations", _png(picture)


def _png(picture: np.ndarray[Any, Any]) -> bytes:
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    imsave(buffer, picture, format="png")
    return buffer.getvalue()
