"""Every tutorial runs, from its first cell to its last."""

import importlib.util

import pytest
from render_tutorials import cells, rendered, tutorial_files

#: What a tutorial needs beside the core.
EXTRAS = {"4_has_it_worked": "stable_baselines3", "5_which_costs": "stable_baselines3"}
SLOW = {"4_has_it_worked", "5_which_costs"}


@pytest.mark.parametrize(
    "tutorial",
    [
        pytest.param(tutorial, id=tutorial.stem, marks=[pytest.mark.slow] if tutorial.stem in SLOW else [])
        for tutorial in tutorial_files()
    ],
)
@pytest.mark.filterwarnings("default::lfd_gym.validation.LfdGymWarning")  # which tutorials show and explain
def test_runs(tutorial, tmp_path, monkeypatch):
    if tutorial.stem in EXTRAS and importlib.util.find_spec(EXTRAS[tutorial.stem]) is None:
        pytest.skip(f"needs {EXTRAS[tutorial.stem]}")
    monkeypatch.chdir(tmp_path)
    page = rendered(tutorial)
    assert page.text.startswith("# ")
    assert page.text.count("```text") >= 3
    for picture in page.pictures.values():
        assert picture.startswith(b"\x89PNG")


def test_there_are_tutorials():
    assert len(tutorial_files()) == 6


def test_cells_are_told_apart():
    found = cells("# %% [markdown]\n# Words\n\n# %%\nx = 1\nx\n")
    assert [(is_text, cell.strip()) for is_text, cell, _ in found] == [(True, "# Words"), (False, "x = 1\nx")]
    assert found[1][2] == 3
