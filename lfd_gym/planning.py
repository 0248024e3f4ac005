"""Solving finite MDPs: optimal values with a certificate, and the linear systems of a fixed policy.

All functions take the (S·A, S) CSR ``transitions`` directly; costs are (S, A). The normalised Bellman equations are

    V^π = (1−γ) c_π + γ P_π V^π,        V* = min_a [(1−γ) c(·, a) + γ P(·, a) V*].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from lfd_gym.validation import FloatArray, IntArray


@dataclass(frozen=True)
class Plan:
    """A solved MDP.

    Attributes
    ----------
    actions
        (S,) the action of the returned deterministic policy in each state.
    values
        (S,) approximation of V*.
    error_bound
        Certified: both ``values`` and the policy's own values are within this sup-norm distance of V*, by the
        Bellman residual of ``values``.
    n_improvements
        How many times the policy was improved.
    """

    actions: IntArray
    values: FloatArray
    error_bound: float
    n_improvements: int


def plan(
    transitions: sp.csr_array,
    cost: FloatArray,
    discount: float,
    tolerance: float,
    initial_values: FloatArray | None = None,
) -> Plan:
    """Find V* = min_π V^π_cost and a policy that attains it, within a certified ``tolerance``."""
    n_states, n_actions = cost.shape
    values = np.zeros(n_states) if initial_values is None else initial_values
    n_improvements = 0
    while True:
        after = (transitions @ values).reshape(n_states, n_actions)
        action_values = (1 - discount) * cost + discount * after
        actions = action_values.argmin(axis=1)
        residual = float(np.abs(action_values.min(axis=1) - values).max())
        bound = 2 * residual / (1 - discount)
        if bound <= tolerance:
            return Plan(actions, values, bound, n_improvements)
        policy = np.zeros((n_states, n_actions))
        policy[np.arange(n_states), actions] = 1
        values = policy_values(transitions, policy, cost, discount, tolerance)
        n_improvements += 1


def policy_values(
    transitions: sp.csr_array, policy: FloatArray, cost: FloatArray, discount: float, tolerance: float
) -> FloatArray:
    """Solve (I − γ P_π) V = (1−γ) c_π to sup-norm error ``tolerance``."""
    matrix = sp.eye_array(len(policy), format="csc") - discount * sp.csc_array(policy_transitions(transitions, policy))
    return np.asarray(splu(matrix).solve((1 - discount) * (policy * cost).sum(axis=1)))


def state_occupancy(
    transitions: sp.csr_array, policy: FloatArray, initial: FloatArray, discount: float, tolerance: float
) -> FloatArray:
    """Solve (I − γ P_π)ᵀ d = (1−γ) ν₀ to l1 error ``tolerance``; d is nonnegative and sums to one."""
    matrix = sp.eye_array(len(policy), format="csc") - discount * sp.csc_array(policy_transitions(transitions, policy))
    states = np.maximum(splu(matrix).solve((1 - discount) * initial, trans="T"), 0.0)
    return np.asarray(states / states.sum())


def policy_transitions(transitions: sp.csr_array, policy: FloatArray) -> sp.csr_array:
    """P_π, (S, S): the state transitions under ``policy``."""
    n_states, n_actions = policy.shape
    rows = np.arange(n_states * n_actions + 1, step=n_actions)
    mixing = sp.csr_array((policy.ravel(), np.arange(n_states * n_actions), rows), shape=(n_states, policy.size))
    return sp.csr_array(mixing @ transitions)
