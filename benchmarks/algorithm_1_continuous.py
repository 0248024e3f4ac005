"""Algorithm 1 on a continuous space, beside the learner `grid`: what it reaches, and what it costs.

CartPole, five demonstrations of a rule, γ = 0.95. Φ: uniform distributions over the cells of a grid over angle and
angular speed, with each action. Ψ: the hat functions of the same grid. Every draw is a step of the true simulator. The
costs are two that somebody chose, standing and standing upright, or the generic ones that nobody has to choose.

    python benchmarks/algorithm_1_continuous.py
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
from experts import load_expert

import lfd_gym as lfd
from lfd_gym.baselines import Learner, make_learner
from lfd_gym.grids.features import HatValueFeatures

ENV, DISCOUNT = "CartPole-v1", 0.95
LIMITS = np.array([2.4, 3.0, 0.21, 3.0])


def standing_upright(observations: Any, actions: Any) -> Any:
    """Return −1 while the pole stands, and −1 to 0 by how much it leans; having fallen costs nothing."""
    leaning = np.minimum(np.abs(observations[:, 2]) / LIMITS[2], 1)
    return np.column_stack([-np.ones(len(observations)), leaning - 1])


def algorithm_1(n_cells: int) -> Learner:
    """Return Algorithm 1 with ``n_cells`` cells along the angle and along its speed."""
    tiles = lfd.features.TileGrid(-LIMITS, LIMITS, (1, 1, n_cells, n_cells))
    hats = lfd.Grid([np.linspace(-limit, limit, n_cells + 1) for limit in LIMITS[2:]])
    return make_learner(
        "mirror_descent",
        occupancy_features=lfd.features.TileOccupancyFeatures(tiles, n_actions=2, absorbing=True),
        value_features=HatValueFeatures(hats, lambda observations: observations[:, 2:]),
    )


def main() -> None:
    """Print one row for each learner and each kind of costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101, 102], help="of demonstrations and learner")
    parser.add_argument("--batches", type=int, nargs="+", default=[2500, 10_000], help="of 64 rounds, of Algorithm 1")
    parser.add_argument("--cells", type=int, nargs="+", default=[4, 8], help="along each of two axes")
    arguments = parser.parse_args()
    env, expert = gym.make(ENV), load_expert(ENV, "rule")
    print(f"{'costs':10} {'learner':28} {'distance [worst]':>18} {'random':>7} {'return [worst]':>16} {'CPU s':>7}")
    for costs in (standing_upright, None):
        rows: dict[str, list[tuple[float, float, float, float]]] = {}
        for seed in arguments.seeds:
            demonstrations = lfd.collect(env, expert, 5, 500, np.random.default_rng(seed))
            task = lfd.Task(env, demonstrations, discount=DISCOUNT, costs=costs)
            contenders: list[tuple[str, Learner, int | None]] = [("grid", make_learner("grid"), None)]
            for cells in arguments.cells:
                for batches in arguments.batches:
                    contenders.append((f"{cells} x {cells} cells, {batches:,} batches", algorithm_1(cells), batches))
            random = lfd.evaluate(lfd.learn(task, "random", rng=np.random.default_rng(seed)).policy, task,
                                  rng=np.random.default_rng(seed), n_rollouts=200)  # fmt: skip
            for label, learner, budget in contenders:
                result = lfd.learn(task, learner, rng=np.random.default_rng(seed), budget=budget)
                found = lfd.evaluate(result.policy, task, rng=np.random.default_rng(seed), n_rollouts=200)
                played = lfd.collect(env, result.policy, 50, 500, np.random.default_rng(seed + 1000))
                row = (found.cost_distance, random.cost_distance, played.lengths.mean(), result.resources.cpu_seconds)
                rows.setdefault(label, []).append(row)
        kind = "chosen" if costs is not None else "generic"
        for label, measured in rows.items():
            distance, by_random, steps, seconds = np.array(measured).T
            print(
                f"{kind:10} {label:28} {distance.mean():9.3f} [{distance.max():.3f}] {by_random.mean():7.3f} "
                f"{steps.mean():9.0f} [{steps.min():.0f}] {seconds.mean():7.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
