"""Benchmark specs are data, and their folders survive kills."""

import json

import numpy as np
import pytest

from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.benchmark.spec import BenchmarkSpec, EnvironmentSpec, LearnerSpec

GRID = EnvironmentSpec("grid4", "lfd_gym/StochasticGridworld-v0", discount=0.9, horizon=20, kwargs={"size": 4})


def small_spec(**changes):
    axes = {"environments": (GRID,), "learners": (LearnerSpec("expert"), LearnerSpec("random")), "seeds": (0, 1)}
    return BenchmarkSpec(**{**axes, "n_demonstrations": (1, 5), **changes})


def test_cells_are_the_product_and_their_ids_are_distinct_and_readable():
    cells = small_spec().cells()
    assert len(cells) == 8
    assert len({cell.id for cell in cells}) == 8
    assert cells[0].id == "grid4/expert/m=1/seed=0"


def test_streams_depend_on_the_cell_alone_and_learners_share_demonstrations():
    few = small_spec().cells()
    many = small_spec(learners=[LearnerSpec(name) for name in ("random", "bc", "expert")], seeds=(1, 0, 7)).cells()
    by_id = {cell.id: cell for cell in many}
    for cell in few:
        twin = by_id[cell.id]
        assert twin.learner_stream().random() == cell.learner_stream().random()
        assert twin.demonstration_stream().random() == cell.demonstration_stream().random()
    draws = {cell.id: cell.demonstration_stream().random() for cell in few}
    assert draws["grid4/expert/m=1/seed=0"] == draws["grid4/random/m=1/seed=0"]
    assert len(set(draws.values())) == 4
    assert len({cell.learner_stream().random() for cell in few}) == 8


def test_toml_and_dict_round_trip(tmp_path):
    file = tmp_path / "spec.toml"
    file.write_text(
        """
        n_demonstrations = [1, 5]
        seeds = [0, 1]
        [[environments]]
        label = "grid4"
        env_id = "lfd_gym/StochasticGridworld-v0"
        discount = 0.9
        horizon = 20
        kwargs = { size = 4 }
        [[learners]]
        name = "expert"
        [[learners]]
        name = "random"
        """
    )
    spec = BenchmarkSpec.from_file(file)
    assert spec == small_spec()
    assert BenchmarkSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learners": ()}, "learners must not be empty"),
        ({"learners": (LearnerSpec("bc"), LearnerSpec("bc"))}, "bc occurs more than once"),
        ({"n_demonstrations": (0,)}, "n_demonstrations must be at least 1, got 0"),
        ({"seeds": (-1,)}, "seeds must be nonnegative"),
        ({"time_limit": 0.0}, "time_limit must be positive"),
    ],
)
def test_bad_specs_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        small_spec(**changes)


def test_bad_parts_are_refused(tmp_path):
    with pytest.raises(ValueError, match="discount of environment a must lie strictly between 0 and 1"):
        EnvironmentSpec("a", "x", discount=1.0, horizon=3)
    with pytest.raises(ValueError, match="label of a learner must be a word"):
        LearnerSpec("bc", label="my bc")
    with pytest.raises(ValueError, match=r"environments\[0\] has no setting 'gamma'"):
        BenchmarkSpec.from_dict({**small_spec().to_dict(), "environments": [{"gamma": 1}]})
    with pytest.raises(ValueError, match="benchmark lacks the setting 'seeds'"):
        BenchmarkSpec.from_dict({k: v for k, v in small_spec().to_dict().items() if k != "seeds"})
    (tmp_path / "bad.toml").write_text("= 3")
    with pytest.raises(ValueError, match=r"bad.toml is not a TOML file"):
        BenchmarkSpec.from_file(tmp_path / "bad.toml")


def test_results_survive_a_torn_row_and_come_back_in_order(tmp_path):
    spec = small_spec()
    folder = ResultsFolder(tmp_path / "run", spec)
    ids = [cell.id for cell in spec.cells()]
    for cell in (ids[3], ids[0]):
        folder.append({"cell": cell, "status": "ok", "value": np.pi})
    with open(folder.results_file, "a") as file:
        file.write('{"cell": "' + ids[1])  # killed in the middle of a row
    again = ResultsFolder.open(tmp_path / "run")
    assert [row["cell"] for row in again.rows()] == [ids[0], ids[3]]
    again.append({"cell": ids[1], "status": "failed"})
    assert [row["cell"] for row in ResultsFolder.open(tmp_path / "run").rows()] == [ids[0], ids[1], ids[3]]
    again.forget_failures()
    assert [row["cell"] for row in again.rows()] == [ids[0], ids[3]]
    assert [json.loads(line)["cell"] for line in again.results_file.read_text().splitlines()] == [ids[0], ids[3]]


def test_another_spec_in_the_same_folder_is_refused_with_the_difference(tmp_path):
    ResultsFolder(tmp_path, small_spec())
    with pytest.raises(ValueError, match=r"(?s)another benchmark.*n_demonstrations\[1\]: 5 there, 6 asked for"):
        ResultsFolder(tmp_path, small_spec(n_demonstrations=(1, 6)))
    ResultsFolder(tmp_path, small_spec())


def test_a_folder_without_a_spec_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"has no spec.json"):
        ResultsFolder.open(tmp_path)
