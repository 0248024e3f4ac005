"""Cells on environments without a table: what is shown is made once and kept, and scores are those of returns."""

import json
from typing import get_args

import gymnasium as gym
import numpy as np
import pytest
from benchmark_rows import Here

import lfd_gym as lfd
from lfd_gym.assessment.evaluation import Evaluation
from lfd_gym.baselines import Learner, LearningResult
from lfd_gym.benchmark import (
    BenchmarkSpec,
    EnvironmentSpec,
    LearnerSpec,
    ResultsFolder,
    conclusion,
    narrowed,
    preset,
    run_benchmark,
    runner,
)
from lfd_gym.benchmark.durations import forecast
from lfd_gym.benchmark.experts import References, Showing, show
from lfd_gym.benchmark.presets import Preset
from lfd_gym.benchmark.reading import spec_from_dict
from lfd_gym.benchmark.report import write_report
from lfd_gym.benchmark.runner import knows, run_cell

CAR = EnvironmentSpec("car", "MountainCar-v0", 0.99, expert="data:mountaincar-expert")


def spec(**changes):
    axes = {"environments": (CAR,), "learners": (LearnerSpec("random"), LearnerSpec("grid", settings={"n_points": 31}))}
    return BenchmarkSpec(**(axes | {"n_demonstrations": (1,), "seeds": (0, 1)} | changes))


@pytest.fixture(scope="module", autouse=True)
def few_episodes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "N_EPISODES", 25)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return run_benchmark(spec(), tmp_path_factory.mktemp("run"), Here(), progress_bar=False)


def test_scores_are_those_of_the_returns_of_whole_episodes(finished):
    rows = finished.rows()
    assert [row["status"] for row in rows] == ["ok"] * 4
    known = lfd.datasets.info("mountaincar-expert")
    for row in rows:
        found = row["evaluation"]
        assert found["sampling"]["n_rollouts"] == 25
        assert found["expert_return"] == known.expert_return
        expected = (found["episode_return"] - known.random_return) / (known.expert_return - known.random_return)
        assert found["normalised_score"] == pytest.approx(expected)
        low, high = found["sampling"]["normalised_score"]
        assert low <= found["normalised_score"] <= high
        assert row["facts"]["certified_distance"] >= found["cost_distance"]
        assert row["facts"]["certified_about"] == "demonstrations"
    by_learner = {row["learner"]: row for row in rows}
    assert by_learner["random"]["evaluation"]["normalised_score"] == pytest.approx(0.0, abs=0.02)
    assert by_learner["grid"]["evaluation"]["normalised_score"] > 0.8
    assert by_learner["grid"]["knows"] == {"access": "simulator", "costs": "generic", "expert": False}
    facts = by_learner["grid"]["facts"]
    assert facts["certificate_empty"] == (facts["certified_distance"] >= facts["random_distance"])
    mean = np.mean([row["evaluation"]["normalised_score"] for row in rows if row["learner"] == "grid"])
    said = "grid reaches the expert on car (a mean score of 0.95 or more)."
    if mean < 0.95:
        said = "nobody reaches the expert (a mean score of 0.95 or more) on car: not grid."
    assert conclusion(rows) == f"From one demonstration, {said}"


def test_all_learners_are_shown_the_same_and_seeds_differ(finished):
    kept = {file.name: lfd.Demonstrations.load(file) for file in (finished.path / "demonstrations").iterdir()}
    assert sorted(kept) == ["car~m=1~seed=0.npz", "car~m=1~seed=1.npz"]
    one, other = kept.values()
    assert one != other
    all_of_them = lfd.datasets.load("mountaincar-expert")
    for part in (one, other):
        assert any(np.array_equal(part.observations, episode.observations) for episode in all_of_them)


def test_what_is_kept_is_taken_when_a_run_goes_on(finished, tmp_path):
    folder = tmp_path / "run"
    results = ResultsFolder(folder, spec())
    wanted = ((1, 0), (1, 1))
    shown = finished.shown("car", wanted)
    turned = {pair: shown.demonstrations[(1, 1 - pair[1])] for pair in wanted}  # not what would be made
    results.keep_shown("car", type(shown)(None, shown.references, turned))
    run_benchmark(spec(), folder, Here(), progress_bar=False)
    by_seed = {row["seed"]: row for row in results.rows() if row["learner"] == "grid"}
    before = {row["seed"]: row for row in finished.rows() if row["learner"] == "grid"}
    assert by_seed[0]["evaluation"]["expert_costs"] == before[1]["evaluation"]["expert_costs"]
    assert finished.shown("car", ((2, 0),)) is None


def test_the_report_is_written_for_returns(finished):
    page = write_report(finished.path).read_text(encoding="utf-8")
    assert "car: score of each learner" in page
    assert "beats random" in page
    assert "car: what the certified bounds consist of" in page
    assert page.count("data:image/png;base64,") == finished.has_policy("car/grid/m=1/seed=0")
    assert "return (more is better)" not in page  # one number of demonstrations makes no curve


def test_an_expert_that_cannot_be_made_is_said_once_and_nothing_is_run(tmp_path, capsys):
    from lfd_gym.cli import main

    file = tmp_path / "spec.toml"
    file.write_text(
        """
        n_demonstrations = [1]
        seeds = [0, 1, 2]
        [[environments]]
        label = "car"
        env_id = "MountainCar-v0"
        discount = 0.99
        expert = "demonstrations:nowhere.npz"
        [[learners]]
        name = "random"
        """
    )
    assert main(["benchmark", "--spec", str(file), "--out", str(tmp_path / "run"), "--workers", "1"]) == 2
    said = capsys.readouterr().out
    assert said.count("nowhere.npz") == 1
    assert "failed: car/random/m=1/seed=0 and 2 other runs: nothing could be demonstrated: " in said


def test_experts_come_from_files(tmp_path):
    demos = lfd.datasets.load("mountaincar-expert").select([3, 4, 5])
    demos.save(tmp_path / "demos.npz")
    of_file = EnvironmentSpec("car", "MountainCar-v0", 0.99, expert=f"demonstrations:{tmp_path / 'demos.npz'}")
    shown = show(Showing(of_file, ((2, 0), (3, 0))))
    assert shown.demonstrations[(3, 0)] == demos
    assert shown.references.expert_return == pytest.approx(demos.rewards.sum() / 3)
    assert shown.references.random_return == -200
    with pytest.raises(ValueError, match="n_demonstrations of car must be at most 3, which are all: got 4"):
        show(Showing(of_file, ((4, 0),)))
    lfd.save_policy(lfd.policies.tables.UniformPolicy(gym.spaces.Discrete(3)), tmp_path / "policy.npz")
    of_policy = EnvironmentSpec("car", "MountainCar-v0", 0.99, expert=f"policy:{tmp_path / 'policy.npz'}")
    assert len(show(Showing(of_policy, ((2, 0),))).demonstrations[(2, 0)]) == 2


@pytest.mark.parametrize("expert", ["best", "policy:", "pickle:x"])
def test_unknown_experts_are_refused(expert):
    with pytest.raises(ValueError, match="expert of environment car must be optimal, policy:"):
        EnvironmentSpec("car", "MountainCar-v0", 0.99, expert=expert)


@pytest.mark.parametrize("how", ["sac", "sac:many", "td3:100", "dqn:0"])
def test_who_is_trained_is_said_with_the_steps(how):
    with pytest.raises(ValueError, match="expert of environment car must be trained by ppo, dqn or sac, and for how"):
        EnvironmentSpec("car", "MountainCar-v0", 0.99, expert=f"trained:{how}")


def test_tables_need_the_length_of_demonstrations():
    lake = EnvironmentSpec("lake", "FrozenLake-v1", 0.95)
    with pytest.raises(ValueError, match="horizon of environment lake must be given: it has a table"):
        show(Showing(lake, ((1, 0),)))


def test_scores_where_nothing_is_to_be_gained_are_unknown():
    assert References(1.0, 1.0, 5, 5).score(2.0) is None
    assert References(-200.0, -100.0, 5, 5).score(-150.0) == 0.5


def test_environments_may_have_learners_and_numbers_of_their_own():
    lake = EnvironmentSpec("lake", "FrozenLake-v1", 0.95, 30, learners=("random",), n_demonstrations=(7,))
    cells = [cell.id for cell in spec(environments=(CAR, lake)).cells()]
    assert [cell for cell in cells if cell.startswith("lake")] == ["lake/random/m=7/seed=0", "lake/random/m=7/seed=1"]
    assert len([cell for cell in cells if cell.startswith("car")]) == 4
    again = spec_from_dict(json.loads(json.dumps(spec(environments=(CAR, lake)).to_dict())))
    assert again == spec(environments=(CAR, lake))
    with pytest.raises(ValueError, match="environment lake names 'bc', which is no learner's label"):
        spec(environments=(EnvironmentSpec("lake", "FrozenLake-v1", 0.95, 30, learners=("bc",)),))


def test_parts_of_a_benchmark_have_the_cells_of_the_whole():
    whole = preset("quick")
    part = narrowed(whole, environments=("cartpole", "gridworld16"), learners=("bc", "gail"), seeds=(1,))
    ids = {cell.id for cell in part.cells()}
    assert ids == {
        "cartpole/bc/m=1/seed=1",
        "cartpole/bc/m=5/seed=1",
        *(f"gridworld16/{learner}/m={m}/seed=1" for learner in ("bc", "gail") for m in (5, 50)),
    }
    assert ids <= {cell.id for cell in whole.cells()}
    with pytest.raises(ValueError, match=r"learners must be among .*, got 'best'"):
        narrowed(whole, learners=("best",))


def test_what_a_benchmark_takes_is_known_beforehand():
    said = forecast(preset("quick"))
    assert said.n_runs == len(preset("quick").cells()) == 52
    assert 0.02 < said.hours < 0.3
    assert said.unknown == ()
    other = forecast(spec(learners=(LearnerSpec("no_such_learner"), LearnerSpec("random"))))
    assert other.unknown == ("no_such_learner",)
    assert "not counting no_such_learner" in str(other)


class Playing(Learner):
    """Uses what it is told it used."""

    def learn(self, task, budget, rng):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("used", "access"),
    [
        ({}, "demonstrations"),
        ({"env_steps": 3}, "episodes"),
        ({"oracle_calls": 1}, "simulator"),
        ({"uses_model": True}, "model"),
    ],
)
def test_what_a_learner_knows_is_what_it_used(used, access):
    env = gym.make("FrozenLake-v1")
    task = lfd.Task(env, discount=0.9)
    learned = LearningResult(np.full((16, 4), 0.25), resources=lfd.resources.Resources(**used))
    assert knows(task, Playing(), learned) == {"access": access, "costs": None, "expert": False}
    weighed = LearningResult(learned.policy, np.array([1.0]), resources=learned.resources)
    assert knows(task, Playing(), weighed)["costs"] == "told"


def test_results_that_are_no_numbers_are_null():
    row, policy = run_cell(spec().cells()[1])
    json.dumps(row, allow_nan=False)
    assert isinstance(Evaluation(np.zeros(1), False), Evaluation)
    assert policy is None or policy.kind


@pytest.mark.parametrize("name", get_args(Preset))
def test_presets_name_environments_that_the_installed_gymnasium_has(name):
    assert {part.env_id for part in preset(name).environments} <= set(gym.registry)
