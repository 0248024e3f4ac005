"""The planner against QuantEcon.py's `DiscreteDP`, which maximises rewards and does not normalise by 1 − γ."""

import numpy as np
import pytest
import quantecon
import scipy.sparse as sp

from lfd_gym import FiniteMDP
from lfd_gym.envs import garnet, gridworld_transitions
from lfd_gym.envs.gridworld import random_state_costs


def gridworld(size, discount):
    cost = np.repeat(random_state_costs(size**2, 1, np.random.default_rng(3)), 4, axis=1)
    return FiniteMDP(gridworld_transitions(size), np.full(size**2, 1 / size**2), discount), cost


def random_mdp(n_states, discount):
    rng = np.random.default_rng(4)
    return garnet(n_states, n_actions=3, n_successors=4, discount=discount, rng=rng), rng.uniform(-1, 1, (n_states, 3))


@pytest.mark.parametrize("discount", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("build", [gridworld, random_mdp])
@pytest.mark.parametrize("size", [16, 40])
def test_values_and_policies_agree_with_quantecon(build, size, discount):
    mdp, cost = build(size if build is gridworld else 20 * size, discount)
    problem = quantecon.markov.DiscreteDP(
        -cost.ravel(),
        sp.csr_matrix(mdp.transitions),
        discount,
        np.repeat(np.arange(mdp.n_states), mdp.n_actions),
        np.tile(np.arange(mdp.n_actions), mdp.n_states),
    )
    reference = problem.solve(method="policy_iteration")
    values = -(1 - discount) * reference.v
    plan = mdp.plan(cost)
    assert plan.values == pytest.approx(values, abs=1e-10)
    assert mdp.value_function(plan.actions, cost) == pytest.approx(values, abs=2e-10)
    assert mdp.value_function(reference.sigma, cost) == pytest.approx(values, abs=1e-10)
    # Where our action is another one, theirs must be as good.
    gaps = (1 - discount) * cost + discount * (mdp.transitions @ values).reshape(cost.shape) - values[:, None]
    assert np.take_along_axis(gaps, plan.actions[:, None], axis=1).max() <= 1e-10


def test_occupancies_agree_with_quantecon():
    """The state occupancy of a policy is what its controlled Markov chain visits, by another code's transitions."""
    mdp, cost = gridworld(12, 0.9)
    plan = mdp.plan(cost)
    problem = quantecon.markov.DiscreteDP(
        -cost.ravel(),
        sp.csr_matrix(mdp.transitions),
        0.9,
        np.repeat(np.arange(mdp.n_states), mdp.n_actions),
        np.tile(np.arange(mdp.n_actions), mdp.n_states),
    )
    chain = problem.controlled_mc(plan.actions).P.toarray()
    visits, now = np.zeros(mdp.n_states), mdp.initial_distribution
    for t in range(400):
        visits += 0.1 * 0.9**t * now
        now = now @ chain
    assert np.abs(mdp.state_occupancy(plan.actions) - visits).sum() <= 1e-10
