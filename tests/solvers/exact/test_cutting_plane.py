import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from apprentice_oracle import flow_matrix
from hypothesis import given, settings
from hypothesis import strategies as st
from l1_ball import L1Ball
from scipy.optimize import linprog, lsq_linear
from strategies import mdps_with_costs, random_policy

import lfd_gym as lfd
from lfd_gym import Ball, Box, ConvexSet, FiniteMDP, SaddlePointProblem, Simplex
from lfd_gym.envs import gridworld_transitions
from lfd_gym.envs.gridworld import random_state_costs
from lfd_gym.model.mdp import one_hot
from lfd_gym.solvers.exact.cutting_plane import _Search
from lfd_gym.solvers.exact.exact_solution import ApprenticeshipProblem

seeds = st.integers(0, 2**32 - 1)
CLASSES = {"simplex": Simplex(), "ball": Ball()}
classes = st.sampled_from([*CLASSES])


def noisy_expectations(mdp, costs, seed):
    rng = np.random.default_rng(seed)
    rho = mdp.occupancy(random_policy(mdp, rng)).ravel() @ costs
    return np.clip(rho + rng.choice([0.0, 0.1]) * rng.normal(size=rho.size), -1, 1)


def value_by_enumeration(mdp, costs, rho, cost_class):
    """α* over mixtures of all deterministic policies, whose feature expectations span those of all policies."""
    policies = itertools.product(range(mdp.n_actions), repeat=mdp.n_states)
    rows = np.array([mdp.occupancy(one_hot(actions, mdp.n_actions)).ravel() @ costs - rho for actions in policies])
    n_rows, size = rows.shape
    if cost_class == "ball":  # min ‖rowsᵀλ‖ over the simplex, the sum of λ kept by a heavy penalty
        # `nnls` does not end on some of these before SciPy 1.15.
        stacked, target = np.vstack([rows.T, np.full(n_rows, 1e4)]), np.append(np.zeros(size), 1e4)
        weights = lsq_linear(stacked, target, bounds=(0, np.inf), method="bvls", tol=1e-15).x
        return np.linalg.norm(weights / weights.sum() @ rows)
    result = linprog(
        np.append(np.zeros(n_rows), 1.0),
        A_ub=np.hstack([rows.T, -np.ones((size, 1))]),
        b_ub=np.zeros(size),
        A_eq=np.append(np.ones(n_rows), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * n_rows + [(None, None)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return result.fun


@settings(max_examples=100, deadline=None)
@given(mdps_with_costs(max_states=4, max_actions=3), seeds, classes)
def test_value_is_that_of_the_best_mixture_of_all_deterministic_policies(problem, seed, cost_class):
    mdp, costs = problem
    rho = noisy_expectations(mdp, costs, seed)
    exact = lfd.solve_cutting_plane(mdp, costs, rho, cost_class=cost_class)
    assert exact.status == "optimal"
    assert exact.apprentice_value == pytest.approx(value_by_enumeration(mdp, costs, rho, cost_class), abs=2e-8)


@settings(max_examples=150, deadline=None)
@given(mdps_with_costs(), seeds, classes)
def test_solutions_are_what_they_say(problem, seed, cost_class):
    mdp, costs = problem
    rho = noisy_expectations(mdp, costs, seed)
    exact = lfd.solve_cutting_plane(mdp, costs, rho, cost_class=cost_class)
    assert exact.status == "optimal"
    assert exact.gap <= 1e-8
    # The policy has the occupancy and the distance that it claims.
    assert exact.occupancy == pytest.approx(mdp.occupancy(exact.policy), abs=1e-9)
    excess = mdp.occupancy(exact.policy).ravel() @ costs - rho
    assert CLASSES[cost_class].support(excess) == pytest.approx(exact.apprentice_value, abs=1e-9)
    # The weights belong to the class, the values are feasible for the dual and optimal for the weights.
    if cost_class == "simplex":
        assert exact.cost_weights.min() >= 0
        assert exact.cost_weights.sum() == pytest.approx(1, abs=1e-12)
    else:
        assert np.linalg.norm(exact.cost_weights) <= 1 + 1e-12
    cost = costs @ exact.cost_weights
    assert (cost - mdp.bellman_adjoint(exact.values).ravel()).min() >= -1e-12
    assert exact.lower_bound == pytest.approx(mdp.initial_distribution @ exact.values - exact.cost_weights @ rho)
    assert exact.values == pytest.approx(mdp.plan(cost, 1e-12).values, abs=1e-8)
    # Proposition 3: the apprentice is optimal for the weights.
    assert mdp.expected_cost(exact.policy, cost) <= mdp.initial_distribution @ exact.values + exact.gap + 1e-12


@settings(max_examples=100, deadline=None)
@given(mdps_with_costs(), seeds, classes, st.sampled_from([1, 2, 4, 2000]))
def test_gap_is_the_closed_form_residual_of_the_lagrangian(problem, seed, cost_class, max_planner_calls):
    """Also of solutions that were stopped early, whose gap is large."""
    mdp, costs = problem
    rho = noisy_expectations(mdp, costs, seed)
    found = lfd.solve_cutting_plane(mdp, costs, rho, cost_class=cost_class, max_planner_calls=max_planner_calls)
    box = SaddlePointProblem.tabular(mdp, costs, rho, value_domain="box", cost_class=cost_class)
    occupancy = found.occupancy.ravel() / found.occupancy.sum()
    residual = box.saddle_point_residual((occupancy, found.values, found.cost_weights))
    assert residual == pytest.approx(found.gap, abs=1e-9)
    assert (residual <= 1.1e-8) == (found.status == "optimal")


@pytest.mark.parametrize("cost_class", ["simplex", "ball"])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6, 1e-10])
@pytest.mark.parametrize("discount", [0.5, 0.99])
def test_the_tolerance_asked_for_is_certified(cost_class, tolerance, discount):
    mdp, costs, rho = random_problem(discount)
    exact = lfd.solve_cutting_plane(mdp, costs, rho, cost_class=cost_class, tolerance=tolerance)
    best = lfd.solve_cutting_plane(mdp, costs, rho, cost_class=cost_class, tolerance=1e-10)
    assert exact.status == "optimal"
    assert exact.gap <= tolerance
    assert exact.lower_bound - 1e-10 <= best.apprentice_value <= exact.upper_bound + 1e-10
    assert exact.n_planner_calls <= best.n_planner_calls


def random_problem(discount=0.9, n_states=40, n_actions=3, n_costs=4, seed=0):
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.full(n_states, 0.1), size=n_states * n_actions)
    mdp = FiniteMDP(kernel, initial_distribution=np.full(n_states, 1 / n_states), discount=discount)
    return mdp, rng.uniform(-1, 1, (n_states * n_actions, n_costs)), rng.uniform(-0.9, -0.5, n_costs)


@pytest.mark.parametrize(("n_costs", "most_calls"), [(5, 35), (20, 160)])
@pytest.mark.parametrize("discount", [0.95, 0.99])
def test_few_planner_calls_are_needed(discount, n_costs, most_calls):
    rng = np.random.default_rng(0)
    mdp = FiniteMDP(gridworld_transitions(16), np.full(256, 1 / 256), discount)
    costs = np.repeat(random_state_costs(256, n_costs, rng), 4, axis=0)
    rho = mdp.occupancy(mdp.optimal_policy(costs[:, 0])).ravel() @ costs
    exact = lfd.solve_cutting_plane(mdp, costs, np.clip(rho + 0.01 * rng.normal(size=n_costs), -1, 1))
    assert exact.status == "optimal"
    assert exact.n_planner_calls <= most_calls


@pytest.mark.parametrize("cost_class", ["simplex", "ball"])
def test_limits_are_reported_with_valid_bounds(cost_class):
    problem = random_problem()
    best = lfd.solve_cutting_plane(*problem, cost_class=cost_class)
    assert best.status == "optimal"
    for calls in range(1, 6):
        stopped = lfd.solve_cutting_plane(*problem, cost_class=cost_class, max_planner_calls=calls)
        assert stopped.status == "iteration_limit"
        assert stopped.n_planner_calls == calls
        assert stopped.gap > 1e-8
        assert stopped.lower_bound <= best.apprentice_value <= stopped.upper_bound
    timed = lfd.solve_cutting_plane(*problem, cost_class=cost_class, time_limit=1e-9)
    assert timed.status == "time_limit"
    assert timed.n_planner_calls == 1


def test_more_accuracy_than_numbers_have_is_not_called_optimal():
    exact = lfd.solve_cutting_plane(*random_problem(discount=0.99), tolerance=1e-16)
    assert exact.status == "inaccurate"
    assert exact.gap < 1e-10


@pytest.mark.parametrize("cost_class", ["simplex", "ball"])
def test_two_runs_are_bit_identical(cost_class):
    first, second = (lfd.solve_cutting_plane(*random_problem(), cost_class=cost_class) for _ in range(2))
    for name in ("policy", "occupancy", "cost_weights", "values"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    assert (first.lower_bound, first.upper_bound) == (second.lower_bound, second.upper_bound)


def test_ties_are_broken_by_rule_and_the_value_does_not_depend_on_it():
    """Two copies of every action: any split is optimal, the lower index is taken, and the value is the same."""
    mdp, costs, rho = random_problem(n_actions=2)
    pairs = np.arange(80).reshape(40, 2)
    values = []
    for order, second_copies in (([0, 0, 1, 1], [1, 3]), ([1, 1, 0, 0], [1, 3]), ([0, 1, 0, 1], [2, 3])):
        rows = pairs[:, order].ravel()
        copied = FiniteMDP(mdp.transitions[rows], mdp.initial_distribution, mdp.discount)
        exact = lfd.solve_cutting_plane(copied, costs[rows], rho)
        assert (exact.policy[:, second_copies] == 0).all()
        values.append(exact.apprentice_value)
        program = lfd.solve_linear_program(copied, costs[rows], rho, method="highs-ipm")
        assert program.apprentice_value == pytest.approx(exact.apprentice_value, abs=2e-8)
    assert values == pytest.approx([values[0]] * 3, abs=2e-8)


def test_unvisited_states_take_the_first_greedy_action():
    transitions = np.zeros((3, 3, 3))
    transitions[0, :, 2] = 1.0
    transitions[1, 0, 1] = transitions[1, 1, 2] = transitions[1, 2, 2] = 1.0  # actions 1 and 2 of state 1 are the same
    transitions[2, :, 2] = 1.0
    mdp = FiniteMDP(transitions, initial_distribution=[1.0, 0.0, 0.0], discount=0.9)
    costs = np.array([[0.3], [0.1], [0.3], [1.0], [0.5], [0.5], [0.0], [0.0], [0.0]])
    exact = lfd.solve_cutting_plane(mdp, costs, [0.0])
    assert exact.policy.tolist() == [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    assert exact.occupancy[1].tolist() == [0.0, 0.0, 0.0]


def test_one_state_one_action_one_feature():
    mdp = FiniteMDP(np.ones((1, 1, 1)), initial_distribution=[1.0], discount=0.5)
    for cost_class, value in (("simplex", -0.4), ("ball", 0.4)):
        exact = lfd.solve_cutting_plane(mdp, [[0.1]], [0.5], cost_class=cost_class)
        assert exact.status == "optimal"
        assert exact.apprentice_value == pytest.approx(value, abs=1e-8)
        assert exact.policy.tolist() == [[1.0]]


def test_an_unattainable_estimate_has_a_positive_value():
    """Estimates from demonstrations are often better than any policy: α is then positive, and that is no error."""
    mdp = FiniteMDP(np.ones((1, 1, 1)), initial_distribution=[1.0], discount=0.5)
    exact = lfd.solve_cutting_plane(mdp, [[0.5, -0.5]], [0.2, -0.4])
    assert exact.apprentice_value == pytest.approx(0.3, abs=1e-8)
    assert exact.cost_weights == pytest.approx([1.0, 0.0], abs=1e-6)


def test_over_the_ball_weights_that_explain_the_expert_are_preferred_to_zero():
    mdp, costs, _ = random_problem()
    expert = mdp.optimal_policy(costs @ [0.6, 0.0, -0.8, 0.0])
    exact = lfd.solve_cutting_plane(mdp, costs, mdp.occupancy(expert).ravel() @ costs, cost_class="ball")
    assert exact.status == "optimal"
    assert np.linalg.norm(exact.cost_weights) == pytest.approx(1)
    assert lfd.explains(mdp, costs, expert, exact.cost_weights, cost_class="ball", tolerance=2e-8)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("cost_class", "cube", "cost_class must be one of"),
        ("tolerance", 0.0, "tolerance must be positive"),
        ("tolerance", np.nan, "tolerance must be positive"),
        ("max_planner_calls", 0, "max_planner_calls must be at least 1"),
        ("time_limit", -1.0, "time_limit must be positive"),
        ("cost_features", np.full((120, 4), 2.0), "cost_features must lie in"),
        ("cost_features", np.full((120, 4), np.nan), "cost_features must be finite"),
        ("cost_features", np.zeros((119, 4)), r"cost_features must have shape"),
        ("cost_features", np.zeros((117, 4)), "cost_features must have shape"),
        ("cost_features", np.zeros((120, 0)), "cost_features must have at least one column"),
        ("expert_features", np.zeros(3), "expert_features must have shape"),
        ("expert_features", np.full(4, np.nan), "expert_features must be finite"),
        ("expert_features", np.full(4, -1.5), "expert_features must lie in"),
    ],
)
def test_bad_arguments_are_named(argument, value, message):
    names = ("mdp", "cost_features", "expert_features")
    arguments = dict(zip(names, random_problem(), strict=True))
    with pytest.raises(ValueError, match=message):
        lfd.solve_cutting_plane(**(arguments | {argument: value}))


def test_occupancies_of_the_mixture_are_kept_until_more_accuracy_is_asked_for(monkeypatch):
    search = _Search(ApprenticeshipProblem.checked(*random_problem(), "simplex"), tolerance=1e-6)
    search.certify()
    compute, asked = search.planner.state_occupancy, []
    monkeypatch.setattr(search.planner, "state_occupancy", lambda *args: asked.append(args[1]) or compute(*args))
    first = search.solution("inaccurate")
    assert asked == []
    search.tighten()
    second = search.solution("inaccurate")
    assert asked == [search.feature_tolerance]
    np.testing.assert_allclose(first.occupancy, second.occupancy, atol=1e-7)


@pytest.mark.parametrize("cost_class", ["simplex", "ball"])
def test_a_search_that_was_misled_is_put_right_by_the_certificate(monkeypatch, cost_class):
    """Plans that are not certified are taken to be good; here they are bad, and the end is right all the same."""
    problem = random_problem(discount=0.95)
    expected = lfd.solve_cutting_plane(*problem, cost_class=cost_class)
    plan, certified = FiniteMDP.plan, []

    def misleading(self, cost, tolerance, initial_values=None, typical_visits=None):
        certified.append(typical_visits is None)
        honest = plan(self, cost, tolerance, initial_values)
        return honest if typical_visits is None else replace(honest, actions=np.zeros_like(honest.actions))

    monkeypatch.setattr(FiniteMDP, "plan", misleading)
    found = lfd.solve_cutting_plane(*problem, cost_class=cost_class)
    assert found.status == "optimal"
    assert found.apprentice_value == pytest.approx(expected.apprentice_value, abs=2e-8)
    # It was misled, once, and then took certified plans only.
    first = certified.index(True)
    assert first > 0
    assert len(certified) > first + 1
    assert all(certified[first:])


def test_usually_one_plan_is_certified(monkeypatch):
    rng = np.random.default_rng(0)
    mdp = FiniteMDP(gridworld_transitions(20), np.full(400, 1 / 400), 0.95)
    costs = np.repeat(random_state_costs(400, 5, rng), 4, axis=0)
    rho = mdp.occupancy(mdp.optimal_policy(costs[:, 0])).ravel() @ costs + 0.01 * rng.normal(size=5)
    plan, certified = FiniteMDP.plan, []

    def noted(self, cost, tolerance, initial_values=None, typical_visits=None):
        certified.append(typical_visits is None)
        return plan(self, cost, tolerance, initial_values, typical_visits)

    monkeypatch.setattr(FiniteMDP, "plan", noted)
    assert lfd.solve_cutting_plane(mdp, costs, rho).status == "optimal"
    assert certified == [False] * (len(certified) - 1) + [True]


@pytest.mark.parametrize("discount", [0.9, 0.99, 0.999])
def test_a_goal_far_from_the_only_start(discount):
    """The policies found first never leave the start: what they visit says nothing about the goal."""
    n_states = 300
    successors = np.zeros(2 * n_states, dtype=int)  # back to the start, or one step on
    successors[1::2] = np.minimum(np.arange(n_states) + 1, n_states - 1)
    successors[-2] = n_states - 1
    transitions = sp.csr_array(
        (np.ones(2 * n_states), (np.arange(2 * n_states), successors)), shape=(2 * n_states, n_states)
    )
    mdp = FiniteMDP(transitions, one_hot(np.zeros(1, dtype=int), n_states)[0], discount)
    costs = np.zeros((2 * n_states, 3))
    costs[:-2, 0], costs[1::2, 1], costs[0::2, 2] = 1.0, 0.5, 0.7
    rho = np.array([0.3, 0.2, 0.1])
    exact = lfd.solve_cutting_plane(mdp, costs, rho)
    assert exact.status == "optimal"
    program = lfd.solve_linear_program(mdp, costs, rho)
    assert exact.apprentice_value == pytest.approx(program.apprentice_value, abs=2e-8)


def test_cuts_of_rough_features_are_valid():
    """Each row of the master is above the features of its policy, by at most twice their error."""
    rng = np.random.default_rng(0)
    mdp = FiniteMDP(gridworld_transitions(20), np.full(400, 1 / 400), 0.99)
    costs = np.repeat(random_state_costs(400, 5, rng), 4, axis=0)
    rho = mdp.occupancy(mdp.optimal_policy(costs[:, 0])).ravel() @ costs
    search = _Search(ApprenticeshipProblem.checked(mdp, costs, rho, "simplex"), tolerance=1e-8)
    n_rough = 0
    for k in range(12):
        allowed = max(1e-3 * min(search.master.gap, 1.0), search.feature_tolerance)
        search.query(search.master.next_weights())
        exact = mdp.occupancy(one_hot(search.policies[k], 4)).ravel() @ costs - rho
        excess = search.master._cuts.rows[k] - exact
        if allowed > search.feature_tolerance:
            n_rough += 1
            assert excess.min() >= -1e-12
        assert np.abs(excess).max() <= 2 * allowed
        assert search.master.upper_bound >= search.master.lower_bound - 1e-12
    assert n_rough > 5


def test_only_certified_plans_make_a_dual_point():
    """The values of a rough plan may be far off where no policy goes, whatever they prove."""
    search = _Search(ApprenticeshipProblem.checked(*random_problem(), "simplex"), tolerance=1e-6)
    search.query(search.master.next_weights())
    assert search._best.lower_bound == -np.inf
    search.certify()
    assert search._best.lower_bound > -np.inf


# -- sets of weights that the method knows only by their support function --------------------------------------------


def value_over_a_polytope(mdp, costs, rho, normals, offsets):
    """The dual as a dense program: max ⟨ν₀, u⟩ − ⟨w, ρ⟩ subject to T*u ≤ Cw, w = p − q, normals·(p, q) ≤ offsets."""
    result = linprog(
        np.concatenate([-mdp.initial_distribution, rho, -rho]),
        A_ub=np.vstack(
            [
                np.hstack([flow_matrix(mdp).T, -costs, costs]),
                np.hstack([np.zeros((len(normals), mdp.n_states)), normals]),
            ]
        ),
        b_ub=np.concatenate([np.zeros(len(costs)), offsets]),
        bounds=[(None, None)] * mdp.n_states + [(0, None)] * (2 * rho.size),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0, result.message
    return -result.fun


@settings(max_examples=60, deadline=None)
@given(mdps_with_costs(), seeds, st.sampled_from([L1Ball(), Box(), Box(0.3)]))
def test_any_polytope_of_weights_is_solved_as_a_linear_program_solves_it(problem, seed, weights):
    mdp, costs = problem
    rho = noisy_expectations(mdp, costs, seed)
    size = rho.size
    if isinstance(weights, L1Ball):
        normals, offsets = np.ones((1, 2 * size)), np.ones(1)
    else:
        normals, offsets = np.eye(2 * size), np.full(2 * size, weights.bound)
    exact = lfd.solve_cutting_plane(mdp, costs, rho, cost_class=weights)
    assert exact.status == "optimal"
    assert exact.apprentice_value == pytest.approx(value_over_a_polytope(mdp, costs, rho, normals, offsets), abs=2e-8)
    weights.check("cost_weights", exact.cost_weights, size)
    excess = mdp.occupancy(exact.policy).ravel() @ costs - rho
    assert weights.support(excess) == pytest.approx(exact.apprentice_value, abs=1e-9)
    assert exact.lower_bound == pytest.approx(mdp.initial_distribution @ exact.values - exact.cost_weights @ rho)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_costs", [1, 4, 10])
def test_the_l1_ball_is_the_simplex_of_the_costs_and_their_opposites(n_costs, seed):
    mdp, costs, rho = random_problem(n_costs=n_costs, seed=seed)
    exact = lfd.solve_cutting_plane(mdp, costs, rho, cost_class=L1Ball())
    doubled = lfd.solve_cutting_plane(mdp, np.hstack([costs, -costs]), np.concatenate([rho, -rho]))
    assert exact.status == doubled.status == "optimal"
    assert exact.apprentice_value == pytest.approx(doubled.apprentice_value, abs=2e-8)


class Disguised(ConvexSet):
    """A set that the package knows, of which it is told no more than of any other."""

    def __init__(self, known):
        self.known, self.nonnegative = known, known.nonnegative

    def support(self, vectors):
        return self.known.support(vectors)

    def maximiser(self, vector):
        return self.known.maximiser(vector)

    def project(self, vector):
        return self.known.project(vector)

    def radius(self, size):
        return self.known.radius(size)


@pytest.mark.parametrize("n_costs", [1, 3, 6])
@pytest.mark.parametrize("expert", ["unattainable", "optimal", "random"])
@pytest.mark.parametrize("known", [Simplex(), Ball()])
def test_known_sets_in_disguise_have_the_same_value(known, expert, n_costs):
    mdp, costs, rho = random_problem(n_costs=n_costs)
    rng = np.random.default_rng(0)
    if expert == "optimal":
        rho = mdp.occupancy(mdp.optimal_policy(costs @ rng.normal(size=n_costs))).ravel() @ costs
    elif expert == "random":
        rho = mdp.occupancy(random_policy(mdp, rng)).ravel() @ costs
    found = lfd.solve_cutting_plane(mdp, costs, rho, cost_class=Disguised(known))
    exact = lfd.solve_cutting_plane(mdp, costs, rho, cost_class=known)
    assert found.status == exact.status == "optimal"
    assert found.apprentice_value == pytest.approx(exact.apprentice_value, abs=2e-8)
    assert found.n_planner_calls <= 3 * exact.n_planner_calls


def test_a_ball_of_another_radius_scales_the_distance():
    problem = random_problem()
    exact = lfd.solve_cutting_plane(*problem, cost_class=Ball(2.0))
    assert exact.status == "optimal"
    unit = lfd.solve_cutting_plane(*problem, cost_class="ball")
    assert exact.apprentice_value == pytest.approx(2 * unit.apprentice_value, abs=4e-8)


def test_costs_may_come_with_their_set_and_solutions_are_short_to_read():
    mdp, costs, rho = random_problem()
    with_set = lfd.solve_cutting_plane(mdp, lfd.TableCosts(costs, 3, "ball"), rho)
    np.testing.assert_array_equal(with_set.policy, lfd.solve_cutting_plane(mdp, costs, rho, cost_class="ball").policy)
    assert repr(with_set).startswith("ExactSolution(status='optimal', oracle_calls=0, apprentice_value=")
    assert "array" not in repr(with_set)
