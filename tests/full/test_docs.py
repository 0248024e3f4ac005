"""Every Python example of the README and the docs runs, in order, in a folder of its own."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    names = {"__name__": "__main__"}
    for match in BLOCK.finditer(page.read_text()):
        line = page.read_text()[: match.start()].count("\n") + 2
        # Padding keeps the page's line numbers in tracebacks.
        exec(compile("\n" * (line - 1) + match[1], str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_pages_have_examples():
    assert sum(len(BLOCK.findall(page.read_text())) for page in PAGES) > 0
