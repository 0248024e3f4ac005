"""The results page is what the command makes of the committed files, and a run is added by one command."""

import json

import pytest
import results_page
from benchmark_rows import Here

from lfd_gym.benchmark import BenchmarkSpec, EnvironmentSpec, LearnerSpec, ResultsFolder, run_benchmark

RESULTS = results_page.ROOT / "benchmarks" / "results"


def test_the_page_is_made_from_the_committed_files():
    assert (results_page.ROOT / "docs" / "results.md").read_text(encoding="utf-8") == results_page.page(RESULTS)


def test_result_files_are_small():
    assert sum(file.stat().st_size for file in RESULTS.iterdir()) < 1e6


@pytest.fixture
def run(tmp_path):
    spec = BenchmarkSpec(
        environments=(EnvironmentSpec("grid3", "lfd_gym/StochasticGridworld-v0", 0.9, 20, {"size": 3}),),
        learners=(LearnerSpec("tabular_bc"), LearnerSpec("cutting_plane")),
        n_demonstrations=(2,),
        seeds=(0, 1, 2),
    )
    run_benchmark(spec, tmp_path / "mine", Here(), progress_bar=False)
    return tmp_path / "mine"


def test_a_run_is_added_by_one_command_and_replaces_itself(run, tmp_path):
    results, page = tmp_path / "results", tmp_path / "results.md"
    results.mkdir()
    (results / "published.json").write_bytes((RESULTS / "published.json").read_bytes())
    arguments = ["--add", str(run), "--results", str(results), "--page", str(page)]
    assert results_page.main(arguments) == 0
    text = page.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in (results / "mine.jsonl").read_text().splitlines()]
    assert len(lines) == 6
    assert "- `mine`: 6 runs; tabular_bc, cutting_plane on grid3 with 2 demonstrations, seeds 0, 1, 2, Gymn" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| 2 | `cutting_plane` |")]
    scores = [line["score"] for line in lines if line["learner"] == "cutting_plane"]
    assert f"{sum(scores) / 3:.3f} ({min(scores):.3f} to {max(scores):.3f})" in row
    assert row.endswith("| model, told costs |")
    assert "PPIL" in text
    assert results_page.main(arguments) == 0
    assert page.read_text(encoding="utf-8") == text


def test_the_best_checkpoint_stands_beside_the_final_policy_where_there_is_one(run):
    results = ResultsFolder.open(run)
    place = results.spec.environments[0]
    best = {"after": 50, "n_checkpoints": 9, "normalised_score": 0.75, "episode_return": -12.0}
    rows = [row for row in results.rows() if row["learner"] == "tabular_bc"]
    with_best = [results_page.shortened(row | {"best": best}, place) for row in rows]
    without = [results_page.shortened(row, place) for row in rows]
    assert "| 0.750 |" in results_page.own_line(2, "tabular_bc", with_best)
    assert "| 0.750 |" not in results_page.own_line(2, "tabular_bc", [*with_best[1:], *without])
    assert "best checkpoint" in results_page.own_table(without)
    final = [line | {"episode_return": -20.0} for line in with_best]
    assert results_page.our_lines("tabular_bc", final) == [
        "| **`tabular_bc`, here** | 2: -20 | final policy, 3 seeds, expert as above |",
        "| **`tabular_bc`, here** | 2: -12 | **best checkpoint**, 3 seeds, expert as above |",
    ]
    assert len(results_page.our_lines("tabular_bc", [line | {"episode_return": -20.0} for line in without])) == 1


def test_what_was_run_is_said_of_each_learner():
    line = {"environment": "grid3", "n_demonstrations": 1, "versions": {"gymnasium": "1.0", "numpy": "2.0"}}
    lines = [
        *({**line, "learner": name, "seed": seed, "revision": "aaa"} for name in ("one", "other") for seed in (0, 1)),
        {**line, "learner": "third", "seed": 0, "revision": "bbb"},
    ]
    assert results_page.run_text("mine", lines) == (
        "- `mine`: 5 runs; one, other on grid3 with 1 demonstrations, seeds 0, 1, Gymnasium 1.0, NumPy 2.0, revision "
        "aaa (4 runs); third on grid3 with 1 demonstrations, seeds 0, Gymnasium 1.0, NumPy 2.0, revision bbb (1 runs)."
    )
