"""Algorithm 1 as a literal NumPy loop: dense vectors, one line per line of the paper. For tests and benchmarks."""

import itertools
from dataclasses import dataclass

import numpy as np

from lfd_gym import Simplex

#: Well above the floor under which the compiled rounds keep no weight, and far above what floating point has.
SMALLEST_THETA = 1e-270
#: Relative errors of one round that `sound_rounds` follows, and the size to which they may grow.
ROUNDING, GROWN = 1e-14, 1e-10


@dataclass
class Draws:
    """What one round draws: indices of columns of Φ, pairs x·A + a, and states."""

    i: int
    pair: int
    next: int
    start: int
    j: int
    pair_2: int
    next_2: int
    k: int
    pair_3: int


class ReplayedDraws:
    """Draws that another implementation recorded, (n, 9)."""

    def __init__(self, record):
        self.record = record

    def __call__(self, n, theta):
        return Draws(*(int(value) for value in self.record[n]))


class FreshDraws:
    """Draws by NumPy, with the model as tables."""

    def __init__(self, problem, rng):
        self.problem, self.rng = problem, rng
        self.mdp = problem.mdp

    def __call__(self, n, theta):
        n_columns = theta.size
        i = self.rng.integers(n_columns)
        pair = self._pair(i)
        start = self.rng.choice(self.mdp.n_states, p=self.mdp.initial_distribution)
        j = self.rng.choice(n_columns, p=theta)
        pair_2 = self._pair(j)
        k = self.rng.choice(n_columns, p=theta)
        return Draws(i, pair, self._next(pair), start, j, pair_2, self._next(pair_2), k, self._pair(k))

    def _pair(self, column):
        states, actions = self.problem.occupancy_features.sample(np.array([column]), self.rng)
        return int(states[0]) * self.mdp.n_actions + int(actions[0])

    def _next(self, pair):
        table = self.mdp.transitions
        row = slice(table.indptr[pair], table.indptr[pair + 1])
        return self.rng.choice(table.indices[row], p=table.data[row])


def theta_gradient(problem, steps, draws, theta, lam, w):
    """The stochastic gradient in θ, dense."""
    gradient = np.zeros(theta.size)
    f = advantage(problem, draws.pair, draws.next, lam, w)
    if steps.balanced:
        f_2 = advantage(problem, draws.pair_2, draws.next_2, lam, w)
        gradient[draws.i] += f / (1 / theta.size + theta[draws.i])
        gradient[draws.j] += f_2 / (1 / theta.size + theta[draws.j])
    else:
        gradient[draws.i] = theta.size * (f + steps.shift)
    return gradient


def advantage(problem, pair, successor, lam, w):
    """c_w(x, a) − (ψ_x − γψ_y)·λ/(1−γ)."""
    gamma = problem.discount
    here, there = rows(problem, pair // problem.mdp.n_actions, successor)
    return ((1 - gamma) * problem.costs.table[pair] @ w - (here - gamma * there) @ lam) / (1 - gamma)


def lambda_gradient(problem, draws):
    """The stochastic gradient in λ, dense."""
    gamma = problem.discount
    start, here, there = rows(problem, draws.start, draws.pair_2 // problem.mdp.n_actions, draws.next_2)
    return start - (here - gamma * there) / (1 - gamma)


def w_gradient(problem, draws):
    """The stochastic gradient in w."""
    return problem.costs.table[draws.pair_3] - problem.expert_features - problem.cost_shift


def rows(problem, *states):
    return problem.value_features.evaluate(np.array(states))


def project_lambda(problem, lam):
    """Project onto the domain of λ."""
    if problem.value_domain == "box":
        return np.clip(lam, -problem.value_radius, problem.value_radius)
    radius = problem.value_radius / np.sqrt(lam.size)
    return lam * min(1.0, radius / max(np.linalg.norm(lam), 1e-300))


def literal_iterates(problem, steps, make_draws, perturb=lambda theta: theta):
    """Yield the (θ, λ, w) that rounds 0, 1, … of Algorithm 1 begin with."""
    theta = np.full(problem.n_occupancy_features, 1 / problem.n_occupancy_features)
    lam = np.zeros(problem.n_value_features)
    w = np.full(problem.n_costs, 1 / problem.n_costs if problem.costs.weights == Simplex() else 0.0)
    for n in itertools.count():
        yield theta, lam, w
        draws = make_draws(n, theta)
        g_theta = theta_gradient(problem, steps, draws, theta, lam, w)
        g_lambda = lambda_gradient(problem, draws)
        g_w = w_gradient(problem, draws)
        theta = perturb(theta * np.exp(-steps.occupancy * g_theta))
        theta /= theta.sum()
        lambda_step = steps.value / np.sqrt(n + 1) if steps.value_decays else steps.value
        lam = project_lambda(problem, lam + lambda_step * g_lambda)
        if problem.costs.weights == Simplex():
            w = w * np.exp(steps.cost * g_w)
            w /= w.sum()
        else:
            w = w + steps.cost * g_w
            w /= max(1.0, np.linalg.norm(w))


def literal_mirror_descent(problem, steps, n_iterations, make_draws):
    """Run Algorithm 1; return the last iterates (θ, λ, w) and the averages of the first ``n_iterations`` ones."""
    sums = [0.0, 0.0, 0.0]
    iterates = literal_iterates(problem, steps, make_draws)
    for current in itertools.islice(iterates, n_iterations):
        sums = [total + part for total, part in zip(sums, current, strict=True)]
    return next(iterates), [total / n_iterations for total in sums]


def sound_rounds(problem, steps, n_iterations, make_draws):
    """Count the rounds for which the literal loop, in floating point, is a reference.

    It is none once a θ_i underflows, which then stays zero for ever, nor once errors of the size of rounding have grown
    to something: with long steps the rounds magnify what θ was off by, without bound.
    """
    rng = np.random.default_rng(0)
    exact = literal_iterates(problem, steps, make_draws)
    inexact = literal_iterates(
        problem, steps, make_draws, lambda theta: theta * (1 + ROUNDING * rng.standard_normal(theta.size))
    )
    for n in range(n_iterations + 1):
        current, other = next(exact), next(inexact)
        error = max(np.abs(a - b).max() for a, b in zip(current, other, strict=True))
        if current[0].min() < SMALLEST_THETA or error > GROWN:
            return n - 1
    return n_iterations
