"""Pictures of the policies that a benchmark found on gridworlds."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.benchmark.world import World
from lfd_gym.envs.gridworld import StochasticGridworldEnv
from lfd_gym.envs.rendering import render_grid

Row = dict[str, Any]


def policy_maps(results: ResultsFolder, environment: str, rows: Sequence[Row]) -> Iterator[tuple[str, bytes]]:
    """Yield a caption and a PNG of each learner's policy at the most demonstrations and its first seed.

    Environments other than gridworlds have no map.
    """
    spec = next(e for e in results.spec.environments if e.label == environment)
    world = World.from_spec(spec)
    grid = world.env.unwrapped
    if not isinstance(grid, StochasticGridworldEnv):
        return
    most = max(row["n_demonstrations"] for row in rows)
    chosen: dict[str, Row] = {}
    for row in rows:
        if row["n_demonstrations"] == most:
            chosen.setdefault(row["learner"], row)
    for learner, row in chosen.items():
        policy = results.policy(row["cell"])
        picture = render_grid(
            world.cost_features[:, 0], grid.size, policy=policy, occupancy=world.mdp.occupancy(policy), cell_size=24
        )
        yield f"{learner}: true gap {row['evaluation']['true_gap']:+.4f} with {most} demonstrations", _png(picture)


def _png(picture: np.ndarray[Any, Any]) -> bytes:
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    imsave(buffer, picture, format="png")
    return buffer.getvalue()
