"""The one evaluation: exact against series, definitions by hand, absorbing states, rollouts against exact values."""

import json
import tracemalloc
import warnings
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import mdps_with_costs, random_policy
from worlds import random_world, rare_world, too_many

from lfd_gym import CostEstimate, Criterion, FiniteMDP, FunctionCosts, TableCosts, TabularModel, Task, collect, evaluate
from lfd_gym._splitmix import own_stream
from lfd_gym.confidence import lower_bound, upper_bound
from lfd_gym.costs.sets import ConvexSet
from lfd_gym.policies.conversion import as_policy, policy_table
from lfd_gym.policies.policy import sample_rows
from lfd_gym.resources import Resources, measuring, peak_memory_mb
from lfd_gym.validation import LfdGymWarning


def expected_costs_by_series(mdp, policy, costs):
    """ρ from powers of the transition matrix: no linear system, no occupancy solver."""
    dense = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    distribution, total, weight = mdp.initial_distribution, np.zeros(costs.shape[1]), 1 - mdp.discount
    while weight > 1e-14:
        pairs = distribution[:, None] * policy
        total += weight * (pairs.ravel() @ costs)
        distribution = np.einsum("xa,xay->y", pairs, dense)
        weight *= mdp.discount
    return total


@settings(max_examples=40, deadline=None)
@given(mdps_with_costs(max_discount=0.95))
def test_exact_evaluation_is_the_series(problem):
    mdp, costs = problem
    rng = np.random.default_rng(0)
    policy, expert = random_policy(mdp, rng), random_policy(mdp, rng)
    evaluation = evaluate(policy, mdp, costs, expert=expert, true_cost=costs[:, 0])
    ours, theirs = (expected_costs_by_series(mdp, p, costs) for p in (policy, expert))
    np.testing.assert_allclose(evaluation.expected_costs, ours, atol=1e-10)
    np.testing.assert_allclose(evaluation.expert_costs, theirs, atol=1e-10)
    assert evaluation.true_gap == pytest.approx(ours[0] - theirs[0], abs=1e-10)
    assert evaluation.cost_distance == pytest.approx((ours - theirs).max(), abs=1e-10)
    ball = evaluate(policy, mdp, costs, expert=expert, cost_class="ball")
    assert ball.cost_distance == pytest.approx(np.sqrt(((ours - theirs) ** 2).sum()), abs=1e-10)
    assert evaluation.exact
    assert 0 <= evaluation.occupancy_distance <= 1
    assert 0 <= evaluation.agreement <= 1
    assert evaluate(expert, mdp, costs, expert=expert).agreement == 1.0  # not a rounding more
    shared = (mdp.occupancy(expert).sum(axis=1) * np.minimum(policy, expert).sum(axis=1)).sum()
    assert evaluation.agreement == pytest.approx(shared, abs=1e-10)


@pytest.fixture
def two_rooms():
    """State 0 chooses: stay (0), or go to the costly state 1 (1), from which everything leads back."""
    transitions = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]])
    return FiniteMDP(transitions, [1.0, 0.0], discount=0.5), np.array([[0.0], [0.0], [1.0], [1.0]])


def test_definitions_by_hand(two_rooms):
    mdp, costs = two_rooms
    expert = np.array([[1.0, 0.0], [1.0, 0.0]])  # stays: cost 0
    policy = np.array([[0.0, 1.0], [0.5, 0.5]])  # goes back and forth: ½(½ + ⅛ + …) = ⅓
    evaluation = evaluate(policy, mdp, costs, expert=expert, true_cost=costs[:, 0])
    np.testing.assert_allclose(evaluation.expected_costs, [1 / 3])
    # Random goes with probability ½. With d₁ the occupancy of state 1: d₁ = ½ · ½ d₀, d₀ + d₁ = 1, so d₁ = ⅕.
    assert evaluation.normalised_score == pytest.approx((1 / 3 - 1 / 5) / (0 - 1 / 5))
    # μ_E is the pair (0, stay); μ is ⅔ on (0, go) and ⅙ on both actions of state 1: disjoint.
    assert evaluation.occupancy_distance == pytest.approx(1.0)
    assert evaluation.agreement == 0.0
    half = evaluate(np.array([[0.25, 0.75], [0.0, 1.0]]), mdp, costs, expert=expert)
    assert half.agreement == pytest.approx(0.25)  # the expert is only ever in state 0


def test_expert_and_random_score_one_and_zero(two_rooms):
    mdp, costs = two_rooms
    expert = mdp.optimal_policy(costs[:, 0])
    uniform = np.full((2, 2), 0.5)
    task = Task(mdp, costs=costs, true_cost=costs[:, 0], expert=expert)
    assert evaluate(expert, task).normalised_score == pytest.approx(1.0)
    assert evaluate(uniform, task).normalised_score == pytest.approx(0.0)
    # An expert as bad as random leaves nothing to normalise by.
    assert evaluate(expert, replace(task, expert=uniform)).normalised_score is None


def test_the_true_cost_need_not_be_among_the_costs(two_rooms):
    """Nothing relies on the order of the costs: gap and score are about the true one alone."""
    mdp, costs = two_rooms
    others = np.array([[0.3, 0.0], [0.0, 0.1], [0.0, -0.2], [0.5, 0.0]])
    policy, expert = np.array([[0.0, 1.0], [0.5, 0.5]]), np.eye(2)[[0, 0]]
    evaluation = evaluate(policy, mdp, others, expert=expert, true_cost=costs[:, 0])
    assert evaluation.true_cost == pytest.approx(1 / 3)
    assert evaluation.true_gap == pytest.approx(1 / 3)
    np.testing.assert_allclose(evaluation.expected_costs, expected_costs_by_series(mdp, policy, others))
    assert evaluate(policy, mdp, others, expert=expert).true_gap is None
    turned = evaluate(expert, mdp, others, expert=policy, true_cost=costs[:, 0])
    assert turned.expert_true_cost == pytest.approx(1 / 3)
    assert turned.true_gap == pytest.approx(-1 / 3)


def test_only_feature_expectations_of_the_expert(two_rooms):
    mdp, costs = two_rooms
    evaluation = evaluate(np.full((2, 2), 0.5), mdp, costs, expert_features=[0.05])
    assert evaluation.cost_distance == pytest.approx(0.2 - 0.05)
    assert evaluation.true_gap is None
    assert evaluation.occupancy_distance is None
    assert evaluation.agreement is None
    alone = evaluate(np.full((2, 2), 0.5), mdp, costs)
    assert alone.true_gap is None
    assert alone.expert_costs is None


def test_deterministic_takes_the_most_probable_action(two_rooms):
    mdp, costs = two_rooms
    policy = np.array([[0.6, 0.4], [0.5, 0.5]])
    assert evaluate(policy, mdp, costs).expected_costs[0] > 0
    evaluation = evaluate(policy, mdp, costs, deterministic=True)
    assert evaluation.expected_costs[0] == 0.0
    assert evaluation.deterministic


@pytest.fixture(scope="module")
def frozen_lake():
    env = gym.make("FrozenLake-v1")
    mdp = FiniteMDP.from_env(env, discount=0.9)
    rng = np.random.default_rng(0)
    costs = rng.uniform(-1, 1, (mdp.n_states, mdp.n_actions, 2))
    costs[mdp.absorbing_state] = 0.0
    return mdp, costs.reshape(-1, 2)


class EnvPolicy:
    """Knows only the environment's 16 states, not the absorbing one."""

    observation_space = gym.spaces.Discrete(16)

    def probabilities(self, observations):
        if np.max(observations) >= 16:
            raise AssertionError("asked about a state that the environment does not have")
        rows = np.random.default_rng(7).dirichlet(np.ones(4), size=16)
        return rows[observations]


def test_policies_of_the_environment_never_see_the_absorbing_state(frozen_lake):
    mdp, costs = frozen_lake
    table = policy_table(EnvPolicy(), mdp)
    assert table.shape == (17, 4)
    np.testing.assert_array_equal(table[:16], EnvPolicy().probabilities(np.arange(16)))
    # The row of the absorbing state is of no consequence, whoever chose it: array with it, array without it, policy.
    other = np.vstack([table[:16], [1.0, 0.0, 0.0, 0.0]])
    expert = mdp.optimal_policy(costs[:, 0])
    results = [evaluate(p, mdp, costs, expert=expert).to_dict() for p in (EnvPolicy(), table[:16].copy(), other)]
    assert results[0] == results[1] == results[2]
    same = evaluate(expert, mdp, costs, expert=expert[:16].copy())
    assert same.occupancy_distance == pytest.approx(0.0, abs=1e-12)
    assert same.agreement == 1.0
    # Agreement is about the time before the end: what the expert spends after it does not count.
    visits = mdp.occupancy(expert).sum(axis=1)[:16]
    assert visits.sum() < 0.8
    shared = (visits * np.minimum(table, expert)[:16].sum(axis=1)).sum() / visits.sum()
    assert evaluate(table, mdp, costs, expert=expert).agreement == pytest.approx(shared)


class OneHotPredictor:
    """Observes one-hot vectors and says only actions."""

    observation_space = gym.spaces.Box(0, 1, (2,))

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return np.asarray(observation).argmax(axis=1), None


def test_predictors_are_tabulated_as_deterministic(two_rooms):
    mdp, costs = two_rooms
    np.testing.assert_array_equal(policy_table(OneHotPredictor(), mdp, deterministic=True), np.eye(2))
    with pytest.raises(
        ValueError, match=r"OneHotPredictor\) does not say its action probabilities.*deterministic=True"
    ):
        evaluate(OneHotPredictor(), mdp, costs)


def test_rollouts_agree_with_exact_values(frozen_lake):
    mdp, costs = frozen_lake
    model = TabularModel.of(mdp)
    rng = np.random.default_rng(1)
    policy = rng.dirichlet(np.ones(4), size=17)
    expert = mdp.optimal_policy(costs[:, 0])
    known = {"expert": expert, "true_cost": costs[:, 0]}
    exact = evaluate(policy, mdp, costs, **known)
    covered = 0
    for _ in range(40):
        sampled = evaluate(policy, model, costs, **known, discount=0.9, n_rollouts=200, rng=rng)
        box = sampled.sampling.expected_costs
        inside = (box[:, 0] <= exact.expected_costs).all() and (exact.expected_costs <= box[:, 1]).all()
        for name in ("true_gap", "cost_distance", "normalised_score"):
            low, high = getattr(sampled.sampling, name)
            assert low <= getattr(sampled, name) <= high
            inside &= low <= getattr(exact, name) <= high
        covered += inside
    # Joint coverage is at least 0.95: fewer than 34 of 40 has probability below 1e-3.
    assert covered >= 34
    assert not sampled.exact


def test_rollouts_of_a_deterministic_chain_are_exact_up_to_truncation():
    chain = FiniteMDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), [1.0, 0.0], discount=0.5)
    costs = np.array([[1.0], [0.0]])
    sampled = evaluate(
        np.ones((2, 1)),
        TabularModel.of(chain),
        costs,
        discount=0.5,
        n_rollouts=3,
        horizon=4,
        rng=np.random.default_rng(0),
    )
    assert sampled.expected_costs[0] == 0.5 * (1 + 0.25)
    low, high = sampled.sampling.expected_costs[0]
    tail = 0.5**4
    seen = np.full((3, 1), 0.625)
    assert low == pytest.approx(2 * lower_bound((seen - tail + 1) / 2, 0.025)[0] - 1)
    assert high == pytest.approx(2 * upper_bound((seen + tail + 1) / 2, 0.025)[0] - 1)


class Near(ConvexSet):
    """Weights near (2, 0): no distance of zero is possible."""

    def support(self, vectors):
        return 2 * vectors[..., 0] + 0.1 * np.linalg.norm(vectors, axis=-1)

    def maximiser(self, vector):
        return np.array([2.0, 0.0]) + 0.1 * vector / np.linalg.norm(vector)

    def project(self, vector):
        away = vector - np.array([2.0, 0.0])
        return np.array([2.0, 0.0]) + away * min(1.0, 0.1 / max(np.linalg.norm(away), 1e-12))

    def radius(self, size):
        return 2.1


def test_a_distance_may_be_negative_where_the_class_does_not_hold_zero(two_rooms):
    mdp, costs = two_rooms
    table = np.hstack([costs, np.zeros((4, 1))])
    function = FunctionCosts(lambda seen, done: table[2 * seen + done], n_costs=2, weights=Near())
    stays, goes = np.eye(2)[[0, 0]], np.eye(2)[[1, 0]]
    task = Task(TabularModel.of(mdp), discount=0.5, costs=function, expert=goes)
    sampled = evaluate(stays, task, n_rollouts=3000, rng=np.random.default_rng(0))
    low, high = sampled.sampling.cost_distance
    assert low <= -1.9 / 3 <= high < 0


@pytest.mark.parametrize("weights", ["simplex", "ball"])
def test_costs_that_were_chosen_from_demonstrations_do_not_tell_how_far_these_are_from_the_expert(two_rooms, weights):
    """The interval of the distance is then about these demonstrations, with no price for how few they are."""
    mdp, costs = two_rooms
    model, rng = TabularModel.of(mdp), np.random.default_rng(0)
    uniform = np.full((2, 2), 0.5)
    task = Task(
        model,
        collect(model, uniform, 2, 30, rng),
        discount=0.5,
        costs=FunctionCosts(lambda seen, done: costs[2 * seen + done], n_costs=1, weights=weights),
    )
    wide = evaluate(uniform, task, n_rollouts=5000, rng=rng).sampling.cost_distance
    task.costs.chosen_from_demonstrations = True
    found = evaluate(uniform, task, n_rollouts=5000, rng=rng)
    low, high = found.sampling.cost_distance
    assert wide[1] - wide[0] > 0.5 > 0.2 > high - low
    apart = 1 / 5 - task.expert_features().values[0]
    assert low <= (abs(apart) if weights == "ball" else apart) <= high


def test_what_floating_point_leaves_open_of_an_occupancy_is_said():
    transitions = np.random.default_rng(0).dirichlet(np.ones(5), (5, 2))
    errors = []
    for discount in (0.9, 1 - 1e-9):
        task = Task(FiniteMDP(transitions, np.eye(5)[0], discount), costs=np.eye(10))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LfdGymWarning)  # that the accuracy was missed
            errors.append(task.expected_costs(np.full((5, 2), 0.5)).error)
    assert errors[0] == 1e-10 < errors[1] < 1e-4


@pytest.mark.parametrize("repeats", [100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cost_class", ["simplex", "ball"])
@pytest.mark.parametrize("name", ["ends", "rare", "two rollouts, long"])
def test_all_intervals_hold_together(name, cost_class, repeats):
    """Those of every cost, of the gap, the distance and the score, by a binomial test at 1e-3."""
    mdp, table, rng = {
        "ends": lambda: random_world(3, ends=True),
        "rare": rare_world,
        "two rollouts, long": lambda: random_world(3, discount=0.999),
    }[name]()
    n = 2 if name.startswith("two") else 25
    policy, expert = (rng.dirichlet(np.ones(mdp.n_actions), mdp.n_states) for _ in range(2))
    known = {"expert": expert, "true_cost": table[:, 0]}
    exact = evaluate(policy, mdp, table, cost_class=cost_class, **known)
    costs = TableCosts(table, mdp.n_actions, cost_class)
    if cost_class == "ball":  # by the norm, as over many states
        costs = FunctionCosts(lambda x, a: table[mdp.n_actions * x + a], table.shape[1], "ball")
    task = Task(TabularModel.of(mdp), discount=mdp.discount, costs=costs, **known)
    missed = 0
    for _ in range(repeats):
        found = evaluate(policy, task, n_rollouts=n, horizon=40, confidence=0.9, rng=rng).sampling
        box, inside = found.expected_costs, True
        inside &= bool((box[:, 0] <= exact.expected_costs).all() and (exact.expected_costs <= box[:, 1]).all())
        for what in ("true_gap", "cost_distance", "normalised_score"):
            low, high = getattr(found, what) or (-np.inf, np.inf)
            inside &= low - 1e-9 <= getattr(exact, what) <= high + 1e-9
        missed += not inside
    assert not too_many(missed, repeats, 0.1)


@pytest.mark.parametrize("repeats", [300, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("probability", "n_rollouts"), [(0.0015, 1000), (0.01, 100)])
def test_intervals_of_rare_costs_cover(probability, n_rollouts, repeats):
    """Student's missed 24 to 42 % of the time here, where 10 % are allowed."""
    rng = np.random.default_rng(0)
    misses = 0
    for _ in range(repeats):
        paid = (rng.random((n_rollouts, 1)) < probability).astype(float)
        estimate = CostEstimate(paid.mean(axis=0), paid, np.zeros(n_rollouts), Criterion(0.9))
        low, high = estimate.intervals(0.9)[0]
        misses += not low <= probability <= high
    assert not too_many(misses, repeats, 0.1)


def test_rollouts_are_not_kept_in_memory():
    """At γ = 0.9999 a rollout has 69,000 steps; what is in memory does not grow with their number."""
    mdp = FiniteMDP(np.full((2, 1, 2), 0.5), [1.0, 0.0], discount=0.9999)
    task = Task(TabularModel.of(mdp), discount=0.9999, costs=np.array([[1.0], [0.0]]))
    peaks = []
    for n_rollouts in (40, 160):
        tracemalloc.start()
        task.expected_costs(np.ones((2, 1)), rng=np.random.default_rng(0), n_rollouts=n_rollouts)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_doubt_is_shared_by_what_is_estimated_and_by_nothing_else():
    """Random play is played for its returns; where it is not compared with, its costs take no share."""
    env = gym.make("CartPole-v1", max_episode_steps=20)
    costs = FunctionCosts(lambda seen, done: np.clip(seen[:, [0, 2]], -1, 1), n_costs=2)
    task = Task(env, discount=0.5, costs=costs)
    sampled = evaluate(lambda seen: (seen[:, 2] > 0).astype(int), task, n_rollouts=30, rng=np.random.default_rng(0))
    assert sampled.random_return is not None
    own = own_stream(np.random.default_rng(0), "evaluate")
    estimate, _ = task.assess(lambda seen: (seen[:, 2] > 0).astype(int), n_rollouts=30, rng=own)
    np.testing.assert_allclose(sampled.sampling.expected_costs, estimate.intervals(1 - 0.05 / 2), atol=1e-12)


def test_ended_rollouts_leave_no_truncation(two_rooms):
    ends = FiniteMDP(np.array([[[0.0, 1.0]], [[0.0, 1.0]]]), [1.0, 0.0], discount=0.9, absorbing_state=1)
    model = TabularModel.of(ends)
    costs = lambda observations, actions: np.ones((len(observations), 1))  # noqa: E731
    result = evaluate(np.ones((2, 1)), model, costs, discount=0.9, n_rollouts=5, rng=np.random.default_rng(0))
    low, high = result.sampling.expected_costs[0]
    assert low == pytest.approx(2 * lower_bound(np.full((5, 1), 0.55), 0.025)[0] - 1)
    assert high == pytest.approx(2 * upper_bound(np.full((5, 1), 0.55), 0.025)[0] - 1)


def test_same_seed_same_rollouts(frozen_lake):
    mdp, costs = frozen_lake
    model = TabularModel.of(mdp)

    def run(seed):
        rng = np.random.default_rng(seed)
        return evaluate(EnvPolicy(), model, costs, discount=0.9, n_rollouts=50, rng=rng).to_dict()

    assert run(0) == run(0)
    assert run(0) != run(1)


def test_results_are_json_and_print(two_rooms):
    mdp, costs = two_rooms
    with measuring() as time:
        sum(range(10**5))
    resources = Resources(10, env_steps=5, wall_seconds=time.wall_seconds, peak_memory_mb=peak_memory_mb())
    evaluation = evaluate(
        np.full((2, 2), 0.5), mdp, costs, expert=np.eye(2), true_cost=costs[:, 0], resources=resources
    )
    restored = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert restored["resources"]["n_demonstrations"] == 10
    assert restored["resources"]["wall_seconds"] > 0
    assert restored["resources"]["peak_memory_mb"] > 1
    assert restored["expected_costs"] == evaluation.expected_costs.tolist()
    assert "true gap" in str(evaluation)
    assert "stochastic" in str(evaluation)
    assert "10 demonstrations, 5 env steps, " in str(evaluation)
    assert "<td>true gap</td>" in evaluation._repr_html_()


def test_sampling_rows_never_draws_impossible_actions():
    rows = np.array([[0.0, 1.0, 0.0], [0.25, 0.0, 0.75]])
    rng = np.random.default_rng(0)
    drawn = np.array([sample_rows(rows, rng) for _ in range(4000)])
    assert set(drawn[:, 0]) == {1}
    assert set(drawn[:, 1]) == {0, 2}
    assert abs((drawn[:, 1] == 0).mean() - 0.25) < 0.03  # 4 standard deviations

    class AlmostOne:
        def random(self, n):
            return np.full(n, 1 - 2.0**-53)

    short = np.array([[0.3, 0.7 - 1e-9, 0.0]])
    assert sample_rows(short, AlmostOne())[0] == 1


def test_deterministic_actions_of_arrays(two_rooms):
    table = np.array([[0.4, 0.6], [0.9, 0.1]])
    actions = as_policy(table, deterministic=True).sample(np.array([0, 1, 0]), np.random.default_rng(0))
    np.testing.assert_array_equal(actions, [1, 0, 1])
    np.testing.assert_array_equal(as_policy(table).probabilities(np.array([1])), [[0.9, 0.1]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": np.full((3, 2), 0.5)}, r"policy must have shape \(2, 2\)"),
        ({"policy": np.array([[0.5, 0.6], [0.5, 0.5]])}, "sum to 1"),
        ({"costs": np.full((4, 1), 2.0)}, r"costs must lie in \[-1, 1\]"),
        ({"costs": lambda x, a: x}, "must be an .* array when the model is known"),
        ({"costs": None}, "costs must be given"),
        ({"expert": np.eye(2), "expert_features": [0.0]}, "either expert or"),
        ({"cost_class": "box"}, "cost_class must be one of"),
        ({"task": TabularModel(np.ones((2, 1)), [1.0]), "costs": np.ones((2, 1))}, "discount must be given"),
        (
            {"task": TabularModel(np.ones((2, 1)), [1.0]), "costs": np.ones((2, 1)), "discount": 0.9},
            "rng must be given",
        ),
    ],
)
def test_bad_input_is_named(two_rooms, change, message):
    mdp, costs = two_rooms
    arguments = {"policy": np.full((2, 2), 0.5), "task": mdp, "costs": costs} | change
    with pytest.raises(ValueError, match=message):
        evaluate(**arguments)


def test_intervals_are_printed_rounded_outwards():
    mdp, table, rng = random_world(0)
    task = Task(TabularModel.of(mdp), discount=0.9, costs=table, true_cost=table[:, 0], expert=np.eye(3)[[0] * 5])
    evaluation = evaluate(np.full((5, 3), 1 / 3), task, rng=rng, n_rollouts=50, confidence=0.999)
    low, high = evaluation.sampling.true_gap
    row = dict(evaluation._rows())["true gap"]
    printed = [float(end) for end in row[row.index("[") + 1 : -1].split(",")]
    assert low - 1e-4 < printed[0] <= low < high <= printed[1] < high + 1e-4
    assert "99.9 %" in str(evaluation)


def test_costs_chosen_from_demonstrations_compare_with_these():
    env, rng = gym.make("CartPole-v1"), np.random.default_rng(0)

    def lean(seen):
        return (seen[:, 2] > 0).astype(int)

    demos = collect(env, lean, 3, 50, rng)
    chosen = evaluate(lean, Task(env, demos, discount=0.9), rng=rng, n_rollouts=10)
    assert chosen.to_dict()["about"] == "demonstrations"
    assert "these 3 demonstrations, after looking at which costs were chosen" in str(chosen)
    task = Task(env, demos, discount=0.9, costs=lambda seen, done: np.clip(seen, -1, 1))
    before = evaluate(lean, task, rng=rng, n_rollouts=10)
    assert before.about == "expert"
    assert "estimated from 3 demonstrations" in str(before)
