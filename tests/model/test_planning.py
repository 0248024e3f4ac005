"""The planner: certificates that hold, tolerances that are met or honestly missed, and what happens on hard chains."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse.linalg import spsolve
from strategies import finite_mdps, mdps_with_costs, random_policy

from lfd_gym import FiniteMDP, LfdGymWarning
from lfd_gym.envs.garnet import garnet
from lfd_gym.envs.gridworld import gridworld_transitions, random_state_costs
from lfd_gym.model import krylov, planning
from lfd_gym.model._planning_kernels import mean_deviation
from lfd_gym.model.basins import no_basins
from lfd_gym.model.mdp import one_hot

seeds = st.integers(0, 2**32 - 1)
identity = settings(deadline=None)  # the first call compiles


def chain_values(mdp, actions, cost):
    """V^π of a deterministic policy by a sparse direct solve."""
    pairs = np.arange(mdp.n_states) * mdp.n_actions + actions
    matrix = sp.csc_array(sp.eye_array(mdp.n_states) - mdp.discount * mdp.transitions[pairs])
    return spsolve(matrix, (1 - mdp.discount) * cost.ravel()[pairs])


def textbook_policy_iteration(mdp, cost):
    """V* by policy iteration with direct solves."""
    actions = np.zeros(mdp.n_states, dtype=int)
    states = np.arange(mdp.n_states)
    while True:
        values = chain_values(mdp, actions, cost)
        candidates = (1 - mdp.discount) * cost + mdp.discount * (mdp.transitions @ values).reshape(cost.shape)
        better = candidates.min(axis=1) < candidates[states, actions] - 1e-13
        if not better.any():
            return values
        actions = np.where(better, candidates.argmin(axis=1), actions)


def gridworld(size, discount, intended_probability=0.7):
    n_states = size**2
    mdp = FiniteMDP(gridworld_transitions(size, intended_probability), np.full(n_states, 1 / n_states), discount)
    state_cost = random_state_costs(n_states, 1, np.random.default_rng(0))[:, 0]
    return mdp, np.repeat(state_cost[:, None], 4, axis=1)


def random_mdp(n_states, discount):
    rng = np.random.default_rng(1)
    return garnet(n_states, 4, 5, discount, rng), rng.uniform(-1, 1, (n_states, 4))


def single_action_chain(successors, discount):
    n_states = len(successors)
    transitions = sp.csr_array((np.ones(n_states), (np.arange(n_states), successors)), shape=(n_states, n_states))
    return FiniteMDP(transitions, np.full(n_states, 1 / n_states), discount)


# -- small MDPs against independent answers ---------------------------------------------------------------------------


@identity
@given(mdps_with_costs(max_features=1, max_states=5, max_actions=3))
def test_no_policy_does_better_than_the_plan(problem):
    """All deterministic policies, one by one."""
    mdp, costs = problem
    cost = costs[:, 0].reshape(mdp.n_states, mdp.n_actions)
    policies = itertools.product(range(mdp.n_actions), repeat=mdp.n_states)
    best = np.min([chain_values(mdp, np.array(actions), cost) for actions in policies], axis=0)
    plan = mdp.plan(cost)
    assert plan.values == pytest.approx(best, abs=1e-12)
    assert chain_values(mdp, plan.actions, cost) == pytest.approx(best, abs=1e-12)
    assert plan.error_bound < 1e-11


@identity
@given(mdps_with_costs(max_features=1))
def test_the_plan_agrees_with_the_linear_programs(problem):
    """V* is the largest u with T_γ* u ≤ c, and its mean over ν₀ the least ⟨μ, c⟩ over occupancies (HiGHS)."""
    mdp, costs = problem
    kernel = np.repeat(np.eye(mdp.n_states), mdp.n_actions, axis=0) - mdp.discount * mdp.transitions.toarray()
    dual = linprog(-np.ones(mdp.n_states), A_ub=kernel, b_ub=(1 - mdp.discount) * costs[:, 0], bounds=(None, None))
    primal = linprog(costs[:, 0], A_eq=kernel.T, b_eq=(1 - mdp.discount) * mdp.initial_distribution)
    plan = mdp.plan(costs[:, 0])
    assert plan.values == pytest.approx(dual.x, abs=1e-6)
    assert mdp.initial_distribution @ plan.values == pytest.approx(primal.fun, abs=1e-6)
    assert mdp.expected_cost(plan.actions, costs[:, 0]) == pytest.approx(primal.fun, abs=1e-6)


@identity
@given(finite_mdps(), seeds)
def test_chains_agree_with_dense_solves(mdp, seed):
    rng = np.random.default_rng(seed)
    policy, cost = random_policy(mdp, rng), rng.normal(size=(mdp.n_states, mdp.n_actions))
    chain = (policy[:, :, None] * mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, -1)).sum(axis=1)
    assert planning.policy_transitions(mdp.transitions, policy).toarray() == pytest.approx(chain, abs=1e-15)
    matrix = np.eye(mdp.n_states) - mdp.discount * chain
    values = np.linalg.solve(matrix, (1 - mdp.discount) * (policy * cost).sum(axis=1))
    states = np.linalg.solve(matrix.T, (1 - mdp.discount) * mdp.initial_distribution)
    assert mdp.value_function(policy, cost) == pytest.approx(values, abs=1e-12)
    assert mdp.state_occupancy(policy) == pytest.approx(states, abs=1e-13)


def test_ties_go_to_the_lowest_action():
    transitions = np.repeat(np.eye(5), 3, axis=0)
    plan = FiniteMDP(transitions, np.full(5, 0.2), 0.9).plan(np.full((5, 3), 0.25))
    assert plan.actions.tolist() == [0] * 5
    assert plan.values == pytest.approx(np.full(5, 0.25), abs=1e-14)
    mdp, cost = random_mdp(2000, 0.95)
    doubled = FiniteMDP(
        sp.csr_array(mdp.transitions[np.repeat(np.arange(8000), 2)]), mdp.initial_distribution, mdp.discount
    )
    assert (doubled.plan(np.repeat(cost, 2, axis=1)).actions % 2 == 0).all()


# -- certificates -----------------------------------------------------------------------------------------------------

LARGE = {
    "gridworld": gridworld(40, 0.95),
    "nearly deterministic gridworld": gridworld(40, 0.99, 0.97),
    "deterministic gridworld": gridworld(40, 0.99, 1.0),
    "patient gridworld": gridworld(40, 0.999),
    "impatient Garnet": random_mdp(1200, 0.05),
    "Garnet": random_mdp(1200, 0.95),
    "patient Garnet": random_mdp(1200, 0.999),
}


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("name", LARGE)
def test_the_tolerance_is_certified_and_the_certificate_holds(name, tolerance):
    """Above the size up to which everything is solved to rounding, so that the bounds are put to the test."""
    mdp, cost = LARGE[name]
    plan = mdp.plan(cost, tolerance)
    best = textbook_policy_iteration(mdp, cost)
    assert plan.error_bound <= tolerance
    assert np.abs(plan.values - best).max() <= plan.error_bound / 2 + 1e-12
    own = chain_values(mdp, plan.actions, cost)
    assert np.abs(plan.values - own).max() <= plan.error_bound / 2 + 1e-12
    assert (own - best).max() <= plan.error_bound + 1e-12


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6, 1e-11])
@pytest.mark.parametrize("name", LARGE)
def test_chains_are_solved_to_the_tolerance(name, tolerance):
    mdp, cost = LARGE[name]
    actions = mdp.plan(cost, 1e-2).actions
    chain = planning.policy_transitions(mdp.transitions, actions)
    offset = (1 - mdp.discount) * np.take_along_axis(cost, actions[:, None], axis=1)[:, 0]
    values, bound = planning.solve_chain(chain, offset, mdp.discount, tolerance)
    assert bound <= tolerance
    assert np.abs(values - chain_values(mdp, actions, cost)).max() <= bound + 1e-12
    initial = np.random.default_rng(0).dirichlet(np.full(mdp.n_states, 0.1))
    transposed = sp.csr_array(chain.T)
    states, bound = planning.solve_chain(
        transposed, (1 - mdp.discount) * initial, mdp.discount, tolerance, transposed=True
    )
    exact = spsolve(sp.csc_array(sp.eye_array(mdp.n_states) - mdp.discount * transposed), (1 - mdp.discount) * initial)
    assert bound <= tolerance
    assert np.abs(states - exact).sum() <= bound + 1e-12
    assert states.min() >= 0
    assert states.sum() == pytest.approx(1, abs=1e-14)


def test_the_certificate_is_about_the_values_and_the_policy_at_hand():
    """One improvement of arbitrary values must not be called optimal, and its bound must hold."""
    mdp, cost = LARGE["patient gridworld"]
    planner = planning._Planner(mdp.transitions, cost, mdp.discount, np.random.default_rng(0).normal(size=mdp.n_states))
    planner.improve()
    plan = planner.result()
    best = textbook_policy_iteration(mdp, cost)
    distance = (chain_values(mdp, plan.actions, cost) - best).max()
    assert 0.1 < distance <= plan.error_bound
    assert 0.1 < np.abs(plan.values - best).max() <= plan.error_bound / 2


# -- warm starts ------------------------------------------------------------------------------------------------------


def test_a_plan_is_its_own_warm_start():
    mdp, cost = LARGE["gridworld"]
    first = mdp.plan(cost)
    again = mdp.plan(cost, initial_values=first.values)
    assert first.n_improvements > 0
    assert again.n_improvements == 0
    assert again.error_bound <= 1e-10
    assert mdp.plan(cost, initial_values=first.values + 1000).error_bound <= 1e-10


def test_a_similar_cost_helps():
    mdp, cost = LARGE["patient gridworld"]
    start = mdp.plan(cost).values
    similar = cost + 0.01 * np.random.default_rng(0).uniform(-1, 1, cost.shape)
    assert mdp.plan(similar, initial_values=start).n_improvements < mdp.plan(similar).n_improvements


def test_initial_values_are_left_alone_and_constants_carry_no_information():
    mdp, cost = LARGE["gridworld"]
    start = np.zeros(mdp.n_states)
    assert mdp.plan(cost, initial_values=start).values.tobytes() == mdp.plan(cost).values.tobytes()
    start = np.random.default_rng(0).normal(size=mdp.n_states)
    before = start.copy()
    mdp.plan(cost, initial_values=start)
    mdp.value_function(np.zeros(mdp.n_states, dtype=int), cost, start=start)
    mdp.state_occupancy(np.zeros(mdp.n_states, dtype=int), start=start)
    assert start.tobytes() == before.tobytes()


def test_chains_start_from_a_guess(monkeypatch):
    """With the solution as a guess nothing is left to solve; with nonsense the answer is the same."""
    mdp, cost = LARGE["gridworld"]
    actions = mdp.plan(cost).actions
    values, states = mdp.value_function(actions, cost), mdp.state_occupancy(actions)
    for nonsense in (np.full(mdp.n_states, -5.0), np.random.default_rng(0).normal(size=mdp.n_states)):
        assert mdp.value_function(actions, cost, start=nonsense) == pytest.approx(values, abs=2e-10)
        assert np.abs(mdp.state_occupancy(actions, start=nonsense) - states).sum() <= 2e-10
    monkeypatch.setattr(krylov.ChainSolver, "solve", lambda *_: pytest.fail("there was something left to solve"))
    assert mdp.value_function(actions, cost, start=values) == pytest.approx(values, abs=2e-10)
    assert np.abs(mdp.state_occupancy(actions, start=states) - states).sum() <= 2e-10


# -- hard cases -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("discount", [0.05, 0.9, 0.9999, 1 - 1e-9])
@pytest.mark.parametrize("n_states", [1, 2, 60, 1500])
def test_an_unreachable_tolerance_ends_with_an_honest_bound(n_states, discount):
    """A cycle, so that nothing mixes, with an exit to an absorbing state by the second action."""
    transitions = np.empty((n_states, 2), dtype=int)
    transitions[:, 0] = (np.arange(n_states) + 1) % n_states
    transitions[:, 1] = 0
    rows = sp.csr_array((np.ones(2 * n_states), (np.arange(2 * n_states), transitions.ravel())))
    mdp = FiniteMDP(rows, np.full(n_states, 1 / n_states), discount)
    cost = np.random.default_rng(n_states).uniform(-1, 1, (n_states, 2))
    plan = mdp.plan(cost, tolerance=1e-16)
    best = textbook_policy_iteration(mdp, cost)
    slack = 1e-15 / (1 - discount)  # of the reference
    assert 1e-16 < plan.error_bound <= 100 * 2.0**-53 / (1 - discount)
    assert np.abs(plan.values - best).max() <= plan.error_bound / 2 + slack
    assert (chain_values(mdp, plan.actions, cost) - best).max() <= plan.error_bound + slack


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1e6, 1e140])
def test_costs_of_any_scale_end(scale):
    mdp, cost = LARGE["gridworld"]
    plan = mdp.plan(scale * cost, tolerance=1e-10)
    if scale < 1:
        assert plan.error_bound <= 1e-10
    else:
        best = textbook_policy_iteration(mdp, cost)
        assert plan.error_bound <= scale * 1e-12
        assert np.abs(plan.values / scale - best).max() <= plan.error_bound / scale + 1e-13


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("n_states", [500, 3000])
def test_long_cycles(n_states, ordered):
    """BiCGStab breaks down on these; the sums over one round of the cycle are the answer."""
    discount = 0.9999
    order = np.arange(n_states) if ordered else np.random.default_rng(0).permutation(n_states)
    successors = np.empty(n_states, dtype=int)
    successors[order] = np.roll(order, -1)
    mdp = single_action_chain(successors, discount)
    cost = np.random.default_rng(1).uniform(-1, 1, n_states)
    powers = discount ** np.arange(n_states)
    first = (1 - discount) * (powers @ cost[order]) / (1 - discount**n_states)
    actions = np.zeros(n_states, dtype=int)
    assert mdp.value_function(actions, cost)[order[0]] == pytest.approx(first, abs=1e-10)
    assert mdp.plan(cost).values[order[0]] == pytest.approx(first, abs=1e-10)
    start = np.random.default_rng(2).random(n_states)
    assert mdp.state_occupancy(actions, start=start) == pytest.approx(np.full(n_states, 1 / n_states), abs=1e-10)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-5])
@pytest.mark.parametrize("start", [0, 800])
def test_occupancies_are_nonnegative_where_the_iteration_is_not(start, tolerance):
    """Far from a single initial state almost nothing is visited; loose corrections go below zero there."""
    mdp, cost = LARGE["patient gridworld"]
    initial = np.eye(mdp.n_states)[start]
    states = planning.state_occupancy(mdp.transitions, mdp.plan(cost).actions, initial, mdp.discount, tolerance)
    assert states.min() >= 0
    assert states.sum() == pytest.approx(1, abs=1e-14)


def corridor(n_states, discount):
    """Left or right; the goal is at the right end, so V = 1 − γ^distance."""
    successors = np.stack([np.maximum(np.arange(n_states) - 1, 0), np.minimum(np.arange(n_states) + 1, n_states - 1)])
    rows = sp.csr_array((np.ones(2 * n_states), (np.arange(2 * n_states), successors.T.ravel())))
    cost = np.ones((n_states, 2))
    cost[-1] = 0.0
    best = 1 - discount ** np.arange(n_states)[::-1]
    return FiniteMDP(rows, np.full(n_states, 1 / n_states), discount), cost, best


@pytest.mark.parametrize("discount", [0.95, 0.999])
def test_a_distant_goal(discount):
    """Policy iteration alone would improve 1500 times."""
    mdp, cost, best = corridor(1500, discount)
    plan = mdp.plan(cost)
    assert plan.error_bound <= 1e-10
    assert plan.n_improvements < 100
    assert plan.values == pytest.approx(best, abs=1e-10)


def test_patience_where_the_bound_stands_still():
    """Started from values that lead away from the goal, each improvement turns one state round; all are waited for.

    The states are in no order that sweeps could follow.
    """
    mdp, cost, best = corridor(300, 0.99)
    order = np.random.default_rng(0).permutation(300)
    rows = (2 * order[:, None] + [0, 1]).ravel()
    shuffled = FiniteMDP(mdp.transitions[rows][:, order], mdp.initial_distribution, mdp.discount)
    plan = shuffled.plan(cost[order], initial_values=np.arange(300.0)[order])
    assert plan.n_improvements > 100
    assert plan.values == pytest.approx(best[order], abs=1e-11)


def test_sweeps_carry_a_change_to_all_states_that_can_follow():
    """One improvement turns one state round; in the order of the corridor a sweep turns all of them."""
    mdp, cost, best = corridor(300, 0.99)
    plan = mdp.plan(cost, initial_values=np.arange(300.0))
    assert plan.n_improvements < 10
    assert plan.values == pytest.approx(best, abs=1e-11)


def test_everything_leading_to_one_state_keeps_its_certificate():
    """A column with all states in it: rounding in its sum must not be what limits the accuracy."""
    n_states = 20_000
    mdp = single_action_chain(np.zeros(n_states, dtype=int), 0.999)
    states = mdp.state_occupancy(np.zeros(n_states, dtype=int), tolerance=1e-11)
    assert states[0] == pytest.approx(0.999 + 0.001 / n_states, abs=1e-12)


def test_missing_the_tolerance_warns():
    mdp = single_action_chain([1, 2, 0], 1 - 1e-9)
    with pytest.warns(LfdGymWarning, match=r"certified to be at most .* only, not 1e-12"):
        mdp.value_function([0, 0, 0], [1.0, 0.5, 0.2], tolerance=1e-12)
    values, bound = planning.solve_chain(mdp.transitions, 1e-9 * np.array([1.0, 0.5, 0.2]), 1 - 1e-9, 1e-12)
    assert 1e-12 < bound < 1e-4
    assert values == pytest.approx(np.full(3, 1.7 / 3), abs=1e-5)


def test_planning_ends_even_if_no_chain_can_be_solved(monkeypatch):
    """Then the best values seen are returned, with what they certify."""
    mdp, cost = LARGE["gridworld"]
    monkeypatch.setattr(krylov.ChainSolver, "solve", lambda self, *_: np.zeros(mdp.n_states))
    plan = mdp.plan(cost)
    best = textbook_policy_iteration(mdp, cost)
    assert plan.n_improvements < 100
    assert 1e-10 < np.abs(plan.values - best).max() <= plan.error_bound / 2


# -- the solver of chains ---------------------------------------------------------------------------------------------


def system(n_states, discount, distribution):
    mdp, _ = random_mdp(n_states, discount)
    chain = planning.policy_transitions(mdp.transitions, np.zeros(n_states, dtype=int))
    chain = sp.csr_array(chain.T) if distribution else chain
    residual = np.random.default_rng(0).normal(size=n_states)
    residual -= residual.mean()
    arrays = (chain.indptr.view(np.uint32), chain.indices.view(np.uint32), discount * chain.data)
    return arrays, sp.csr_array(sp.eye_array(n_states) - discount * chain), residual


def residual_size(residual, distribution):
    return np.abs(residual).sum() if distribution else np.ptp(residual)


@pytest.mark.parametrize("distribution", [False, True])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("n_states", [900, 1100])
@pytest.mark.parametrize("discount", [0.95, 0.99])  # without and with basins
def test_corrections_leave_the_residual_asked_for(monkeypatch, discount, n_states, fails, distribution):
    """Also where BiCGStab fails and a direct solve or Gauss–Seidel takes over."""
    if fails:
        monkeypatch.setattr(krylov, "bicgstab", failing_bicgstab)
    monkeypatch.setattr(krylov, "fixed_point_steps", one_fixed_point_step)
    arrays, matrix, residual = system(n_states, discount, distribution)
    solver = krylov.ChainSolver(discount, n_states, distribution)
    for target in (1e-1, 1e-4, 1e-9):
        correction = solver.solve(*arrays, residual.copy(), target)
        left = residual - matrix @ correction
        assert residual_size(left, distribution) <= 1.001 * target


def test_bicgstab_does_not_claim_what_it_has_not_reached():
    """On this cycle its recursive residual would shrink as it should while the correction grows to 1e67."""
    n_states, target = 300, 1e-7
    cycle = (np.arange(n_states + 1, dtype=np.uint32), np.roll(np.arange(n_states, dtype=np.uint32), -1))
    residual, correction = np.eye(n_states)[0] - 0.5, np.empty(n_states)
    chain = (*cycle, np.full(n_states, 0.99))
    work = np.empty((8, n_states))
    size = krylov.bicgstab(*chain, no_basins(n_states), residual, correction, work, target, 4000, False)
    left = residual - correction + 0.99 * np.roll(correction, -1)
    assert size > target or np.ptp(left) <= 2 * target


def failing_bicgstab(*arguments):
    """Work as usual, then spoil the result and report a breakdown."""
    _BICGSTAB(*arguments)
    arguments[5][:] = np.nan
    return np.inf


def one_fixed_point_step(*arguments):
    offsets, successors, weights, residual, correction, *_, distribution = arguments
    matrix = sp.csr_array((weights, successors.view(np.int32), offsets.view(np.int32)))
    correction += residual
    residual[:] = matrix @ residual
    return residual_size(residual, distribution)


_BICGSTAB = krylov.bicgstab


@pytest.mark.parametrize("distribution", [False, True])
def test_fixed_point_steps_account_for_what_they_leave(distribution):
    for target in (1e-1, 1e-2, 1e-3):  # odd and even numbers of steps
        arrays, matrix, residual = system(1100, 0.95, distribution)
        left, correction = residual.copy(), np.zeros(1100)
        size = krylov.fixed_point_steps(*arrays, left, correction, np.empty(1100), target, distribution)
        assert left == pytest.approx(residual - matrix @ correction, abs=1e-13)
        assert size == pytest.approx(residual_size(left, distribution), rel=1e-12)
        assert size <= target


def test_fixed_point_steps_stop_where_they_are_slow():
    successors = np.roll(np.arange(10), -1).astype(np.uint32)
    residual, correction = np.random.default_rng(0).normal(size=10), np.zeros(10)
    arrays = (np.arange(11, dtype=np.uint32), successors, np.full(10, 0.95))
    before = np.ptp(residual)
    size = krylov.fixed_point_steps(*arrays, residual, correction, np.empty(10), 1e-9, False)
    assert size == pytest.approx(0.95 * before)


def test_residuals_are_compensated():
    """The sum of 1, then many entries too small to change it one by one."""
    n_states = 100_000
    x = np.full(n_states, 2.0**-54)
    x[0] = 1.0
    offsets = np.concatenate([[0], np.full(n_states, n_states)]).astype(np.uint32)
    residual = np.empty(n_states)
    krylov.chain_residual(
        offsets, np.arange(n_states, dtype=np.uint32), np.ones(n_states), np.zeros(n_states), x, residual
    )
    assert residual[0] == pytest.approx((n_states - 1) * 2.0**-54, rel=1e-10)


def test_actions_of_any_integer_type_are_accepted():
    mdp, cost = LARGE["Garnet"]
    actions = np.random.default_rng(0).integers(4, size=mdp.n_states)
    states = mdp.state_occupancy(actions)
    for kind in (np.uint8, np.int32):
        assert mdp.state_occupancy(actions.astype(kind)).tobytes() == states.tobytes()
    assert mdp.state_occupancy(one_hot(actions, 4)) == pytest.approx(states, abs=1e-13)
    assert mdp.value_function(actions.astype(np.uint8), cost) == pytest.approx(
        chain_values(mdp, actions, cost), abs=1e-10
    )


@settings(max_examples=150, deadline=None)
@given(mdps_with_costs(max_features=1), seeds)
def test_what_a_greedy_policy_loses_shows_in_the_residual_where_policies_go(problem, seed):
    """⟨ν₀, V^π − V*⟩ ≤ ⟨μ_π − μ_*, r⟩/(1−γ), by which `typical_visits` estimate a loss."""
    mdp, costs = problem
    cost = costs.reshape(mdp.n_states, mdp.n_actions)
    rng = np.random.default_rng(seed)
    best = mdp.plan(cost, 1e-12)
    values = best.values + rng.choice([1e-3, 0.1, 1.0]) * rng.normal(size=mdp.n_states)
    backup = (1 - mdp.discount) * cost + mdp.discount * (mdp.transitions @ values).reshape(cost.shape)
    residual, greedy = backup.min(axis=1) - values, backup.argmin(axis=1)
    loss = mdp.initial_distribution @ (chain_values(mdp, greedy, cost) - best.values)
    visits, best_visits = (mdp.state_occupancy(actions, 1e-13) for actions in (greedy, best.actions))
    assert loss <= (visits - best_visits) @ residual / (1 - mdp.discount) + 1e-9
    estimates = [2 * mean_deviation(each, residual) / (1 - mdp.discount) for each in (visits, best_visits)]
    centre = visits @ residual
    assert estimates[0] == pytest.approx(2 * visits @ np.abs(residual - centre) / (1 - mdp.discount), abs=1e-12)
    # With the deviations of either policy counted from one centre, they bound the loss together.
    shift = abs(centre - best_visits @ residual) / (1 - mdp.discount)
    assert loss <= sum(estimates) / 2 + shift + 1e-9


@pytest.mark.parametrize("discount", [0.95, 0.99])
def test_typical_visits_save_work_and_cost_little(discount):
    mdp, cost = gridworld(64, discount)
    certified = mdp.plan(cost, 1e-4)
    visits = mdp.state_occupancy(certified.actions, 1e-8)
    rough = mdp.plan(cost, 1e-4, typical_visits=visits)
    assert rough.n_improvements < certified.n_improvements
    best = mdp.initial_distribution @ mdp.plan(cost, 1e-10).values
    assert mdp.initial_distribution @ chain_values(mdp, rough.actions, cost) - best <= 1e-4
    # The plan does not claim what was only estimated.
    assert rough.error_bound > 1e-4
    true_values = chain_values(mdp, rough.actions, cost)
    assert np.abs(true_values - rough.values).max() <= rough.error_bound / 2 + 1e-12


@pytest.mark.parametrize(
    ("visits", "message"),
    [
        (np.ones(3), r"typical_visits must have shape \(16,\)"),
        (np.full(16, 0.1), "typical_visits must sum to 1"),
        (np.append(np.full(15, 2 / 15), -1.0), "typical_visits must be nonnegative"),
    ],
)
def test_typical_visits_are_a_distribution(visits, message):
    mdp, cost = gridworld(4, 0.9)
    with pytest.raises(ValueError, match=message):
        mdp.plan(cost, typical_visits=visits)
