"""Collecting until satisfied: it stops where it should, and keeps its level although one stops when one likes."""

import gymnasium as gym
import numpy as np
import pytest
from worlds import distance, random_world, too_many

import lfd_gym as lfd
from lfd_gym._splitmix import own_stream

DELTA = 0.1
REPEATS = pytest.mark.parametrize("repeats", [60, pytest.param(1000, marks=pytest.mark.slow)])


def lean(seen):
    return (seen[:, 2] + seen[:, 3] > 0).astype(int)


@REPEATS
@pytest.mark.parametrize("what", ["demonstrations", "rollouts"])
def test_it_keeps_its_level_under_optional_stopping(what, repeats):
    """What is wanted is below the truth, so that whoever gets it has been told something false."""
    mdp, table, rng = random_world(3, discount=0.7)
    model = lfd.TabularModel.of(mdp)
    expert, policy = rng.dirichlet(np.ones(3), 5), np.full((5, 3), 1 / 3)
    truth = distance(mdp, table, policy, expert)
    assert truth > 0.05
    false = naive = 0
    for _ in range(repeats):
        if what == "demonstrations":
            task = lfd.Task(mdp, costs=table)
            settings = {"expert": expert}
        else:
            task = lfd.Task(model, lfd.collect(model, expert, 20, 30, rng), discount=0.7, costs=table)
            told = table.T @ mdp.occupancy(policy).ravel() - task.expert_features().values
            truth, settings = told.max(), {}
        wanted = truth - 0.001
        found = lfd.collect_until(task, policy, bound=wanted, delta=DELTA, rng=rng, at_first=5, at_most=160, **settings)
        false += found.reached
        naive += found.certificate.strongest.found <= wanted
    assert not too_many(false, repeats, DELTA)
    assert too_many(naive, repeats, DELTA)  # the test can fail: what was found is below as often as not


def test_each_look_has_its_share_of_delta():
    env, rng = gym.make("CartPole-v1"), np.random.default_rng(0)
    task = lfd.Task(env, lfd.collect(env, lean, 5, 50, rng), discount=0.9, horizon=20)
    for looks, share in ((1, DELTA / 2), (2, DELTA / 6), (3, DELTA / 12)):
        most = 5 * 2 ** (looks - 1)
        found = lfd.collect_until(
            task, lean, bound=0.0, delta=DELTA, rng=np.random.default_rng(1), at_first=5, at_most=most
        )
        again = own_stream(np.random.default_rng(1), "collect_until")
        for count in [5 * 2**k for k in range(looks)]:
            alone = lfd.certify(lean, task, delta=share, rng=again, n_rollouts=count)
        assert not found.reached
        assert found.certificate.cost_distance_bound == alone.cost_distance_bound
        assert found.certificate.n_rollouts == most
        assert found.certificate.delta == DELTA
        assert found.demonstrations is None


def test_it_stops_at_the_first_look_that_satisfies():
    env, rng = gym.make("lfd_gym/StochasticGridworld-v0", size=4), np.random.default_rng(0)
    expert = lfd.FiniteMDP.from_env(env, 0.9).optimal_policy(env.unwrapped.cost_features[:, 0])
    task = lfd.Task(env, lfd.collect(env, expert, 3, 100, rng), discount=0.9)
    easy = lfd.collect_until(task, expert, bound=1.9, expert=expert, rng=rng, at_first=7)
    assert easy.reached
    assert len(easy.demonstrations) == 7
    hard = lfd.collect_until(task, expert, bound=0.03, expert=expert, rng=rng, at_first=7)
    n = len(hard.demonstrations)
    assert hard.reached
    assert hard.certificate.cost_distance_bound <= 0.03
    assert n in 7 * 2 ** np.arange(1, 12)
    # The demonstrations are those that the certificate rests on: at the look before they were not enough.
    look = int(np.log2(n // 7)) + 1
    before = lfd.certify(
        expert, task, delta=0.05 / ((look - 1) * look), held_out=hard.demonstrations.select(np.arange(n // 2))
    )
    assert before.cost_distance_bound > 0.03
    now = lfd.certify(expert, task, delta=0.05 / (look * (look + 1)), held_out=hard.demonstrations)
    assert now.cost_distance_bound == hard.certificate.cost_distance_bound
    never = lfd.collect_until(task, expert, bound=-1.0, expert=expert, rng=rng, at_first=1, at_most=10)
    assert not never.reached
    assert len(never.demonstrations) == 10


def test_new_demonstrations_fit_the_task():
    """Of a model in place of an environment, of one with a time limit, and where only the first steps count."""
    mdp, table, rng = random_world(3)
    expert = rng.dirichlet(np.ones(3), 5)
    for settings in ({}, {"horizon": 7}):
        task = lfd.Task(lfd.TabularModel.of(mdp), discount=0.9, costs=table, **settings)
        found = lfd.collect_until(task, expert, bound=1.9, expert=expert, rng=rng, n_rollouts=100)
        assert set(found.demonstrations.lengths) == {settings.get("horizon", 66)}
    env = gym.make("CartPole-v1", max_episode_steps=30)
    task = lfd.Task(env, lfd.collect(env, lean, 5, None, rng), discount=0.99)
    found = lfd.collect_until(task, lean, bound=-1, expert=lean, rng=rng, at_first=3, at_most=3, n_rollouts=5)
    assert found.demonstrations.lengths.max() == 30


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"at_first": 0}, "at_first must be at least 1 and at most at_most=10000, got 0"),
        ({"at_first": 5, "at_most": 4}, "at_first must be at least 1 and at most at_most=4, got 5"),
        ({"delta": 1.0}, "delta must lie"),
        ({}, "expert must be given where the model is known"),
    ],
)
def test_wrong_arguments_are_named(settings, message):
    mdp, table, rng = random_world(3)
    task = lfd.Task(mdp, discount=0.9, costs=table)
    with pytest.raises(ValueError, match=message):
        lfd.collect_until(task, np.full((5, 3), 1 / 3), bound=0.1, rng=rng, **settings)
