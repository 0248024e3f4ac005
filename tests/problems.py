"""Random saddle-point problems of all kinds for hypothesis, with feasible points."""

import numpy as np
from hypothesis import strategies as st
from strategies import mdps_with_costs, random_policy

from lfd_gym import CostEstimate, SaddlePointProblem, Simplex, TableCosts
from lfd_gym.features import (
    FiniteOccupancyFeatures,
    FiniteValueFeatures,
    TabularOccupancyFeatures,
    TabularValueFeatures,
    aggregated_occupancies,
    aggregated_values,
    policy_occupancies,
)
from lfd_gym.model.criterion import Criterion


def estimate_of(problem, radius):
    """The problem's ρ̂ as an estimate with a radius of one's own: a number, (n_c,), or a function of δ.

    Half of δ is for each side.
    """
    rho = problem.expert_features

    def side(sign):
        return lambda delta: rho + sign * np.broadcast_to(radius(2 * delta) if callable(radius) else radius, rho.shape)

    estimate = CostEstimate.exactly(rho, Criterion(problem.discount))
    object.__setattr__(estimate, "lower", side(-1))
    object.__setattr__(estimate, "upper", side(1))
    return estimate


def random_cells(n_states, rng):
    """Draw a partition that uses every cell number."""
    return np.unique(rng.integers(rng.integers(1, n_states + 1), size=n_states), return_inverse=True)[1]


def random_occupancy_features(kind, mdp, rng):
    if kind == "tabular":
        return TabularOccupancyFeatures(mdp.n_states, mdp.n_actions)
    if kind == "aggregated":
        return aggregated_occupancies(random_cells(mdp.n_states, rng), mdp.n_actions)
    if kind == "policies":
        return policy_occupancies(mdp, [random_policy(mdp, rng) for _ in range(rng.integers(1, 5))])
    n_pairs = mdp.n_states * mdp.n_actions
    return FiniteOccupancyFeatures(rng.dirichlet(np.ones(n_pairs), size=rng.integers(1, 6)).T, mdp.n_actions)


def random_value_features(kind, mdp, rng):
    if kind == "tabular":
        return TabularValueFeatures(mdp.n_states)
    if kind == "aggregated":
        return aggregated_values(random_cells(mdp.n_states, rng))
    return FiniteValueFeatures(rng.uniform(-1, 1, (mdp.n_states, rng.integers(1, 6))))


@st.composite
def saddle_point_problems(
    draw, value_domain=None, cost_class=None, occupancy_kind=None, value_kind=None, value_radius=None, **kwargs
):
    """Draw (problem, expert occupancy, rng): an expert that is optimal or not; ρ̂ is exact."""
    mdp, costs = draw(mdps_with_costs(**kwargs))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    policy = mdp.optimal_policy(costs[:, 0]) if draw(st.booleans()) else random_policy(mdp, rng)
    expert = mdp.occupancy(policy).ravel()
    domain = value_domain or draw(st.sampled_from(["ball", "box"]))
    phi = occupancy_kind or draw(st.sampled_from(["tabular", "aggregated", "policies", "random"]))
    psi = value_kind or draw(st.sampled_from(["tabular", "aggregated", "random"]))
    radius = value_radius or draw(st.floats(2.0, 30.0) if domain == "ball" else st.floats(0.1, 3.0))
    problem = SaddlePointProblem(
        costs=TableCosts(costs, mdp.n_actions, cost_class or draw(st.sampled_from(["simplex", "ball"]))),
        expert_features=costs.T @ expert,
        occupancy_features=random_occupancy_features(phi, mdp, rng),
        value_features=random_value_features(psi, mdp, rng),
        discount=mdp.discount,
        value_radius=radius,
        value_domain=domain,
        mdp=mdp,
    )
    return problem, expert.reshape(mdp.n_states, mdp.n_actions), rng


def random_point(problem, rng):
    """Draw (θ, λ, w) in the domains, sometimes on their boundary."""
    theta = rng.dirichlet(np.full(problem.n_occupancy_features, rng.choice([0.1, 1.0])))
    direction = rng.standard_normal(problem.n_value_features)
    if problem.value_domain == "ball":
        scale = problem.value_radius / np.sqrt(problem.n_value_features) / np.linalg.norm(direction)
    else:
        scale = problem.value_radius / np.abs(direction).max()
    lam = direction * scale * rng.choice([1.0, rng.random()])
    if problem.costs.weights == Simplex():
        return theta, lam, rng.dirichlet(np.ones(problem.n_costs))
    w = rng.standard_normal(problem.n_costs)
    return theta, lam, w / np.linalg.norm(w) * rng.random()
