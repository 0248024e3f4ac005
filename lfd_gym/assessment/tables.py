"""Small tables of results, as text and for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_table(heading: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML: what notebooks show in place of the text."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{escape(heading)}</caption><tr>{head}</tr>{body}</table>"
