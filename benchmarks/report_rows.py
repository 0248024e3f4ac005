"""The rows every benchmark prints: a ratio to a named reference measured in the same run, and the error reached."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measured case.

    Attributes
    ----------
    case
        What was solved, e.g. ``"gridworld 128², γ = 0.95"``.
    reference
        What it is compared with, e.g. ``"policy iteration with splu"``.
    reference_seconds, seconds
        Time of the reference and of this package, measured in the same run on the same instance.
    bar
        The ratio that is to be reached.
    error
        The error reached by both, as text.
    """

    case: str
    reference: str
    reference_seconds: float
    seconds: float
    bar: float
    error: str

    @property
    def ratio(self) -> float:
        """How many times faster than the reference."""
        return self.reference_seconds / self.seconds

    @property
    def passed(self) -> bool:
        """Whether the ratio reaches the bar."""
        return self.ratio >= self.bar


def print_rows(rows: Sequence[Row]) -> None:
    """Print ``rows`` as a table."""
    header = ("case", "reference", "reference s", "ours s", "ratio", "bar", "", "error reached")
    cells = [header]
    for row in rows:
        cells.append(
            (
                row.case,
                row.reference,
                f"{row.reference_seconds:.4g}",
                f"{row.seconds:.4g}",
                f"{row.ratio:,.1f}x",
                f"{row.bar:,g}x",
                "ok" if row.passed else "MISSED",
                row.error,
            )
        )
    widths = [max(len(line[k]) for line in cells) for k in range(len(header))]
    for line in cells:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def run_benchmark(main: Callable[[], Sequence[Row]], description: str) -> None:
    """Print the rows that ``main`` measures, or the description if the command line asks for help."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(description.strip())
    else:
        print_rows(main())
