"""Writing the data of a figure as CSV and the figure itself as PNG, SVG and PDF."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lfd_gym.files import replacing_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value = str | int | float | None


def write_table(path: Path, columns: Sequence[str], lines: Iterable[Sequence[Value]]) -> Path:
    """Write a CSV file; floats with six significant digits, nothing for None."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing_file(path, overwrite=True) as unfinished, open(unfinished, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        for line in lines:
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in line])
    return path


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write ``figure`` as PNG, SVG and PDF, and return the paths."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    written = []
    for suffix in ("png", "svg", "pdf"):
        path = stem.with_suffix(f".{suffix}")
        with replacing_file(path, overwrite=True) as unfinished:
            figure.savefig(unfinished, format=suffix, dpi=200)
        written.append(path)
    return written
