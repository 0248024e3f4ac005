"""Grids that nobody has to draw: box and density from what was visited, counts from memory, repeats from movement."""

from __future__ import annotations

import math
from collections.abc import Sequence

import gymnasium as gym
import numpy as np

from lfd_gym.grids.actions import ActionGrid, action_problem
from lfd_gym.grids.grid import Grid, Interpolation, corners_of
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.validation import FloatArray

#: Random play: how many begin, how far they go, and for how many steps they hold an action.
_N_WALKERS, _N_STEPS, _N_HELD = 3000, 10, 3
_N_INITIAL = 200
#: The box is wider than what was visited by this share on each side.
_MARGIN = 0.1
#: Share of the points of an axis that are spread evenly; the others lie where most was visited.
_EVEN = 0.5
_N_BINS, _SMOOTHING = 200, 10
#: From so many dimensions on, rows of 2^d entries are too long.
_SIMPLEX_FROM = 4
#: How much of a cell the actions that are held should move, and for how many steps at most they are held.
_CELL_SHARE, _LONGEST_REPEAT = 0.5, 8
#: Fewer points along an axis tell nothing.
FEWEST_POINTS = 7
#: Of the transitions in memory: while they are built, and as the planner holds them.
_COPIES = 2
MOST_DIMENSIONS = 6


def grid_problem(simulator: GenerativeModel) -> str:
    """Return why no grid can be laid over a simulator, empty if one can."""
    space = simulator.state_space
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
        return f"states must be vectors in a Box for a grid, got {space}"
    if space.shape[0] > MOST_DIMENSIONS:
        return f"states must have at most {MOST_DIMENSIONS} entries for a grid, got {space.shape[0]}"
    return action_problem(simulator.action_space)


def surroundings(simulator: GenerativeModel, demonstrated: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return (n, d) states that random play visits, from demonstrated and initial states on, these included."""
    actions = ActionGrid(simulator.action_space).actions
    begun = np.concatenate([demonstrated, simulator.sample_initial(_N_INITIAL, rng)])
    states = begun[rng.integers(len(begun), size=_N_WALKERS)]
    visited = [begun]
    held = actions[:0]
    for step in range(_N_STEPS):
        if step % _N_HELD == 0:
            held = actions[rng.integers(len(actions), size=len(states))]
        states = np.asarray(simulator.sample_next(states, held, rng), dtype=np.float64)
        going = ~simulator.is_absorbing(states)
        states, held = states[going], held[going]
        visited.append(states)
    found = np.concatenate(visited)
    if not np.isfinite(found).all():
        row = int((~np.isfinite(found)).any(axis=1).argmax())
        raise ValueError(f"simulator must lead to finite states, random play led to {found[row]}")
    return found


def choose_grid(
    visited: FloatArray,
    n_points: int,
    *,
    angles: Sequence[int] = (),
    space: gym.Space | None = None,  # type: ignore[type-arg]
    interpolation: Interpolation | None = None,
) -> Grid:
    """Lay a grid over ``visited`` states: half of its points evenly, the other half where most was visited.

    Parameters
    ----------
    visited
        (n, d).
    n_points
        Along each axis.
    angles
        Which entries are angles in radians: their axis is the whole circle, evenly.
    space
        A `Box` that the grid may not leave.
    interpolation
        By default ``"multilinear"`` in up to three dimensions, then ``"simplex"``.
    """
    n_dimensions = visited.shape[1]
    low, high = np.full(n_dimensions, -np.inf), np.full(n_dimensions, np.inf)
    if isinstance(space, gym.spaces.Box):
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    axes, periods = [], []
    for j in range(n_dimensions):
        if j in angles:
            axes.append(2 * np.pi * np.arange(n_points) / n_points - np.pi)
            periods.append(2 * np.pi)
        else:
            axes.append(_axis(visited[:, j], n_points, low[j], high[j]))
            periods.append(0.0)
    return Grid(axes, periods, interpolation or default_interpolation(n_dimensions))


def default_interpolation(n_dimensions: int) -> Interpolation:
    """Return the interpolation that is used in so many dimensions if nothing is said."""
    return "simplex" if n_dimensions >= _SIMPLEX_FROM else "multilinear"


def _axis(values: FloatArray, n_points: int, low: float, high: float) -> FloatArray:
    first, last = values.min(), values.max()
    margin = _MARGIN * (last - first) if last > first else max(abs(first), 1.0) * _MARGIN
    first, last = max(first - margin, low), min(last + margin, high)
    density = np.histogram(values, _N_BINS, (first, last))[0].astype(np.float64)
    reach = np.arange(-4 * _SMOOTHING, 4 * _SMOOTHING + 1)
    density = np.convolve(density, np.exp(-0.5 * (reach / _SMOOTHING) ** 2), "same")
    density = _EVEN / _N_BINS + (1 - _EVEN) * density / density.sum()
    shares = np.concatenate([[0.0], np.cumsum(density)])
    return np.interp(np.linspace(0.0, shares[-1], n_points), shares, np.linspace(first, last, _N_BINS + 1))


def choose_repeat(
    simulator: GenerativeModel, grid: Grid, visited: FloatArray, actions: ActionGrid, rng: np.random.Generator
) -> int:
    """Return for how many steps to hold an action, so that about half of a step or more moves half a cell."""
    return int(np.clip(math.ceil(_CELL_SHARE / cells_moved(simulator, grid, visited, actions, rng)), 1, _LONGEST_REPEAT))


def cells_moved(
    simulator: GenerativeModel, grid: Grid, visited: FloatArray, actions: ActionGrid, rng: np.random.Generator
) -> float:
    """Return how many cells a step moves along the axis where it moves most, in the median over visited states."""
    states = visited[rng.integers(len(visited), size=1000)]
    done = actions.actions[rng.integers(len(actions), size=len(states))]
    after = np.asarray(simulator.sample_next(states, done, rng), dtype=np.float64)
    going = ~simulator.is_absorbing(after)
    moved = np.zeros((int(going.sum()), grid.n_dimensions))
    for j, (axis, period) in enumerate(zip(grid.axes, grid.periods, strict=True)):
        change = np.abs(after[going, j] - states[going, j])
        if period > 0:
            change = np.minimum(change, period - change)
        place = np.clip(np.searchsorted(axis, states[going, j]) - 1, 0, axis.size - 2)
        moved[:, j] = change / np.diff(axis)[place]
    return float(max(np.median(moved.max(axis=1)), 1e-9)) if len(moved) else 1.0
