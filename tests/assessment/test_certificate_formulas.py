"""Every bound of a certificate against its formula, computed here from the same draws."""

import math

import numpy as np
import pytest
from problems import estimate_of, random_point
from strategies import random_policy

import lfd_gym as lfd
from lfd_gym import (
    FiniteMDP,
    SaddlePointProblem,
    TableCosts,
    TabularModel,
    Task,
    certify,
    certify_saddle_point,
    feature_expectations,
)
from lfd_gym._splitmix import own_stream
from lfd_gym.features import FiniteValueFeatures, TabularOccupancyFeatures
from lfd_gym.solvers.saddle.residual_sampling import sample_residual

N_STATES, N_ACTIONS, N_COSTS, N_VALUES, GAMMA = 4, 2, 3, 5, 0.7
CLASSES = pytest.mark.parametrize("cost_class", ["simplex", "ball"])
#: A different radius for each cost, so that none stands for another.
RADII = np.array([0.03, 0.11, 0.07])


def some_problem(value_domain="ball", cost_class="simplex"):
    rng = np.random.default_rng(7)
    mdp = FiniteMDP(rng.dirichlet(np.full(N_STATES, 0.5), size=N_STATES * N_ACTIONS), rng.dirichlet(np.ones(4)), GAMMA)
    costs = rng.uniform(-1, 1, (N_STATES * N_ACTIONS, N_COSTS))
    problem = SaddlePointProblem(
        TableCosts(costs, N_ACTIONS, cost_class),
        costs.T @ mdp.occupancy(random_policy(mdp, rng)).ravel(),
        TabularOccupancyFeatures(N_STATES, N_ACTIONS),
        FiniteValueFeatures(rng.uniform(-1, 1, (N_STATES, N_VALUES))),
        GAMMA,
        value_radius=4.0,
        value_domain=value_domain,
        mdp=mdp,
    )
    return problem, random_point(problem, rng)


class Recorder:
    """A model that keeps what was drawn from it."""

    def __init__(self, mdp):
        self._model = TabularModel.of(mdp)
        self.starts, self.steps = [], []

    def __getattr__(self, name):
        return getattr(self._model, name)

    def sample_initial(self, n, rng):
        self.starts.append(self._model.sample_initial(n, rng))
        return self.starts[-1]

    def sample_next(self, states, actions, rng):
        after = self._model.sample_next(states, actions, rng)
        self.steps.append((states, actions, after))
        return after


def largest_over_class(vector, cost_class):
    return vector.max() if cost_class == "simplex" else np.linalg.norm(vector)


def furthest_distance(difference, radii, cost_class):
    """Largest distance over the corners of the box around ``difference``: it is convex."""
    signs = np.array(np.meshgrid(*[[-1, 1]] * difference.size)).reshape(difference.size, -1).T
    return max(largest_over_class(difference + sign * radii, cost_class) for sign in signs)


@pytest.mark.parametrize("delta", [0.1, 0.003])
@CLASSES
@pytest.mark.parametrize("value_domain", ["ball", "box"])
def test_the_bound_of_the_sampled_residual_is_the_formula(value_domain, cost_class, delta):
    problem, (theta, lam, w) = some_problem(value_domain, cost_class)
    model, n, n_column = Recorder(problem.mdp), 500, 40
    sampled = sample_residual(
        problem, model, (theta, lam, w), n_samples=n, n_per_column=n_column, delta=delta, rng=np.random.default_rng(3)
    )
    psi, costs, rho = (
        problem.value_features.matrix.toarray(),
        problem.costs.table,
        problem.expert_features,
    )
    values = psi @ lam
    [first], [(states, actions, after), columns] = model.starts, model.steps
    assert sampled.oracle_calls == n + n_column * N_STATES * N_ACTIONS

    # Four events, each with probability δ/4.
    level = math.log(4 / delta)
    # The slope Ψᵀ(ν₀ − Tμ): ‖ψ‖₁ ≤ r and |ψ_k| ≤ 1 give ‖ψ‖₂ ≤ √r, for one draw 1 + (1 + γ)/(1 − γ) times as much.
    slope = (psi[first] - (psi[states] - GAMMA * psi[after]) / (1 - GAMMA)).mean(axis=0)
    r = np.abs(psi).sum(axis=1).max()
    one, two = ((1 + (1 + GAMMA) / (1 - GAMMA)) * norm for norm in (r, math.sqrt(r)))
    if value_domain == "ball":
        half_width = 4.0 / math.sqrt(N_VALUES)
        gain = half_width * (np.linalg.norm(slope) + two / math.sqrt(n) + two * math.sqrt(2 * level / n))
    else:  # E‖·‖₁ ≤ √n_u E‖·‖₂
        gain = 4.0 * (np.abs(slope).sum() + math.sqrt(N_VALUES) * two / math.sqrt(n) + one * math.sqrt(2 * level / n))
    # The excess Cᵀμ − ρ̂: Hoeffding on [−1, 1] for each cost, or the norm of a vector of length at most √n_c.
    excess = largest_over_class(costs[states * N_ACTIONS + actions].mean(axis=0) - rho, cost_class)
    if cost_class == "simplex":
        excess += math.sqrt(2 * math.log(4 * N_COSTS / delta) / n)
    else:
        excess += math.sqrt(N_COSTS / n) + math.sqrt(N_COSTS) * math.sqrt(2 * level / n)
    # ⟨ν₀, u⟩: Hoeffding on the range of u.
    spread = values.max() - values.min()
    start = values[first].mean() - spread * math.sqrt(level / (2 * n))
    # The columns: Maurer & Pontil's Theorem 4 for each of n_μ, ln(2/δ') with δ' = δ/4/n_μ.
    states, actions, after = (part.reshape(-1, n_column) for part in columns)
    pairs = states * N_ACTIONS + actions
    np.testing.assert_array_equal(pairs, np.repeat(np.arange(8), n_column).reshape(8, -1))  # Φ is tabular
    draws = costs[pairs] @ w - (values[states] - GAMMA * values[after]) / (1 - GAMMA)
    of_each = math.log(2 * 4 * 8 / delta)
    scale = 2 * (1 if cost_class == "simplex" else math.sqrt(N_COSTS)) + (1 + GAMMA) / (1 - GAMMA) * spread
    deviations = np.array([column.std(ddof=1) for column in draws])
    lowest = (
        draws.mean(axis=1) - deviations * math.sqrt(2 * of_each / n_column) - 7 * scale * of_each / 3 / (n_column - 1)
    )
    np.testing.assert_allclose(sampled.bound, gain + excess - lowest.min() - start + w @ rho, rtol=1e-12)


@CLASSES
def test_the_bounds_of_a_certificate_from_samples_are_the_formulas(cost_class):
    problem, point = some_problem(cost_class=cost_class)
    model, delta = TabularModel.of(problem.mdp), 0.06
    draws = {"n_rollouts": 300, "n_samples": 100, "n_per_column": 10}
    asked = []

    def radius(share):
        asked.append(share)
        return RADII

    known, estimated = (
        certify_saddle_point(
            problem, point, model=model, expert=expert, delta=delta, rng=np.random.default_rng(5), **draws
        )
        for expert in (None, estimate_of(problem, radius))
    )
    # The rollouts are the first draws; the tail they leave out is at most 1e-3.
    horizon = math.ceil(math.log(1e-3) / math.log(GAMMA))
    own = own_stream(np.random.default_rng(5), "certify_saddle_point")
    rollouts = lfd.collect(model, problem.policy(point[0]), 300, horizon, own)
    ours = feature_expectations(rollouts, problem.costs.table, GAMMA)
    difference = ours.values - problem.expert_features
    bounds = [furthest_distance(difference, ours.radius(0.02) + radii, cost_class) for radii in (0, RADII)]
    np.testing.assert_allclose([known.cost_distance_bound, estimated.cost_distance_bound], bounds, rtol=1e-12)
    np.testing.assert_allclose(estimated.cost_distance, largest_over_class(difference, cost_class), rtol=1e-12)
    # ρ̂ enters both sides of the residual.
    assert known.residual == estimated.residual
    twice = 2 * largest_over_class(RADII, cost_class)
    np.testing.assert_allclose(estimated.residual_bound, known.residual_bound + twice, rtol=1e-12)
    # The residual has a third of δ too: its draws follow those of the rollouts.
    rng = own_stream(np.random.default_rng(5), "certify_saddle_point")
    lfd.collect(model, problem.policy(point[0]), 300, horizon, rng)
    residual = sample_residual(problem, model, point, n_samples=100, n_per_column=10, delta=0.02, rng=rng)
    np.testing.assert_allclose(known.residual_bound, residual.bound, rtol=1e-12)
    np.testing.assert_allclose(asked, [0.02, 0.02])  # each side


@CLASSES
def test_the_bounds_of_an_exact_certificate_are_the_formulas(cost_class):
    problem, point = some_problem(cost_class=cost_class)
    certificate = certify_saddle_point(
        problem, point, expert=estimate_of(problem, lambda delta: delta * RADII), delta=0.5
    )
    occupancy = problem.mdp.occupancy(problem.policy(point[0])).ravel()
    difference = problem.costs.table.T @ occupancy - problem.expert_features
    bound = furthest_distance(difference, RADII / 2 + 1e-10, cost_class)  # what the occupancy leaves open is added
    np.testing.assert_allclose(certificate.cost_distance_bound, bound, rtol=1e-12)
    residual = problem.saddle_point_residual(point) + largest_over_class(RADII, cost_class)
    np.testing.assert_allclose(certificate.residual_bound, residual, rtol=1e-12)


@CLASSES
def test_what_is_not_seen_of_demonstrations_counts_alike_however_it_is_estimated(cost_class):
    """An estimate that is rescaled lies on one side of what is known: bounds do not suffer from it."""
    problem, point = some_problem(cost_class=cost_class)
    rng, costs = np.random.default_rng(2), problem.costs
    expert, policy = (random_policy(problem.mdp, rng) for _ in range(2))
    demos = lfd.collect(TabularModel.of(problem.mdp), expert, 400, 3, rng)
    bounds, points, found = [], [], []
    for truncation in ("paper", "rescale"):
        estimate = feature_expectations(demos, costs, GAMMA, truncation=truncation)
        own = SaddlePointProblem(
            costs,
            estimate.values,
            problem.occupancy_features,
            problem.value_features,
            GAMMA,
            value_radius=4.0,
            mdp=problem.mdp,
        )
        points.append(certify_saddle_point(own, point, expert=estimate, delta=0.1).cost_distance_bound)
        task = Task(TabularModel.of(problem.mdp), demos, discount=GAMMA, costs=costs)
        settings = {"delta": 0.1, "rng": np.random.default_rng(0), "n_rollouts": 300, "truncation": truncation}
        statement = certify(policy, task, **settings).to_expert
        bounds.append(statement.bound)
        found.append(statement.found)
        assert statement.found + sum(statement.parts.values()) == pytest.approx(statement.bound, abs=1e-12)
    assert abs(found[0] - found[1]) > 0.02  # so that there is something to tell
    assert bounds[0] == pytest.approx(bounds[1], abs=1e-12)
    assert points[0] == pytest.approx(points[1], abs=1e-12)


@CLASSES
def test_the_bounds_of_a_policys_certificate_are_the_formulas(cost_class):
    """From draws of a model: δ is shared, over the ball also between the norm and the sides of each cost."""
    problem, _ = some_problem(cost_class=cost_class)
    mdp, costs, model = problem.mdp, problem.costs.table, TabularModel.of(problem.mdp)
    rng = np.random.default_rng(2)
    demos = lfd.collect(model, random_policy(mdp, rng), 150, 20, rng)
    policy = random_policy(mdp, rng)
    task = Task(model, demos, discount=GAMMA, costs=problem.costs)
    sampled = certify(policy, task, delta=0.1, rng=np.random.default_rng(9), n_rollouts=250)
    horizon = math.ceil(math.log(1e-3) / math.log(GAMMA))
    expert = feature_expectations(demos, costs, GAMMA)
    own = own_stream(np.random.default_rng(9), "certify")
    ours = feature_expectations(lfd.collect(model, policy, 250, horizon, own), costs, GAMMA)
    difference = ours.values - expert.values
    assert (expert.radius(0.1) > 0.03).all()
    if cost_class == "simplex":
        bound = (ours.upper(0.05) - expert.lower(0.05)).max()
    else:
        high, low = ours.upper(0.0125) - expert.lower(0.0125), ours.lower(0.0125) - expert.upper(0.0125)
        sides = np.linalg.norm(np.maximum(np.abs(high), np.abs(low)))
        radii = [part.class_radius(problem.costs, 0.025) for part in (ours, expert)]
        bound = min(sides, np.linalg.norm(difference) + sum(radii))
    np.testing.assert_allclose(sampled.cost_distance_bound, bound, rtol=1e-12)
    np.testing.assert_allclose(sampled.cost_distance, largest_over_class(difference, cost_class), rtol=1e-12)


def test_an_estimate_of_another_problem_is_refused():
    problem, point = some_problem()
    other = estimate_of(problem, 0.1)
    object.__setattr__(other, "values", other.values + 0.01)
    with pytest.raises(ValueError, match="expert must be the estimate that the problem's expert_features are from"):
        certify_saddle_point(problem, point, expert=other, delta=0.1)
