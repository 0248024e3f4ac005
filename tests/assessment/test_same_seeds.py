"""Whoever begins with the same seed everywhere is not judged on what was learned from."""

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd


class Numbers(gym.Env):
    """An episode shows one number, drawn at its beginning."""

    observation_space, action_space = gym.spaces.Box(0, 1, (1,), np.float64), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.shown = np.array([self.np_random.random()])
        return self.shown, {}

    def step(self, action):
        return self.shown, 0.0, False, False, {}


def lottery(seen):
    return (seen[:, 0] > 0.5).astype(int)


@pytest.fixture
def copied():
    """A policy that copies what was shown from its first states and fails elsewhere: its distance is 1."""
    env = gym.wrappers.TimeLimit(Numbers(), 5)
    demos = lfd.collect(env, lambda seen: np.zeros(len(seen), int), 200, rng=np.random.default_rng(0))
    known = set(demos.observations.ravel())
    costs = lfd.FunctionCosts(lambda seen, done: np.asarray(done, float)[:, None])
    task = lfd.Task(env, demos, discount=0.9, horizon=5, costs=costs)
    return (lambda seen: np.array([int(number not in known) for number in seen[:, 0]])), task


def test_certificates_and_evaluations_play_episodes_of_their_own(copied):
    policy, task = copied
    same = {"rng": np.random.default_rng(0), "n_rollouts": 200}
    assert task.expected_costs(policy, **same).values[0] == 0  # so it would be
    certificate = lfd.certify(policy, task, rng=np.random.default_rng(0), n_rollouts=200)
    assert min(certificate.to_expert.bound, certificate.to_demonstrations.bound) >= 1
    evaluation = lfd.evaluate(policy, task, rng=np.random.default_rng(0), n_rollouts=200)
    assert evaluation.sampling.cost_distance[1] >= 1
    found = lfd.collect_until(task, policy, bound=0.5, rng=np.random.default_rng(0), at_first=200, at_most=200)
    assert not found.reached
    # Evaluations choose among policies, certificates speak of the chosen one: they do not play the same episodes.
    judged = [
        lfd.evaluate(lottery, task, rng=np.random.default_rng(3), n_rollouts=50).expected_costs[0],
        lfd.certify(lottery, task, rng=np.random.default_rng(3), n_rollouts=50).cost_distance,
    ]
    assert judged[0] != judged[1]


def test_new_demonstrations_are_not_those_that_were_shown(copied):
    _, task = copied

    def expert(seen):
        return np.zeros(len(seen), int)

    settings = {"bound": 2.0, "at_first": 20, "at_most": 20, "expert": expert}
    found = lfd.collect_until(task, expert, rng=np.random.default_rng(0), **settings)
    assert not set(found.demonstrations.observations.ravel()) & set(task.demonstrations.observations.ravel())


def test_the_same_seed_still_gives_the_same(copied):
    policy, task = copied
    one, two = (lfd.certify(policy, task, rng=np.random.default_rng(5), n_rollouts=7) for _ in range(2))
    assert str(one) == str(two)
    rng = np.random.default_rng(5)
    three, four = (lfd.certify(lottery, task, rng=rng, n_rollouts=50).cost_distance for _ in range(2))
    assert three != four  # one after the other
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator"):
        lfd.certify(policy, task, rng=5)
