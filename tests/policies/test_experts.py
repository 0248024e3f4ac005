"""Experts of finite MDPs, against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import finite_mdps, mdps_with_costs, random_policy

from lfd_gym import FiniteMDP, mixture_policy, noisy_policy, soft_optimal_policy

FEW = settings(deadline=None, max_examples=50)


@FEW
@given(finite_mdps(), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_noise_is_uniform(mdp, seed, epsilon):
    policy = random_policy(mdp, np.random.default_rng(seed))
    noisy = noisy_policy(policy, epsilon)
    np.testing.assert_allclose(noisy.sum(axis=1), 1)
    np.testing.assert_allclose(noisy - policy, epsilon * (1 / mdp.n_actions - policy), atol=1e-15)


def test_noise_must_be_a_probability():
    for epsilon in (-0.1, 1.1):
        with pytest.raises(ValueError, match=r"epsilon must lie in \[0, 1\]"):
            noisy_policy(np.ones((1, 1)), epsilon)


def soft_value_iteration(mdp, cost, temperature, sweeps):
    """Independent of the package: unnormalised values, dense arrays, one sweep after the other."""
    transitions = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    values = np.zeros(mdp.n_states)
    for _ in range(sweeps):
        action_values = cost.reshape(mdp.n_states, mdp.n_actions) + mdp.discount * transitions @ values
        best = action_values.min(axis=1, keepdims=True)
        weights = np.exp(-(action_values - best) / temperature)
        values = best[:, 0] - temperature * np.log(weights.sum(axis=1))
    return weights / weights.sum(axis=1, keepdims=True)


@FEW
@given(mdps_with_costs(max_features=1, max_discount=0.9), st.sampled_from([0.05, 0.5, 5.0]))
def test_soft_optimality(problem, temperature):
    mdp, costs = problem
    policy = soft_optimal_policy(mdp, costs[:, 0], temperature)
    np.testing.assert_allclose(policy, soft_value_iteration(mdp, costs[:, 0], temperature, 400), atol=1e-7)


@FEW
@given(mdps_with_costs(max_features=1), st.integers(0, 2**32 - 1))
def test_a_soft_expert_minimises_cost_minus_entropy(problem, seed):
    mdp, costs = problem
    temperature = 0.3

    def objective(policy):
        return mdp.expected_cost(policy, costs[:, 0].reshape(policy.shape) + temperature * np.log(policy))

    best = soft_optimal_policy(mdp, costs[:, 0], temperature)
    other = (
        np.random.default_rng(seed).dirichlet(np.ones(mdp.n_actions), size=mdp.n_states) * 0.98 + 0.02 / mdp.n_actions
    )
    assert objective(best) <= objective(other) + 1e-9


@pytest.mark.parametrize("discount", [0.5, 0.99, 0.9999])
def test_soft_experts_go_from_optimal_to_uniform(discount):
    rng = np.random.default_rng(0)
    mdp = FiniteMDP(rng.dirichlet(np.ones(8), size=(8, 3)), np.full(8, 1 / 8), discount)
    cost = rng.uniform(-1, 1, 24)
    temperatures = [1e-4, 1e-2, 1.0, 1e2, 1e6]
    expected = [mdp.expected_cost(soft_optimal_policy(mdp, cost, t), cost) for t in temperatures]
    assert expected == sorted(expected)
    assert expected[0] == pytest.approx(mdp.expected_cost(mdp.optimal_policy(cost), cost), abs=1e-3)
    np.testing.assert_allclose(soft_optimal_policy(mdp, cost, 1e6), 1 / 3, atol=1e-5)
    with pytest.raises(ValueError, match="temperature must be positive"):
        soft_optimal_policy(mdp, cost, 0.0)


@FEW
@given(mdps_with_costs(), st.integers(0, 2**32 - 1))
def test_a_mixture_costs_the_mean_for_every_cost(problem, seed):
    mdp, costs = problem
    rng = np.random.default_rng(seed)
    policies = [random_policy(mdp, rng) for _ in range(3)]
    weights = rng.dirichlet(np.ones(3))
    mixed = mixture_policy(mdp, policies, weights)
    for cost in costs.T:
        mean = weights @ [mdp.expected_cost(policy, cost) for policy in policies]
        assert mdp.expected_cost(mixed, cost) == pytest.approx(mean, abs=1e-9)


def test_mixture_weights_are_checked():
    mdp = FiniteMDP(np.ones((1, 1, 1)), [1.0], 0.5)
    with pytest.raises(ValueError, match="weights must sum to 1"):
        mixture_policy(mdp, [np.ones((1, 1))], [0.5])
