"""Ψ of the hat functions of a grid, for Algorithm 1 on a continuous space."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.costs.costs import hidden_rows
from lfd_gym.features.value_features import ValueFeatures
from lfd_gym.grids.grid import Grid
from lfd_gym.grids.policies import StatesOf
from lfd_gym.validation import FloatArray


class HatValueFeatures(ValueFeatures):
    """One hat for each point of a grid: 1 there, 0 at the others, and interpolated between them.

    Combinations are the functions that the grid interpolates, the same as the values of a `GridModel`.

    Parameters
    ----------
    grid
        Over states.
    states_of
        Tells states from observations, if these are not the states themselves.

    Examples
    --------
    >>> hats = HatValueFeatures(Grid([[0.0, 1.0, 3.0]]))
    >>> hats.evaluate([[0.25], [3.0]])
    array([[0.75, 0.25, 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    def __init__(self, grid: Grid, states_of: StatesOf | None = None) -> None:
        self.grid, self._states_of = grid, states_of
        self.n_features = grid.n_points

    @property
    def row_l1_bound(self) -> float:
        """1: the hats add up to one everywhere."""
        return 1.0

    def evaluate(self, observations: ArrayLike) -> FloatArray:
        """Return the rows ψ_x of a batch, (n, n_points); zero where the episode is over."""
        seen = np.asarray(observations, dtype=np.float64)
        rows = np.zeros((len(seen), self.n_features))
        going = np.flatnonzero(~hidden_rows(seen))
        states = seen[going] if self._states_of is None else self._states_of(seen[going])
        corners, weights = self.grid.interpolate(states)
        np.add.at(rows, (going[:, None], corners), weights)
        return rows

    def __repr__(self) -> str:
        return f"HatValueFeatures({self.grid})"
