"""Benchmark specs are data, and their folders survive kills."""

import json

import numpy as np
import pytest

from lfd_gym.benchmark.reading import read_spec, spec_from_dict
from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.benchmark.spec import EXPERTS, BenchmarkSpec, EnvironmentSpec, LearnerSpec

EXPERTS_SAID = ", ".join(f"{name}:… ({what})" for name, what in EXPERTS.items())
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
    spec = read_spec(file)
    assert spec == small_spec()
    assert spec_from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learners": ()}, "learners must not be empty"),
        ({"learners": (LearnerSpec("bc"), LearnerSpec("bc"))}, "bc occurs more than once"),
        ({"n_demonstrations": (0,)}, "n_demonstrations must be integers from 1 on, got 0"),
        ({"seeds": (-1,)}, "seeds must be integers from 0 on, got -1"),
        ({"seeds": (0, "x", 1.5)}, "seeds must be integers from 0 on, got 'x', 1.5"),
        ({"time_limit": 0.0}, "time_limit must be a positive number, got 0"),
    ],
)
def test_bad_specs_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        small_spec(**changes)


def test_everything_that_is_wrong_with_a_spec_is_said_at_once():
    """Also what can only be told of entries that have another mistake."""
    data = {
        "environments": [
            {"label": "a b", "env_id": "x", "discount": 2, "horizon": "long", "kwargs": {"size": 3}, "expert": "me"},
            {"label": "b", "discount": 0.9, "learners": ["bc", "gril"], "n_demonstrations": [0]},
            7,
        ],
        "learners": [{"name": "bc", "budget": "much"}, {"name": "gail", "settings": 3, "speed": 1}, {"label": "lone"}],
        "n_demonstrations": "three",
        "seeds": [0, -1, 0],
    }
    tried = []

    def try_out(part):
        tried.append(part)
        raise ValueError(f"cannot make {part.label}")

    with pytest.raises(ValueError, match="label of an environment") as refused:
        spec_from_dict(data, try_out)
    assert str(refused.value).split("; ") == [
        "label of an environment must be a word without '/', '=' or spaces, got 'a b'",
        "discount of environment a b must lie strictly between 0 and 1, got 2",
        "horizon of environment a b must be integers from 1 on, got 'long'",
        f"expert of environment a b must be optimal, {EXPERTS_SAID}, got 'me'",
        "cannot make entry-0",
        "environments[1] lacks the setting 'env_id'",
        "n_demonstrations of environment b must be integers from 1 on, got 0",
        "environments[2] must be a table of settings, got 7",
        "budget of learner bc must be an integer, got 'much'",
        "cannot make bc",
        "learners[1] has no setting 'speed'",
        "it takes name, label, budget, settings",
        "settings of learner gail must be a table of names and values, got 3",
        "cannot make gail",
        "learners[2] lacks the setting 'name'",
        "n_demonstrations must be a list, got 'three'",
        "seeds must be distinct, but 0 occurs more than once",
        "n_demonstrations must be a list of integers, got 'three'",
        "seeds must be integers from 0 on, got -1",
        "environment b names 'gril', which is no learner's label",
    ]
    assert tried[0].kwargs == {"size": 3}, "what could be read is what is tried out"


def test_bad_parts_are_refused(tmp_path):
    with pytest.raises(ValueError, match="discount of environment a must lie strictly between 0 and 1"):
        EnvironmentSpec("a", "x", discount=1.0, horizon=3)
    with pytest.raises(ValueError, match="label of a learner must be a word"):
        LearnerSpec("bc", label="my bc")
    with pytest.raises(ValueError, match=r"environments\[0\] has no setting 'gamma'"):
        spec_from_dict({**small_spec().to_dict(), "environments": [{"gamma": 1}]})
    with pytest.raises(ValueError, match="benchmark lacks the setting 'seeds'"):
        spec_from_dict({k: v for k, v in small_spec().to_dict().items() if k != "seeds"})
    (tmp_path / "bad.toml").write_text("= 3")
    with pytest.raises(ValueError, match=r"bad.toml is not a TOML file"):
        read_spec(tmp_path / "bad.toml")


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
