"""Rectilinear grids: points of a box, and every other point as a mean of those around it.

A point x in a cell is written as Σ_k λ_k p_k with weights λ ≥ 0, Σ λ_k = 1, over corners p_k of the cell:

- ``"multilinear"``: all 2^d corners, λ the product of the linear weights along each axis;
- ``"simplex"``: the d + 1 corners of the one simplex of Kuhn's triangulation that holds x. With the fractions of x
  in its cell in falling order, f_(1) ≥ … ≥ f_(d), one goes from the lowest corner to the highest one axis at a time in
  that order, and the weights are 1 − f_(1), f_(1) − f_(2), …, f_(d).

Both reproduce linear functions exactly, and a function with second derivatives up to M in cells of diameter h up to
M h²/2. Rows of the second are shorter, which is what counts from four dimensions on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym._jit import jit
from lfd_gym.arguments import checked
from lfd_gym.validation import FloatArray, IntArray, finite_array

Interpolation = Literal["multilinear", "simplex"]

#: Of a multilinear grid: 2^d corners a point.
_MOST_MULTILINEAR = 10


class Grid:
    """The points of a product of axes, which may be uneven, and periodic where they are angles.

    Parameters
    ----------
    axes
        The coordinates along each axis, increasing, at least two each.
    periods
        The period of each axis, 0 for one that does not close: the last of its points then neighbours the first.
        None: no axis does.
    interpolation
        Which corners stand for a point, see the module.

    Attributes
    ----------
    axes
        As given, read-only.
    periods
        (d,).
    shape
        How many points each axis has.
    n_points
        How many there are in all.
    n_corners
        How many of them stand for any other point.

    Examples
    --------
    >>> grid = Grid([[0.0, 1.0, 4.0], [0.0, 2.0]])
    >>> grid
    Grid(3 x 2 points, multilinear)
    >>> corners, weights = grid.interpolate([[2.5, 1.0]])
    >>> (weights[..., None] * grid.points[corners]).sum(axis=1)
    array([[2.5, 1. ]])
    """

    @checked
    def __init__(
        self,
        axes: Sequence[ArrayLike],
        periods: Sequence[float] | None = None,
        interpolation: Interpolation = "multilinear",
    ) -> None:
        if not len(axes):
            raise ValueError("axes must be one or more")
        self.axes = tuple(finite_array(f"axes[{j}]", axis, (None,)).copy() for j, axis in enumerate(axes))
        self.periods = finite_array("periods", np.zeros(len(axes)) if periods is None else periods, (len(axes),))
        if interpolation not in get_args(Interpolation):
            raise ValueError(f"interpolation must be one of {get_args(Interpolation)}, got {interpolation!r}")
        if interpolation == "multilinear" and len(axes) > _MOST_MULTILINEAR:
            raise ValueError(f"interpolation must be 'simplex' in more than {_MOST_MULTILINEAR} dimensions")
        for j, (axis, period) in enumerate(zip(self.axes, self.periods, strict=True)):
            if axis.size < 2 or (np.diff(axis) <= 0).any():
                raise ValueError(f"axes[{j}] must be two or more increasing numbers, got {axis}")
            if period < 0 or 0 < period <= axis[-1] - axis[0]:
                raise ValueError(
                    f"periods[{j}] must be 0, or more than the {axis[-1] - axis[0]} that the axis spans, got {period}"
                )
            axis.flags.writeable = False
        self.interpolation: Interpolation = interpolation
        self.shape = tuple(axis.size for axis in self.axes)
        self.n_points = math.prod(self.shape)
        self.n_corners = corners_of(len(self.axes), interpolation)
        self._ends = np.concatenate([[0], np.cumsum(self.shape)])
        self._strides = np.array([math.prod(self.shape[j + 1 :]) for j in range(len(self.shape))], dtype=np.int64)

    @property
    def n_dimensions(self) -> int:
        """How many axes there are."""
        return len(self.axes)

    @property
    def points(self) -> FloatArray:
        """(n_points, d), the last coordinate running fastest."""
        return np.stack([part.ravel() for part in np.meshgrid(*self.axes, indexing="ij")], axis=1)

    @checked
    def interpolate(self, states: ArrayLike) -> tuple[IntArray, FloatArray]:
        """Return (n, n_corners) numbers of points and their weights; what lies outside counts as on the edge."""
        batch = np.ascontiguousarray(finite_array("states", states, (None, len(self.axes))))
        corners = np.empty((len(batch), self.n_corners), dtype=np.int64)
        weights = np.empty((len(batch), self.n_corners))
        _interpolate(
            batch,
            np.concatenate(self.axes),
            self._ends,
            self._strides,
            self.periods,
            self.interpolation == "simplex",
            corners,
            weights,
        )
        return corners, weights

    @checked
    def inside(self, states: ArrayLike) -> NDArray[np.bool_]:
        """Say which of (n, d) states lie in the box; along a periodic axis all do."""
        batch = finite_array("states", states, (None, len(self.axes)))
        low, high = self.bounds
        return np.asarray((((batch >= low) & (batch <= high)) | (self.periods > 0)).all(axis=1))

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest coordinate along each axis, (d,) each."""
        return np.array([axis[0] for axis in self.axes]), np.array([axis[-1] for axis in self.axes])

    def to_data(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the grid as JSON values and arrays."""
        arrays = {f"axis{j}": axis for j, axis in enumerate(self.axes)}
        return {"interpolation": self.interpolation}, {"periods": self.periods, **arrays}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Grid:
        """Return the grid that `to_data` described."""
        periods = arrays["periods"]
        return cls([arrays[f"axis{j}"] for j in range(periods.size)], periods.tolist(), data["interpolation"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grid):
            return NotImplemented
        return (
            self.interpolation == other.interpolation
            and np.array_equal(self.periods, other.periods)
            and self.shape == other.shape
            and all(map(np.array_equal, self.axes, other.axes))
        )

    def __hash__(self) -> int:
        return hash((self.interpolation, self.shape, *(axis.tobytes() for axis in self.axes)))

    def __repr__(self) -> str:
        return f"Grid({' x '.join(map(str, self.shape))} points, {self.interpolation})"


def corners_of(n_dimensions: int, interpolation: Interpolation) -> int:
    """Return how many points stand for any other."""
    return n_dimensions + 1 if interpolation == "simplex" else 2**n_dimensions


@jit
def _interpolate(
    states: FloatArray,
    points: FloatArray,
    ends: IntArray,
    strides: IntArray,
    periods: FloatArray,
    simplex: bool,
    corners: IntArray,
    weights: FloatArray,
) -> None:
    n_dimensions = states.shape[1]
    low = np.empty(n_dimensions, dtype=np.int64)
    # How much further along `corners` the next point of the axis is: less than nothing where a period closes.
    step = np.empty(n_dimensions, dtype=np.int64)
    fraction = np.empty(n_dimensions)
    order = np.empty(n_dimensions, dtype=np.int64)
    for row in range(len(states)):
        base = 0
        for j in range(n_dimensions):
            low[j], fraction[j] = _locate(states[row, j], points[ends[j] : ends[j + 1]], periods[j])
            base += low[j] * strides[j]
            last = ends[j + 1] - ends[j] - 1
            step[j] = strides[j] if low[j] < last else -last * strides[j]
        if simplex:
            _sort_falling(fraction, order)
            corners[row, 0] = base
            weights[row, 0] = 1.0 - fraction[order[0]]
            for k in range(n_dimensions):
                base += step[order[k]]
                following = fraction[order[k + 1]] if k + 1 < n_dimensions else 0.0
                corners[row, k + 1] = base
                weights[row, k + 1] = fraction[order[k]] - following
        else:
            corners[row, 0] = base
            weights[row, 0] = 1.0
            size = 1
            for j in range(n_dimensions):  # each axis doubles the corners
                for k in range(size):
                    corners[row, size + k] = corners[row, k] + step[j]
                    weights[row, size + k] = weights[row, k] * fraction[j]
                    weights[row, k] *= 1.0 - fraction[j]
                size *= 2


@jit
def _locate(value: float, axis: FloatArray, period: float) -> tuple[int, float]:
    """Return the point below ``value`` along an axis, and how far it lies on the way to the next."""
    first, last = axis[0], axis[-1]
    if period > 0.0:
        value = first + (value - first) % period
        if value >= last:
            # By rounding it may come out a period later, where the first point is.
            return axis.size - 1, min((value - last) / (first + period - last), 1.0)
    if value <= first:
        return 0, 0.0
    if value >= last:
        return axis.size - 2, 1.0
    below = int(np.searchsorted(axis, value, side="right")) - 1
    return below, (value - axis[below]) / (axis[below + 1] - axis[below])


@jit
def _sort_falling(values: FloatArray, order: IntArray) -> None:
    """Write the order in which ``values`` fall; few as they are, by insertion."""
    for k in range(values.size):
        place = k
        while place > 0 and values[order[place - 1]] < values[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
