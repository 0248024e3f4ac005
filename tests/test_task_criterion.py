"""Criteria at work: the first steps beside the discounted sum, exact, sampled and estimated; data without a world."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import lfd_gym as lfd
from lfd_gym.policies.tables import UniformPolicy


@pytest.fixture(scope="module")
def grid():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=4, cost_seed=1)
    expert = lfd.FiniteMDP.from_env(env, 0.9).optimal_policy(env.unwrapped.cost_features[:, 0])
    return env, expert, lfd.collect(env, expert, 400, 40, np.random.default_rng(0))


@pytest.mark.parametrize(("discount", "horizon"), [(1.0, 7), (0.9, 7), (0.99, 60), (0.9, None)])
def test_exact_costs_demonstrations_rollouts_and_episodes_agree(grid, discount, horizon):
    env, expert, demos = grid
    task = lfd.Task(env, demos, discount=discount, horizon=horizon)
    exact = task.expected_costs(expert)
    assert exact.exact
    estimate = task.expert_features()
    assert (np.abs(estimate.values - exact.values) <= estimate.radius(0.001)).all()
    assert estimate.unseen_mass.max() == pytest.approx(0.0 if horizon == 7 else task.criterion.unseen(40))
    rng = np.random.default_rng(1)
    model = lfd.Task(lfd.as_generative_model(env), discount=discount, horizon=horizon, costs=task.costs)
    vector = gym.make_vec("lfd_gym/StochasticGridworld-v0", num_envs=50, size=4, cost_seed=1)
    episodes = lfd.Task(vector, discount=discount, horizon=horizon, costs=task.costs)
    for other, access in ((model, "simulator"), (episodes, "episodes")):
        assert other.access == access
        sampled = other.expected_costs(expert, rng=rng, n_rollouts=500)
        assert (np.abs(sampled.values - exact.values) <= sampled.radius(0.001)).all()


def test_the_last_steps_count_as_the_first_ones_without_a_discount(grid):
    env, _, _ = grid
    task = lfd.Task(env, discount=1.0, horizon=3)
    policy = np.full((16, 4), 0.25)
    dynamics = task.dynamics
    chain = np.einsum("xa,xay->xy", policy, dynamics.transitions.toarray().reshape(16, 4, 16))
    visits = sum(dynamics.initial_distribution @ np.linalg.matrix_power(chain, t) for t in range(3)) / 3
    expected = (visits[:, None] * policy).ravel() @ task.cost_table
    np.testing.assert_allclose(task.expected_costs(policy).values, expected, atol=1e-12)


def test_learners_of_the_discounted_problem_say_that_they_solve_it(grid):
    env, _, demos = grid
    rng = np.random.default_rng(0)
    discounted = lfd.learn(lfd.Task(env, demos, discount=0.9), "cutting_plane", rng=rng)
    assert "criterion" not in discounted.facts
    task = lfd.Task(env, demos, discount=0.9, horizon=20)
    found = lfd.learn(task, "cutting_plane", rng=rng)
    assert found.facts["criterion"] == "discount 0.9, not discount 0.9, first 20 steps"
    np.testing.assert_array_equal(found.policy.table, discounted.policy.table)
    assert "criterion" not in lfd.learn(task, "tabular_bc", rng=rng).facts
    with pytest.raises(ValueError, match=r"cutting_plane solves the discounted problem without end.* got 1"):
        lfd.learn(lfd.Task(env, demos, discount=1.0, horizon=20), "cutting_plane", rng=rng)
    with pytest.raises(ValueError, match="discount must be below 1"):
        _ = lfd.Task(env, demos, discount=1.0, horizon=20).model


def test_certificates_and_evaluations_follow_the_criterion(grid):
    env, expert, demos = grid
    task = lfd.Task(env, demos, discount=1.0, horizon=40, expert=expert)
    policy = np.full((16, 4), 0.25)
    truth = (task.expected_costs(policy).values - task.expected_costs(expert).values).max()
    certificate = lfd.certify(policy, task)
    assert truth <= certificate.cost_distance_bound <= truth + 0.4
    assert "first 40 steps" in str(certificate)
    assert f"{40 * certificate.cost_distance_bound:.4f}" in str(certificate)  # as a sum of rewards
    evaluation = lfd.evaluate(policy, task)
    assert evaluation.cost_distance == pytest.approx(truth)
    returns = [episode.rewards.sum() for episode in lfd.collect(env, policy, 3000, 40, np.random.default_rng(2))]
    assert evaluation.discounted_return == pytest.approx(np.mean(returns), abs=5 * np.std(returns) / np.sqrt(3000))


def test_the_return_of_a_table_is_in_the_units_of_its_reward():
    env = gym.make("CliffWalking-v0" if "CliffWalking-v0" in gym.registry else "CliffWalking-v1")
    task = lfd.Task(env, discount=0.9)
    policy = np.full((49, 4), 0.25)
    assert task.reward_scale == 100
    expected = -lfd.FiniteMDP.from_env(env, 0.9).expected_cost(policy, lfd.reward_cost(env)) / 0.1
    assert lfd.evaluate(policy, task).discounted_return == pytest.approx(expected)


# -- data without a world, and data that does not fit ---------------------------------------------------------------


def test_logged_data_only(grid):
    _, expert, demos = grid
    task = lfd.Task(None, demos, discount=0.9, extra_transitions=demos.select([0, 1]))
    assert task.access == "demonstrations"
    assert len(task.extra_transitions) == 2
    rng = np.random.default_rng(0)
    assert lfd.learn(task, "tabular_bc", rng=rng).policy.table.shape == (16, 4)
    for who in ("cutting_plane", "mirror_descent", "gail"):
        try:
            lfd.baselines.make_learner(who)
        except ImportError:
            continue
        with pytest.raises(ValueError, match=f"{who} needs access to the .*'demonstrations' only"):
            lfd.learn(task, who, rng=rng)
    with pytest.raises(ValueError, match="needs access to the episodes"):
        lfd.evaluate(expert, task, rng=rng)


def test_an_episode_that_a_time_limit_cut_is_not_taken_for_an_end(grid):
    """Of `imitation`: every finished episode is terminal. Its unseen tail must not count as free."""
    _, expert, _ = grid
    limited = gym.make("lfd_gym/StochasticGridworld-v0", size=4, cost_seed=1, max_episode_steps=50)
    cost = -np.ones((64, 1))

    class Trajectory:
        def __init__(self, episode):
            self.obs, self.acts, self.infos, self.terminal = episode.observations, episode.actions, None, True

    recorded = lfd.collect(limited, expert, 200, 50, np.random.default_rng(0))
    task = lfd.Task(limited, [Trajectory(episode) for episode in recorded], discount=0.99, costs=cost)
    assert task.demonstrations.truncated.all()
    assert not task.demonstrations.terminated.any()
    assert lfd.certify(expert, task).cost_distance_bound >= 0  # the truth; -0.486 where the tail is free
    ended = recorded.from_episodes(
        [(e.observations, e.actions, None, True, False) for e in recorded],
        recorded.observation_space,
        recorded.action_space,
    )
    with pytest.raises(ValueError, match="trajectory 0 is marked as terminated, but this environment never ends"):
        lfd.Task(limited, ended, discount=0.99, costs=cost)
    pendulum = gym.make("Pendulum-v1")
    swung = lfd.collect(pendulum, UniformPolicy(pendulum.action_space), 1, 50, np.random.default_rng(0))
    marked = replace(swung, terminated=np.array([True]), truncated=np.array([False]), horizon=None)
    with pytest.raises(ValueError, match="this environment never ends"):
        lfd.Task(pendulum, marked, discount=0.99)


def test_demonstrations_of_another_environment_are_refused_by_name(grid):
    _, _, demos = grid
    for other, message in (
        (gym.make("lfd_gym/StochasticGridworld-v0", size=4, cost_seed=2), "cost_seed=1.*cost_seed=2"),
        (gym.make("lfd_gym/StochasticGridworld-v0", size=5, cost_seed=1), "size=4.*size=5"),
        (gym.make("FrozenLake-v1"), "StochasticGridworld-v0, but env is FrozenLake-v1"),
    ):
        with pytest.raises(ValueError, match=message):
            lfd.Task(other, demos, discount=0.9)
    other = gym.make("lfd_gym/StochasticGridworld-v0", size=4, cost_seed=2)
    assert lfd.Task(other, demos, discount=0.9, allow_mismatch=True).access == "model"
    with pytest.raises(ValueError, match=r"observe Discrete\(16\), but the environment shows Discrete\(25\)"):
        lfd.Task(gym.make("lfd_gym/StochasticGridworld-v0", size=5), demos, discount=0.9, allow_mismatch=True)


def lean(observations):
    return (observations[:, 2] + observations[:, 3] > 0).astype(np.int64)


def test_demonstrations_without_actions_are_judged_by_what_was_seen():
    env = gym.make("CartPole-v1")
    rng = np.random.default_rng(0)
    demos = lfd.collect(env, lean, 5, 200, rng).without_actions()
    task = lfd.Task(env, demos, discount=0.95, horizon=100)
    assert not task.costs.uses_actions
    near = lfd.certify(lean, task, rng=rng, n_rollouts=40)
    far = lfd.certify(UniformPolicy(env.action_space), task, rng=rng, n_rollouts=40)
    assert near.cost_distance < 0.1 < far.cost_distance
    with pytest.raises(ValueError, match="tabular_bc needs demonstrations with actions"):
        lfd.learn(task, "tabular_bc", rng=rng)
    with pytest.raises(ValueError, match=r"actions are not known, but .* depend on them"):
        lfd.Task(env, demos, discount=0.95, costs=lambda seen, done: np.ones((len(seen), 1))).expert_features()


def test_costs_chosen_from_demonstrations_speak_of_these_and_held_out_ones_of_the_expert():
    env = gym.make("CartPole-v1")
    rng = np.random.default_rng(1)
    demos, fresh = (lfd.collect(env, lean, 4, 200, rng) for _ in range(2))
    task = lfd.Task(env, demos, discount=0.95)
    assert task.costs.chosen_from_demonstrations
    own = lfd.certify(lean, task, rng=rng, n_rollouts=30)
    expert = lfd.certify(lean, task, rng=rng, n_rollouts=30, held_out=fresh)
    assert (own.about, expert.about) == ("demonstrations", "expert")
    assert own.cost_distance_bound < expert.cost_distance_bound
    assert "worse than these demonstrations" in str(own)
    assert "Nothing is said about the expert: the costs were chosen after looking" in str(own)
    assert "A cost of norm B is bounded by B times as much" in str(own)
    assert "held-out" in str(expert)
    before = lfd.FourierCosts.from_samples(
        *random_play(env, rng), env.observation_space, env.action_space, chosen_from_demonstrations=False
    )
    assert (
        lfd.certify(lean, lfd.Task(env, demos, discount=0.95, costs=before), rng=rng, n_rollouts=30).about == "expert"
    )


def random_play(env, rng):
    played = lfd.collect(env, UniformPolicy(env.action_space), 20, 100, rng)
    return played.acted_on, played.actions


def test_the_norm_bound_covers_for_costs_with_rows_of_norm_one():
    """The distance of two policies of CartPole, known from many episodes, is nearly always below the bound from few."""
    env = gym.make("CartPole-v1")
    rng = np.random.default_rng(2)
    costs = lfd.FourierCosts.from_samples(
        *random_play(env, rng), env.observation_space, env.action_space, chosen_from_demonstrations=False
    )
    uniform = UniformPolicy(env.action_space)

    def task(demos=None):
        return lfd.Task(env, demos, discount=0.9, horizon=40, costs=costs)

    truth = task().expected_costs(lean, rng=rng, n_rollouts=1000).values
    truth = np.linalg.norm(truth - task().expected_costs(uniform, rng=rng, n_rollouts=1000).values)
    misses = 0
    for _ in range(20):
        few = lfd.collect(env, lean, 5, 40, rng)
        bound = lfd.certify(uniform, task(few), rng=rng, n_rollouts=8, delta=0.2).cost_distance_bound
        misses += bound < truth - 0.05  # the truth is an estimate too
        assert bound <= 2
    assert misses <= 4


def test_held_out_demonstrations_are_not_those_that_costs_were_chosen_from():
    env, rng = gym.make("CartPole-v1"), np.random.default_rng(0)
    demos = lfd.collect(env, lean, 4, 20, rng)
    task = lfd.Task(env, demos, discount=0.9)
    for same in (demos, demos.select(range(4))):
        with pytest.raises(ValueError, match="held_out must be other demonstrations"):
            lfd.certify(lean, task, rng=rng, n_rollouts=2, held_out=same)
    assert lfd.certify(lean, task, rng=rng, n_rollouts=2, held_out=lfd.collect(env, lean, 4, 20, rng)).about == "expert"


def test_without_a_discount_the_default_learner_is_one_that_can_learn(grid):
    env, _, demos = grid
    task = lfd.Task(env, demos, discount=1.0, horizon=20)
    result = lfd.learn(task, rng=np.random.default_rng(0))
    assert result.learner == "tabular_bc"
    assert lfd.certify(result.policy, task).cost_distance < 0.2
