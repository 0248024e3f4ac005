"""Axes to draw on, and the shape of environments that are grids."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from lfd_gym.validation import check_type

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def new_axes() -> Axes:
    """Return axes on a figure of their own, which is none of pyplot's."""
    from matplotlib.figure import Figure

    return Figure(figsize=(6, 5), layout="constrained").add_subplot()


def axes_or_new(axes: Axes | None) -> Axes:
    """Return the axes that were given to be drawn on, or new ones."""
    from matplotlib.axes import Axes

    if axes is None:
        return new_axes()
    check_type("axes", axes, Axes, "matplotlib Axes")
    return axes


def save_figure(axes: Axes, path: str | Path | BinaryIO) -> None:
    """Write the figure that ``axes`` are on as PNG."""
    from matplotlib.figure import Figure

    figure = axes.figure
    assert isinstance(figure, Figure)
    figure.savefig(path, format="png")


def grid_shape(source: Any) -> tuple[int, int] | None:
    """Return the grid of our gridworld (``size``), FrozenLake (``nrow``, ``ncol``) and CliffWalking (``shape``)."""
    if hasattr(source, "nrow") and hasattr(source, "ncol"):
        return int(source.nrow), int(source.ncol)
    if hasattr(source, "state_positions") and hasattr(source, "size"):
        return int(source.size), int(source.size)
    shape = getattr(source, "shape", None)
    return (int(shape[0]), int(shape[1])) if isinstance(shape, tuple) and len(shape) == 2 else None
