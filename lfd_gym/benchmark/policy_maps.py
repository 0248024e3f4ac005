"""Pictures of policies on gridworlds: the expert's, and where each learner's differs from it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lfd_gym.benchmark.results import ResultsFolder, first_seeds
from lfd_gym.benchmark.tasks import environment_task
from lfd_gym.envs.gridworld import StochasticGridworldEnv
from lfd_gym.envs.rendering import render_grid
from lfd_gym.policies.conversion import policy_table

Row = dict[str, Any]

#: Smaller differences are not worth a picture.
_SAME = 1e-6


def policy_maps(results: ResultsFolder, environment: str, rows: Sequence[Row]) -> Iterator[tuple[str, bytes]]:
    """Yield a caption and a PNG of the expert's policy, and of the difference of each learner's first seed from it.

    The fewest demonstrations show most. Environments other than gridworlds have no map, and policies that do as the
    expert does have a caption alone.
    """
    task = environment_task(next(e for e in results.spec.environments if e.label == environment))
    grid = getattr(task.env, "unwrapped", None)
    if not isinstance(grid, StochasticGridworldEnv) or task.expert is None or task.true_cost is None:
        return
    expert, cost = policy_table(task.expert, task.model), task.true_cost.table[:, 0]
    visits = task.model.occupancy(expert)
    share = visits.sum(axis=1)
    picture = render_grid(cost, grid.size, policy=expert, occupancy=visits, cell_size=24)
    yield "the expert: blue is cheap, orange costly", _png(picture)
    for learner, row in first_seeds(results, rows).items():
        policy = policy_table(results.policy(row["cell"]), task.model)
        different = 0.5 * np.abs(policy - expert).sum(axis=1)
        if different.max() <= _SAME:
            yield f"{learner}: as the expert everywhere", b""
            continue
        picture = render_grid(different, grid.size, policy=policy, occupancy=visits, cell_size=24)
        yield f"{learner}: otherwise in {share @ different / share.sum():.1%} of the expert's time", _png(picture)


def _png(picture: np.ndarray[Any, Any]) -> bytes:
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    imsave(buffer, picture, format="png")
    return buffer.getvalue()
