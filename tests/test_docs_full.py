"""Every Python example of the README and the docs runs, every command and spec in them is understood."""

import re
import shlex
from pathlib import Path

import pytest
import tyro
from api_pages import api_pages
from render_tutorials import tutorial_files

from lfd_gym.benchmark.reading import read_spec
from lfd_gym.cli import AnyCommand

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
#: Pages that exist on the site only, and what they are made from.
GENERATED = {
    **{ROOT / "docs" / "tutorials" / f"{file.stem}.md": file for file in tutorial_files()},
    **{ROOT / "docs" / path: None for path in api_pages()},
}
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^lfd-gym (.*)$", re.MULTILINE)
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@pages
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    names = {"__name__": "__main__"}
    for match in PYTHON.finditer(page.read_text()):
        line = page.read_text()[: match.start()].count("\n") + 2
        # Padding keeps the page's line numbers in tracebacks.
        exec(compile("\n" * (line - 1) + match[1], str(page), "exec"), names)


@pages
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert [target for target in missing if (page.parent / target).resolve() not in GENERATED] == []


@pages
def test_links_lead_to_headings_that_exist(page):
    for target, anchor in re.findall(r"\]\((?!https?://)([^)#\s]*)#([^)\s]+)\)", page.read_text()):
        other = page.parent / target if target else page
        headings = re.findall(r"^#+ (.*)$", other.read_text(), re.MULTILINE)
        assert anchor in [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pages
def test_commands_are_understood(page):
    for words in COMMAND.findall(page.read_text()):
        arguments = shlex.split(words, comments=True)
        assert tyro.cli(AnyCommand, args=arguments) is not None, words


def test_specs_are_understood(tmp_path):
    specs = [spec for page in PAGES for spec in TOML.findall(page.read_text())]
    assert specs
    for spec in specs:
        (tmp_path / "spec.toml").write_text(spec)
        read_spec(tmp_path / "spec.toml", imported=["my_module"])


def test_pages_have_examples_and_commands():
    text = "".join(page.read_text() for page in PAGES)
    assert len(PYTHON.findall(text)) > 10
    assert len(COMMAND.findall(text)) > 10


@pytest.mark.parametrize("page", ["gridworld", "garnet", "tabular"])
def test_pages_on_environments_have_the_sections_of_gymnasiums(page):
    text = (ROOT / "docs" / "environments" / f"{page}.md").read_text()
    wanted = [
        "Description",
        "Action space",
        "Observation space",
        "Rewards",
        "Starting state",
        "Episode end",
        "Arguments",
    ]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [*wanted, "Version history"]
    (picture,) = re.findall(r"!\[.+\]\((.*?)\)", text)
    assert (ROOT / "docs" / "environments" / picture).is_file()


def test_every_page_has_a_place_in_the_navigation():
    named = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    written = {page.name for page in (ROOT / "docs").glob("*.md")} - {"package.md"}
    assert {page for page in written if f" {page}\n" not in named} == set()
