"""The primal and dual linear programs of the paper, written down literally for small MDPs: an oracle for tests."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog


@dataclass
class Apprentice:
    """An apprentice's occupancy (S·A,), dual optimisers (u_A, w_A), and α*."""

    occupancy: np.ndarray
    values: np.ndarray
    cost_weights: np.ndarray
    value: float


def flow_matrix(mdp):
    """T_γ as a dense (S, S·A) matrix, from its definition (B − γP)ᵀ/(1−γ)."""
    n_pairs = mdp.n_states * mdp.n_actions
    incidence = np.zeros((n_pairs, mdp.n_states))
    incidence[np.arange(n_pairs), np.arange(n_pairs) // mdp.n_actions] = 1
    return (incidence - mdp.discount * mdp.transitions.toarray()).T / (1 - mdp.discount)


def apprentice(mdp, costs, expert):
    """Solve min ε s.t. Cᵀμ − ρ ≤ ε, Tμ = ν₀, μ ≥ 0; and its dual, max ⟨ν₀, u⟩ − ⟨w, ρ⟩ s.t. Cw ≥ T*u, w in Δ."""
    n_pairs, n_costs = costs.shape
    flow = flow_matrix(mdp)
    primal = linprog(
        np.append(np.zeros(n_pairs), 1.0),
        A_ub=np.hstack([costs.T, -np.ones((n_costs, 1))]),
        b_ub=expert,
        A_eq=np.hstack([flow, np.zeros((mdp.n_states, 1))]),
        b_eq=mdp.initial_distribution,
        bounds=[(0, None)] * n_pairs + [(None, None)],
    )
    dual = linprog(
        np.concatenate([-mdp.initial_distribution, expert]),
        A_ub=np.hstack([flow.T, -costs]),
        b_ub=np.zeros(n_pairs),
        A_eq=np.append(np.zeros(mdp.n_states), np.ones(n_costs))[None],
        b_eq=[1.0],
        bounds=[(None, None)] * mdp.n_states + [(0, None)] * n_costs,
    )
    assert primal.status == 0, primal.message
    assert dual.status == 0, dual.message
    np.testing.assert_allclose(primal.fun, -dual.fun, atol=1e-7)
    occupancy = np.maximum(primal.x[:-1], 0)
    return Apprentice(occupancy / occupancy.sum(), dual.x[: mdp.n_states], dual.x[mdp.n_states :], float(primal.fun))
