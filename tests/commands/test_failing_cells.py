"""Runs of a benchmark that fail are reported, also the first; if all do, there is none."""

from lfd_gym import cli

SPEC = """
n_demonstrations = [2]
seeds = [0]
[[environments]]
label = "grid"
env_id = "lfd_gym/StochasticGridworld-v0"
kwargs = { size = 3 }
discount = 0.9
horizon = 10
"""
FAILS = '[[learners]]\nname = "mwal"\nbudget = -1\n'  # refused when it is to learn
WORKS = '[[learners]]\nname = "tabular_bc"\n'


def benchmark(folder, learners):
    (folder / "my.toml").write_text(SPEC + learners)
    return cli.main(["benchmark", "--spec", "my.toml", "--out", "mine", "--workers", "1"])


def test_a_first_cell_that_fails_is_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert benchmark(tmp_path, FAILS + WORKS) == 0
    said = capsys.readouterr().out
    assert "failed: grid/mwal/m=2/seed=0" in said
    assert "budget must be at least 1" in said
    page = (tmp_path / "mine" / "report.html").read_text()
    assert "1 runs failed" in page
    assert "tabular_bc" in page
    assert cli.main(["report", "mine"]) == 0


def test_if_all_fail_there_is_no_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert benchmark(tmp_path, FAILS) == 2
    said = capsys.readouterr()
    assert "failed: grid/mwal/m=2/seed=0" in said.out
    assert said.err.endswith("lfd-gym: mine has no finished cell to report on\n")
