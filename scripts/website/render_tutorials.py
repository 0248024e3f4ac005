"""Tutorials are plain Python files in percent format; here they are run and become pages.

A cell begins with ``# %%``, one of text with ``# %% [markdown]``. What a cell prints comes under it, and so does the
value of its last expression: Axes as a picture, anything else as text. An error in a cell is an error of the build.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
_CELL = re.compile(r"^# %%(.*)$", re.MULTILINE)


@dataclass
class Page:
    """A tutorial as Markdown, and its pictures by name."""

    text: str = ""
    pictures: dict[str, bytes] = field(default_factory=dict)


def tutorial_files() -> list[Path]:
    """Return the tutorials in their order."""
    return sorted(FOLDER.glob("[0-9]_*.py"))


def rendered(tutorial: Path, run: bool = True) -> Page:
    """Run a tutorial and return its page; without ``run`` only its text, for those who write on other pages."""
    page, names = Page(), {"__name__": "__main__", "__file__": str(tutorial)}
    parts: list[str] = []
    for is_text, cell, line in cells(tutorial.read_text(encoding="utf-8")):
        if is_text:
            parts.append(_without_hashes(cell))
            continue
        parts.append(f"```python\n{cell.strip()}\n```")
        printed, value = run_cell(cell, line, str(tutorial), names) if run else ("", None)
        picture = _picture(value)
        if picture is not None:
            name = f"{tutorial.stem}_{len(page.pictures) + 1}.png"
            page.pictures[name] = picture
            parts.append(f"![{value.get_title() or tutorial.stem}]({name})")
        elif value is not None:
            printed += repr(value)
        if printed.strip():
            parts.append(f"```text\n{printed.rstrip()}\n```")
    parts.append(f"*This page is the file `docs/tutorials/{tutorial.name}`, run when the site was built.*")
    page.text = "\n\n".join(parts) + "\n"
    return page


def cells(source: str) -> list[tuple[bool, str, int]]:
    """Return (whether it is text, what is in it, the line before its first) for each cell."""
    marks = list(_CELL.finditer(source))
    ends = [mark.start() for mark in marks[1:]] + [len(source)]
    return [
        ("[markdown]" in mark[1], source[mark.end() : end], source[: mark.end()].count("\n"))
        for mark, end in zip(marks, ends, strict=True)
    ]


def run_cell(cell: str, line: int, file: str, names: dict[str, Any]) -> tuple[str, Any]:
    """Run a cell; return what it printed, and the value of its last expression."""
    tree = ast.parse("\n" * line + cell, file)  # padding keeps the file's line numbers in tracebacks
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None  # type: ignore[attr-defined]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, file, "exec"), names)
        value = None if last is None else eval(compile(last, file, "eval"), names)
    return printed.getvalue(), value


def _without_hashes(cell: str) -> str:
    return re.sub(r"^# ?", "", cell.strip("\n"), flags=re.MULTILINE).strip()


def _picture(value: Any) -> bytes | None:
    from matplotlib.axes import Axes

    if not isinstance(value, Axes):
        return None
    data = io.BytesIO()
    value.figure.savefig(data, format="png", dpi=90)
    return data.getvalue()
