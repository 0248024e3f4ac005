"""The public checks of policies and learners: they pass what is right, and notice what is not."""

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.baselines import Learner, LearningResult, make_learner
from lfd_gym.policies.mixtures import MixturePolicy
from lfd_gym.policies.policy import FinitePolicy, Policy
from lfd_gym.testing import check_learner, check_policy

UNIFORM = np.full((16, 4), 0.25)


@pytest.fixture(scope="module")
def task():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=4)
    demos = lfd.collect(env, UNIFORM, 5, 20, np.random.default_rng(0))
    return lfd.Task(env, demos, discount=0.9)


@pytest.mark.parametrize("name", ["tabular_bc", "cutting_plane", "random", "mwal"])
def test_right_learners_pass(name):
    check_learner(make_learner(name), budget=20 if name == "mwal" else None)


class Global(Learner):
    def learn(self, task, budget, rng):
        np.random.random()  # noqa: NPY002
        return LearningResult(UNIFORM)


class Moody(Learner):
    calls = 0

    def learn(self, task, budget, rng):
        Moody.calls += 1
        return LearningResult(np.eye(4)[[Moody.calls % 2] * 16])


class Garbled(Learner):
    def learn(self, task, budget, rng):
        return LearningResult(UNIFORM, facts={"table": UNIFORM})


class Elsewhere(Learner):
    def learn(self, task, budget, rng):
        return LearningResult(lambda seen: np.full(len(seen), 7))


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (Global(), "global draws from NumPy's global stream"),
        (Moody(), "moody gives another policy for the same seed"),
        (Garbled(), "the facts of garbled are not JSON"),
        (Elsewhere(), "some actions do not lie in Discrete"),
    ],
)
def test_wrong_learners_are_noticed(learner, message):
    with pytest.raises(AssertionError, match=message):
        check_learner(learner)


class Drifting(Policy):
    calls = 0

    def sample(self, observations, rng):
        Drifting.calls += 1
        return np.full(len(observations), Drifting.calls % 4)

    def greedy(self, observations):
        return self.sample(observations, None)


class Lying(FinitePolicy):
    def probabilities(self, observations):
        return np.tile([1.0, 0.0, 0.0, 0.0], (len(observations), 1))

    def sample(self, observations, rng):
        return rng.integers(4, size=len(observations))


class Timid(FinitePolicy):
    def probabilities(self, observations):
        return np.tile([0.7, 0.1, 0.1, 0.1], (len(observations), 1))

    def greedy(self, observations):
        return np.full(len(observations), 3)


class Heavy(FinitePolicy):
    def probabilities(self, observations):
        return np.full((len(observations), 4), 0.5)

    def sample(self, observations, rng):
        return rng.integers(4, size=len(observations))


class Meddling(Policy):
    def sample(self, observations, rng):
        observations[:] = 0
        return np.zeros(len(observations), dtype=int)

    def greedy(self, observations):
        return np.zeros(len(observations), dtype=int)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Drifting(), "the same generator gives other actions"),
        (Lying(), "sample does not draw what probabilities say"),
        (Heavy(), "its probabilities are no distributions"),
        (Timid(), "greedy does not take the most probable action"),
        (Meddling(), "calls change the observations they are given"),
        (lambda seen: np.zeros((len(seen), 2)), r"actions have shape \(48, 2\), not \(48,\)"),
    ],
)
def test_wrong_policies_are_noticed(policy, message, task):
    with pytest.raises(AssertionError, match=message):
        check_policy(policy, task)
    check_policy(UNIFORM, task)


def test_policies_that_keep_something_for_an_episode_pass(task):
    check_policy(MixturePolicy([UNIFORM, np.eye(4)[[0] * 16]], [0.5, 0.5]), task)
    with pytest.raises(AssertionError, match="some actions do not lie in Discrete"):
        check_policy(MixturePolicy([UNIFORM, lambda seen: np.full(len(seen), 7)], [0.5, 0.5]), task)


class Mixing(Learner):
    def learn(self, task, budget, rng):
        return LearningResult(MixturePolicy([UNIFORM, np.eye(4)[[0] * 16]], [0.5, 0.5]))


def test_a_learner_may_find_a_mixture():
    check_learner(Mixing())
