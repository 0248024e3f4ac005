"""Grids that nobody has to draw: box and density from what was visited, counts from memory, repeats from movement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import gymnasium as gym
import numpy as np

from lfd_gym.grids.actions import ActionGrid, action_problem
from lfd_gym.grids.grid import Grid, Interpolation, corners_of
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.validation import FloatArray

#: The box is wider than what was visited by this share on each side.
_MARGIN = 0.1
#: Share of the points of an axis that are spread evenly; the others lie where most was visited.
_EVEN = 0.5
_N_BINS, _SMOOTHING = 200, 10
#: Steps by which movement is judged.
_N_MOVES = 1000
#: From so many dimensions on, rows of 2^d entries are too long.
_SIMPLEX_FROM = 4
#: How much of a cell a held action should move, and for how many steps at most it is held.
_CELL_SHARE, _LONGEST_REPEAT = 0.5, 8
#: If the number of points is not given: so many along an axis at most, and so many in all. What was learned on the
#: classic control tasks was not better with more.
_MOST_ALONG, _MOST_STATES = 61, 60_000
#: With fewer points along an axis a grid tells nothing.
_FEWEST_ALONG = 7
#: How often the transitions are in memory: while they are built, and as the planner holds them.
_COPIES = 3


def grid_problem(simulator: GenerativeModel) -> str:
    """Return why no grid of a size that is chosen can be laid over a simulator, empty if one can."""
    space = simulator.state_space
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
        return f"states must be vectors in a Box for a grid, got {space}"
    refused = action_problem(simulator.action_space)
    if refused:
        return refused
    n_dimensions = space.shape[0]
    if points_within(_MOST_STATES, n_dimensions) < _FEWEST_ALONG:
        return (
            f"{n_dimensions} dimensions at {_FEWEST_ALONG} points are {_FEWEST_ALONG**n_dimensions:,} states x "
            f"{len(ActionGrid(simulator.action_space))} actions, more than the {_MOST_STATES:,} states that are chosen "
            "unasked: give n_points, or do without a grid"
        )
    return ""


@dataclass(frozen=True)
class GridSize:
    """What the size of a grid model depends on besides its points.

    Attributes
    ----------
    n_dimensions, n_actions, n_costs
        Of states, of known actions, and of the table of costs.
    memory
        How many bytes it may take.
    n_draws
        How often each pair is drawn.
    interpolation
        If not given, that of `default_interpolation`.
    n_states
        How many points are chosen at most, if their number is not given.
    """

    n_dimensions: int
    n_actions: int
    n_costs: int
    memory: float
    n_draws: int = 1
    interpolation: Interpolation | None = None
    n_states: int = _MOST_STATES

    @property
    def bytes_for_each(self) -> float:
        """How many bytes a point takes: rows of transitions, of costs, and states on the way while actions are held."""
        corners = corners_of(self.n_dimensions, self.interpolation or default_interpolation(self.n_dimensions))
        transitions = _COPIES * 12.0 * corners * self.n_draws
        return self.n_actions * (transitions + 8.0 * self.n_costs + 8.0 * self.n_dimensions * (_LONGEST_REPEAT - 1))

    def check(self, n_points: str, n_states: int) -> None:
        """Refuse a grid of ``n_states`` points, told as ``n_points``, that does not fit into the memory."""
        size = n_states * self.bytes_for_each
        if size > self.memory:
            raise ValueError(
                f"{self.n_dimensions} dimensions at {n_points} points are {n_states:,} states x {self.n_actions} "
                f"actions with {self.n_costs} costs, {size / 1e9:.3g} GB, more than memory={self.memory / 1e9:.3g} GB: "
                "give fewer points or costs, or use a learner that needs no grid, such as 'bc' or 'gail'"
            )

    def points_along(self, n_points: int | None = None) -> int:
        """Return how many points each axis has, ``n_points`` if given, and refuse what does not fit."""
        if n_points is None:
            fitting = math.floor(math.pow(self.memory / self.bytes_for_each, 1 / self.n_dimensions))
            n_points = max(min(points_within(self.n_states, self.n_dimensions), fitting), _FEWEST_ALONG)
        self.check(str(n_points), n_points**self.n_dimensions)
        return n_points


def points_within(n_states: int, n_dimensions: int) -> int:
    """Return how many points an axis has of a grid with at most ``n_states``; at least two."""
    return max(2, min(_MOST_ALONG, math.floor(math.pow(n_states, 1 / n_dimensions))))


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
    within = max(first - margin, low), min(last + margin, high)
    # An entry that the space holds at one number needs two points all the same.
    first, last = within if within[0] < within[1] else (first - margin, last + margin)
    density = np.histogram(values, _N_BINS, (first, last))[0].astype(np.float64)
    reach = np.arange(-4 * _SMOOTHING, 4 * _SMOOTHING + 1)
    density = np.convolve(density, np.exp(-0.5 * (reach / _SMOOTHING) ** 2), "same")
    density = _EVEN / _N_BINS + (1 - _EVEN) * density / density.sum()
    shares = np.concatenate([[0.0], np.cumsum(density)])
    return np.interp(np.linspace(0.0, shares[-1], n_points), shares, np.linspace(first, last, _N_BINS + 1))


def choose_repeat(
    simulator: GenerativeModel, grid: Grid, visited: FloatArray, actions: ActionGrid, rng: np.random.Generator
) -> int:
    """Return for how many steps to hold an action, so that it moves half a cell in the mean over axes."""
    states = visited[rng.integers(len(visited), size=_N_MOVES)]
    done = actions.actions[rng.integers(len(actions), size=len(states))]
    after = np.asarray(simulator.sample_next(states, done, rng), dtype=np.float64)
    going = ~simulator.is_absorbing(after)
    if not going.any():
        return 1
    moved = 0.0
    for j, (axis, period) in enumerate(zip(grid.axes, grid.periods, strict=True)):
        change = np.abs(after[going, j] - states[going, j])
        if period > 0:
            change = np.minimum(change, period - change)
        place = np.clip(np.searchsorted(axis, states[going, j]) - 1, 0, axis.size - 2)
        moved += float(np.median(change / np.diff(axis)[place])) / grid.n_dimensions
    return min(_LONGEST_REPEAT, math.ceil(_CELL_SHARE / max(moved, 1e-9)))
