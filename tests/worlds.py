"""Small worlds with known truth, for simulations of certificates."""

import gymnasium as gym
import numpy as np
from scipy import stats

import lfd_gym as lfd


def random_world(seed, n_states=5, n_actions=3, discount=0.9, n_costs=3, ends=False):
    """An MDP, costs and a generator; with ``ends`` the last state is absorbing."""
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.full(n_states, 0.3), (n_states, n_actions))
    costs = rng.uniform(-1, 1, (n_states * n_actions, n_costs))
    if ends:
        transitions[-1] = np.eye(n_states)[-1]
        transitions[:-1] = 0.8 * transitions[:-1] + 0.2 * np.eye(n_states)[-1]
        costs[-n_actions:] = 0
    initial = rng.dirichlet(np.ones(n_states))
    if ends:
        initial[-1] = 0
    mdp = lfd.FiniteMDP(transitions, initial / initial.sum(), discount, absorbing_state=n_states - 1 if ends else None)
    return mdp, costs, rng


def rare_world():
    """One choice, one rare and costly state: costs that few rollouts show."""
    transitions = np.zeros((2, 2, 2))
    transitions[0] = [[0.99, 0.01], [0.97, 0.03]]
    transitions[1] = [[1.0, 0.0], [1.0, 0.0]]
    return lfd.FiniteMDP(transitions, [1.0, 0.0], 0.5), np.array([[0.0], [0.0], [1.0], [1.0]]), np.random.default_rng(4)


def gridworld(size, cost_seed, discount=0.9):
    """The paper's gridworld and its costs."""
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=size, cost_seed=cost_seed)
    return lfd.FiniteMDP.from_env(env, discount), env.unwrapped.cost_features


def distance(mdp, costs, policy, expert, cost_class="simplex"):
    """The true cost distance."""
    apart = costs.T @ (mdp.occupancy(policy) - mdp.occupancy(expert)).ravel()
    return float(apart.max() if cost_class == "simplex" else np.linalg.norm(apart))


def too_many(misses, repeats, delta):
    """Whether so many misses would be rarer than 1 in 1000 if each had probability ``delta``."""
    return stats.binom.sf(misses - 1, repeats, delta) < 1e-3
