import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import mdps_with_costs, random_policy

import lfd_gym as lfd
from lfd_gym import FiniteMDP
from lfd_gym.solvers.exact.weight_polytope import WeightPolytope

seeds = st.integers(0, 2**32 - 1)


def random_weights(size, rng):
    return np.eye(size)[rng.integers(size)] if rng.random() < 0.3 else rng.dirichlet(np.ones(size))


@settings(max_examples=100, deadline=None)
@given(mdps_with_costs(), seeds, st.sampled_from(["simplex", "ball"]))
def test_suboptimality_is_the_difference_of_expected_costs(problem, seed, cost_class):
    mdp, costs = problem
    rng = np.random.default_rng(seed)
    expert = random_policy(mdp, rng)
    weights = random_weights(costs.shape[1], rng)
    if cost_class == "ball":
        weights *= rng.choice([-1.0, 1.0], size=weights.size) / max(np.linalg.norm(weights), 1.0)
    explanation = lfd.explains(mdp, costs, expert, weights, cost_class=cost_class)
    cost = costs @ weights
    best = mdp.expected_cost(mdp.optimal_policy(cost), cost)
    assert explanation.suboptimality == pytest.approx(mdp.expected_cost(expert, cost) - best, abs=1e-9)
    assert explanation.error_bound <= 1e-9
    assert bool(explanation) == explanation.optimal == (explanation.suboptimality <= 1e-8)


@settings(max_examples=60, deadline=None)
@given(mdps_with_costs(), seeds)
def test_the_polytope_has_the_bounds_of_a_linear_program_over_values_and_weights(problem, seed):
    mdp, costs = problem
    rng = np.random.default_rng(seed)
    n_states, n_costs = mdp.n_states, costs.shape[1]
    true_weights = random_weights(n_costs, rng)
    expert = mdp.optimal_policy(costs @ true_weights)
    found = lfd.explaining_weights(mdp, costs, expert)
    assert not found.is_empty
    for weights in [*found.vertices, rng.dirichlet(np.ones(len(found.vertices))) @ found.vertices]:
        assert lfd.explains(mdp, costs, expert, weights, tolerance=1.01e-8)
        assert (found.normals @ weights >= -1e-8).all()
    # Weights explain the expert iff some u with T*u ≤ c_w reaches the expert's cost: ⟨ν₀, u⟩ ≥ ⟨ρ_E, w⟩.
    rho = mdp.occupancy(expert).ravel() @ costs
    adjoint = np.array([mdp.bellman_adjoint(unit).ravel() for unit in np.eye(n_states)]).T
    for i in range(n_costs):
        for side, sign in ((0, 1.0), (1, -1.0)):
            result = linprog(
                np.concatenate([np.zeros(n_states), sign * np.eye(n_costs)[i]]),
                A_ub=np.vstack([np.hstack([adjoint, -costs]), np.concatenate([-mdp.initial_distribution, rho])]),
                b_ub=np.append(np.zeros(len(costs)), 1e-12),
                A_eq=np.concatenate([np.zeros(n_states), np.ones(n_costs)])[None],
                b_eq=[1.0],
                bounds=[(None, None)] * n_states + [(0, None)] * n_costs,
                options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
            )
            assert found.bounds[i, side] == pytest.approx(sign * result.fun, abs=1e-6)


def two_states():
    """Going costs feature 1 once, staying costs feature 0 for ever."""
    stay_or_go = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    mdp = FiniteMDP(stay_or_go, initial_distribution=[1.0, 0.0], discount=0.5)
    return mdp, np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])


def test_bounds_of_a_textbook_example():
    """Staying costs w₀, going (1−γ)(w₀ + w₁) = (w₀ + w₁)/2 = 1/2: going is optimal iff w₀ ≥ 1/2."""
    mdp, costs = two_states()
    go = np.array([[0.0, 1.0], [1.0, 0.0]])
    found = lfd.explaining_weights(mdp, costs, go)
    assert found.bounds == pytest.approx(np.array([[0.5, 1.0], [0.0, 0.5]]), abs=1e-7)
    assert lfd.explains(mdp, costs, go, [0.5, 0.5])
    assert lfd.explains(mdp, costs, go, [0.4, 0.6]).suboptimality == pytest.approx(0.1)


def test_slack_is_the_suboptimality_allowed():
    mdp, costs = two_states()
    torn = np.array([[0.5, 0.5], [1.0, 0.0]])
    # Tosses a coin: stays with value v = (w₀/2 + v/2)/2 + (w₀ + w₁)/4, so v = w₀/3 + 1/3 and v − min(w₀, 1/2) > 0 …
    for slack, bounds in ((0.0, [0.5, 0.5]), (0.1, [0.35, 0.8])):  # … unless w₀ = 1/2
        found = lfd.explaining_weights(mdp, costs, torn, slack=slack)
        assert found.bounds[0] == pytest.approx(bounds, abs=1e-7)


def test_costs_that_are_zero_everywhere():
    """Planning for a zero cost from the values of another ends, and a zero cost explains every expert."""
    mdp = FiniteMDP(np.array([[[0.9, 0.1]], [[0.4, 0.6]]]), initial_distribution=[0.5, 0.5], discount=0.76)
    costs = np.array([[-1.0, 0.0], [-0.3, 0.0]])
    plan = mdp.plan(costs[:, 1], tolerance=1e-9, initial_values=mdp.plan(costs[:, 0]).values)
    assert plan.values == pytest.approx(np.zeros(2), abs=1e-90)
    assert plan.n_improvements <= 100
    assert lfd.explaining_weights(mdp, costs, np.ones((2, 1))).bounds == pytest.approx(np.array([[0, 1], [0, 1]]))
    mdp, _ = two_states()
    assert len(lfd.explaining_weights(mdp, np.zeros((4, 3)), np.full((2, 2), 0.5)).vertices) == 3


def test_a_hundred_vertices():
    """Where every state is visited the set is {w : no action has a negative advantage}, linear in w."""
    rng = np.random.default_rng(5)
    n_states, n_actions = 12, 4
    moves = rng.integers(n_states, size=(n_states, n_actions))
    mdp = FiniteMDP(np.eye(n_states)[moves], np.full(n_states, 1 / n_states), 0.2)
    costs = rng.uniform(-1, 1, (n_states * n_actions, 6))
    expert = mdp.optimal_policy(costs.mean(axis=1))
    found = lfd.explaining_weights(mdp, costs, expert)
    expected = WeightPolytope(6, 1e-11)
    values = [mdp.value_function(expert, cost) for cost in costs.T]
    for advantages in costs - np.stack([mdp.bellman_adjoint(value).ravel() for value in values], axis=1):
        expected.intersect(advantages)
    assert len(found.vertices) > 100
    distances = np.abs(found.vertices[:, None] - expected.vertices[None]).max(axis=2)
    assert distances.min(axis=0).max() <= 1e-6
    assert distances.min(axis=1).max() <= 1e-6


def test_an_expert_that_nothing_explains():
    mdp, costs = two_states()
    stay = np.array([[1.0, 0.0], [1.0, 0.0]])
    found = lfd.explaining_weights(mdp, costs[:, :1], stay)
    assert found.is_empty
    with pytest.raises(ValueError, match="slack"):
        _ = found.bounds
    assert not lfd.explaining_weights(mdp, costs[:, :1], stay, slack=0.5).is_empty


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("expert", np.ones((2, 2)), "expert must have rows that sum to 1"),
        ("expert", np.array([[1.5, -0.5], [1.0, 0.0]]), "expert must be nonnegative"),
        ("expert", np.full((2, 2), np.nan), "expert must be finite"),
        ("expert", np.ones((2, 1)), "expert must have shape"),
        ("cost_weights", [0.5, 0.6], "cost_weights must sum to 1"),
        ("cost_weights", [1.5, -0.5], "cost_weights must be nonnegative"),
        ("cost_weights", [1.0], "cost_weights must have shape"),
        ("cost_weights", [np.nan, 1.0], "cost_weights must be finite"),
        ("cost_features", np.full((4, 2), 3.0), "cost_features must lie in"),
        ("cost_features", np.zeros((3, 2)), r"cost_features must have shape"),
        ("cost_features", np.zeros((6, 2)), "cost_features must have shape"),
        ("cost_features", 0.5, "cost_features must have shape"),
        ("cost_class", "cube", "cost_class must be one of"),
    ],
)
def test_bad_arguments_of_explains_are_named(argument, value, message):
    mdp, costs = two_states()
    arguments = {"cost_features": costs, "expert": np.full((2, 2), 0.5), "cost_weights": [0.5, 0.5], argument: value}
    with pytest.raises(ValueError, match=message):
        lfd.explains(mdp, **arguments)


def test_other_bad_arguments_are_named():
    mdp, costs = two_states()
    expert = np.full((2, 2), 0.5)
    with pytest.raises(ValueError, match=r"cost_weights must lie in Ball\(bound=1.0\)"):
        lfd.explains(mdp, costs, expert, [1.0, 1.0], cost_class="ball")
    with pytest.raises(ValueError, match="cost_class must be the simplex for explaining_weights"):
        lfd.explaining_weights(mdp, costs, expert, cost_class="ball")
    with pytest.raises(ValueError, match="slack must be nonnegative"):
        lfd.explaining_weights(mdp, costs, expert, slack=-1.0)
    with pytest.raises(RuntimeError, match="max_vertices"):
        lfd.explaining_weights(mdp, costs, expert, max_vertices=1)
