"""``lfd-gym reproduce``: the data files say what they should, and there are pictures."""

import csv

import numpy as np
import pytest
from matplotlib.image import imread

from lfd_gym.benchmark import ResultsFolder
from lfd_gym.benchmark.presets import figure_spec
from lfd_gym.cli import main


def reproduce(what, folder, *flags):
    assert main(["reproduce", what, "--out", str(folder), *map(str, flags)]) == 0
    for stem in {path.stem for path in folder.glob("*.png")}:
        assert imread(folder / f"{stem}.png")[..., :3].std() > 0.02  # neither empty nor of one colour
        assert (folder / f"{stem}.svg").read_text().rstrip().endswith("</svg>")
        assert (folder / f"{stem}.pdf").read_bytes().startswith(b"%PDF")


def table(path):
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


def test_figure_has_the_papers_columns_and_reaches_the_expert(tmp_path):
    flags = ["--counts", 1, 100, "--runs", 3, "--learners", "cutting_plane", "tabular_bc"]
    reproduce("figure", tmp_path, *flags)
    lines = table(tmp_path / "sample_traj.csv")
    assert list(lines[0]) == ["n_traj", "rho_mean", "rho_std", "rho_min", "rho_max"]
    assert [line["n_traj"] for line in lines] == ["1", "100"]
    rows = ResultsFolder.open(tmp_path).rows()
    expert = rows[0]["evaluation"]["expert_true_cost"]
    assert expert == pytest.approx(-0.3536, abs=1e-3)  # the paper's
    for line in lines:
        costs = [
            row["evaluation"]["true_cost"]
            for row in rows
            if row["learner"] == "cutting_plane" and row["n_demonstrations"] == int(line["n_traj"])
        ]
        expected = [np.mean(costs), np.std(costs, ddof=1), min(costs), max(costs)]
        assert [float(line[key]) for key in list(line)[1:]] == pytest.approx(expected, abs=1e-6)
    assert abs(float(lines[1]["rho_mean"]) - expert) < 0.01
    both = table(tmp_path / "comparison.csv")
    assert [line["learner"] for line in both] == ["cutting_plane"] * 2 + ["tabular_bc"] * 2
    assert [line["rho_mean"] for line in both[:2]] == [line["rho_mean"] for line in lines]
    assert {path.stem for path in tmp_path.glob("*.png")} == {"figure", "comparison"}


def test_figure_takes_budgets_and_refuses_those_of_nobody():
    spec = figure_spec(("mirror_descent", "cutting_plane"), {"mirror_descent": 1000})
    assert [learner.budget for learner in spec.learners] == [1000, None]
    with pytest.raises(ValueError, match="budgets names 'gail', which is not among the learners cutting_plane"):
        figure_spec(budgets={"gail": 1})


def test_residual_falls_like_one_over_root_n(tmp_path):
    reproduce("residual", tmp_path, "--size", 3, "--iterations", 10_000, 1_000_000, "--runs", 4)
    lines = table(tmp_path / "residual.csv")
    assert len(lines) == 2 * 2 * 4

    def mean(schedule, n_iterations):
        chosen = [r for r in lines if (r["schedule"], r["n_iterations"]) == (schedule, str(n_iterations))]
        return np.mean([float(line["residual"]) for line in chosen])

    assert 5 < mean("practical", 10_000) / mean("practical", 1_000_000) < 20  # √100 = 10
    assert mean("paper", 10_000) > mean("paper", 1_000_000) > mean("practical", 1_000_000)
    paper = [line for line in lines if line["schedule"] == "paper"]
    assert all(0 <= float(line["cost_distance"]) <= float(line["residual"]) for line in paper)  # Proposition 4


def test_bounds_lie_above_the_truth_in_their_order(tmp_path):
    reproduce("bound", tmp_path, "--size", 3, "--iterations", 10_000, 200_000, "--runs", 2, "--demonstrations", 500)
    lines = table(tmp_path / "bound.csv")
    assert len(lines) == 2 * 2 * 2
    for line in lines:
        names = ("cost_distance", "certificate", "proposition_4")
        distance, certificate, proposition = (float(line[name]) for name in names)
        assert 0 <= distance <= certificate <= proposition
        if line["schedule"] == "paper":
            assert proposition <= float(line["theorem_1"])
        else:
            assert line["theorem_1"] == ""


def test_growth_covers_every_grid(tmp_path):
    reproduce("growth", tmp_path, "--sizes", 4, 16, "--iterations", 1000)
    lines = table(tmp_path / "growth.csv")
    names = ["paper schedule", "practical schedule", "Bellman update"]
    assert [(line["n_states"], line["what"]) for line in lines] == [(n, name) for n in ("16", "256") for name in names]
    assert all(float(line["seconds"]) > 0 for line in lines)


@pytest.mark.parametrize("what", ["residual", "bound", "growth"])
def test_what_was_found_before_is_not_replaced_unasked(tmp_path, what, capsys):
    (tmp_path / f"{what}.csv").write_text("hours of work")
    assert main(["reproduce", what, "--out", str(tmp_path)]) == 2
    assert f"{what}.csv exists already; --force replaces it" in capsys.readouterr().err
    assert (tmp_path / f"{what}.csv").read_text() == "hours of work"


def test_force_replaces_what_was_found_before(tmp_path):
    (tmp_path / "growth.csv").write_text("old")
    reproduce("growth", tmp_path, "--sizes", 4, "--iterations", 1000, "--force")
    assert table(tmp_path / "growth.csv")
