"""The reference of the site has every public name."""

import re
from pathlib import Path

from api_pages import PUBLIC_MODULES, api_pages, public_names

import lfd_gym

ROOT = Path(__file__).parents[1]


def test_every_public_name_has_its_place():
    described = re.findall(r"^::: (.+)$", "".join(api_pages().values()), re.MULTILINE)
    assert sorted(described) == sorted(public_names())
    assert {f"lfd_gym.{name}" for name in lfd_gym.__all__} <= {*described, *PUBLIC_MODULES}


def test_public_modules_are_public_names():
    assert {module.rpartition(".")[2] for module in PUBLIC_MODULES[1:]} <= set(lfd_gym.__all__)


def test_the_page_for_an_index_stands_alone():
    """An index shows no files of the repository: links and pictures of it would lead nowhere."""
    text = (ROOT / "docs" / "package.md").read_text()
    assert re.findall(r"\]\((?!https://)", text) == []
    assert "<img" not in text
