"""Value features of continuous observations: radial bases, random Fourier features, tiles.

All are functions of ``model.observe(states)``, (n, d), bounded by one; the absorbing state (a row of NaN) has the zero
row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.arguments import checked
from lfd_gym.costs.costs import hidden_rows
from lfd_gym.features.value_features import ValueFeatures
from lfd_gym.policies.tiles import TileGrid
from lfd_gym.validation import FloatArray, count, finite_array, numbers

#: More frequencies than this are no memory's.
_MOST_NUMBERS = 2**40


class RadialBasisFeatures(ValueFeatures):
    """Normalised Gaussian bumps: ψ_k(x) = e_k(x) / Σ_j e_j(x), e_k(x) = exp(−½‖(x − centre_k)/width‖²).

    The rows sum to one, so values lie between the smallest and the largest weight, also far from all centres.

    Parameters
    ----------
    centres
        (n_u, d).
    widths
        (d,) or a number: the standard deviation of a bump along each axis.
    """

    row_l1_bound = 1.0

    @checked
    def __init__(self, centres: ArrayLike, widths: ArrayLike) -> None:
        self.centres = finite_array("centres", centres, (None, None))
        self.n_features, self._dimension = self.centres.shape
        one = np.ndim(widths) == 0
        self.widths = np.broadcast_to(
            finite_array("widths", widths, () if one else (self._dimension,)), (self._dimension,)
        )
        if not (self.widths > 0).all():
            raise ValueError(f"widths must be positive, got {self.widths}")

    def evaluate(self, observations: ArrayLike) -> FloatArray:
        """Return the rows ψ_x of a batch, (n, n_u)."""
        return _on_visible(observations, self._dimension, self.n_features, self._rows)

    def _rows(self, points: FloatArray) -> FloatArray:
        scaled, centres = points / self.widths, self.centres / self.widths
        squares = (scaled**2).sum(axis=1)[:, None] - 2 * scaled @ centres.T + (centres**2).sum(axis=1)
        # Subtracting the nearest centre's distance first keeps far points from underflowing to 0/0.
        bumps = np.exp(-0.5 * (squares - squares.min(axis=1, keepdims=True)))
        return np.asarray(bumps / bumps.sum(axis=1, keepdims=True))


class RandomFourierFeatures(ValueFeatures):
    """ψ_k(x) = cos(⟨ω_k, x⟩ + b_k) with random frequencies ω_k ~ N(0, diag(widths)⁻²) and phases b_k ~ U[0, 2π).

    Their combinations approximate functions as smooth as a Gaussian kernel of the given widths.

    Parameters
    ----------
    n_features
        n_u.
    widths
        (d,): the length along each axis over which values vary.
    rng
        Draws the frequencies and phases.
    """

    @checked
    def __init__(self, n_features: int, widths: ArrayLike, rng: np.random.Generator) -> None:
        scales = finite_array("widths", widths, (None,))
        if not (scales > 0).all():
            raise ValueError(f"widths must be positive, got {scales}")
        self.n_features, self._dimension = count("n_features", n_features), scales.size
        if self.n_features * self._dimension > _MOST_NUMBERS:
            raise ValueError(f"n_features must be such that the frequencies fit into memory, got {n_features}")
        self.frequencies = rng.standard_normal((n_features, scales.size)) / scales
        self.phases = rng.uniform(0, 2 * np.pi, n_features)

    def evaluate(self, observations: ArrayLike) -> FloatArray:
        """Return the rows ψ_x of a batch, (n, n_u)."""
        return _on_visible(observations, self._dimension, self.n_features, self._rows)

    def _rows(self, points: FloatArray) -> FloatArray:
        return np.asarray(np.cos(points @ self.frequencies.T + self.phases))


class TileValueFeatures(ValueFeatures):
    """ψ_k(x) = 1 if tile k holds the observation x, else 0."""

    row_l1_bound = 1.0

    @checked
    def __init__(self, grid: TileGrid) -> None:
        self.grid = grid
        self.n_features, self._dimension = grid.n_tiles, len(grid.counts)

    def evaluate(self, observations: ArrayLike) -> FloatArray:
        """Return the rows ψ_x of a batch, (n, n_u)."""
        return _on_visible(observations, self._dimension, self.n_features, self._rows)

    def _rows(self, points: FloatArray) -> FloatArray:
        rows = np.zeros((len(points), self.n_features))
        rows[np.arange(len(points)), self.grid.index(points)] = 1.0
        return rows


def _on_visible(
    observations: ArrayLike, dimension: int, n_features: int, rows: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Apply ``rows`` to the observations that are not of the absorbing state, and leave zeros for those that are."""
    batch = numbers("observations", observations).astype(np.float64)
    if batch.ndim != 2 or batch.shape[1] != dimension:
        raise ValueError(f"observations must have shape (n, {dimension}), got {batch.shape}")
    visible = ~hidden_rows(batch)
    result = np.zeros((len(batch), n_features))
    with np.errstate(over="ignore", invalid="ignore"):  # told below
        result[visible] = rows(batch[visible])
    if np.isnan(result).any():
        raise ValueError(
            f"observations must not be so large that features overflow, got up to {np.nanmax(np.abs(batch))}"
        )
    return result
