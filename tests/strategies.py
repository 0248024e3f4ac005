"""Random MDPs for hypothesis: small, with self-loops, absorbing and unreachable states, one state or one action."""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from lfd_gym import FiniteMDP


@st.composite
def finite_mdps(draw, max_states=7, max_actions=4, min_discount=0.05, max_discount=0.98, full_support=False):
    """Draw a FiniteMDP. With ``full_support`` every state has positive initial probability (the paper's Appendix A)."""
    n_states = draw(st.integers(1, max_states))
    n_actions = draw(st.integers(1, max_actions))
    discount = draw(st.floats(min_discount, max_discount))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    transitions = np.zeros((n_states * n_actions, n_states))
    for pair in range(n_states * n_actions):
        size = rng.integers(1, n_states + 1)
        successors = rng.choice(n_states, size=size, replace=False)
        if rng.random() < 0.3:  # a self-loop among the successors
            successors[0] = pair // n_actions if pair // n_actions not in successors else successors[0]
        transitions[pair, successors] = rng.dirichlet(np.ones(size))
    if draw(st.booleans()):  # an absorbing state
        state = rng.integers(n_states)
        transitions[state * n_actions : (state + 1) * n_actions] = np.eye(n_states)[state]
    if draw(st.booleans()) and n_states > 1:  # a state no other state leads to
        state = rng.integers(n_states)
        others = [pair for pair in range(n_states * n_actions) if pair // n_actions != state]
        transitions[others, state] = 0.0
        empty = [pair for pair in others if transitions[pair].sum() == 0]
        transitions[empty, (state + 1) % n_states] = 1.0
        transitions[others] /= transitions[others].sum(axis=1, keepdims=True)
    initial = rng.dirichlet(np.ones(n_states))
    if not full_support and draw(st.booleans()) and n_states > 1:
        initial[rng.integers(n_states)] = 0.0
    return FiniteMDP(sp.csr_array(transitions), initial / initial.sum(), discount)


@st.composite
def mdps_with_costs(draw, max_features=5, **kwargs):
    """Draw an MDP and (S·A, n_c) cost features in [−1, 1]; some features are sparse with entries in {−1, 0, 1}."""
    mdp = draw(finite_mdps(**kwargs))
    n_features = draw(st.integers(1, max_features))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (mdp.n_states * mdp.n_actions, n_features)
    if draw(st.booleans()):
        return mdp, rng.uniform(-1, 1, shape)
    return mdp, rng.choice([0.0, -1.0, 1.0], size=shape, p=[0.4, 0.3, 0.3])


def random_policy(mdp, rng):
    """Draw a policy with some deterministic rows."""
    policy = rng.dirichlet(np.ones(mdp.n_actions), size=mdp.n_states)
    deterministic = rng.random(mdp.n_states) < 0.3
    policy[deterministic] = np.eye(mdp.n_actions)[rng.integers(mdp.n_actions, size=deterministic.sum())]
    return policy
