"""Finite MDPs: the operators of Section 2 of the paper, construction, and what is refused."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import finite_mdps, mdps_with_costs, random_policy

from lfd_gym import FiniteMDP, LfdGymWarning
from lfd_gym.envs.examples import self_loops, stay_or_switch
from lfd_gym.model.mdp import one_hot, policy_from_occupancy

seeds = st.integers(0, 2**32 - 1)
identity = settings(deadline=None)  # the first call compiles


def random_distribution(mdp, rng):
    """Draw a distribution over pairs, with zeros: seldom an occupancy measure."""
    weights = rng.dirichlet(np.full(mdp.n_states * mdp.n_actions, 0.3)).reshape(mdp.n_states, mdp.n_actions)
    weights[rng.random(mdp.n_states) < 0.3] = 0.0
    return weights / weights.sum() if weights.sum() > 0 else np.full_like(weights, 1 / weights.size)


# -- the operators ----------------------------------------------------------------------------------------------------


@identity
@given(finite_mdps(), seeds)
def test_flow_and_adjoint_are_adjoint(mdp, seed):
    rng = np.random.default_rng(seed)
    occupancy = rng.normal(size=(mdp.n_states, mdp.n_actions))
    values = rng.normal(size=mdp.n_states)
    left = mdp.bellman_flow(occupancy) @ values
    right = (occupancy * mdp.bellman_adjoint(values)).sum()
    assert left == pytest.approx(right, abs=1e-12 / (1 - mdp.discount))


@identity
@given(finite_mdps(), seeds)
def test_operators_are_their_matrices(mdp, seed):
    rng = np.random.default_rng(seed)
    kernel = np.repeat(np.eye(mdp.n_states), mdp.n_actions, axis=0) - mdp.discount * mdp.transitions.toarray()
    occupancy = rng.normal(size=(mdp.n_states, mdp.n_actions))
    values = rng.normal(size=mdp.n_states)
    scale = 1 / (1 - mdp.discount)
    assert mdp.bellman_flow(occupancy) == pytest.approx(scale * kernel.T @ occupancy.ravel(), abs=1e-12 * scale)
    assert mdp.bellman_adjoint(values).ravel() == pytest.approx(scale * kernel @ values, abs=1e-12 * scale)


@identity
@given(finite_mdps(), seeds)
def test_occupancy_is_a_distribution_whose_flow_is_the_initial_distribution(mdp, seed):
    occupancy = mdp.occupancy(random_policy(mdp, np.random.default_rng(seed)))
    assert occupancy.min() >= 0
    assert occupancy.sum() == pytest.approx(1, abs=1e-14)
    assert np.abs(mdp.bellman_flow(occupancy) - mdp.initial_distribution).sum() < 1e-10


@identity
@given(finite_mdps(), seeds)
def test_occupancy_is_the_discounted_sum_of_visits(mdp, seed):
    policy = random_policy(mdp, np.random.default_rng(seed))
    chain = (policy[:, :, None] * mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, -1)).sum(axis=1)
    distribution, visits, horizon = mdp.initial_distribution, np.zeros(mdp.n_states), 2000
    for t in range(horizon):
        visits = visits + (1 - mdp.discount) * mdp.discount**t * distribution
        distribution = distribution @ chain
    assert mdp.occupancy(policy) == pytest.approx(visits[:, None] * policy, abs=1e-11)
    assert mdp.state_occupancy(policy) == pytest.approx(visits, abs=1e-11)


@identity
@given(finite_mdps(), seeds)
def test_policy_occupancy_policy_is_a_round_trip_on_visited_states(mdp, seed):
    policy = random_policy(mdp, np.random.default_rng(seed))
    occupancy = mdp.occupancy(policy)
    visited = occupancy.sum(axis=1) > 1e-9
    assert policy_from_occupancy(occupancy)[visited] == pytest.approx(policy[visited], abs=1e-12)
    assert mdp.occupancy(policy_from_occupancy(occupancy)) == pytest.approx(occupancy, abs=1e-8)


@identity
@given(mdps_with_costs(), seeds)
def test_cost_under_the_occupancy_is_the_mean_initial_value(problem, seed):
    mdp, costs = problem
    policy = random_policy(mdp, np.random.default_rng(seed))
    occupancy = mdp.occupancy(policy)
    for cost in costs.T:
        expected = mdp.expected_cost(policy, cost)
        assert occupancy.ravel() @ cost == pytest.approx(expected, abs=1e-11)
        assert mdp.initial_distribution @ mdp.value_function(policy, cost) == pytest.approx(expected, abs=1e-12)
        assert abs(expected) <= 1 + 1e-12


@identity
@given(mdps_with_costs(max_features=1), seeds)
def test_lemma_2_any_distribution_is_indifferent_to_the_advantage_of_its_own_policy(problem, seed):
    mdp, costs = problem
    rng = np.random.default_rng(seed)
    distribution = random_distribution(mdp, rng)
    policy = policy_from_occupancy(distribution, fallback=random_policy(mdp, rng))
    values = mdp.value_function(policy, costs[:, 0])
    advantage = costs[:, 0].reshape(mdp.n_states, mdp.n_actions) - mdp.bellman_adjoint(values)
    assert (distribution * advantage).sum() == pytest.approx(0, abs=1e-10)


@identity
@given(finite_mdps(), seeds)
def test_lemma_3_the_flow_violation_bounds_the_distance_to_the_induced_occupancy(mdp, seed):
    distribution = random_distribution(mdp, np.random.default_rng(seed))
    induced = mdp.occupancy(policy_from_occupancy(distribution))
    violation = np.abs(mdp.initial_distribution - mdp.bellman_flow(distribution)).sum()
    assert np.abs(distribution - induced).sum() <= violation + 1e-10


# -- policies ---------------------------------------------------------------------------------------------------------


@identity
@given(mdps_with_costs(max_features=1), seeds)
def test_a_vector_of_actions_is_a_deterministic_policy(problem, seed):
    mdp, costs = problem
    actions = np.random.default_rng(seed).integers(mdp.n_actions, size=mdp.n_states)
    policy = one_hot(actions, mdp.n_actions)
    assert mdp.occupancy(actions) == pytest.approx(mdp.occupancy(policy), abs=1e-13)
    assert mdp.state_occupancy(actions) == pytest.approx(mdp.occupancy(policy).sum(axis=1), abs=1e-13)
    assert mdp.value_function(actions, costs[:, 0]) == pytest.approx(mdp.value_function(policy, costs[:, 0]), abs=1e-13)
    assert mdp.expected_cost(actions, costs[:, 0]) == pytest.approx(mdp.expected_cost(policy, costs[:, 0]), abs=1e-13)


def test_policies_within_rounding_are_rescaled():
    mdp = stay_or_switch(0.9)
    policy = np.full((2, 2), 0.5)
    assert mdp.occupancy(policy * (1 + 5e-9)) == pytest.approx(mdp.occupancy(policy), abs=1e-14)


def test_closed_forms():
    mdp = stay_or_switch(discount=0.9, success=0.8)
    share = (1 - 0.9) / (1 - 0.9 * 0.2)
    assert mdp.state_occupancy([1, 0]) == pytest.approx([share, 1 - share], abs=1e-14)
    still = self_loops(n_states=3, n_actions=2, discount=0.7)
    cost = np.array([[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6]])
    policy = np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]])
    assert still.value_function(policy, cost) == pytest.approx((policy * cost).sum(axis=1), abs=1e-14)
    assert still.occupancy(policy) == pytest.approx(policy / 3, abs=1e-14)
    assert still.plan(cost).values == pytest.approx(cost.min(axis=1), abs=1e-14)


def test_unvisited_states_follow_the_fallback_or_act_uniformly():
    occupancy = np.array([[0.25, 0.75], [0.0, 0.0]])
    assert policy_from_occupancy(occupancy).tolist() == [[0.25, 0.75], [0.5, 0.5]]
    fallback = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert policy_from_occupancy(occupancy, fallback).tolist() == [[0.25, 0.75], [0.0, 1.0]]
    assert fallback.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_policies_of_subnormal_occupancies_are_policies():
    tiny = np.nextafter(0, 1)
    policy = policy_from_occupancy([[tiny, tiny, tiny], [3 * tiny, tiny, 0.0]])
    assert policy.sum(axis=1) == pytest.approx([1, 1], abs=1e-15)
    assert policy[1].tolist() == [0.75, 0.25, 0.0]


# -- construction -----------------------------------------------------------------------------------------------------


def test_forms_of_the_same_transitions():
    dense = np.array([[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.25, 0.75]]])  # (S, A, S)
    flat = dense.reshape(4, 2)
    duplicates = sp.coo_array(
        ([0.25, 0.5, 0.25, 1.0, 1.0, 0.25, 0.75], ([0, 0, 0, 1, 2, 3, 3], [1, 0, 1, 1, 0, 0, 1])), shape=(4, 2)
    )
    for transitions in (dense, flat, flat.tolist(), sp.csr_array(flat), sp.csc_matrix(flat), duplicates):
        mdp = FiniteMDP(transitions, [0.5, 0.5], 0.9)
        assert isinstance(mdp.transitions, sp.csr_array)
        assert mdp.transitions.has_canonical_format
        assert mdp.transitions.nnz == 6
        assert mdp.transitions.toarray().tolist() == flat.tolist()
        assert (mdp.n_states, mdp.n_actions) == (2, 2)


def test_rows_and_initial_distribution_are_rescaled_to_rounding():
    mdp = FiniteMDP(np.array([[1 / 3 + 2e-9, 2 / 3], [1.0, 0.0]]), [0.5 + 1e-9, 0.5], 0.9)
    assert mdp.transitions.sum(axis=1) == pytest.approx([1, 1], abs=1e-15)
    assert mdp.initial_distribution.sum() == pytest.approx(1, abs=1e-15)


def test_mdps_are_immutable_and_keep_their_own_copies():
    transitions = sp.csr_array(np.array([[0.5, 0.5], [0.0, 1.0]]))
    initial = np.array([0.5, 0.5])
    mdp = FiniteMDP(transitions, initial, 0.9)
    transitions.data[:] = 7.0
    initial[:] = 7.0
    assert mdp.transitions.toarray().tolist() == [[0.5, 0.5], [0.0, 1.0]]
    assert mdp.initial_distribution.tolist() == [0.5, 0.5]
    for array in (mdp.transitions.data, mdp.transitions.indices, mdp.transitions.indptr, mdp.initial_distribution):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        mdp.discount = 0.5


def test_repr_is_short():
    assert repr(stay_or_switch(0.5)) == "FiniteMDP(n_states=2, n_actions=2, discount=0.5, nonzeros=6)"


def table_rows(table):
    """The dense transitions of a toy_text table, outcome by outcome, in the obvious way."""
    n_states, n_actions = len(table), len(table[0])
    rows = np.zeros((n_states + 1, n_actions, n_states + 1))
    rows[n_states, :, n_states] = 1.0
    for state, actions in table.items():
        for action, outcomes in actions.items():
            for probability, successor, _, terminated in outcomes:
                rows[state, action, n_states if terminated else successor] += probability
    return rows.reshape(-1, n_states + 1)


TOY_TEXT = [env_id for env_id in gym.registry if env_id.startswith(("FrozenLake", "Taxi", "CliffWalking"))]


def test_the_three_toy_text_environments_are_covered():
    assert {env_id.split("-")[0] for env_id in TOY_TEXT} >= {"FrozenLake", "Taxi", "CliffWalking"}


@pytest.mark.parametrize("env_id", TOY_TEXT)
def test_from_env_of_toy_text(env_id):
    env = gym.make(env_id)
    mdp = FiniteMDP.from_env(env, discount=0.95)
    table = env.unwrapped.P
    assert mdp.n_states == len(table) + 1
    assert mdp.absorbing_state == len(table)
    assert mdp.transitions.toarray() == pytest.approx(table_rows(table), abs=1e-15)
    assert mdp.initial_distribution[:-1] == pytest.approx(env.unwrapped.initial_state_distrib, abs=1e-15)
    assert mdp.initial_distribution[-1] == 0


def test_the_cliff_is_left_in_thirteen_steps():
    """The cost of every step until the end is 1: V = 1 − γ^13 from the start. The table goes on after the end."""
    env_id = next(env_id for env_id in TOY_TEXT if env_id.startswith("CliffWalking-"))
    mdp = FiniteMDP.from_env(gym.make(env_id), discount=0.95)
    cost = np.ones((mdp.n_states, mdp.n_actions))
    cost[mdp.absorbing_state] = 0.0
    start = int(np.argmax(mdp.initial_distribution))
    assert start == 36
    assert mdp.plan(cost).values[start] == pytest.approx(1 - 0.95**13, abs=1e-12)


def test_duplicates_are_summed_and_numpy_integers_accepted():
    table = {
        0: {0: [(0.25, np.int64(1), 0.0, False), (0.75, np.int64(1), 1.0, False)]},
        np.int64(1): {0: [(0.5, 0, 0.0, np.False_), (0.5, 0, 0.0, np.True_)]},
    }
    mdp = FiniteMDP.from_dict(table, [1.0, 0.0], 0.5)
    assert mdp.transitions.toarray().tolist() == [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]
    assert mdp.absorbing_state == 2


def test_tables_without_an_end_get_no_absorbing_state():
    mdp = FiniteMDP.from_dict({0: {0: [(1.0, 0, 0.0, False)]}}, [1.0], 0.5)
    assert mdp.n_states == 1
    assert mdp.absorbing_state is None


def test_from_env_of_our_own():
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=5)
    mdp = FiniteMDP.from_env(env, 0.9)
    assert (mdp.n_states, mdp.n_actions, mdp.absorbing_state) == (25, 4, None)
    assert abs(mdp.transitions - env.unwrapped.transitions).max() <= 1e-15


# -- refusals ---------------------------------------------------------------------------------------------------------

GOOD = np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0], [0.25, 0.75]])


def spoilt(row, column, value):
    wrong = GOOD.copy()
    wrong[row, column] = value
    return wrong


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("transitions", "message"),
    [
        (spoilt(3, 1, 0.5), r"rows that sum to 1, got 0.75 in row 3 \(state 1, action 1\)"),
        (spoilt(1, 0, np.nan), r"finite, got nan in row 1 \(state 0, action 1\)"),
        (spoilt(2, 0, np.inf), r"finite, got inf in row 2 \(state 1, action 0\)"),
        (spoilt(2, slice(None), [1.5, -0.5]), r"nonnegative, got -0.5 in row 2 \(state 1, action 0\)"),
        (np.zeros((4, 2)), r"rows that sum to 1, got 0.0 in row 0"),
        (GOOD[:3], r"shape \(S\*A, S\) with S, A >= 1, got \(3, 2\)"),
        (np.zeros((0, 2)), r"shape \(S\*A, S\) with S, A >= 1, got \(0, 2\)"),
    ],
)
def test_bad_transitions_are_named(form, transitions, message):
    with pytest.raises(ValueError, match="transitions must .*" + message):
        FiniteMDP(form(transitions), [0.5, 0.5], 0.9)


@pytest.mark.parametrize("shape", [(4,), (4, 2, 2), (2, 2, 2, 1), ()])
def test_transitions_of_a_wrong_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"transitions must have shape \(S\*A, S\) or \(S, A, S\), got"):
        FiniteMDP(np.ones(shape), [0.5, 0.5], 0.9)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ([1.0], r"shape \(2,\), got \(1,\)"),
        ([0.5, np.nan], r"finite, got nan at index \(1,\)"),
        ([1.5, -0.5], "nonnegative, got -0.5 at index 1"),
        ([0.5, 0.4], "sum to 1, got 0.9"),
    ],
)
def test_bad_initial_distributions_are_named(initial, message):
    with pytest.raises(ValueError, match="initial_distribution must .*" + message):
        FiniteMDP(GOOD, initial, 0.9)


@pytest.mark.parametrize("discount", [0.0, 1.0, -0.1, 1.1, np.nan, np.inf])
def test_discounts_outside_the_unit_interval_are_refused(discount):
    with pytest.raises(ValueError, match=r"discount must lie strictly between 0 and 1, got"):
        FiniteMDP(GOOD, [0.5, 0.5], discount)


def test_absorbing_states_must_absorb():
    with pytest.raises(ValueError, match=r"absorbing_state must be a state in \[0, 2\), got 2"):
        FiniteMDP(GOOD, [0.5, 0.5], 0.9, absorbing_state=2)
    with pytest.raises(ValueError, match="absorbing_state 1 must stay in place, but action 0 can leave it"):
        FiniteMDP(GOOD, [0.5, 0.5], 0.9, absorbing_state=1)
    with pytest.raises(TypeError, match="integer"):
        FiniteMDP(np.eye(2), [0.5, 0.5], 0.9, absorbing_state=1.0)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "at least one state"),
        ({1: {0: [(1.0, 1, 0.0, False)]}}, "states 0 to 0, but state 0 is missing"),
        ({0: {0: [(1.0, 1, 0.0, False)]}}, r"state 0, action 0 leads to 1, which is no state in \[0, 1\)"),
        ({0: {0: [(0.5, 0, 0.0, True), (0.5, 1, 0.0, False)]}}, "leads to 1, which is no state"),
        ({0: {0: [(1.0, -1, 0.0, False)]}}, "leads to -1, which is no state"),
        ({0: {0: [(1.0, 0, 0, False)]}, 1: {1: [(1.0, 0, 0, False)]}}, r"state 1 has actions \[1\], state 0 has \[0\]"),
        ({0: {0: [(0.9, 0, 0.0, False)]}}, "sum to 1, got 0.9"),
    ],
)
def test_bad_tables_are_named(table, message):
    with pytest.raises(ValueError, match=message):
        FiniteMDP.from_dict(table, np.ones(max(len(table), 1)) / max(len(table), 1), 0.9)


def test_environments_without_a_table_are_refused():
    with pytest.raises(TypeError, match=r"has no transition table.*as_generative_model"):
        FiniteMDP.from_env(gym.make("CartPole-v1"), 0.9)


@pytest.mark.parametrize("method", ["occupancy", "state_occupancy", "value_function", "expected_cost"])
@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([0, 2], r"policy must lie in \[0, 2\), got 2 at state 1"),
        ([-1, 0], r"policy must lie in \[0, 2\), got -1 at state 0"),
        ([0, 0, 0], r"policy must be a vector of 2 integers, got shape \(3,\)"),
        ([0.0, 1.0], "policy must be a vector of 2 integers, got .* dtype float64"),
        ([[0.5, 0.5]], r"policy must have shape \(2, 2\)"),
        ([[0.5, 0.4], [1.0, 0.0]], "policy must have rows that sum to 1, got 0.9 at state 0"),
        ([[0.5, 0.5], [1.5, -0.5]], "policy must be nonnegative, got -0.5 at state 1, action 1"),
        ([[0.5, 0.5], [np.nan, 0.0]], "policy must be finite"),
    ],
)
def test_bad_policies_are_named(method, policy, message):
    mdp = stay_or_switch(0.9)
    arguments = (policy,) if "occupancy" in method else (policy, np.zeros(4))
    with pytest.raises(ValueError, match=message):
        getattr(mdp, method)(*arguments)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (np.zeros(3), r"cost must have shape \(4,\) or \(2, 2\), got \(3,\)"),
        (np.zeros((4, 1)), r"cost must have shape \(4,\) or \(2, 2\), got \(4, 1\)"),
        ([0.0, np.nan, 0.0, 0.0], r"cost must be finite, got nan at index \(0, 1\)"),
    ],
)
def test_bad_costs_are_named(cost, message):
    mdp = stay_or_switch(0.9)
    for method in (mdp.plan, mdp.optimal_policy, lambda c: mdp.value_function([0, 0], c)):
        with pytest.raises(ValueError, match=message):
            method(cost)


@pytest.mark.parametrize("tolerance", [0.0, -1e-9, np.nan, np.inf])
def test_tolerances_must_be_positive(tolerance):
    mdp = stay_or_switch(0.9)
    for call in (
        lambda: mdp.plan(np.zeros(4), tolerance),
        lambda: mdp.occupancy([0, 0], tolerance),
        lambda: mdp.value_function([0, 0], np.zeros(4), tolerance),
    ):
        with pytest.raises(ValueError, match="tolerance must be positive"):
            call()


def test_bad_starts_are_named():
    mdp = stay_or_switch(0.9)
    with pytest.raises(ValueError, match=r"initial_values must have shape \(2,\), got \(3,\)"):
        mdp.plan(np.zeros(4), initial_values=np.zeros(3))
    with pytest.raises(ValueError, match=r"start must be finite, got nan at index \(0,\)"):
        mdp.state_occupancy([0, 0], start=[np.nan, 0.0])
    with pytest.raises(ValueError, match=r"start must have shape \(2,\)"):
        mdp.value_function([0, 0], np.zeros(4), start=[0.0])


def test_bad_occupancies_and_values_are_named():
    mdp = stay_or_switch(0.9)
    with pytest.raises(ValueError, match=r"occupancy must have shape \(2, 2\), got \(4,\)"):
        mdp.bellman_flow(np.zeros(4))
    with pytest.raises(ValueError, match=r"values must have shape \(2,\), got \(3,\)"):
        mdp.bellman_adjoint(np.zeros(3))
    with pytest.raises(ValueError, match=r"occupancy must be nonnegative, got -1\.0 at state 1, action 0"):
        policy_from_occupancy([[0.0, 1.0], [-1.0, 1.0]])
    with pytest.raises(ValueError, match=r"occupancy must have shape \(S, A\), got \(4,\)"):
        policy_from_occupancy(np.zeros(4))
    with pytest.raises(ValueError, match="fallback must have rows that sum to 1"):
        policy_from_occupancy(np.zeros((2, 2)), fallback=np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"actions must lie in \[0, 2\), got 2 at state 0"):
        one_hot([2], 2)


def test_an_accuracy_beyond_floating_point_is_not_claimed():
    mdp = stay_or_switch(discount=1 - 1e-9)
    for call in (
        lambda: mdp.occupancy([1, 0], tolerance=1e-12),
        lambda: mdp.value_function([1, 0], [0.3, 1.0, 0.3, 1.0], tolerance=1e-12),
        lambda: mdp.optimal_policy([0.3, 1.0, 0.3, 1.0], tolerance=1e-12),
    ):
        with pytest.warns(LfdGymWarning, match=r"certified to be at most .* only, not 1e-12"):
            call()


@identity
@given(finite_mdps(), seeds)
def test_results_are_reproducible(mdp, seed):
    rng = np.random.default_rng(seed)
    policy, cost = random_policy(mdp, rng), rng.uniform(-1, 1, (mdp.n_states, mdp.n_actions))
    assert mdp.occupancy(policy).tobytes() == mdp.occupancy(policy).tobytes()
    assert mdp.plan(cost).values.tobytes() == mdp.plan(cost).values.tobytes()
