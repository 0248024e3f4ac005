"""Sums over the rows of cost features, (S·A, n_c), without BLAS.

Its threads wait busily after each call: on a machine with other work that costs more than the products themselves, and
the result depends on how many there are.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym._jit import jit
from lfd_gym.validation import FloatArray


@jit
def combine_costs(cost_features: FloatArray, cost_weights: FloatArray) -> FloatArray:
    """c_w = Cw, (S·A,)."""
    n_pairs, n_costs = cost_features.shape
    cost = np.empty(n_pairs)
    for pair in range(n_pairs):
        total = 0.0
        for i in range(n_costs):
            total += cost_features[pair, i] * cost_weights[i]
        cost[pair] = total
    return cost


@jit
def policy_costs(cost_features: FloatArray, actions: NDArray[Any], state_occupancy: FloatArray) -> FloatArray:
    """ρ(π) = Cᵀμ_π, (n_c,), of the deterministic policy that takes ``actions``, (S,)."""
    n_pairs, n_costs = cost_features.shape
    n_actions = n_pairs // actions.size
    totals = np.zeros(n_costs)
    for state in range(actions.size):
        pair = state * n_actions + actions[state]
        for i in range(n_costs):
            totals[i] += cost_features[pair, i] * state_occupancy[state]
    return totals
