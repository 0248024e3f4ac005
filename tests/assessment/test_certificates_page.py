"""What docs/certificates.md says that certificates print is what they print."""

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "certificates.md"
EXAMPLE = re.compile(r"^```python\n(?P<code>.*?)^```\n+(?:^```text\n(?P<text>.*?)^```$)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def printed():
    """Run the examples of the page in order; yield what each prints, and what the page says."""
    names = {"__name__": "__main__"}
    for example in EXAMPLE.finditer(PAGE.read_text(encoding="utf-8")):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(example["code"], names)
        yield out.getvalue(), example["text"]


def test_the_page_shows_what_is_printed():
    """Word by word; numbers of simulations may differ a little from machine to machine."""
    shown = [(found, said) for found, said in printed() if said is not None]
    assert len(shown) >= 8
    for found, said in shown:
        assert NUMBER.sub("#", found) == NUMBER.sub("#", said)
        numbers = [[float(number.replace(",", "")) for number in NUMBER.findall(text)] for text in (found, said)]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.01, abs=0.002)
