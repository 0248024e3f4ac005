"""The levels that the learners reach on the paper's gridworld, γ = 0.9, exact evaluation.

Minutes long. Distances are δ_C to the expert; the numbers in ``docs/baselines.md`` come from the same settings.
Trajectories have 200 steps.
"""

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.baselines import make_learner

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=16, cost_seed=576)
    mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    return env, mdp, mdp.optimal_policy(env.unwrapped.cost_features[:, 0])


def learn(world, name, n_trajectories, seed=0, **settings):
    env, _, expert = world
    demos = lfd.collect(lfd.as_generative_model(env), expert, n_trajectories, 200, np.random.default_rng(seed))
    task = lfd.Task(env, demos, discount=0.9, expert=expert)
    result = lfd.learn(task, make_learner(name, **settings), rng=np.random.default_rng(seed))
    return lfd.evaluate(result.policy, task, resources=result.resources)


@pytest.mark.parametrize(("n_trajectories", "level"), [(100, 0.02), (10, 0.06)])
def test_gail(world, n_trajectories, level):
    evaluation = learn(world, "gail", n_trajectories)
    assert evaluation.resources.env_steps <= 1_000_000
    assert evaluation.cost_distance <= level


@pytest.mark.parametrize(("n_trajectories", "level"), [(100, 0.0025), (10, 0.07)])
def test_cloning(world, n_trajectories, level):
    distances = [learn(world, "bc", n_trajectories, seed).cost_distance for seed in range(6)]
    assert np.mean(distances) <= level


@pytest.mark.parametrize(("n_trajectories", "slack"), [(100, 0.002), (10, 0.01)])
def test_cloning_that_does_not_know_where_states_lie_is_as_good_as_counting(world, n_trajectories, slack):
    """With bumps as narrow as a state. Counting is the maximum-likelihood policy, uniform where nothing was seen."""
    network, table = (
        np.mean([learn(world, name, n_trajectories, seed, **settings).cost_distance for seed in range(3)])
        for name, settings in (("bc", {"nearness": 0.01}), ("tabular_bc", {}))
    )
    assert network <= table + slack


@pytest.mark.parametrize(("name", "level"), [("apprentice_bc", -0.3504), ("lpal", -0.3462), ("tabular_bc", -0.2296)])
def test_true_cost_at_ten_trajectories(world, name, level):
    """Over twenty sets; the levels were measured on twenty other sets, so both have a standard error."""
    costs = np.array([learn(world, name, 10, seed).true_cost for seed in range(20)])
    standard_error = costs.std(ddof=1) / np.sqrt(len(costs))
    assert costs.mean() <= level + 2 * np.sqrt(2) * standard_error
