"""What is known of an expert: never above the truth more often than δ allows, and much with few demonstrations."""

import itertools

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from strategies import mdps_with_costs

import lfd_gym as lfd
from lfd_gym.assessment.expert_bounds import demonstrated_actions, least_expert_costs
from lfd_gym.confidence import lower_bound

DELTA, REPEATS = 0.1, 1000


def random_world(seed, n_states=5, n_actions=3, discount=0.9, n_costs=3, ends=False):
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.full(n_states, 0.3), (n_states, n_actions))
    costs = rng.uniform(-1, 1, (n_states * n_actions, n_costs))
    if ends:
        transitions[-1] = np.eye(n_states)[-1]
        transitions[:-1] = 0.8 * transitions[:-1] + 0.2 * np.eye(n_states)[-1]
        costs[-n_actions:] = 0
    initial = rng.dirichlet(np.ones(n_states))
    if ends:
        initial[-1] = 0
    mdp = lfd.FiniteMDP(transitions, initial / initial.sum(), discount, absorbing_state=n_states - 1 if ends else None)
    return mdp, costs, rng


CASES = {
    "one": (1, 30, {}),
    "two, cut early": (2, 3, {}),
    "ending": (5, 40, {"ends": True}),
    "long": (4, 60, {"discount": 0.999}),
    "many": (40, 10, {}),
}


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_lower_bounds_cover(name, deterministic):
    """In 1,000 repetitions at δ = 0.1; a binomial test at 1e-3 against more misses than that."""
    m, horizon, world = CASES[name]
    mdp, costs, rng = random_world(3, **world)
    expert = rng.dirichlet(np.ones(3), 5)
    if deterministic:
        expert = np.eye(3)[expert.argmax(axis=1)]
    truth = costs.T @ mdp.occupancy(expert).ravel()
    everything = lfd.collect(lfd.TabularModel.of(mdp), expert, REPEATS * m, horizon, rng)
    misses = 0
    for k in range(REPEATS):
        demos = everything.select(np.arange(k * m, (k + 1) * m))
        estimate = lfd.feature_expectations(demos, costs, mdp.discount)
        agreeing = [demos] if deterministic else []
        lower = least_expert_costs(mdp.dynamics, costs, estimate, demos, agreeing_with=agreeing).bound(DELTA)
        misses += (lower > truth + 1e-9).any()
    assert stats.binom.sf(misses - 1, REPEATS, DELTA) >= 1e-3


@given(case=mdps_with_costs(max_states=3, max_actions=2, max_features=2), seed=st.integers(0, 100))
@settings(max_examples=40)
def test_the_least_cost_is_that_of_the_best_of_all_policies(case, seed):
    """Against every deterministic policy, and under demonstrations against every one that agrees with them."""
    mdp, costs = case
    rng = np.random.default_rng(seed)
    policies = [np.eye(mdp.n_actions)[list(c)] for c in itertools.product(range(mdp.n_actions), repeat=mdp.n_states)]
    paid = np.array([costs.T @ mdp.occupancy(policy).ravel() for policy in policies])
    expert = policies[rng.integers(len(policies))]
    demos = lfd.collect(lfd.TabularModel.of(mdp), expert, 1, 2, rng)
    estimate = lfd.feature_expectations(demos, costs, mdp.discount)
    tiny = 1e-12  # so that one demonstration says nothing
    found = least_expert_costs(mdp.dynamics, costs, estimate, demos).bound(tiny)
    np.testing.assert_allclose(found, paid.min(axis=0), atol=1e-6)
    agrees = [(policy[demos.acted_on, demos.actions] == 1).all() for policy in policies]
    found = least_expert_costs(mdp.dynamics, costs, estimate, demos, agreeing_with=[demos]).bound(tiny)
    np.testing.assert_allclose(found, paid[agrees].min(axis=0), atol=1e-6)


def test_the_tail_is_worth_what_the_model_says_of_its_last_state():
    mdp, costs, rng = random_world(1)
    demos = lfd.collect(lfd.TabularModel.of(mdp), np.full((5, 3), 1 / 3), 400, 6, rng)
    estimate = lfd.feature_expectations(demos, costs, 0.9)
    values = np.stack([mdp.plan(cost).values for cost in costs.T], axis=1)
    last = demos.observations.reshape(400, 7)[:, -1]
    samples = estimate.trajectory_values + 0.9**6 * values[last]
    expected = 2 * lower_bound((samples + 1) / 2, 0.1 / 3) - 1
    found = least_expert_costs(mdp.dynamics, costs, estimate, demos).bound(0.1)
    np.testing.assert_allclose(found, np.maximum(expected, mdp.initial_distribution @ values), atol=1e-8)
    assert (found > estimate.lower(0.1) + 0.1).all()  # a tail of -γ^6 costs 0.53


def test_what_plans_leave_open_is_subtracted():
    """It is tiny, so the test is for equality."""
    mdp, costs, rng = random_world(1, discount=0.99)
    demos = lfd.collect(lfd.TabularModel.of(mdp), np.full((5, 3), 1 / 3), 20, 6, rng)
    estimate = lfd.feature_expectations(demos, costs, 0.99)
    plans = [mdp.plan(cost) for cost in costs.T]
    values, error = np.stack([plan.values for plan in plans], axis=1), max(plan.error_bound for plan in plans)
    known = least_expert_costs(mdp.dynamics, costs, estimate, demos)
    np.testing.assert_array_equal(known.floor, mdp.initial_distribution @ values - error)
    last = demos.observations.reshape(20, 7)[:, -1]
    paid = estimate.trajectory_values + estimate.unseen_mass[:, None] * (values[last] - error)
    np.testing.assert_array_equal(known.paid, np.clip(paid, -1, 1))
    assert (mdp.initial_distribution @ values - error < mdp.initial_distribution @ values).all()  # it can be seen


@pytest.mark.parametrize(("discount", "horizon"), [(1.0, 4), (0.8, 3)])
def test_the_least_cost_of_the_first_steps(discount, horizon):
    """Against all plans that may change from step to step, in a world of two states and two actions."""
    mdp, costs, rng = random_world(2, n_states=2, n_actions=2, n_costs=1)
    demos = lfd.collect(lfd.TabularModel.of(mdp), np.full((2, 2), 0.5), 1, horizon, rng)
    estimate = lfd.feature_expectations(demos, costs, discount, horizon=horizon)
    weights = estimate.criterion.weights(horizon)
    best = np.inf
    steps = list(itertools.product(range(2), repeat=2))
    for plan in itertools.product(steps, repeat=horizon):
        states, total = mdp.initial_distribution, 0.0
        for weight, choice in zip(weights, plan, strict=True):
            pairs = (states[:, None] * np.eye(2)[list(choice)]).ravel()
            total += weight * pairs @ costs[:, 0]
            states = mdp.transitions.T @ pairs
        best = min(best, total)
    found = least_expert_costs(mdp.dynamics, costs, estimate, demos).bound(1e-12)
    np.testing.assert_allclose(found, [best], atol=1e-9)


def test_an_expert_that_contradicts_itself_is_not_deterministic():
    spaces = gym.spaces.Discrete(3), gym.spaces.Discrete(2)
    demos = lfd.Demonstrations.from_episodes([([0, 1, 1, 2], [0, 1, 0], None, False, True)], *spaces)
    with pytest.raises(ValueError, match="in state 1 the demonstrations show the actions 1 and 0"):
        demonstrated_actions(3, [demos])
    sure = lfd.Demonstrations.from_episodes([([0, 1, 1, 2], [0, 1, 1], None, False, True)], *spaces)
    np.testing.assert_array_equal(demonstrated_actions(3, [sure, sure]), [0, 1, -1])


# -- certificates that rest on it ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def grid():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=6, cost_seed=4)
    return env, lfd.FiniteMDP.from_env(env, 0.9)


@pytest.mark.parametrize("cost_class", ["simplex", "ball"])
def test_a_certificate_is_the_exact_cost_less_what_is_known_of_the_expert(grid, cost_class):
    env, mdp = grid
    table = env.unwrapped.cost_features
    expert = mdp.optimal_policy(table[:, 0])
    demos = lfd.collect(env, expert, 30, 80, np.random.default_rng(0))
    task = lfd.Task(env, demos, discount=0.9, costs=lfd.TableCosts(table, 4, cost_class))
    policy = np.full((36, 4), 0.25)
    paid = table.T @ mdp.occupancy(policy).ravel()
    estimate = task.expert_features()
    bounds = []
    for kind, agreeing in (("any", []), ("deterministic", [demos])):
        certificate = lfd.certify(policy, task, delta=0.1, expert=kind)

        def least(sign, share, agreeing=agreeing):
            signed = lfd.feature_expectations(demos, sign * table, 0.9)
            return least_expert_costs(mdp.dynamics, sign * table, signed, demos, agreeing_with=agreeing).bound(share)

        if cost_class == "simplex":
            expected = (paid - least(1, 0.1)).max()
        else:
            high, low = paid - least(1, 0.025), paid + least(-1, 0.025)
            sides = np.linalg.norm(np.maximum(np.abs(high), np.abs(low)))
            norm = np.linalg.norm(paid - estimate.values) + estimate.class_radius(task.costs, 0.05)
            expected = min(sides, norm)
        assert certificate.cost_distance_bound == pytest.approx(expected, abs=1e-8)
        assert certificate.cost_distance_bound > expected  # what the occupancy leaves open is added
        assumed = "the expert does the same whenever it is in the same state" in str(certificate)
        assert assumed == (kind == "deterministic")
        bounds.append(certificate.cost_distance_bound)
    assert bounds[1] <= bounds[0]


def test_what_is_known_makes_few_demonstrations_worth_something(grid):
    env, mdp = grid
    costs = env.unwrapped.cost_features
    expert = mdp.optimal_policy(costs[:, 0])
    means = {}
    for m in (1, 10):
        found = []
        for seed in range(5):
            task = lfd.Task(env, lfd.collect(env, expert, m, 200, np.random.default_rng(seed)), discount=0.9)
            result = lfd.learn(task, rng=np.random.default_rng(0))
            paid = task.expected_costs(result.policy).values
            found.append(
                [
                    (paid - task.expert_features().lower(0.05)).max(),
                    lfd.certify(result.policy, task).cost_distance_bound,
                    lfd.certify(result.policy, task, expert="deterministic").cost_distance_bound,
                ]
            )
        means[m] = np.mean(found, axis=0)
    assert means[1][1] < 0.6 * means[1][0]
    assert means[10][2] < 0.7 * means[10][1]
    assert (np.diff(means[1]) <= 0).all()
    assert (np.diff(means[10]) <= 0).all()


def test_a_deterministic_expert_needs_the_model():
    env = gym.make("CartPole-v1")
    demos = lfd.collect(env, lambda seen: np.zeros(len(seen), dtype=int), 2, 20, np.random.default_rng(0))
    task = lfd.Task(env, demos, discount=0.9)
    with pytest.raises(ValueError, match="certifying with a deterministic expert needs access to the model"):
        lfd.certify(lambda seen: seen, task, expert="deterministic", rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="expert must be one of 'any', 'deterministic', got 'good'"):
        lfd.certify(lambda seen: seen, task, expert="good", rng=np.random.default_rng(0))


def test_a_policy_that_copies_the_demonstrated_starts_and_fails_elsewhere_is_not_certified():
    """Its costs equal the demonstrations' from their own first states; its true distance is nearly one."""
    n_starts = 200
    transitions = np.eye(n_starts)[:, None, :].repeat(2, axis=1)  # every start is a world of its own
    costs = np.tile([[0.0], [1.0]], (n_starts, 1))  # action 0 is free
    mdp = lfd.FiniteMDP(transitions, np.full(n_starts, 1 / n_starts), discount=0.9)
    expert = np.tile([1.0, 0.0], (n_starts, 1))
    demos = lfd.collect(lfd.TabularModel.of(mdp), expert, 5, 100, np.random.default_rng(0))
    copy = np.tile([0.0, 1.0], (n_starts, 1))
    copy[np.unique(demos.observations)] = [1.0, 0.0]
    from_their_starts = [mdp.plan(costs[:, 0]).values[episode.observations[0]] for episode in demos]
    assert np.allclose(from_their_starts, 0)
    truth = mdp.expected_cost(copy, costs[:, 0])
    assert truth > 0.97
    for world in (mdp, lfd.TabularModel.of(mdp)):
        task = lfd.Task(world, demos, discount=0.9, costs=costs)
        assert lfd.certify(copy, task, rng=np.random.default_rng(1)).cost_distance_bound >= truth
