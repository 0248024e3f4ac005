"""Learners that need no torch: against brute force and against each other."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import mdps_with_costs, random_policy

import lfd_gym as lfd
from lfd_gym.baselines import Learned, Task, learner_names, make_learner, register_learner, run_learner
from lfd_gym.baselines.apprenticeship import AbbeelNg
from lfd_gym.baselines.counting import count_actions

CORE = [
    "abbeel_ng",
    "apprentice_bc",
    "cutting_plane",
    "expert",
    "lpal",
    "mirror_descent",
    "mwal",
    "plug_in",
    "random",
    "tabular_bc",
]


@pytest.fixture(scope="module")
def task():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=8, cost_seed=2)
    mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    expert = mdp.optimal_policy(env.unwrapped.cost_features[:, 0])
    demos = lfd.collect(lfd.as_generative_model(env), expert, 10, 100, np.random.default_rng(0))
    return Task.from_env(env, demos, 0.9, expert=expert)


def distance(policy, task):
    """Distance to the demonstrations' own costs: what the learners can know."""
    rho = lfd.feature_expectations(task.demonstrations, task.cost_features, task.discount).values
    return task.cost_features.T @ task.mdp.occupancy(policy).ravel() - rho


def learn(name, task, budget=None, seed=0, **settings):
    return run_learner(make_learner(name, **settings), task, np.random.default_rng(seed), budget)


@pytest.mark.parametrize("name", CORE)
def test_learners_return_policies_of_the_model(name, task):
    budget = 300_000 if name == "mirror_descent" else None
    result = learn(name, task, budget)
    np.testing.assert_allclose(result.policy.sum(axis=1), 1.0)
    assert result.policy.shape == (64, 4)
    again = learn(name, task, budget)
    np.testing.assert_array_equal(result.policy, again.policy)


def test_exact_learners_agree(task):
    exact, program = learn("cutting_plane", task), learn("lpal", task)
    assert distance(exact.policy, task).max() == pytest.approx(distance(program.policy, task).max(), abs=1e-7)
    assert exact.facts["status"] == "optimal"
    # Multiplicative weights approach the same value from above, at their rate.
    few, many = (distance(learn("mwal", task, budget).policy, task).max() for budget in (50, 2000))
    best = distance(exact.policy, task).max()
    assert best - 1e-9 <= many <= best + 0.005
    assert many < few


@pytest.mark.parametrize("variant", ["projection", "max_margin"])
def test_abbeel_ng_finds_the_nearest_mixture(task, variant):
    result = learn("abbeel_ng", task, variant=variant)
    assert result.facts["converged"]
    # The cutting-plane method over the unit ball solves the same problem another way.
    rho = lfd.feature_expectations(task.demonstrations, task.cost_features, task.discount).values
    ball = lfd.solve_cutting_plane(task.mdp, task.cost_features, rho, cost_class="ball")
    reached = np.linalg.norm(distance(result.policy, task))
    assert ball.lower_bound - 1e-7 <= reached <= ball.upper_bound + 1e-3
    assert reached == pytest.approx(result.facts["distance"], abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(mdps_with_costs(max_discount=0.9), st.integers(0, 2**31))
def test_abbeel_ng_on_random_models(problem, seed):
    """Over the unit ball the cutting-plane method solves the same problem; the expert may be far from optimal."""
    mdp, costs = problem
    rng = np.random.default_rng(seed)
    policy = random_policy(mdp, rng)
    demos = lfd.collect(lfd.TabularModel.of(mdp), policy, 5, 30, rng)
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=2)  # not used: the model is known
    task = Task(demos, env, mdp.discount, costs, mdp)
    result = learn("abbeel_ng", task, variant="max_margin", tolerance=1e-5)
    rho = lfd.feature_expectations(demos, costs, mdp.discount).values
    ball = lfd.solve_cutting_plane(mdp, costs, rho, cost_class="ball", tolerance=1e-7)
    assert result.facts["converged"]
    assert np.linalg.norm(distance(result.policy, task)) <= ball.upper_bound + 2e-5


def test_counting_by_hand():
    demos = lfd.Demonstrations(
        observations=[0, 1, 1, 2, 0, 0],
        actions=[1, 0, 0, 1],
        offsets=[0, 3, 4],
        terminated=[False, False],
        truncated=[True, True],
        observation_space=gym.spaces.Discrete(4),
        action_space=gym.spaces.Discrete(2),
    )
    np.testing.assert_array_equal(count_actions(demos, 4, 2), [[0, 2], [2, 0], [0, 0], [0, 0]])
    with pytest.raises(ValueError, match="do not fit 1 states"):
        count_actions(demos, 1, 2)


def test_tabular_bc_is_uniform_where_the_expert_was_not_seen(task):
    result = learn("tabular_bc", task)
    seen = np.unique(task.demonstrations.acted_on)
    unseen = np.setdiff1d(np.arange(64), seen)
    assert result.facts["n_states_seen"] == len(seen)
    np.testing.assert_array_equal(result.policy[seen], task.expert[seen])  # a deterministic expert
    assert unseen.size > 0
    assert (result.policy[unseen] == 0.25).all()
    mixed = learn("apprentice_bc", task)
    np.testing.assert_array_equal(mixed.policy[seen], task.expert[seen])
    np.testing.assert_array_equal(mixed.policy[unseen], learn("cutting_plane", task).policy[unseen])


def test_apprentice_bc_beats_both_of_its_parts_on_average():
    """At ten trajectories; over several sets, because one set may favour either part."""
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=16, cost_seed=0)
    mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    costs = env.unwrapped.cost_features
    expert = mdp.optimal_policy(costs[:, 0])
    reached = {"apprentice_bc": [], "lpal": [], "tabular_bc": []}
    for seed in range(8):
        demos = lfd.collect(lfd.as_generative_model(env), expert, 10, 200, np.random.default_rng(seed))
        for name, costs_reached in reached.items():
            policy = learn(name, Task.from_env(env, demos, 0.9)).policy
            costs_reached.append(mdp.expected_cost(policy, costs[:, 0]))
    means = {name: np.mean(values) for name, values in reached.items()}
    assert means["apprentice_bc"] < means["lpal"] < means["tabular_bc"]


def test_registry():
    assert set(CORE) <= set(learner_names())
    assert learner_names() == sorted(learner_names())
    with pytest.raises(ValueError, match="there is no learner 'gial'; there are"):
        make_learner("gial")
    with pytest.raises(ValueError, match="learner 'mwal' has no setting 'steps'; it has step_factor"):
        make_learner("mwal", steps=3)
    with pytest.raises(ValueError, match="registered already"):
        register_learner("lpal", AbbeelNg)


def test_other_learners_can_be_registered(task, monkeypatch):
    from lfd_gym.baselines import registry

    monkeypatch.setattr(registry, "_LEARNERS", dict(registry._LEARNERS))

    class FirstAction:
        queries_expert, budget_unit, default_budget = False, "", None

        def learn(self, task, budget, rng):
            return Learned(np.eye(4)[np.zeros(64, dtype=int)], facts={"answer": 42})

    register_learner("first_action", FirstAction)
    result = learn("first_action", task)
    assert result.facts == {"answer": 42}
    assert result.resources.n_demonstrations == 10


def test_bad_tasks_and_budgets_are_named(task):
    with pytest.raises(ValueError, match="takes no budget"):
        learn("lpal", task, budget=5)
    with pytest.raises(ValueError, match="at least 1 planner calls"):
        learn("mwal", task, budget=0)
    with pytest.raises(ValueError, match="discount must be that of the mdp"):
        Task(task.demonstrations, task.env, 0.5, task.cost_features, task.mdp)
    blind = Task(task.demonstrations, task.env, 0.9, None, None)
    with pytest.raises(ValueError, match="lpal needs a known finite model"):
        learn("lpal", blind)
    with pytest.raises(ValueError, match=r"needs Task\(expert=...\)"):
        learn("expert", blind)
    with pytest.raises(ValueError, match="variant must be"):
        make_learner("abbeel_ng", variant="best")


def test_horizon_of_play(task):
    assert task.horizon == 100
    assert Task.from_env(task.env, task.demonstrations.select([0]), 0.9).horizon == 100
