"""Definition 1 and Algorithm 1 of the paper, by enumeration and line by line."""

import itertools

import numpy as np

from lfd_gym.assessment.bounds import ProblemSize, paper_step_size


def occupancy_draws(problem):
    """Every outcome (probability, x, a, y) of a pair from column i and its successor, for each i."""
    mdp, phi = problem.mdp, problem.occupancy_features.matrix.toarray()
    rows = mdp.transitions.toarray()
    return [
        [
            (phi[pair, i] * rows[pair, y], pair // mdp.n_actions, pair % mdp.n_actions, y)
            for pair, y in itertools.product(range(phi.shape[0]), range(mdp.n_states))
            if phi[pair, i] * rows[pair, y] > 0
        ]
        for i in range(phi.shape[1])
    ]


def enumerate_gradients(problem, theta, lam, w):
    """All outcomes of the three estimators of Definition 1, as lists of (probability, vector)."""
    mdp, psi, gamma = problem.mdp, problem.value_features.matrix.toarray(), problem.discount
    beta, n_mu = problem.value_radius, problem.n_occupancy_features
    costs = problem.costs.table
    g_theta, g_lam, g_w = [], [], []
    for i, outcomes in enumerate(occupancy_draws(problem)):
        for probability, x, a, y in outcomes:
            cost = costs[x * mdp.n_actions + a]
            vector = np.zeros(n_mu)
            vector[i] = n_mu * ((1 - gamma) * cost @ w - (psi[x] - gamma * psi[y]) @ lam + 2 * beta) / (1 - gamma)
            g_theta.append((probability / n_mu, vector))
            g_w.append((theta[i] * probability, cost - problem.expert_features - 2))
            for first, mass in enumerate(mdp.initial_distribution):
                if mass > 0:
                    vector = psi[first] - (psi[x] - gamma * psi[y]) / (1 - gamma)
                    g_lam.append((theta[i] * probability * mass, vector))
    return g_theta, g_lam, g_w


def literal_algorithm_1(problem, n_iterations, rng):
    """Algorithm 1 line by line; returns the averages of z_1, …, z_N."""
    mdp, gamma, beta = problem.mdp, problem.discount, problem.value_radius
    costs, rho = problem.costs.table, problem.expert_features
    n_mu, n_u, n_c = problem.n_occupancy_features, problem.n_value_features, problem.n_costs
    successors = mdp.transitions.toarray().cumsum(axis=1)
    initial = mdp.initial_distribution.cumsum()
    eta = paper_step_size(ProblemSize.of(problem), n_iterations)
    theta, lam, w = np.full(n_mu, 1 / n_mu), np.zeros(n_u), np.full(n_c, 1 / n_c)
    sums = [theta.copy(), lam.copy(), w.copy()]
    for _ in range(n_iterations - 1):
        u = rng.random(6)
        i = int(u[0] * n_mu)
        x, y = i // mdp.n_actions, int((successors[i] < u[1]).sum())
        g_theta = n_mu * ((1 - gamma) * costs[i] @ w - (lam[x] - gamma * lam[y]) + 2 * beta) / (1 - gamma)
        cumulative = theta.cumsum()
        j, k = ((cumulative < v * cumulative[-1]).sum() for v in u[2:4])
        g_lam = np.zeros(n_u)
        g_lam[(initial < u[4]).sum()] += 1
        g_lam[j // mdp.n_actions] -= 1 / (1 - gamma)
        g_lam[(successors[j] < u[5]).sum()] += gamma / (1 - gamma)
        theta[i] *= np.exp(-eta * g_theta)
        theta /= theta.sum()
        lam = lam + eta * beta**2 / n_u * g_lam
        lam *= min(1.0, beta / np.sqrt(n_u) / max(np.linalg.norm(lam), 1e-300))
        w = w * np.exp(eta * (costs[k] - rho - 2))
        w /= w.sum()
        for total, part in zip(sums, (theta, lam, w), strict=True):
            total += part
    return [total / n_iterations for total in sums]
