"""Environments, learners and experts in a module of the current folder, as an installed `lfd-gym` finds them."""

import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from own_module import write_own_module

from lfd_gym import Demonstrations
from lfd_gym.baselines.learner import _LEARNERS
from lfd_gym.commands.experts import named_policy

README = Path(__file__).parents[2] / "README.md"
#: What the script that pip installs does: the current folder is not on its path.
INSTALLED = "import sys; sys.path[:] = [p for p in sys.path if p]; from lfd_gym.cli import main; sys.exit(main())"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_own_module(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lfd_gym(*words):
    return subprocess.run([sys.executable, "-c", INSTALLED, *map(str, words)], capture_output=True, text=True)


COLLECT = "--env", "my_module:Warehouse-v0", "--out", "x.npz", "--expert"


def forget():
    """Undo what importing the module does in this process."""
    sys.modules.pop("my_module", None)
    gym.registry.pop("Warehouse-v0", None)
    _LEARNERS.pop("smoothed_bc", None)


def works(*words):
    done = lfd_gym(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fails(*words):
    done = lfd_gym(*words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


def test_from_collecting_to_a_certificate(folder):
    works("collect", "--env", "my_module:Warehouse-v0", "--expert", "my_module:fill_up", "--out", "days.npz")
    demos = Demonstrations.load("days.npz")
    assert demos.provenance.env_id == "my_module:Warehouse-v0"
    assert (demos.actions == (4 - demos.acted_on).clip(0, 3)).all()
    assert demos.horizon == 100
    train = "train", "--demonstrations", "days.npz", "--out", "run"
    assert "give --import my_module if you trust it" in fails(*train)
    # Whoever names the module by the learner in it has named it.
    assert "smoothed_bc learned in" in works(*train, "--learner", "my_module:smoothed_bc", "--settings", "visits=0.1")
    assert "give --import my_module if you trust it" in fails("evaluate", "run")
    works("certify", "run", "--import", "my_module")


def test_the_benchmark_of_the_readme(folder):
    small_spec(folder)
    (line,) = re.findall(r"^lfd-gym (benchmark --spec my.toml --out out/mine.*?) *(?:#.*)?$", README.read_text(), re.M)
    (folder / "out").mkdir()
    shown = works(*line.split(), "--workers", "1")
    assert "failed" not in shown
    assert "smoothed_bc" in shown
    assert "warehouse" in (folder / "out" / "mine" / "report.html").read_text()


def small_spec(folder):
    """Write README's spec to the folder, with little to do."""
    (spec,) = re.findall(r"^```toml\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    small = spec.replace("[1, 10, 100]", "[2]").replace("[0, 1, 2, 3, 4]", "[0]").replace("1000000", "2000")
    assert small.count("my_module:") == 2
    (folder / "my.toml").write_text(small)


def test_the_lines_of_the_page_on_the_command_line(folder):
    page = (README.parent / "docs" / "command_line.md").read_text(encoding="utf-8")
    chapter = page.split("## Environments, learners and experts of your own")[1].split("\n## ")[0]
    (block,) = re.findall(r"```sh\n(.*?)```", chapter, re.DOTALL)
    small_spec(folder)
    lines = block.splitlines()
    assert [line.split()[1] for line in lines] == ["collect", "train", "evaluate", "benchmark"]
    for line in lines:
        works(*line.split()[1:])


def test_mistakes_of_a_spec_are_listed_at_once_before_anything_runs(folder):
    (folder / "bad.toml").write_text(
        """
n_demonstrations = [1]
seeds = [0]
color = "red"
[[environments]]
label = "ware house"
env_id = "my_module:Warehouse-v0"
discount = 0.9
horizon = 10
[[learners]]
name = "tabular_bc"
bugdet = 5
[[environments]]
label = "warehouse"
env_id = "my_module:Warehouse-v0"
kwargs = { capacty = 3 }
discount = 0.9
horizon = 10
[[learners]]
name = "tabular_cb"
[[learners]]
name = "mwal"
settings = { speed = 3 }
"""
    )
    said = fails("benchmark", "--spec", "bad.toml", "--out", "mine", "--import", "my_module")
    for mistake in (
        "benchmark has no setting 'color'",
        "without '/', '=' or spaces",
        "has no setting 'bugdet'",
        "no argument 'capacty'",
        "there is no learner 'tabular_cb'",
        "no setting 'speed'",
    ):
        assert mistake in said
    assert not (folder / "mine").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_module:best", "module my_module has no best"),
        ("my_module:NotAnObject", "is a class"),
        ("my_module:number", "policy must be"),
        ("no_module:best", "there is no module no_module, neither installed nor in the current folder"),
    ],
)
def test_what_is_not_in_the_module_is_named(folder, monkeypatch, name, message):
    monkeypatch.syspath_prepend(folder)
    forget()  # README's examples, which other tests run, register the same names
    try:
        with pytest.raises((ValueError, ImportError), match=message):
            named_policy(name, None, trust=False)
    finally:
        forget()


def test_files_of_the_current_folder_take_the_place_of_no_installed_module(folder):
    for name in ("scipy", "json"):
        (folder / f"{name}.py").write_text("raise SystemExit('the wrong module')")
    assert "module my_module has no best" in fails("collect", *COLLECT, "my_module:best")
