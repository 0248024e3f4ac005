"""Experts to learn from: noisy, soft-optimal and mixed policies of finite MDPs.

The optimal one is `FiniteMDP.optimal_policy`. A network trained with Stable-Baselines3 is in `sb3_expert`, a person at
the keyboard in `human_expert`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, softmax

from lfd_gym.arguments import checked
from lfd_gym.model.mdp import FiniteMDP, policy_from_occupancy
from lfd_gym.model.planning import warn_if_missed
from lfd_gym.validation import FloatArray, check_type, distribution, policy_array

#: Soft policy iteration gains in every round until only rounding is left.
_ROUNDS_WITHOUT_GAIN = 10


@checked
def noisy_policy(policy: ArrayLike, epsilon: float) -> FloatArray:
    """Return the policy that with probability ``epsilon`` takes a uniformly drawn action instead.

    Examples
    --------
    >>> noisy_policy([[1.0, 0.0]], epsilon=0.2)
    array([[0.9, 0.1]])
    """
    if not 0 <= epsilon <= 1:
        raise ValueError(f"epsilon must lie in [0, 1], got {epsilon}")
    rows = np.asarray(policy, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"policy must have shape (S, A), got {rows.shape}")
    if rows.size == 0:
        raise ValueError(f"policy must have states and actions, got shape {rows.shape}")
    rows = policy_array("policy", rows, *rows.shape)
    return np.asarray((1 - epsilon) * rows + epsilon / rows.shape[1])


@checked
def soft_optimal_policy(mdp: FiniteMDP, cost: ArrayLike, temperature: float, tolerance: float = 1e-8) -> FloatArray:
    """Return the policy that minimises the discounted cost minus ``temperature`` times its entropy.

    It is π(a|x) ∝ exp(−Q(x, a) / τ), τ = (1−γ)·temperature, for the fixed point of

        Q(x, a) = (1−γ) c(x, a) + γ Σ_y P(y|x, a) V(y),        V(x) = −τ log [(1/A) Σ_a exp(−Q(x, a) / τ)],

    the expert of maximum causal entropy for a temperature in the units of the cost. (Entropy is counted relative to
    that of the uniform policy: a constant that keeps V in the range of the costs.) Towards 0 it becomes an optimal
    policy, towards ∞ the uniform one. Found by soft policy iteration.

    Parameters
    ----------
    mdp, cost
        The problem; the cost is (S·A,) or (S, A).
    temperature
        Positive.
    tolerance
        Largest sup-norm distance of V from the fixed point, by its residual; rounding limits it at high temperatures.
    """
    check_type("mdp", mdp, FiniteMDP)
    if not 0 < temperature < np.inf:
        raise ValueError(f"temperature must be positive and finite, got {temperature}")
    if (1 - mdp.discount) * temperature < np.finfo(float).tiny:
        raise ValueError(f"temperature must be so large that costs can be divided by it, got {temperature}")
    if not 0 < tolerance < np.inf:
        raise ValueError(f"tolerance must be positive and finite, got {tolerance}")
    costs = mdp.pair_cost(cost)
    scale = (1 - mdp.discount) * temperature
    # Values are as large as the costs, and no more exact than rounding lets numbers of that size be.
    size = max(1.0, scale, float(np.abs(costs).max(initial=0.0)))
    tolerance = max(tolerance, 1e-13 * size / (1 - mdp.discount))
    accuracy = max((1 - mdp.discount) * tolerance, 1e-13 * size)
    values = np.zeros(mdp.n_states)
    best, since_best = np.inf, 0
    while True:
        after = (mdp.transitions @ values).reshape(costs.shape)
        exponents = -((1 - mdp.discount) * costs + mdp.discount * after) / scale
        log_total = logsumexp(exponents, axis=1, keepdims=True) - np.log(mdp.n_actions)
        policy = softmax(exponents, axis=1)
        residual = float(np.abs(-scale * log_total[:, 0] - values).max())
        best, since_best = (residual, 0) if residual < best else (best, since_best + 1)
        if residual <= accuracy or since_best > _ROUNDS_WITHOUT_GAIN:
            warn_if_missed(residual / (1 - mdp.discount), max(tolerance, accuracy / (1 - mdp.discount)))
            return np.asarray(policy)
        values = mdp.value_function(policy, costs + temperature * (exponents - log_total), tolerance / 4)


@checked
def mixture_policy(mdp: FiniteMDP, policies: Sequence[ArrayLike], weights: ArrayLike) -> FloatArray:
    """Return the policy whose occupancy is the weighted mean of the occupancies of ``policies``.

    Its expected costs are the weighted means of theirs, for every cost. So mixing the optimal policy with a bad one
    gives an expert that is worse than optimal by an amount one chooses: with weights (1 − w, w), by w times the
    difference of the two.

    Examples
    --------
    >>> import numpy as np
    >>> import lfd_gym as lfd
    >>> stay_or_go = np.array([[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.0, 1.0]]])
    >>> mdp = lfd.FiniteMDP(stay_or_go, initial_distribution=[1.0, 0.0], discount=0.5)
    >>> cost = np.array([1.0, 1.0, 0.0, 0.0])
    >>> best, worst = mdp.optimal_policy(cost), mdp.optimal_policy(-cost)
    >>> mixed = lfd.mixture_policy(mdp, [best, worst], weights=[0.75, 0.25])
    >>> difference = mdp.expected_cost(worst, cost) - mdp.expected_cost(best, cost)
    >>> bool(np.isclose(mdp.expected_cost(mixed, cost) - mdp.expected_cost(best, cost), 0.25 * difference))
    True
    """
    check_type("mdp", mdp, FiniteMDP)
    shares = distribution("weights", weights, len(policies))
    occupancy = sum(share * mdp.occupancy(policy) for share, policy in zip(shares, policies, strict=True))
    return policy_from_occupancy(np.asarray(occupancy), fallback=policies[0])
