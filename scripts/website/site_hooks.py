"""What mkdocs does for the site beside rendering Markdown.

It generates the API reference, runs the tutorials, takes in pages from the root of the repository and the sources that
pages link to, and looks at what was built: every public name must be there, and nothing may be loaded from elsewhere.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from api_pages import api_pages, public_names
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from render_tutorials import rendered, tutorial_files

import lfd_gym

ROOT = Path(__file__).resolve().parents[2]
FROM_THE_ROOT = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "code_of_conduct.md": "CODE_OF_CONDUCT.md",
}
#: A link out of the folder of a page, to a file of a kind that the repository has; some of them lead out of docs/.
_OUT_OF_FOLDER = re.compile(r"\]\(((?:\.\./)+)([\w./-]+\.(?:py|toml|md|txt|cff))\)")
#: What makes a browser load something: links to follow are none.
_LOADED = re.compile(
    r"<(?:script|img|iframe|source|audio|video)\b[^>]*\bsrc=[\"']?(?:https?:)?//"
    r"|<link\b[^>]*\brel=[\"']?(?:stylesheet|preconnect|icon)[^>]*\bhref=[\"']?(?:https?:)?//"
    r"|<link\b[^>]*\bhref=[\"']?(?:https?:)?//[^>]*\brel=[\"']?(?:stylesheet|preconnect|icon)"
)


def on_config(config: Any) -> Any:
    """Put the version into the title; into the navigation the reference, and pages that it does not name yet."""
    config.site_name = f"lfd_gym {lfd_gym.__version__}"
    named = str(config.nav)
    for section in config.nav:
        if "Reference" in section:
            section["Reference"] = list(api_pages())
        if "How-to" in section:
            pages = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
            section["How-to"] += [page for page in pages if page not in named and page != "package.md"]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add what is generated."""
    pages = {**api_pages(), **_pages_from_the_root()}
    for tutorial in tutorial_files():
        with _in_a_folder_of_its_own():  # tutorials write files
            page = rendered(tutorial, run=config.extra["run_tutorials"])
        pages[f"tutorials/{tutorial.stem}.md"] = page.text
        for name, picture in page.pictures.items():
            files.append(File.generated(config, f"tutorials/{name}", content=picture))
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    for source in _linked_sources(files):
        files.append(File.generated(config, f"source/{source}.txt", abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links to files of the repository into links to copies of them that are part of the site."""
    up = "../" * page.file.src_uri.count("/")

    def link(found: re.Match[str]) -> str:
        return f"]({up}source/{found[2]}.txt)" if found[1] == f"../{up}" else found[0]

    return _OUT_OF_FOLDER.sub(link, markdown)


def on_post_build(config: Any) -> None:
    """Fail if a public name is missing, or if a page loads anything from elsewhere."""
    pages = {page: page.read_text(encoding="utf-8") for page in Path(config.site_dir).rglob("*.html")}
    reference = "".join(text for page, text in pages.items() if page.parent.name == "api")
    missing = [name for name in public_names() if f'id="{name}"' not in reference]
    if missing:
        raise PluginError(f"the reference lacks {missing}")
    loading = [str(page) for page, text in pages.items() if _LOADED.search(text)]
    if loading:
        raise PluginError(f"pages load something from elsewhere: {loading}")


@contextmanager
def _in_a_folder_of_its_own() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _pages_from_the_root() -> dict[str, str]:
    pages = {}
    for name, source in FROM_THE_ROOT.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        text = re.sub(r"\]\(docs/", "](", text)
        for other, path in FROM_THE_ROOT.items():
            text = text.replace(f"]({path})", f"]({other})")
        pages[name] = text
    return pages


def _linked_sources(files: Files) -> list[str]:
    """Return the files of the repository, outside of docs/, that pages link to."""
    return sorted(
        {
            path
            for file in files.documentation_pages()
            for up, path in _OUT_OF_FOLDER.findall(file.content_string)
            if up.count("/") > file.src_uri.count("/")
        }
    )
