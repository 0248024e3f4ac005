"""Rollouts in pieces: the same whoever plays them and in whatever order, and copies that differ are refused."""

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.engines import Outcome, ProcessEngine


class Backwards:
    """An engine that plays here, the last piece first."""

    def __init__(self, between=lambda: None):
        self.between = between

    in_order = staticmethod(reversed)

    def run(self, function, items, time_limit):
        for item in self.in_order(items):
            self.between()
            try:
                yield item, Outcome(function(item))
            except Exception as error:
                yield item, Outcome(error=str(error))


class Forwards(Backwards):
    in_order = staticmethod(iter)


def lean(seen):
    return (seen[:, 2] + seen[:, 3] > 0).astype(int)


@pytest.fixture(scope="module")
def cartpole():
    env = gym.make("CartPole-v1")
    demos = lfd.collect(env, lean, 10, 100, np.random.default_rng(0))
    return lfd.Task(env, demos.select(range(5)), discount=0.9, horizon=20), demos.select(range(5, 10))


def test_processes_find_what_is_found_here(cartpole):
    task, _ = cartpole
    here, there = (
        task.expected_costs(lean, rng=np.random.default_rng(1), n_rollouts=70, engine=engine)
        for engine in (Backwards(), ProcessEngine(2))
    )
    np.testing.assert_array_equal(here.trajectory_values, there.trajectory_values)


def test_certificates_and_evaluations_do_not_depend_on_the_order(cartpole):
    task, held_out = cartpole
    by_order = []
    for engine in (Backwards(), Forwards()):
        rng = np.random.default_rng(1)
        certificate = lfd.certify(lean, task, rng=rng, held_out=held_out, n_rollouts=70, engine=engine)
        by_order.append(
            (certificate.to_dict(), lfd.evaluate(lean, task, rng=rng, n_rollouts=40, engine=engine).to_dict())
        )
    assert by_order[0] == by_order[1]
    certificate, evaluation = by_order[0]
    assert "rollouts paired with them" in certificate["evidence"]
    assert evaluation["sampling"]["n_rollouts"] == 40


def test_pieces_are_estimates_like_any_other(cartpole):
    """Of a policy and an environment without chance the pieces' values are those of one run."""
    task = lfd.Task(gym.make("FrozenLake-v1", is_slippery=False).unwrapped, discount=0.9)
    right = np.tile([0.0, 0.0, 1.0, 0.0], (16, 1))
    episodes = lfd.Task(gym.wrappers.TransformReward(task.env, lambda r: r), discount=0.9, costs=task.costs)
    assert episodes.access == "episodes"
    rng = np.random.default_rng(0)
    found, gained = episodes.assess(right, rng=rng, n_rollouts=50, horizon=9, engine=Backwards())
    known, earned = episodes.assess(right, rng=rng, n_rollouts=50, horizon=9)
    assert found.n_trajectories == known.n_trajectories == 50
    np.testing.assert_array_equal(found.trajectory_values, known.trajectory_values)
    np.testing.assert_allclose(found.values, known.values, rtol=1e-12)
    np.testing.assert_array_equal(found.unseen_mass, known.unseen_mass)
    assert (found.horizon, found.n_steps) == (known.horizon, known.n_steps) == (9, 450)
    np.testing.assert_array_equal(gained.totals, earned.totals)
    np.testing.assert_array_equal(gained.lengths, earned.lengths)
    # And the pieces of a policy that draws are independent of each other.
    drawn, _ = episodes.assess(np.full((16, 4), 0.25), rng=rng, n_rollouts=300, horizon=9, engine=Backwards())
    assert len(np.unique(drawn.trajectory_values, axis=0)) > 100


def test_a_copy_that_behaves_otherwise_is_refused(cartpole):
    task, _ = cartpole
    pole = gym.make("CartPole-v1")
    changed = lfd.Task(pole, task.demonstrations, discount=0.9, horizon=20)

    def blow():
        pole.unwrapped.force_mag = 12.0

    with pytest.raises(ValueError, match="engine must be None for this task: a copy of the environment"):
        lfd.certify(lean, changed, rng=np.random.default_rng(0), n_rollouts=10, engine=Backwards(blow))


def test_what_fails_there_is_said_here(cartpole):
    task, _ = cartpole
    calls = []

    def fails_later(seen):
        calls.append(len(seen))
        raise KeyError("no such action")

    with pytest.raises(RuntimeError, match="rollouts have failed in another process: 'no such action'"):
        lfd.certify(fails_later, task, rng=np.random.default_rng(0), n_rollouts=10, engine=Backwards())
    assert calls
