"""Small tables of results, as text and for notebooks, with bounds rounded to the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

#: What of the last digit is taken for nothing: what solving linear systems leaves open, for one.
_NOTHING = 1e-3
#: Of less than this two digits of a per cent say nothing.
_SELDOM = 1e-4
#: Of more than this the last digits shown are those of the number.
_LARGE = 1e9


def at_most(value: float, digits: int) -> str:
    """Return an upper bound as text, rounded up: what is printed is true too.

    Examples
    --------
    >>> at_most(0.0001, 3), at_most(-0.0199, 2), at_most(0.3, 3)
    ('0.001', '-0.01', '0.300')
    """
    return f"{_in_units(math.ceil, value, -_NOTHING, digits):.{digits}f}"


def at_least(value: float, digits: int) -> str:
    """Return a lower bound as text, rounded down.

    Examples
    --------
    >>> at_least(0.0199, 3), at_least(-0.0001, 2)
    ('0.019', '-0.01')
    """
    return f"{_in_units(math.floor, value, _NOTHING, digits):.{digits}f}"


def probability(delta: float) -> str:
    """Return 1 − ``delta`` as text, never as certainty.

    Examples
    --------
    >>> probability(0.05), probability(0.0123456), probability(1e-6)
    ('95 %', '98.76 %', 'all but 1e-06')
    """
    return f"all but {delta:g}" if delta < _SELDOM else f"{float(at_least(100 * (1 - delta), 2)):g} %"


def _in_units(rounded: Callable[[float], int], value: float, nothing: float, digits: int) -> float:
    """Round to whole units of the last digit; a number so large has none to round, and an infinite one neither."""
    return rounded(value * 10**digits + nothing) / 10**digits if abs(value) < _LARGE else value


def html_table(heading: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML: what notebooks show in place of the text."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{escape(heading)}</caption><tr>{head}</tr>{body}</table>"
