"""What an iteration of Algorithm 1 costs as the state space grows, beside one exact Bellman update of all states.

Gridworlds without approximation of μ and u: the unknowns grow with the states, the operations of an iteration do not.
What is left to grow is the time to fetch from memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from lfd_gym.benchmark import figures
from lfd_gym.features.occupancy_features import TabularOccupancyFeatures
from lfd_gym.features.value_features import TabularValueFeatures
from lfd_gym.model.generative_model import TabularModel
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.paper.curve_files import save_figure, write_table
from lfd_gym.solvers.descent.finite_descent import FiniteDescent, FiniteOracle
from lfd_gym.solvers.descent.gradient_norms import estimate_gradient_norms
from lfd_gym.solvers.descent.step_sizes import paper_steps, practical_steps
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_REPEATS = 5
_ROUNDS_PER_COLUMN = 100
BELLMAN_UPDATE = "Bellman update"


@dataclass(frozen=True)
class GrowthPoint:
    """Seconds for one iteration, or one Bellman update, on a gridworld of so many states."""

    n_states: int
    what: str
    seconds: float


def growth_points(sizes: Sequence[int], n_iterations: int, discount: float = 0.9) -> list[GrowthPoint]:
    """Time ``n_iterations`` iterations on gridworlds of these sides; the best of five."""
    return [point for size in sizes for point in _points_of_grid(size, n_iterations, discount)]


def _points_of_grid(size: int, n_iterations: int, discount: float) -> Iterator[GrowthPoint]:
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=size, cost_seed=0)
    source: Any = env.unwrapped
    mdp = FiniteMDP.from_env(env, discount)
    model = TabularModel.of(mdp)
    # Values of costs in [−1, 1] lie in the box of half-width 1: no need to plan for the radius.
    problem = SaddlePointProblem.from_simulator(
        source.cost_features,
        np.zeros(source.cost_features.shape[1]),
        occupancy_features=TabularOccupancyFeatures(mdp.n_states, mdp.n_actions),
        value_features=TabularValueFeatures(mdp.n_states),
        discount=discount,
        value_radius=1.0,
        value_domain="box",
    )
    rng = np.random.default_rng(0)
    # The steps of a run that is long enough for so many columns: longer steps make weights rise and fall wildly.
    horizon = max(_REPEATS * n_iterations, _ROUNDS_PER_COLUMN * problem.n_occupancy_features)
    steps = {
        "paper": paper_steps(problem, horizon),
        "practical": practical_steps(problem, horizon, estimate_gradient_norms(problem, model, 1, rng)),
    }
    oracle = FiniteOracle(problem, model)
    for schedule, sizes in steps.items():
        descent = FiniteDescent(oracle, sizes, rng)
        seconds = _best_seconds(descent.advance, n_iterations) / n_iterations
        yield GrowthPoint(mdp.n_states, f"{schedule} schedule", seconds)
    yield GrowthPoint(mdp.n_states, BELLMAN_UPDATE, _best_seconds(mdp.bellman_adjoint, rng.random(mdp.n_states)))


def _best_seconds(function: Callable[[Any], Any], argument: Any) -> float:
    best = np.inf
    for _ in range(_REPEATS):
        start = time.perf_counter()
        function(argument)
        best = min(best, time.perf_counter() - start)
    return float(best)


def write_growth_curve(folder: Path, points: Sequence[GrowthPoint]) -> list[Path]:
    """Write ``growth.csv`` and the figure."""
    columns = [field.name for field in fields(GrowthPoint)]
    written = write_table(folder / "growth.csv", columns, map(astuple, points))
    return [written, *save_figure(growth_figure(points), folder / "growth")]


def growth_figure(points: Sequence[GrowthPoint]) -> Figure:
    """Draw microseconds against the number of states, both logarithmic."""
    figure, axes = figures.new_axes(r"number of states $|\mathcal{X}|$", "microseconds")
    names = list(dict.fromkeys(point.what for point in points))
    for name, style in figures.learner_styles(names).items():
        curve = [(point.n_states, 1e6 * point.seconds) for point in points if point.what == name]
        label = "exact Bellman update of all states" if name == BELLMAN_UPDATE else f"one iteration, {name}"
        axes.plot(*np.array(curve).T, label=label, **style.line())
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.legend()
    return figure
