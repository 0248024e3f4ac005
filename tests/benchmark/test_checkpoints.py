"""Learners offer policies on the way; the best of them is chosen by episodes of its own and shown beside the final."""

from dataclasses import dataclass, replace
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from benchmark_rows import Here

import lfd_gym as lfd
from lfd_gym.baselines import Learner, LearningResult, register_learner
from lfd_gym.baselines.learner import Checkpoint, checkpoints_at
from lfd_gym.benchmark import BenchmarkSpec, EnvironmentSpec, LearnerSpec, run_benchmark, runner
from lfd_gym.benchmark.checkpoints import N_CHOOSING, best_by_episodes
from lfd_gym.benchmark.experts import References, returns_of
from lfd_gym.benchmark.report import write_report
from lfd_gym.benchmark.spec import named_stream
from lfd_gym.benchmark.summary import format_tables, groups_of
from lfd_gym.policies.tables import UniformPolicy

CAR = EnvironmentSpec("car", "MountainCar-v0", 0.99, expert="data:mountaincar-expert")
GRID = EnvironmentSpec("grid3", "lfd_gym/StochasticGridworld-v0", 0.9, 10, {"size": 3})
SPEC = BenchmarkSpec(
    environments=(CAR, GRID),
    learners=(
        LearnerSpec("comes_and_goes"),
        LearnerSpec("comes_and_goes", label="comes", settings={"stays": True}),
        LearnerSpec("random"),
    ),
    n_demonstrations=(1,),
    seeds=(0,),
)


def with_the_motion(seen):
    return np.where(seen[:, 1] >= 0, 2, 0)


@dataclass(frozen=True)
class ComesAndGoes(Learner):
    """Has a good policy half way, and loses it, or keeps it to the end."""

    stays: bool = False
    budget_unit: ClassVar[str] = "coins"
    default_budget: ClassVar[int] = 100

    def learn(self, task, budget, rng):
        bad = UniformPolicy(task.action_space)
        good = lfd.as_policy(with_the_motion)
        if task.dynamics is not None:
            # Not the best: it does as was demonstrated once.
            good = lfd.learn(task, "tabular_bc", rng=rng).policy
        found = (Checkpoint(after, good if after == 50 else bad) for after in checkpoints_at(budget))
        return LearningResult(good if self.stays else bad, checkpoints=tuple(found))


register_learner("comes_and_goes", ComesAndGoes)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "N_EPISODES", 25)
        yield run_benchmark(SPEC, tmp_path_factory.mktemp("run"), Here(), progress_bar=False)


def rows_of(finished, environment, learner):
    return [row for row in finished.rows() if (row["environment"], row["learner"]) == (environment, learner)]


def test_checkpoints_are_had_after_every_tenth_of_the_budget_but_the_last():
    assert checkpoints_at(30_000) == list(range(3000, 30_000, 3000))
    assert checkpoints_at(3) == [1, 2]
    assert checkpoints_at(1) == []


def test_what_was_lost_on_the_way_is_found_again_and_the_final_score_is_still_shown(finished):
    known = lfd.datasets.info("mountaincar-expert")
    for row in rows_of(finished, "car", "comes_and_goes"):
        assert row["evaluation"]["normalised_score"] == pytest.approx(0.0, abs=0.02)
        best = row["best"]
        assert (best["after"], best["n_checkpoints"]) == (50, 9)
        assert -130 < best["episode_return"] < -100  # energy alone needs some 120 steps
        scale = known.expert_return - known.random_return
        assert best["normalised_score"] == pytest.approx((best["episode_return"] - known.random_return) / scale)
    for row in rows_of(finished, "grid3", "comes_and_goes"):
        assert row["best"]["after"] == 50
        assert row["best"]["normalised_score"] > row["evaluation"]["normalised_score"] + 0.1


def test_a_final_policy_that_is_no_worse_is_the_best(finished):
    for place in ("car", "grid3"):
        for row in rows_of(finished, place, "comes"):
            assert row["best"]["normalised_score"] >= row["evaluation"]["normalised_score"]
    for row in rows_of(finished, "grid3", "comes"):  # where scores are exact
        assert row["best"]["after"] is None
        assert row["best"]["normalised_score"] == row["evaluation"]["normalised_score"]


def test_what_it_is_chosen_by_is_not_what_it_is_measured_by():
    """Of many that are equally good the luckiest is chosen, and its luck does not count."""
    env = gym.make("CartPole-v1")
    demos = lfd.datasets.load("cartpole-expert").select([0])
    task, random = lfd.Task(env, demos, discount=0.99), UniformPolicy(env.action_space)

    def stream(purpose):
        return named_stream(f"{purpose} in a test")

    evaluation = lfd.evaluate(random, task, n_rollouts=2, rng=np.random.default_rng(0))
    final = replace(evaluation, normalised_score=-5.0)
    same = tuple(Checkpoint(after, random) for after in (10, 20))
    found = best_by_episodes(same, task, final, References(0.0, 500.0, 100, 100), 30, stream)
    measured = returns_of(task, random, 30, stream("measuring")).mean()
    assert (found.after, found.n_checkpoints, found.episode_return) == (10, 2, measured)
    assert found.normalised_score == measured / 500
    assert found.episode_return != returns_of(task, random, N_CHOOSING, stream("choosing")).mean()
    assert best_by_episodes((), task, final, References(0.0, 500.0, 100, 100), 30, stream) is None


def test_learners_without_checkpoints_have_no_best(finished):
    for row in [*rows_of(finished, "car", "random"), *rows_of(finished, "grid3", "random")]:
        assert row["best"] is None
    by_learner = {group.learner: group for group in groups_of(finished.rows()) if group.environment == "car"}
    assert by_learner["random"].best_score is None
    assert by_learner["comes_and_goes"].best_score > 0.6


def test_tables_show_the_final_score_and_say_so(finished):
    said = format_tables(finished.rows())
    assert "car: final score by demonstrations m" in said
    (line,) = [line for line in said.splitlines()[:6] if line.startswith("comes_and_goes")]
    assert float(line.split()[3]) == pytest.approx(0.0, abs=0.02)
    page = write_report(finished.path).read_text(encoding="utf-8")
    for heading in ("final score", "best score"):
        assert f'<button type="button">{heading}</button>' in page
    assert "chosen by the reward, which learners are not shown" in page
