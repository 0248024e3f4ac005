"""Learners that need no torch: against brute force and against each other."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import mdps_with_costs, random_policy

import lfd_gym as lfd
from lfd_gym.baselines import Learner, LearningResult, learner_names, make_learner, register_learner
from lfd_gym.baselines.apprenticeship import AbbeelNg
from lfd_gym.baselines.counting import action_counts
from lfd_gym.policies.conversion import policy_table

CORE = [
    "abbeel_ng",
    "apprentice_bc",
    "cutting_plane",
    "expert",
    "lpal",
    "mirror_descent",
    "mwal",
    "plug_in",
    "primal_dual_hybrid",
    "random",
    "tabular_bc",
]


@pytest.fixture(scope="module")
def task():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=8, cost_seed=2)
    mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    expert = mdp.optimal_policy(env.unwrapped.cost_features[:, 0])
    demos = lfd.collect(lfd.as_generative_model(env), expert, 10, 100, np.random.default_rng(0))
    return lfd.Task(env, demos, discount=0.9, expert=expert)


def distance(policy, task):
    """Distance to the demonstrations' own costs: what the learners can know."""
    return task.expected_costs(policy).values - task.expert_features().values


def learn(name, task, budget=None, seed=0, **settings):
    return lfd.learn(task, make_learner(name, **settings), rng=np.random.default_rng(seed), budget=budget)


@pytest.mark.parametrize("name", CORE)
def test_learners_return_policies_of_the_model(name, task):
    budget = 300_000 if name == "mirror_descent" else None
    result = learn(name, task, budget)
    table = policy_table(result.policy, task.model)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    assert table.shape == (64, 4)
    assert result.learner == name
    np.testing.assert_array_equal(table, policy_table(learn(name, task, budget).policy, task.model))


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
    rho = task.expert_features().values
    ball = lfd.solve_cutting_plane(task.model, task.cost_table, rho, cost_class="ball")
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
    task = lfd.Task(mdp, demos, costs=costs)
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
    counted = [[0, 2], [2, 0], [0, 0], [0, 0]]
    np.testing.assert_array_equal(action_counts(lfd.Task(None, demos, discount=0.9)), counted)
    one_state = lfd.FiniteMDP(np.ones((1, 2, 1)), [1.0], 0.9)
    with pytest.raises(
        ValueError, match=r"demonstrations observe Discrete\(4\), but the environment shows Discrete\(1\)"
    ):
        lfd.Task(one_state, demos)


def test_tabular_bc_is_uniform_where_the_expert_was_not_seen(task):
    result = learn("tabular_bc", task)
    seen = np.unique(task.demonstrations.acted_on)
    unseen = np.setdiff1d(np.arange(64), seen)
    assert result.facts["n_states_seen"] == len(seen)
    np.testing.assert_array_equal(result.policy.table[seen], task.expert[seen])  # a deterministic expert
    assert unseen.size > 0
    assert (result.policy.table[unseen] == 0.25).all()
    mixed = learn("apprentice_bc", task)
    np.testing.assert_array_equal(mixed.policy.table[seen], task.expert[seen])
    np.testing.assert_array_equal(mixed.policy.table[unseen], learn("cutting_plane", task).policy.table[unseen])


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
            policy = learn(name, lfd.Task(env, demos, discount=0.9)).policy.table
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
    from lfd_gym.baselines import learner as registry

    monkeypatch.setattr(registry, "_LEARNERS", dict(registry._LEARNERS))

    class FirstAction(Learner):
        def learn(self, task, budget, rng):
            return LearningResult(np.eye(4)[np.zeros(64, dtype=int)], facts={"answer": 42})

    register_learner("first_action", FirstAction)
    result = learn("first_action", task)
    assert result.facts == {"answer": 42}
    assert result.resources.n_demonstrations == 10


def test_bad_tasks_and_budgets_are_named(task):
    with pytest.raises(ValueError, match="takes no budget"):
        learn("lpal", task, budget=5)
    with pytest.raises(ValueError, match="at least 1 planner calls"):
        learn("mwal", task, budget=0)
    blind = lfd.Task(None, task.demonstrations, discount=0.9)
    with pytest.raises(ValueError, match="lpal needs access to the model, but this task allows 'demonstrations' only"):
        learn("lpal", blind)
    with pytest.raises(ValueError, match="task must have demonstrations"):
        learn("lpal", lfd.Task(task.env, discount=0.9))
    with pytest.raises(ValueError, match=r"needs Task\(expert=...\)"):
        learn("expert", blind)
    with pytest.raises(ValueError, match="variant must be"):
        make_learner("abbeel_ng", variant="best")


def test_length_of_play(task):
    assert task.episode_length == 100
    assert lfd.Task(task.env, task.demonstrations.select([0]), discount=0.9).episode_length == 100


def test_no_learner_sees_the_true_cost_or_an_expert_it_does_not_ask(task, monkeypatch):
    from lfd_gym.baselines import learner as registry

    monkeypatch.setattr(registry, "_LEARNERS", dict(registry._LEARNERS))
    seen = []

    class Curious(Learner):
        def learn(self, task, budget, rng):
            seen.append(task)
            return LearningResult(np.full((64, 4), 0.25))

    class Asking(Curious):
        asks_expert = True

    for learner in (Curious(), Asking()):
        lfd.learn(task, learner, rng=np.random.default_rng(0))
    assert task.true_cost is not None
    assert [given.true_cost for given in seen] == [None, None]
    assert [given.expert is None for given in seen] == [True, False]


def test_without_a_learner_the_best_is_taken_and_named(task):
    result = lfd.learn(task, rng=np.random.default_rng(0))
    assert (result.learner, result.reason) == ("cutting_plane", "the model is known: the exact apprentice")
    sampled = lfd.Task(lfd.as_generative_model(task.env), task.demonstrations, discount=0.9, costs=task.costs)
    result = lfd.learn(sampled, rng=np.random.default_rng(0), budget=10_000)
    assert result.learner == "plug_in"
    assert "finitely many states" in result.reason
    assert "plug_in: TablePolicy" in repr(result)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bc", r"learner 'bc' needs the 'imitation' extra: .* Gymnasium 0.29. .* 'iq_learn_offline', .*\(No module"),
        ("sqil", r"learner 'sqil' needs the 'sb3' extra: pip install 'lfd-gym\[sb3\]' \(No module named 'torch'\)"),
    ],
)
def test_a_learner_says_which_extra_it_needs(monkeypatch, name, message):
    def import_nothing(module):
        raise ImportError("some extra is missing") from ModuleNotFoundError("No module named 'torch'")

    monkeypatch.setattr("lfd_gym.baselines.learner.import_module", import_nothing)
    with pytest.raises(ImportError, match=message):
        make_learner(name)
