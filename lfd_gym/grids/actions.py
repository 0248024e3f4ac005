"""Finitely many actions in place of a space of them: all of a `Discrete` one, an even grid over a `Box`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.grids.grid import Grid
from lfd_gym.validation import FloatArray, IntArray

#: Along each dimension of a box of one and of two dimensions, if the number is not given.
_DEFAULT_COUNTS = {1: 11, 2: 5}


class ActionGrid:
    """The actions that a grid model knows.

    Parameters
    ----------
    space
        `Discrete`, or a bounded `Box` of one or two numbers.
    n_actions
        How many there are along each dimension of a `Box`; by default 11 of one, 5 of each of two.

    Attributes
    ----------
    actions
        (A, …) elements of ``space``.

    Examples
    --------
    >>> known = ActionGrid(gym.spaces.Box(-2.0, 2.0, (1,)), n_actions=5)
    >>> known.actions.ravel()
    array([-2., -1.,  0.,  1.,  2.], dtype=float32)
    >>> known.interpolate([[0.25]])
    (array([[2, 3]]), array([[0.75, 0.25]]))
    """

    def __init__(self, space: gym.Space[Any], n_actions: int | None = None) -> None:
        refused = action_problem(space)
        if refused:
            raise ValueError(f"action_space {refused}")
        self.space = space
        self._grid: Grid | None = None
        if isinstance(space, gym.spaces.Discrete):
            if n_actions not in (None, int(space.n)):
                raise ValueError(f"n_actions must be all {space.n} of {space}, got {n_actions}")
            self.actions: NDArray[Any] = np.arange(space.start, space.start + space.n)
            return
        assert isinstance(space, gym.spaces.Box)
        low, high = space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
        count = _DEFAULT_COUNTS[low.size] if n_actions is None else n_actions
        if count < 2:
            raise ValueError(f"n_actions must be at least 2 along each dimension of {space}, got {n_actions}")
        self._grid = Grid([np.linspace(a, b, count) for a, b in zip(low, high, strict=True)])
        # Rounded to the type of the space a point may come to lie just outside.
        points = self._grid.points.astype(space.dtype).reshape(-1, *space.shape)
        self.actions = np.clip(points, space.low, space.high)

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def n_along(self) -> int:
        """How many there are along each dimension: with the space, all that tells the actions."""
        return len(self) if self._grid is None else self._grid.shape[0]

    def interpolate(self, actions: ArrayLike) -> tuple[IntArray, FloatArray]:
        """Return (n, k) numbers of known actions and their weights that stand for each of ``actions``."""
        batch = np.asarray(actions)
        if self._grid is not None:
            return self._grid.interpolate(batch.reshape(len(batch), -1))
        assert isinstance(self.space, gym.spaces.Discrete)
        return (batch.astype(np.int64) - int(self.space.start))[:, None], np.ones((len(batch), 1))

    def __repr__(self) -> str:
        return f"ActionGrid({len(self)} of {self.space})"


def action_problem(space: gym.Space[Any]) -> str:
    """Return why actions of ``space`` cannot be finitely many ones, empty if they can."""
    if isinstance(space, gym.spaces.Discrete):
        return ""
    if not isinstance(space, gym.spaces.Box):
        return f"must be Discrete or a Box of one or two numbers for a grid, got {space}"
    size = int(np.prod(space.shape))
    if size not in _DEFAULT_COUNTS or not space.is_bounded():
        return f"must be Discrete or a bounded Box of one or two numbers for a grid, got {space}"
    return ""
