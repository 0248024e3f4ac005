"""Sums over pairs and states without BLAS.

Its threads wait busily after each call: on a machine with other work that costs more than the products themselves, and
the result depends on how many there are.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym._jit import jit
from lfd_gym.validation import FloatArray

_SAME_POINT = 1e-24  # squared
_ROUNDING = 1e-12


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


@jit
def extrapolate(points: FloatArray, values: FloatArray, target: FloatArray) -> FloatArray:
    """Return Σ a_k values_k, with Σ a_k = 1, ‖Σ a_k δ_k‖² + Σ a_k² ‖δ_k‖⁴ least, and δ_k = point_k − target.

    ``points`` is (K, n_c), ``values`` is (K, S) and ``target`` (n_c,).
    """
    moves = points - target
    squares = (moves**2).sum(axis=1)
    nearest = squares.argmin()
    if squares[nearest] <= _SAME_POINT:
        return np.asarray(values[nearest].copy())
    # With b_k = a_k ‖δ_k‖² the second sum is ‖b‖²; all is scaled by the least distance.
    closeness = squares[nearest] / squares
    moves *= (np.sqrt(squares[nearest]) / squares).reshape(-1, 1)
    system = moves @ moves.T + max(squares[nearest], _ROUNDING) * np.eye(squares.size)
    shares = closeness * np.linalg.solve(system, closeness)
    shares /= shares.sum()
    result = np.zeros(values.shape[1])
    for k in range(shares.size):
        for state in range(result.size):
            result[state] += shares[k] * values[k, state]
    return result
