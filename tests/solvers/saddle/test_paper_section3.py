"""Section 3 and Appendix A of the paper, statement by statement, on random MDPs.

The optimisers come from a dense linear program written out here, so that the statements are tested on all of its
solutions as HiGHS finds them, not on what the package makes of them.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import finite_mdps, mdps_with_costs, random_policy

import lfd_gym as lfd
from lfd_gym import FiniteMDP
from lfd_gym.model.mdp import policy_from_occupancy

seeds = st.integers(0, 2**32 - 1)
TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def adjoint_matrix(mdp):
    """T_γ*, (S·A, S), entry by entry from its definition."""
    matrix = np.zeros((mdp.n_states * mdp.n_actions, mdp.n_states))
    kernel = mdp.transitions.toarray()
    for x in range(mdp.n_states):
        for a in range(mdp.n_actions):
            row = x * mdp.n_actions + a
            matrix[row] = -mdp.discount * kernel[row]
            matrix[row, x] += 1.0
    return matrix / (1 - mdp.discount)


def dual_optimum(mdp, costs, rho, method="highs-ds"):
    """(D): max ⟨ν₀, u⟩ − ⟨w, ρ⟩ subject to T*u ≤ Cw, w in the simplex. Returns α*, u, w."""
    n_states, n_costs = mdp.n_states, costs.shape[1]
    result = linprog(
        np.concatenate([-mdp.initial_distribution, rho]),
        A_ub=np.hstack([adjoint_matrix(mdp), -costs]),
        b_ub=np.zeros(len(costs)),
        A_eq=np.concatenate([np.zeros(n_states), np.ones(n_costs)])[None],
        b_eq=[1.0],
        bounds=[(None, None)] * n_states + [(0, None)] * n_costs,
        method=method,
        options=TIGHT,
    )
    assert result.status == 0
    return -result.fun, result.x[:n_states], result.x[n_states:]


def primal_optimum(mdp, costs, rho):
    """(P): min ε subject to Tμ = ν₀, Cᵀμ − ρ ≤ ε, μ ≥ 0. Returns α*, μ."""
    n_pairs, n_costs = costs.shape
    result = linprog(
        np.append(np.zeros(n_pairs), 1.0),
        A_ub=np.hstack([costs.T, -np.ones((n_costs, 1))]),
        b_ub=rho,
        A_eq=np.hstack([adjoint_matrix(mdp).T, np.zeros((mdp.n_states, 1))]),
        b_eq=mdp.initial_distribution,
        bounds=[(0, None)] * n_pairs + [(None, None)],
        options=TIGHT,
    )
    assert result.status == 0
    return result.fun, result.x[:-1].reshape(mdp.n_states, mdp.n_actions)


def expectations(mdp, costs, policy):
    return mdp.occupancy(policy).ravel() @ costs


def lagrangian(mdp, costs, rho, occupancy, values, weights):
    """⟨μ − μ_E, c_w − T*u⟩, with ⟨μ_E, c_w⟩ = ⟨ρ, w⟩ and ⟨μ_E, T*u⟩ = ⟨ν₀, u⟩."""
    advantages = costs @ weights - adjoint_matrix(mdp) @ values
    return occupancy.ravel() @ advantages - rho @ weights + mdp.initial_distribution @ values


def optimal_expert(mdp, costs, rng):
    """A random cost of the class and an optimal policy for it, mixed with other optimal actions at random."""
    weights = rng.dirichlet(np.ones(costs.shape[1]))
    plan = mdp.plan(costs @ weights, 1e-12)
    advantages = (costs @ weights).reshape(mdp.n_states, -1) - mdp.bellman_adjoint(plan.values)
    tied = advantages < 1e-9
    policy = tied * rng.random(tied.shape)
    return policy / policy.sum(axis=1, keepdims=True), weights


@settings(max_examples=60, deadline=None)
@given(finite_mdps(), seeds)
def test_proposition_1_occupancies_are_the_distributions_that_keep_the_flow(mdp, seed):
    """𝔉 = {μ_π}: every μ_π is in it, and every μ in it is μ_{π_μ}. Points of 𝔉 come from linear programs, not from π.

    The mixture of two vertices is a point that no deterministic policy has.
    """
    rng = np.random.default_rng(seed)
    flow = adjoint_matrix(mdp).T
    occupancy = mdp.occupancy(random_policy(mdp, rng)).ravel()
    assert occupancy.min() >= 0
    np.testing.assert_allclose(flow @ occupancy, mdp.initial_distribution, atol=1e-9)
    vertices = []
    for _ in range(2):
        cost = rng.uniform(-1, 1, occupancy.size)
        result = linprog(cost, A_eq=flow, b_eq=mdp.initial_distribution, bounds=(0, None), options=TIGHT)
        assert result.status == 0
        vertices.append(np.maximum(result.x, 0))
    for feasible in (*vertices, 0.3 * vertices[0] + 0.7 * vertices[1]):
        table = feasible.reshape(mdp.n_states, mdp.n_actions)
        np.testing.assert_allclose(table.sum(), 1, atol=1e-8)
        np.testing.assert_allclose(mdp.occupancy(policy_from_occupancy(table)), table, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(mdps_with_costs(), seeds)
def test_lemma_1_an_optimal_expert_has_apprentice_value_zero(problem, seed):
    mdp, costs = problem
    expert, _ = optimal_expert(mdp, costs, np.random.default_rng(seed))
    rho = expectations(mdp, costs, expert)
    assert abs(dual_optimum(mdp, costs, rho)[0]) < 1e-9
    exact = lfd.solve_cutting_plane(mdp, costs, rho)
    assert exact.lower_bound <= 1e-14
    assert exact.upper_bound >= -1e-14
    assert exact.status == "optimal"


@settings(max_examples=60, deadline=None)
@given(mdps_with_costs(full_support=True), seeds, st.sampled_from(["highs-ds", "highs-ipm"]))
def test_proposition_2_dual_optimal_weights_explain_an_optimal_expert(problem, seed, method):
    mdp, costs = problem
    expert, _ = optimal_expert(mdp, costs, np.random.default_rng(seed))
    _, values, weights = dual_optimum(mdp, costs, expectations(mdp, costs, expert), method)
    weights = np.maximum(weights, 0) / np.maximum(weights, 0).sum()
    assert lfd.explains(mdp, costs, expert, weights)
    # ⟨ν₀, V* − u⟩ ≤ 1e-9 with V* ≥ u bounds the difference by 1e-9 / ν₀ in each state.
    error = mdp.initial_distribution @ np.abs(values - mdp.plan(costs @ weights, 1e-12).values)
    assert error < 1e-8


@settings(max_examples=60, deadline=None)
@given(mdps_with_costs(), seeds)
def test_proposition_2_weights_that_explain_the_expert_are_dual_optimal(problem, seed):
    mdp, costs = problem
    expert, true_weights = optimal_expert(mdp, costs, np.random.default_rng(seed))
    rho = expectations(mdp, costs, expert)
    vertices = lfd.explaining_weights(mdp, costs, expert).vertices
    for weights in [true_weights, *vertices]:
        values = mdp.plan(costs @ weights, 1e-12).values
        assert (costs @ weights - adjoint_matrix(mdp) @ values).min() > -1e-9
        assert abs(mdp.initial_distribution @ values - weights @ rho) < 2e-8


@settings(max_examples=60, deadline=None)
@given(mdps_with_costs(full_support=True), seeds)
def test_proposition_3_the_apprentice_is_optimal_for_the_dual_weights(problem, seed):
    mdp, costs = problem
    rho = expectations(mdp, costs, random_policy(mdp, np.random.default_rng(seed)))
    alpha, occupancy = primal_optimum(mdp, costs, rho)
    dual_alpha, values, weights = dual_optimum(mdp, costs, rho)
    assert abs(alpha - dual_alpha) < 1e-9  # strong duality
    assert alpha < 1e-9  # the expert itself attains zero
    optimal = mdp.plan(costs @ weights, 1e-12).values
    apprentice = policy_from_occupancy(np.maximum(occupancy, 0))
    assert mdp.expected_cost(apprentice, costs @ weights) - mdp.initial_distribution @ optimal < 1e-8
    assert mdp.initial_distribution @ np.abs(values - optimal) < 1e-8


def test_a_suboptimal_expert_is_beaten_on_every_feature():
    wait_or_leave = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    mdp = FiniteMDP(wait_or_leave, initial_distribution=[1.0, 0.0], discount=0.5)
    costs = np.array([[1.0, 0.5], [1.0, 0.5], [0.0, 0.0], [0.0, 0.0]])
    rho = expectations(mdp, costs, np.array([[1.0, 0.0], [1.0, 0.0]]))  # waits for ever: (1, 0.5)
    exact = lfd.solve_cutting_plane(mdp, costs, rho)  # leaves at once: (0.5, 0.25)
    assert exact.apprentice_value == pytest.approx(-0.25, abs=1e-8)
    assert exact.policy[0] == pytest.approx([0.0, 1.0])
    assert (expectations(mdp, costs, exact.policy) < rho).all()


@settings(max_examples=60, deadline=None)
@given(mdps_with_costs(), seeds)
def test_corollary_1_solutions_are_saddle_points(problem, seed):
    mdp, costs = problem
    rng = np.random.default_rng(seed)
    rho = expectations(mdp, costs, random_policy(mdp, rng))
    exact = lfd.solve_cutting_plane(mdp, costs, rho)
    at_solution = lagrangian(mdp, costs, rho, exact.occupancy, exact.values, exact.cost_weights)
    assert exact.lower_bound - 1e-12 <= at_solution <= exact.upper_bound + 1e-12
    assert np.abs(exact.values).max() <= 1 + 1e-8
    for _ in range(5):
        values = rng.uniform(-1, 1, mdp.n_states)
        weights = rng.dirichlet(np.ones(costs.shape[1]))
        occupancy = rng.dirichlet(np.ones(mdp.n_states * mdp.n_actions))  # any distribution over pairs
        assert lagrangian(mdp, costs, rho, exact.occupancy, values, weights) <= at_solution + exact.gap + 1e-12
        assert (
            lagrangian(mdp, costs, rho, occupancy, exact.values, exact.cost_weights) >= at_solution - exact.gap - 1e-12
        )


@settings(max_examples=60, deadline=None)
@given(mdps_with_costs(), seeds)
def test_corollary_1_an_optimal_expert_with_its_true_cost_is_a_saddle_point(problem, seed):
    mdp, costs = problem
    rng = np.random.default_rng(seed)
    expert, weights = optimal_expert(mdp, costs, rng)
    rho = expectations(mdp, costs, expert)
    values = mdp.plan(costs @ weights, 1e-12).values
    occupancy = mdp.occupancy(expert)
    # In closed form: the maximum over u and w, and the minimum over distributions of pairs.
    upper = (occupancy.ravel() @ costs - rho).max() + np.abs(
        mdp.initial_distribution - mdp.bellman_flow(occupancy)
    ).sum()
    advantages = costs @ weights - adjoint_matrix(mdp) @ values
    lower = advantages.min() + mdp.initial_distribution @ values - weights @ rho
    assert upper == pytest.approx(0, abs=1e-9)
    assert lower == pytest.approx(0, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(mdps_with_costs(full_support=True), seeds)
def test_corollary_1_what_holds_of_every_saddle_point(problem, seed):
    """π_{μ_A} is optimal for (LfD) and for c_{w_A}, and u_A = V* + k, wherever in the box ‖u‖∞ ≤ 1 the LP puts u_A.

    The saddle points are those of the box itself, from linear programs over it, not those of (P) and (D).
    """
    mdp, costs = problem
    rho = expectations(mdp, costs, random_policy(mdp, np.random.default_rng(seed)))
    alpha, _, _ = dual_optimum(mdp, costs, rho)
    upper, occupancy = boxed_primal(mdp, costs, rho)
    lower, values, weights = boxed_dual(mdp, costs, rho)
    assert upper == pytest.approx(alpha, abs=1e-7)
    assert lower == pytest.approx(alpha, abs=1e-7)
    policy = policy_from_occupancy(np.maximum(occupancy, 0))
    excess = expectations(mdp, costs, policy) - rho
    assert excess.max() <= alpha + 1e-6
    optimal = mdp.plan(costs @ weights, 1e-12).values
    assert mdp.expected_cost(policy, costs @ weights) <= mdp.initial_distribution @ optimal + 1e-6
    differences = optimal - values
    constant = mdp.initial_distribution @ differences
    assert mdp.initial_distribution @ np.abs(differences - constant) <= 1e-6
    # Only values that reach both ends of the box let μ_A leave 𝔉: with R < 1 the flow holds.
    half_range = np.ptp(costs, axis=0).max() / 2
    flow_error = np.abs(mdp.initial_distribution - mdp.bellman_flow(occupancy)).sum()
    assert (1 - half_range) * flow_error <= 1e-6


def boxed_dual(mdp, costs, rho):
    """max over ‖u‖∞ ≤ 1 and w of min over distributions of L: t + ⟨ν₀, u⟩ − ⟨w, ρ⟩ with t ≤ c_w − T*u."""
    n_states, n_costs = mdp.n_states, costs.shape[1]
    result = linprog(
        np.concatenate([-mdp.initial_distribution, rho, [-1.0]]),
        A_ub=np.hstack([adjoint_matrix(mdp), -costs, np.ones((len(costs), 1))]),
        b_ub=np.zeros(len(costs)),
        A_eq=np.concatenate([np.zeros(n_states), np.ones(n_costs), [0.0]])[None],
        b_eq=[1.0],
        bounds=[(-1, 1)] * n_states + [(0, None)] * n_costs + [(None, None)],
        options=TIGHT,
    )
    assert result.status == 0
    return -result.fun, result.x[:n_states], result.x[n_states:-1]


def boxed_primal(mdp, costs, rho):
    """min over distributions μ of max_i ⟨μ, c_i⟩ − ρ_i + ‖ν₀ − Tμ‖₁, which is the maximum of L over ‖u‖∞ ≤ 1 and w."""
    n_pairs, n_costs = costs.shape
    n_states = mdp.n_states
    flow = adjoint_matrix(mdp).T
    result = linprog(
        np.concatenate([np.zeros(n_pairs), np.ones(2 * n_states), [1.0]]),
        A_ub=np.hstack([costs.T, np.zeros((n_costs, 2 * n_states)), -np.ones((n_costs, 1))]),
        b_ub=rho,
        A_eq=np.vstack(
            [
                np.hstack([flow, np.eye(n_states), -np.eye(n_states), np.zeros((n_states, 1))]),
                np.concatenate([np.ones(n_pairs), np.zeros(2 * n_states + 1)])[None],
            ]
        ),
        b_eq=np.append(mdp.initial_distribution, 1.0),
        bounds=[(0, None)] * (n_pairs + 2 * n_states) + [(None, None)],
        options=TIGHT,
    )
    assert result.status == 0
    return result.fun, result.x[:n_pairs].reshape(n_states, mdp.n_actions)


def test_corollary_1_leaves_a_constant_of_the_values_open():
    """As printed, a saddle point over the simplex of μ has u_A = V*; but the Lagrangian does not see a constant.

    ⟨μ, T*(u + k)⟩ − ⟨ν₀, u + k⟩ = ⟨μ, T*u⟩ − ⟨ν₀, u⟩ for every distribution μ, so u_A = V* + k if ‖u‖∞ ≤ 1 allows it.
    """
    mdp = FiniteMDP(np.array([[[0.5, 0.5]], [[0.5, 0.5]]]), initial_distribution=[0.5, 0.5], discount=0.9)
    costs = np.array([[0.5], [-0.5]])
    rho = expectations(mdp, costs, np.ones((2, 1)))
    exact = lfd.solve_cutting_plane(mdp, costs, rho)
    shifted = exact.values + 0.5
    assert np.abs(shifted).max() < 1
    rng = np.random.default_rng(0)
    for _ in range(20):
        occupancy = rng.dirichlet([1.0, 1.0])
        assert lagrangian(mdp, costs, rho, occupancy, shifted, np.ones(1)) > -1e-9
        values = rng.uniform(-1, 1, 2)
        assert lagrangian(mdp, costs, rho, exact.occupancy, values, np.ones(1)) < 1e-9
    assert np.abs(shifted - mdp.plan(costs[:, 0]).values).max() > 0.4
    # So "if and only if (u_A, w_A) is optimal for (D)" fails: shifted up it is not feasible, shifted down not optimal.
    assert (costs[:, 0] - adjoint_matrix(mdp) @ shifted).min() < -0.4
    assert mdp.initial_distribution @ (exact.values - 0.5) - rho[0] < exact.apprentice_value - 0.4


def test_corollary_1_needs_values_inside_the_box():
    """If V* reaches both 1 and −1, a saddle point over ‖u‖∞ ≤ 1 need not hold an occupancy measure.

    Two absorbing states with costs 1 and −1: the penalty ‖ν₀ − Tμ‖₁ for moving mass to the cheap state equals what is
    gained by it. With any slack in the box the penalty wins and the corollary holds.
    """
    mdp = FiniteMDP(np.array([[[1.0, 0.0]], [[0.0, 1.0]]]), initial_distribution=[0.5, 0.5], discount=0.9)
    costs = np.array([[1.0], [-1.0]])
    rho = expectations(mdp, costs, np.ones((2, 1)))
    everything_cheap = np.array([[0.0], [1.0]])
    values = np.array([1.0, -1.0])

    def best_response(radius):
        flow = np.abs(mdp.initial_distribution - mdp.bellman_flow(everything_cheap)).sum()
        return (everything_cheap.ravel() @ costs - rho).max() + radius * flow

    at_point = lagrangian(mdp, costs, rho, everything_cheap, values, np.ones(1))
    assert at_point == pytest.approx(0, abs=1e-12)
    assert best_response(1.0) == pytest.approx(at_point, abs=1e-12)  # a saddle point, but Tμ ≠ ν₀
    assert np.abs(costs[:, 0] - adjoint_matrix(mdp) @ values).max() < 1e-12
    assert best_response(1.1) > at_point + 0.05
    # So "if and only if (μ_A, α*) is optimal for (P)" fails: μ_A is not feasible. Its policy is optimal all the same.
    assert np.abs(mdp.initial_distribution - mdp.bellman_flow(everything_cheap)).sum() == pytest.approx(1)
    assert expectations(mdp, costs, policy_from_occupancy(everything_cheap)) == pytest.approx(rho)
