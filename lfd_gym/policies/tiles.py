"""Tiles over a box: which one holds a point, points drawn uniformly from one, and policies constant on each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.arguments import checked
from lfd_gym.policies.policy import Arrays, FinitePolicy
from lfd_gym.validation import FloatArray, IntArray, finite_array, indices_below, policy_array


class TileGrid:
    """Equal tiles over the box [low, high]; points outside belong to the nearest tile.

    Parameters
    ----------
    low, high
        (d,) finite corners of the box. Spaces with infinite bounds need limits of the user's choice.
    counts
        Number of tiles along each axis.

    Examples
    --------
    >>> grid = TileGrid([0.0, -1.0], [1.0, 1.0], counts=(2, 4))
    >>> grid.n_tiles
    8
    >>> grid.index([[0.1, -0.9], [0.9, 0.9]])
    array([0, 7])
    """

    @checked
    def __init__(self, low: ArrayLike, high: ArrayLike, counts: Sequence[int]) -> None:
        self.low = finite_array("low", low, (len(counts),))
        self.high = finite_array("high", high, (len(counts),))
        if (self.high <= self.low).any():
            raise ValueError(f"high must exceed low along every axis, got low {self.low} and high {self.high}")
        if len(counts) == 0 or min(counts) < 1:
            raise ValueError(f"counts must be at least 1 along every axis, got {tuple(counts)}")
        self.counts = tuple(int(n) for n in counts)
        self.n_tiles = math.prod(self.counts)  # exact: NumPy's product would overflow in silence
        if self.n_tiles > np.iinfo(np.int64).max:
            raise ValueError(f"counts must make tiles that 64-bit integers can number, got {self.counts}")
        self.widths: FloatArray = (self.high - self.low) / np.array(self.counts)

    def index(self, points: ArrayLike) -> IntArray:
        """Return the tile of each point of an (n, d) batch."""
        batch = finite_array("points", points, (None, len(self.counts)))
        position = np.floor((batch - self.low) / self.widths).astype(np.int64)
        along = np.clip(position, 0, np.array(self.counts) - 1)
        return np.asarray(np.ravel_multi_index(tuple(along.T), self.counts), dtype=np.int64)

    @checked
    def sample(self, tiles: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw one point uniformly from each named tile, (n, d)."""
        checked_tiles = indices_below("tiles", tiles, self.n_tiles).reshape(-1)
        along: NDArray[Any] = np.stack(np.unravel_index(checked_tiles, self.counts), axis=1)
        return np.asarray(self.low + (along + rng.random(along.shape)) * self.widths)


class TilePolicy(FinitePolicy):
    """A policy that is constant on the tiles of a grid, for models whose observations are the states.

    Parameters
    ----------
    grid
        The tiles.
    table
        (n_tiles, A), rows are distributions over actions.
    """

    kind: ClassVar[str] = "tiles"

    @checked
    def __init__(self, grid: TileGrid, table: ArrayLike) -> None:
        self.grid = grid
        rows = finite_array("table", table, (grid.n_tiles, None))
        self.table = policy_array("table", rows, *rows.shape)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, grid.low.shape, np.float64)
        self.action_space = gym.spaces.Discrete(self.table.shape[1])

    def probabilities(self, observations: ArrayLike) -> FloatArray:
        """Return the distributions over actions for a batch of states, (n, A)."""
        return np.asarray(self.table[self.grid.index(observations)])

    def to_data(self) -> tuple[dict[str, Any], Arrays]:
        """Return the table and the grid."""
        grid = self.grid
        return {}, {"table": self.table, "low": grid.low, "high": grid.high, "counts": np.array(grid.counts)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Arrays) -> TilePolicy:
        """Return the policy of a table over tiles."""
        return cls(TileGrid(arrays["low"], arrays["high"], arrays["counts"].tolist()), arrays["table"])

    def __repr__(self) -> str:
        return f"TilePolicy(n_tiles={self.grid.n_tiles}, n_actions={self.table.shape[1]})"
