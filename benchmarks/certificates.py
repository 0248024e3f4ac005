"""How tight certificates are: the mean bound over ten seeds, beside the inequalities they replaced and the truth.

The paper's 16×16 gridworld, cost seed 1, γ = 0.9, trajectories of 200 actions, δ = 0.05, policies of the cutting-plane
method. "before": Hoeffding's and the empirical Bernstein inequality, the smaller one, on both sides, nothing known of
the model. "model": betting, and what the model knows. "deterministic": also that the expert is. "ball": the same costs
with weights in the unit ball. A bound should never be below the truth; those that are, are counted. Behind ± is the
standard error of a mean. Exits with 1 if a bar is missed.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import tyro

import lfd_gym as lfd

DISCOUNT, HORIZON, DELTA = 0.9, 200, 0.05
SIZES = (1, 10, 100, 1000)
#: The mean bounds to reach, for each number of demonstrations.
BARS = {
    ("optimal", "model"): (0.50, 0.48, 0.103, 0.0275),
    ("optimal", "deterministic"): (0.44, 0.18, 0.016, 0.0004),
    ("10 % noise", "model"): (0.50, 0.47, 0.082, -0.005),
}


@dataclass(frozen=True)
class Options:
    """Which demonstrations."""

    seeds: int = 10
    """How many seeds the means are over."""
    first_seed: int = 0
    """The first of them."""


def before(estimate: lfd.CostEstimate, paid: np.ndarray) -> float:
    """The bound by Hoeffding's and Bernstein's inequalities that version 0.1 had."""
    m, n_costs = estimate.trajectory_values.shape
    tail = DISCOUNT**HORIZON
    share = 0.9 * DELTA / 2
    hoeffding = (1 - tail) * math.sqrt(2 * math.log(2 * n_costs / share) / m)
    radius = np.full(n_costs, hoeffding)
    if m > 1:
        log = math.log(4 * n_costs / share)
        deviation = estimate.trajectory_values.std(axis=0, ddof=1)
        radius = np.minimum(radius, deviation * math.sqrt(2 * log / m) + 14 * (1 - tail) * log / (3 * (m - 1)))
    return float((paid - estimate.values + np.minimum(radius + tail, 1 + np.abs(estimate.values))).max())


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a bar is missed."""
    options = tyro.cli(Options, args=arguments, description=(__doc__ or "").strip())
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=16, cost_seed=1)
    mdp = lfd.FiniteMDP.from_env(env, DISCOUNT)
    table = env.unwrapped.cost_features
    optimal = mdp.optimal_policy(table[:, 0])
    ball = lfd.TableCosts(table, mdp.n_actions, "ball")
    print(f"{'expert':12}{'m':>6}{'truth':>9}{'before':>9}{'model':>9}{'determ.':>9}{'ball':>9}{'truth':>9}  bars")
    missed = False
    for name, expert in (("optimal", optimal), ("10 % noise", lfd.noisy_policy(optimal, 0.1))):
        true = table.T @ mdp.occupancy(expert).ravel()
        for index, m in enumerate(SIZES):
            found, below = [], 0
            for seed in range(options.first_seed, options.first_seed + options.seeds):
                demos = lfd.collect(env, expert, m, HORIZON, np.random.default_rng(seed))
                task = lfd.Task(env, demos, discount=DISCOUNT)
                policy = lfd.learn(task, "cutting_plane", rng=np.random.default_rng(0)).policy
                paid = task.expected_costs(policy).values
                bounds = [before(task.expert_features(), paid), lfd.certify(policy, task).cost_distance_bound]
                sure = name == "optimal"
                kind = {"expert": "deterministic"} if sure else {}
                bounds.append(lfd.certify(policy, task, **kind).cost_distance_bound if sure else math.nan)
                euclidean = lfd.Task(env, demos, discount=DISCOUNT, costs=ball)
                bounds.append(lfd.certify(policy, euclidean).cost_distance_bound)
                truths = (paid - true).max(), float(np.linalg.norm(paid - true))
                below += sum(bound < truths[0] for bound in bounds[1:3]) + (bounds[3] < truths[1])
                found.append([truths[0], *bounds, truths[1]])
            means = np.mean(found, axis=0)
            errors = np.std(found, axis=0, ddof=1) / math.sqrt(len(found))
            bars = []
            for (whose, what), values in BARS.items():
                if whose == name:
                    reached = means[2 if what == "model" else 3]
                    met = reached <= values[index]
                    missed |= not met
                    error = errors[2 if what == "model" else 3]
                    bars.append(f"{what} {values[index]:g} {'ok' if met else 'MISSED'} (± {error:.4f})")
            numbers = "".join(f"{value:9.4f}" for value in means)
            wrong = f"; {below} below the truth" if below else ""
            print(f"{name:12}{m:6d}{numbers}  {', '.join(bars)}{wrong}", flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
