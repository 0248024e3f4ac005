"""Coherence, and Proposition 5 sharpened: each step of the proof in docs/theory.md, the whole, and that it is tight."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from apprentice_oracle import apprentice
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from problems import random_point, saddle_point_problems
from strategies import random_policy

from lfd_gym import Ball, Box, ConvexSet, FiniteMDP, SaddlePointProblem, Simplex, TableCosts
from lfd_gym.features import (
    FiniteOccupancyFeatures,
    FiniteValueFeatures,
    TabularOccupancyFeatures,
    TabularValueFeatures,
    aggregated_values,
    policy_occupancies,
)
from lfd_gym.solvers.saddle.approximation import (
    coherent_approximation_error,
    nearest_occupancy,
    nearest_values,
    point_approximation_error,
)
from lfd_gym.solvers.saddle.coherence import (
    coherence,
    coherence_ratio,
    cost_half_range,
    flow_violation,
    largest_punishment,
)

FEW = settings(max_examples=25, deadline=None)
MANY = settings(max_examples=120, deadline=None)
N_POINTS = 40  # of each problem: 120 problems are 4800 instances
SMALL = {"max_states": 5, "max_actions": 3, "max_features": 3}


@dataclass(frozen=True)
class Hull(ConvexSet):
    """A class of one's own, without any symmetry: mixtures of three weights that depend on their number alone."""

    def vertices(self, size):
        return np.random.default_rng(size).normal(0.5, 1.0, (3, size))

    def support(self, vectors):
        return (vectors @ self.vertices(vectors.shape[-1]).T).max(axis=-1)

    def maximiser(self, vector):
        vertices = self.vertices(vector.size)
        return vertices[np.argmax(vertices @ vector)]

    def radius(self, size):
        return float(np.linalg.norm(self.vertices(size), axis=1).max())

    def project(self, vector):
        raise NotImplementedError


classes = st.sampled_from(["simplex", "ball", Ball(3.0), Box(0.5), Hull()])


def draw_point(problem, rng):
    """Feasible; λ = 0, corners of Θ and best responses among the points, where the bounds are tight."""
    theta, lam, w = random_point(problem, rng)
    weights = problem.costs.weights
    if weights not in (Simplex(), Ball()):
        w = rng.dirichlet(np.ones(4)) @ [weights.maximiser(rng.standard_normal(w.size)) for _ in range(4)]
    if rng.random() < 0.3:
        theta = np.eye(theta.size)[rng.integers(theta.size)]
    if rng.random() < 0.3:
        lam = np.zeros_like(lam)
    if rng.random() < 0.3:
        w = weights.maximiser(problem.gradients((theta, lam, w))[2])
    return theta, lam, w


def distance(problem, policy):
    """δ_C(π, π_E), from the exact occupancy of π."""
    difference = problem.costs.table.T @ problem.mdp.occupancy(policy).ravel() - problem.expert_features
    return float(problem.costs.weights.support(difference))


# -- coherence --------------------------------------------------------------------------------------------------------


@FEW
@given(saddle_point_problems(max_states=4, max_actions=3))
def test_coherence_ratio_is_assumption_1(case):
    """At ratio ≥ k every ‖u‖∞ ≤ k is matched by a scaled maximiser in the domain; below, the worst u is not."""
    problem, _, rng = case
    theta, _, _ = random_point(problem, rng)
    violation = flow_violation(problem, theta)
    np.testing.assert_allclose(violation.sum(), 0, atol=1e-9)
    reachable = problem.value_set.support(problem.value_features.inner(violation))
    ratio = coherence_ratio(problem, theta)
    if np.isfinite(ratio):
        for k in (1, 2):
            wanted = k * np.abs(violation).sum()  # max over ‖u‖∞ ≤ k of ⟨violation, u⟩
            assert (ratio >= k) == (reachable >= wanted) or abs(ratio - k) < 1e-9
    bounds = coherence(problem)
    assert bounds.lower - 1e-9 <= ratio
    assert bounds.lower <= bounds.upper
    assert bounds.required == cost_half_range(problem)


@FEW
@given(saddle_point_problems(max_states=4, max_actions=3))
def test_the_bound_from_above_is_the_least_ratio_of_the_columns_and_their_mean(case):
    problem, _, _ = case
    n = problem.occupancy_features.n_features
    ratios = [coherence_ratio(problem, theta) for theta in (*np.eye(n), np.full(n, 1 / n))]
    assume(np.isfinite(min(ratios)))  # else every point is an occupancy measure, and any bound is right
    np.testing.assert_allclose(coherence(problem).upper, min(ratios), rtol=1e-7)


def test_what_is_required_is_the_half_range_of_the_costs():
    rng = np.random.default_rng(0)
    mdp = FiniteMDP(rng.dirichlet(np.ones(5), size=10), rng.dirichlet(np.ones(5)), 0.9)
    features = (TabularOccupancyFeatures(5, 2), TabularValueFeatures(5), 0.9)
    signs = TableCosts(rng.permutation([-1.0, 1.0] * 5)[:, None], 2)  # the paper's costs, R = 1

    def of(costs, **domain):
        return coherence(SaddlePointProblem(costs, np.zeros(1), *features, mdp=mdp, **domain))

    box = {"value_domain": "box"}
    np.testing.assert_allclose([of(signs, value_radius=1.0, **box).lower, of(signs, value_radius=9.0).required], 1.0)
    assert of(signs, value_radius=1.0, **box).holds is True  # Assumption 1 asks for 2
    assert of(signs, value_radius=0.999, **box).holds is False
    assert of(signs, value_radius=0.6, **box).shortfall == pytest.approx(0.4)
    assert of(signs, value_radius=2.0, **box).shortfall == 0
    zero_or_one = TableCosts((signs.table + 1) / 2, 2)  # R = 1/2: constants do not count
    assert of(zero_or_one, value_radius=0.5, **box).holds is True
    assert of(zero_or_one, value_radius=0.499, **box).holds is False
    assert of(signs, value_radius=2.0).holds is False  # a small ball, although the rows of Ψ = I are orthonormal
    assert of(signs, value_radius=5.0).holds is True  # β ≥ n_u suffices, as ‖r‖₁ ≤ √n_u‖r‖₂


def test_fewer_value_features_than_directions_of_the_flow_promise_nothing():
    """There are violations that such features do not see, so the least ratio may be 0, however large their weights."""
    rng = np.random.default_rng(0)
    mdp = FiniteMDP(rng.dirichlet(np.ones(4), size=8), rng.dirichlet(np.ones(4)), 0.9)
    costs = TableCosts(rng.uniform(-1, 1, (8, 1)), 2)
    seen = FiniteValueFeatures(rng.uniform(-1, 1, (4, 2)))  # the flow has three directions
    for domain in ("ball", "box"):
        problem = SaddlePointProblem(
            costs,
            np.zeros(1),
            TabularOccupancyFeatures(4, 2),
            seen,
            0.9,
            value_radius=100.0,
            value_domain=domain,
            mdp=mdp,
        )
        assert coherence(problem).lower == 0


def test_policy_occupancies_are_coherent_with_any_value_features():
    rng = np.random.default_rng(0)
    mdp = FiniteMDP(rng.dirichlet(np.ones(5), size=10), rng.dirichlet(np.ones(5)), 0.9)
    features = policy_occupancies(mdp, [random_policy(mdp, rng) for _ in range(3)])
    problem = SaddlePointProblem(
        TableCosts(rng.uniform(-1, 1, (10, 1)), 2),
        np.zeros(1),
        features,
        aggregated_values([0] * 5),
        0.9,
        value_radius=2.0,
        mdp=mdp,
    )
    assert coherence(problem).holds is True


@FEW
@given(saddle_point_problems(**SMALL), classes)
def test_half_range_bounds_every_cost_of_the_class_up_to_a_constant(case, cost_class):
    problem, _, rng = case
    problem = replace(problem, costs=TableCosts(problem.costs.table, problem.mdp.n_actions, cost_class))
    costs, weights = problem.costs.table, problem.costs.weights
    half_range = cost_half_range(problem)
    assert half_range <= weights.largest(costs)
    differences = (costs[:, None] - costs[None]).reshape(-1, problem.n_costs)
    needed = float(weights.support(differences).max()) / 2  # over the class, the largest half span
    assert needed <= half_range + 1e-9
    if weights == Simplex():
        assert half_range == pytest.approx(needed, abs=1e-12)
    if weights == Ball():
        assert half_range <= np.linalg.norm(costs, axis=1).max() + 1e-12
    shifted = np.clip(costs / 2 + rng.uniform(-0.5, 0.5, problem.n_costs), -1, 1)
    moved = replace(problem, costs=TableCosts(shifted, problem.mdp.n_actions, cost_class))
    if weights == Simplex():
        assert cost_half_range(moved) == pytest.approx(half_range / 2, abs=1e-12)


# -- Proposition 5, sharpened -----------------------------------------------------------------------------------------


@FEW
@given(saddle_point_problems(**SMALL), classes)
def test_each_step_of_the_proof(case, cost_class):
    problem, _, rng = case
    problem = replace(problem, costs=TableCosts(problem.costs.table, problem.mdp.n_actions, cost_class))
    mdp, costs, weights = problem.mdp, problem.costs.table, problem.costs.weights
    other = mdp.occupancy(random_policy(mdp, rng))
    nearest = nearest_occupancy(problem, other)
    other_distance = float(weights.support(costs.T @ other.ravel() - problem.expert_features))
    for _ in range(N_POINTS):
        theta, lam, w = draw_point(problem, rng)
        violation, policy, mu = flow_violation(problem, theta), problem.policy(theta), problem.occupancy(theta).ravel()
        size = np.abs(violation).sum()
        # Step 1: the policy costs ⟨r, V⟩ more than μ_θ says, for every cost.
        cost = costs @ weights.maximiser(rng.standard_normal(problem.n_costs))
        values = mdp.value_function(policy, cost)
        assert mdp.expected_cost(policy, cost) - mu @ cost == pytest.approx(violation @ values, abs=1e-8)
        # Step 2: r sums to zero, values stay within the range of their cost, so this is at most R‖r‖₁.
        assert violation.sum() == pytest.approx(0, abs=1e-9)
        assert np.ptp(values) / 2 <= np.ptp(cost) / 2 + 1e-9 <= cost_half_range(problem) + 2e-9
        assert abs(violation @ values) <= cost_half_range(problem) * size + 1e-8
        # Step 3: the maximum of the Lagrangian over λ and w.
        excess = float(weights.support(costs.T @ mu - problem.expert_features))
        punished = largest_punishment(problem, violation)
        assert problem.upper_value(theta) == pytest.approx(excess + punished, abs=1e-8)
        if size > 1e-9:
            assert punished == pytest.approx(coherence_ratio(problem, theta) * size, abs=1e-8)
        assert distance(problem, policy) <= excess + cost_half_range(problem) * size + 1e-8
        # Step 4: the minimum over θ', against any policy.
        advantages = costs @ w - mdp.bellman_adjoint(problem.values(lam)).ravel()
        assert np.ptp(advantages) / 2 <= np.abs(advantages).max() <= problem.occupancy_shift + 1e-8
        lower = problem.lower_value(lam, w)
        assert lower <= other_distance + np.ptp(advantages) / 2 * nearest.error + 1e-7


@MANY
@given(saddle_point_problems(**SMALL), classes)
def test_proposition_5_sharpened(case, cost_class):
    """δ_C(π_θ) − δ_C(π) ≤ ε_sad + C·min‖μ_θ' − μ_π‖₁ + (R − κ_θ)‖r‖₁ for every policy π, not the apprentice alone."""
    problem, expert, rng = case
    problem = replace(problem, costs=TableCosts(problem.costs.table, problem.mdp.n_actions, cost_class))
    half_range = cost_half_range(problem)
    occupancies = [problem.mdp.occupancy(random_policy(problem.mdp, rng)), expert]
    references = [
        (o, float(problem.costs.weights.support(problem.costs.table.T @ o.ravel() - problem.expert_features)))
        for o in occupancies
    ]
    if problem.costs.weights == Simplex():
        exact = apprentice(problem.mdp, problem.costs.table, problem.expert_features)
        references.append((exact.occupancy, exact.value))
    compared = [(o, value, nearest_occupancy(problem, o).error) for o, value in references]
    apriori = coherent_approximation_error(problem, occupancies[0])
    for _ in range(N_POINTS):
        theta, lam, w = draw_point(problem, rng)
        found = distance(problem, problem.policy(theta))
        residual = problem.saddle_point_residual((theta, lam, w))
        violation = flow_violation(problem, theta)
        values_term = half_range * np.abs(violation).sum() - largest_punishment(problem, violation)
        for _, value, error in compared:
            assert found - value <= residual + problem.occupancy_shift * error + values_term + 1e-6
        assert found - compared[0][1] <= residual + apriori.total + 1e-6
        assert values_term <= apriori.value_factor * apriori.value_error + 1e-7
    # One point with its own factors: no LP for each of them.
    terms = point_approximation_error(problem, (theta, lam, w), occupancies[0])
    assert found - compared[0][1] <= residual + terms.total + 1e-6
    assert terms.value_factor * terms.value_error <= values_term + 1e-7


def stay_or_go(features, value_features, share, cost_class="simplex", n_costs=1, height=1.0):
    """Staying costs ``height`` for ever, going −``height`` for ever; ``share`` of μ_θ is where it never gets to.

    The expert goes. π_θ stays, so δ_C(π_θ, π_E) − α* is the largest there is, although μ_θ looks cheaper.
    """
    mdp = FiniteMDP([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]], initial_distribution=[1.0, 0.0], discount=0.8)
    costs = height * np.tile([[1.0], [-1.0], [-1.0], [-1.0]], n_costs)
    go = mdp.occupancy([1, 1])
    if features == "tabular":
        phi, theta = TabularOccupancyFeatures(2, 2), np.array([1 - share, 0.0, share, 0.0])
    else:
        phi = FiniteOccupancyFeatures(np.column_stack([np.eye(4)[0], np.eye(4)[2], go.ravel()]), 2)
        theta = np.array([1 - share, share, 0.0])
    problem = SaddlePointProblem(
        TableCosts(costs, 2, cost_class),
        costs.T @ go.ravel(),
        phi,
        TabularValueFeatures(2) if value_features == "tabular" else FiniteValueFeatures(np.array([[0.3], [-0.2]])),
        mdp.discount,
        value_radius=0.5,
        value_domain="box",
        mdp=mdp,
    )
    w = problem.costs.weights.maximiser(np.ones(n_costs))
    return problem, (theta, np.zeros(problem.n_value_features), w), go


CASES = [
    ("simplex", 1, 1.0, 1.0),
    ("simplex", 3, 0.7, 0.7),
    ("ball", 2, 1.0, np.sqrt(2)),
    ("ball", 3, 0.5, np.sqrt(0.75)),
    (Ball(2.0), 2, 1.0, 2 * np.sqrt(2)),
    (Box(0.5), 4, 1.0, 2.0),
]


@pytest.mark.parametrize("features", ["tabular", "three columns"])
@pytest.mark.parametrize("value_features", ["tabular", "one column"])
@pytest.mark.parametrize(("cost_class", "n_costs", "height", "half_range"), CASES)
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_proposition_5_is_tight_in_all_its_parts(
    features, value_features, cost_class, n_costs, height, half_range, share
):
    """The bound is the truth, so no part of it can be smaller; a factor R of (1 − κ_θ) would be false for R > 1."""
    problem, point, go = stay_or_go(features, value_features, share, cost_class, n_costs, height)
    truth = distance(problem, problem.policy(point[0]))  # α* = 0
    assert truth == pytest.approx(2 * half_range)
    assert cost_half_range(problem) == pytest.approx(half_range)
    residual = problem.saddle_point_residual(point)
    terms = point_approximation_error(problem, point, go)
    assert truth == pytest.approx(residual + terms.total, rel=1e-9)
    violated, ratio = 2 * share, coherence_ratio(problem, point[0])
    assert ratio == pytest.approx(0.5 if value_features == "tabular" else 0.5 * (0.3 + 0.2) / 2)
    assert terms.value_factor == pytest.approx(violated)
    assert terms.value_error == pytest.approx(half_range - ratio)
    # What would be false: no value term, Assumption 1's own statement with a smaller residual, the sketch's R(1 − κ).
    assert half_range > ratio
    assert residual < truth - 1e-3
    assert 0.99 * residual + terms.total < truth
    if half_range > 1:
        assert residual + half_range * (1 - ratio) * violated < truth - 1e-3


def test_the_occupancy_term_is_tight():
    """Φ knows only how to stay: all of the excess is what it lacks, with half the span of the advantages as factor."""
    problem, _, go = stay_or_go("tabular", "tabular", 0.0)
    stay = FiniteOccupancyFeatures(np.eye(4)[:, :1], 2)
    problem = replace(problem, occupancy_features=stay, value_radius=1.0)
    point = (np.ones(1), np.zeros(2), np.ones(1))
    assert problem.saddle_point_residual(point) == pytest.approx(0)
    terms = point_approximation_error(problem, point, go)
    assert (terms.occupancy_error, terms.occupancy_factor) == (pytest.approx(2), pytest.approx(1))
    assert terms.value_factor == 0  # staying for ever is an occupancy measure
    assert terms.total == pytest.approx(distance(problem, problem.policy(point[0])))
    apriori = coherent_approximation_error(problem, go)
    assert apriori.occupancy_error == pytest.approx(2)
    assert apriori.occupancy_factor == problem.occupancy_shift == pytest.approx(2 / (1 - 0.8))
    assert apriori.total == pytest.approx(2 * problem.occupancy_shift)  # coherent


def test_the_value_error_is_the_smaller_of_the_two_propositions():
    problem, point, go = stay_or_go("tabular", "tabular", 0.6)
    policy_values = problem.mdp.value_function(problem.policy(point[0]), problem.costs.table[:, 0])
    for radius in (0.5, 0.9, 1.0, 1.7):
        wider = replace(problem, value_radius=radius)
        by_distance = nearest_values(wider, policy_values).error  # Proposition 4
        assert by_distance == pytest.approx(max(0.0, 1 - radius))
        error = point_approximation_error(wider, point, go).value_error
        assert error == pytest.approx(1 - radius)  # R − κ, here never more than the distance
    # A value function that Ψ expresses, in a domain that is far from coherent: Proposition 4 is better.
    flat = replace(
        problem,
        costs=TableCosts(np.array([[1.0], [1.0], [-1.0], [1.0]]), 2),
        value_features=FiniteValueFeatures(np.array([[1.0], [0.9]])),
        value_radius=2.0,
    )
    theta = np.array([0.5, 0.0, 0.0, 0.5])  # both states cost 1 for ever: the values are constant
    terms = point_approximation_error(flat, (theta, [0.0], [1.0]), go)
    assert coherence_ratio(flat, theta) == pytest.approx(0.1)
    assert terms.value_error == pytest.approx(0, abs=1e-6)
    assert terms.value_factor == pytest.approx(1.0)


def test_coherence_makes_the_value_term_vanish_or_worse_than_vanish():
    problem, point, go = stay_or_go("tabular", "tabular", 0.6)
    coherent = replace(problem, value_radius=1.5)
    assert coherent_approximation_error(coherent, go).total == 0
    assert point_approximation_error(coherent, point, go).total == pytest.approx(-0.5 * 1.2)
    lacking = coherent_approximation_error(problem, go)
    assert lacking.value_error == pytest.approx(0.5)
    assert lacking.total == pytest.approx(0.5 * 2 / (1 - 0.8))
