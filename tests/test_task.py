"""The one description of what is to be learned: what it knows, what it refuses, and expected costs."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd


@pytest.fixture(scope="module")
def grid():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=4, cost_seed=1)
    expert = lfd.FiniteMDP.from_env(env, 0.9).optimal_policy(env.unwrapped.cost_features[:, 0])
    return env, expert, lfd.collect(env, expert, 6, 40, np.random.default_rng(0))


def upright(observations, actions):
    return np.minimum(np.abs(observations[:, [2, 0]]), 1.0)


def test_access_follows_from_what_is_given(grid):
    env, _, demos = grid
    costs = env.unwrapped.cost_features
    assert lfd.Task(env, demos, discount=0.9).access == "model"
    assert lfd.Task(lfd.FiniteMDP.from_env(env, 0.9), demos, costs=costs).access == "model"
    assert lfd.Task(lfd.as_generative_model(env), demos, discount=0.9, costs=costs).access == "simulator"
    assert lfd.Task(gym.make("CartPole-v1"), discount=0.9).access == "simulator"
    assert lfd.Task(None, demos, discount=0.9).access == "demonstrations"

    class Unknown(gym.Env):
        observation_space, action_space = gym.spaces.Discrete(3), gym.spaces.Discrete(2)

    assert lfd.Task(Unknown(), discount=0.9).access == "episodes"


def test_needs_name_who_and_what(grid):
    blind = lfd.Task(None, grid[2], discount=0.9)
    blind.needs("demonstrations", "counting")
    with pytest.raises(ValueError, match="planning needs access to the model, but this task allows 'demonstrations'"):
        blind.needs("model", "planning")
    with pytest.raises(ValueError, match="the simulator needs access to the simulator"):
        _ = blind.simulator
    with pytest.raises(ValueError, match="estimating expected costs needs access to the episodes"):
        lfd.Task(None, grid[2], discount=0.9, costs=np.zeros((64, 1))).expected_costs(np.full((16, 4), 0.25))


def test_the_model_is_not_built_twice(grid):
    task = lfd.Task(grid[0], grid[2], discount=0.9)
    assert task.model is task.model
    assert task.simulator is task.simulator
    assert task.model.dynamics is grid[0].unwrapped.dynamics
    assert task.simulator.dynamics is task.model.dynamics


def test_expected_costs_are_exact_or_estimated_by_one_method(grid):
    env, expert, demos = grid
    exact = lfd.Task(env, demos, discount=0.9).expected_costs(expert)
    assert exact.exact
    assert exact.n_steps == 0
    np.testing.assert_allclose(exact.radius(0.1), np.full(5, 1e-10), atol=1e-15)  # what the linear system leaves open
    np.testing.assert_allclose(exact.intervals(0.9), exact.values[:, None] + [-1e-10, 1e-10], atol=1e-15)
    sampled = lfd.Task(lfd.as_generative_model(env), discount=0.9, costs=env.unwrapped.cost_features)
    estimate = sampled.expected_costs(expert, rng=np.random.default_rng(1), n_rollouts=4000)
    assert not estimate.exact
    assert estimate.n_steps == 4000 * estimate.horizon
    assert (np.abs(estimate.values - exact.values) <= estimate.radius(1e-3)).all()
    again = sampled.expected_costs(expert, rng=np.random.default_rng(1), n_rollouts=4000)
    np.testing.assert_array_equal(again.values, estimate.values)


def test_the_compiled_loop_and_the_other_agree_in_distribution(grid):
    """A function's costs go through the loop that serves every model, a table's through compiled code."""
    env, expert, _ = grid
    model, table = lfd.as_generative_model(env), env.unwrapped.cost_features
    by_table = lfd.Task(model, discount=0.9, costs=table)
    by_function = lfd.Task(model, discount=0.9, costs=lambda seen, done: table[seen * 4 + done])
    one, other = (
        task.expected_costs(expert, rng=np.random.default_rng(seed), n_rollouts=5000)
        for seed, task in enumerate((by_table, by_function))
    )
    assert one.n_steps == other.n_steps
    assert (np.abs(one.values - other.values) <= one.radius(1e-3) + other.radius(1e-3)).all()


def test_rollouts_of_a_continuous_simulator():
    task = lfd.Task(gym.make("CartPole-v1"), discount=0.9, costs=upright)
    estimate = task.expected_costs(
        lambda seen: (seen[:, 2] > 0).astype(int), rng=np.random.default_rng(0), n_rollouts=20
    )
    assert estimate.values.shape == (2,)
    assert (estimate.values >= 0).all()
    assert estimate.unseen_mass.max() <= 1e-3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "discount must be given"),
        ({"discount": 1.0}, "discount must lie strictly between 0 and 1"),
        ({"discount": 0.9, "costs": np.zeros((3, 1))}, r"costs must have shape \(64, any\), got \(3, 1\)"),
        ({"discount": 0.9, "true_cost": np.full(64, 2.0)}, r"true_cost must lie in \[-1, 1\]"),
        ({"discount": 0.9, "true_cost": np.zeros(3)}, r"true_cost must have shape \(64, any\)"),
        ({"discount": 0.9, "env": None}, "demonstrations must be given where there is no env"),
        ({"discount": 0.9, "demonstrations": []}, "demonstrations must hold at least one trajectory"),
    ],
)
def test_bad_input_is_named(grid, settings, message):
    with pytest.raises(ValueError, match=message):
        lfd.Task(**{"env": grid[0]} | settings)


@pytest.mark.parametrize("env", ["CartPole-v1", 5, gym.Env])
def test_what_is_no_environment_is_refused_by_name(env):
    with pytest.raises(TypeError, match=r"env must be a Gymnasium environment.* got "):
        lfd.Task(env, discount=0.9)


def test_what_is_no_generator_or_task_is_refused_by_name():
    task = lfd.Task(gym.make("CartPole-v1"), discount=0.9, costs=lambda seen, done: np.zeros((len(seen), 1)))
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator"):
        lfd.evaluate(lambda seen: np.zeros(len(seen), int), task, rng=0)
    with pytest.raises(TypeError, match=r"task must be a lfd_gym.Task\(env, demonstrations, .*got <?TimeLimit"):
        lfd.learn(gym.make("CartPole-v1"), rng=np.random.default_rng(0))


def test_logged_data_only(grid):
    env, expert, demos = grid
    task = lfd.Task(None, demos, discount=0.9, costs=env.unwrapped.cost_features)
    np.testing.assert_array_equal(
        task.expert_features().values, lfd.Task(env, demos, discount=0.9).expert_features().values
    )
    learned = lfd.learn(task, "tabular_bc", rng=np.random.default_rng(0))
    seen = np.unique(demos.acted_on)
    np.testing.assert_array_equal(learned.policy.table[seen], expert[seen])
    with pytest.raises(ValueError, match=r"demonstrations must be lfd_gym.Demonstrations"):
        lfd.Task(None, [1], discount=0.9)


def test_the_true_cost_of_an_environment_is_its_reward(grid):
    task = lfd.Task(grid[0], discount=0.9)
    np.testing.assert_array_equal(task.true_cost.table[:, 0], grid[0].unwrapped.cost_features[:, 0])
    cliff = max(name for name in gym.registry if name.startswith("CliffWalking-v"))
    costs = lfd.Task(gym.make(cliff), discount=0.9).true_cost.table
    assert np.abs(costs).max() == 1.0


def test_tables_of_another_size_are_refused_before_a_kernel_reads_them(grid):
    model, costs = lfd.as_generative_model(grid[0]), grid[0].unwrapped.cost_features
    with pytest.raises(ValueError, match=r"costs must have shape \(64, any\), got \(40, 5\)"):
        lfd.Task(model, discount=0.9, costs=costs[:40])
    with pytest.raises(ValueError, match=r"true_cost must have shape \(64, any\), got \(8, 1\)"):
        lfd.Task(model, discount=0.9, costs=costs, true_cost=np.zeros(8))
    with pytest.raises(ValueError, match="true_cost must be one cost"):
        lfd.Task(model, discount=0.9, costs=costs, true_cost=lfd.TableCosts(costs, 4))


def test_a_table_of_transitions_without_rewards_is_enough(grid):
    """There is no true cost then; costs may be given, or be the environment's own."""

    class Silent(gym.Env):
        observation_space, action_space = gym.spaces.Discrete(16), gym.spaces.Discrete(4)
        transitions, initial_distribution = grid[0].unwrapped.transitions, np.full(16, 1 / 16)

    task = lfd.Task(Silent(), grid[2], discount=0.9, costs=grid[0].unwrapped.cost_features)
    assert task.true_cost is None
    assert lfd.learn(task, rng=np.random.default_rng(0)).learner == "cutting_plane"
    evaluation = lfd.evaluate(grid[1], task)
    assert evaluation.true_gap is None
    assert not evaluation.exact  # the expert's costs are an estimate
    assert evaluation.n_expert_demonstrations == 6
    assert "estimated from 6 demonstrations" in str(evaluation)
    own = Silent()
    own.costs = lfd.TableCosts(grid[0].unwrapped.cost_features, 4, "ball")
    assert lfd.Task(own, grid[2], discount=0.9).costs is own.costs


@pytest.mark.parametrize("name", ["cutting_plane", "tabular_bc", "random"])
def test_policies_fit_what_the_environment_shows(grid, name):
    """Under one-hot observations too: one observation, one action."""
    env = gym.wrappers.FlattenObservation(grid[0])
    result = lfd.learn(lfd.Task(env, grid[2], discount=0.9), name, rng=np.random.default_rng(0))
    assert result.policy.observation_space == env.observation_space
    observation, _ = env.reset(seed=0)
    assert np.shape(result.policy.predict(observation)[0]) == ()
    assert np.shape(result.policy.predict(np.stack([observation] * 3))[0]) == (3,)
    lake = gym.make("FrozenLake-v1")
    demos = lfd.collect(lake, np.full((16, 4), 0.25), 5, 20, np.random.default_rng(0))
    learned = lfd.learn(lfd.Task(lake, demos, discount=0.9), name, rng=np.random.default_rng(0))
    assert learned.policy.observation_space == lake.observation_space


def test_the_true_cost_stays_hidden_from_learners(grid):
    shown = lfd.Task(grid[0], grid[2], discount=0.9, expert=grid[1]).for_learner(asks_expert=False)
    for task in (shown, replace(shown, discount=0.8)):
        assert task.true_cost is None
        assert task.expert is None


def test_the_end_is_free_for_every_part():
    """A function beside a table must not switch off the check of the table."""
    env = gym.make("FrozenLake-v1")
    costs = np.zeros((68, 1))
    costs[-1] = 1.0
    task = lfd.Task(lfd.as_generative_model(env), discount=0.9, costs=costs, true_cost=lambda seen, done: 0 * seen)
    with pytest.raises(ValueError, match="costs must be zero in the absorbing state 16"):
        lfd.evaluate(np.full((16, 4), 0.25), task, rng=np.random.default_rng(0), n_rollouts=5)
    short = lfd.Task(task.env, discount=0.9, costs=np.ones((64, 1)), true_cost=np.zeros(68))
    assert lfd.evaluate(np.full((16, 4), 0.25), short, rng=np.random.default_rng(0), n_rollouts=5).true_cost == 0.0


def test_intervals_allow_for_an_expert_that_is_only_estimated(grid):
    """Forty sets of three short demonstrations: the interval of the distance holds the truth as often as it says."""
    env, expert, _ = grid
    model, costs = lfd.as_generative_model(env), env.unwrapped.cost_features
    policy = np.full((16, 4), 0.25)
    truth = lfd.evaluate(policy, lfd.Task(env, discount=0.9, expert=expert)).cost_distance
    held, rng = 0, np.random.default_rng(0)
    for _ in range(40):
        demos = lfd.collect(env, expert, 3, 20, rng)
        task = lfd.Task(model, demos, discount=0.9, costs=costs)
        low, high = lfd.evaluate(policy, task, rng=rng, n_rollouts=200).sampling.cost_distance
        held += low <= truth <= high
    assert held >= 34
    one = lfd.Task(model, demos.select([0]), discount=0.9, costs=costs)
    low, high = lfd.evaluate(policy, one, rng=rng, n_rollouts=200).sampling.cost_distance
    assert high - low > 1.9  # nothing is known of how demonstrations vary


def test_demonstrations_may_be_a_file(tmp_path):
    env = gym.make("FrozenLake-v1")
    demos = lfd.collect(env, lambda seen: np.ones(len(seen), dtype=int), 2, rng=np.random.default_rng(0))
    demos.save(tmp_path / "lake.npz")
    assert lfd.Task(env, tmp_path / "lake.npz", discount=0.9).demonstrations == demos
    for wrong in (tmp_path / "lake.csv", str(tmp_path / "nowhere")):
        with pytest.raises(ValueError, match=r"must be a .npz file of lfd_gym or the folder .*from_episodes"):
            lfd.Task(env, wrong, discount=0.9)


def test_lists_of_ones_own_are_led_to_from_episodes():
    with pytest.raises(TypeError, match=r"without obs; for lists and arrays of your own there is .*from_episodes"):
        lfd.Task(gym.make("FrozenLake-v1"), [([0, 4], [1])], discount=0.9)
