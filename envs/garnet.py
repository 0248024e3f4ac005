"""Garnet random MDPs: each pair leads to a fixed number of states, drawn at random, with random probabilities.

After Archibald, McKinnon and Thomas, "On the generation of Markov decision processes", 1995.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from lfd_gym._jit import jit
from lfd_gym.arguments import checked
from lfd_gym.envs.tabular import TabularEnv, integer_at_least
from lfd_gym.envs.vector import FiniteVectorEnv
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.validation import FloatArray, IntArray


@checked
def garnet(n_states: int, n_actions: int, n_successors: int, discount: float, rng: np.random.Generator) -> FiniteMDP:
    """Draw a Garnet MDP with a uniform initial distribution.

    Parameters
    ----------
    n_states, n_actions
        S and A.
    n_successors
        From each pair so many distinct states can be reached. They are a uniformly random subset, and their
        probabilities are uniform on the simplex (the lengths into which uniform points cut the unit interval).
    discount
        γ in (0, 1).
    rng
        Draws the transitions.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym.envs import garnet
    >>> garnet(n_states=100, n_actions=4, n_successors=5, discount=0.9, rng=np.random.default_rng(0))
    FiniteMDP(n_states=100, n_actions=4, discount=0.9, nonzeros=2000)
    """
    transitions = _garnet_transitions(n_states, n_actions, n_successors, rng)
    return FiniteMDP(transitions, np.full(n_states, 1 / n_states), discount)


class GarnetEnv(TabularEnv):
    """A Garnet MDP as an environment; registered as ``lfd_gym/Garnet-v0``, with episodes of 200 steps.

    Parameters
    ----------
    n_states, n_actions, n_successors
        As for `garnet`.
    n_costs
        Number of cost features, with independent entries, uniform on [−1, 1]; the first is the true cost.
    mdp_seed
        Seed of the transitions and of the cost features.
    """

    @checked
    def __init__(
        self,
        *,
        n_states: int = 100,
        n_actions: int = 4,
        n_successors: int = 5,
        n_costs: int = 5,
        mdp_seed: int = 0,
    ) -> None:
        self.n_successors = n_successors
        self.n_costs = integer_at_least("n_costs", n_costs, 1)
        self.mdp_seed = integer_at_least("mdp_seed", mdp_seed, 0)
        rng = np.random.default_rng(self.mdp_seed)
        transitions = _garnet_transitions(n_states, n_actions, n_successors, rng)
        cost_features = rng.uniform(-1, 1, (n_states * n_actions, self.n_costs))
        super().__init__(transitions, np.full(n_states, 1 / n_states), cost_features)


def garnets(num_envs: int = 1, max_episode_steps: int | None = None, **parameters: Any) -> FiniteVectorEnv:
    """Make copies of one `GarnetEnv` with the given parameters, stepped together."""
    return FiniteVectorEnv(GarnetEnv(**parameters), num_envs, max_episode_steps)


def _garnet_transitions(n_states: int, n_actions: int, n_successors: int, rng: np.random.Generator) -> sp.csr_array:
    integer_at_least("n_states", n_states, 1)
    integer_at_least("n_actions", n_actions, 1)
    if integer_at_least("n_successors", n_successors, 1) > n_states:
        raise ValueError(f"n_successors must be at most n_states = {n_states}, got {n_successors}")
    n_pairs = n_states * n_actions
    successors = np.sort(_random_subsets(rng.random((n_pairs, n_successors)), n_states), axis=1)
    cuts = np.sort(rng.random((n_pairs, n_successors - 1)), axis=1)
    probabilities = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
    offsets = np.arange(0, n_pairs * n_successors + 1, n_successors)
    return sp.csr_array((probabilities.ravel(), successors.ravel(), offsets), shape=(n_pairs, n_states))


@jit
def _random_subsets(uniforms: FloatArray, n_states: int) -> IntArray:
    """Draw a uniformly random subset of the states for each row by Floyd's algorithm, one uniform number a member."""
    n_rows, size = uniforms.shape
    subsets = np.empty((n_rows, size), dtype=np.int64)
    holder = np.full(n_states, -1)  # the last row whose subset has the state
    for row in range(n_rows):
        for k in range(size):
            last = n_states - size + k
            state = int(uniforms[row, k] * (last + 1))
            if holder[state] == row:
                state = last
            holder[state] = row
            subsets[row, k] = state
    return subsets
