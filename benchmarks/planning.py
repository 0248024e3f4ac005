"""Planning to a certified 1e-10 at γ = 0.95, against sparse-LU policy iteration and QuantEcon.py's `DiscreteDP`.

The error of every answer is measured by the same certificate: γ times the span of its Bellman residual over 1 − γ.
The occupancy of a policy that goes to one far goal, at γ = 0.99 and 0.999, is compared with a sparse LU.
On Garnets the LU factors fill in: from 128² states on, policy iteration with splu does not get through its first
factorisation in the time it is given here. ``python benchmarks/planning.py million`` solves the gridworld of 1024²
states.
"""

import multiprocessing
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import quantecon
import scipy.sparse as sp
from report_rows import Row, run_benchmark
from scipy.sparse.linalg import splu

from lfd_gym import FiniteMDP
from lfd_gym.envs import garnet, gridworld_transitions
from lfd_gym.envs.gridworld import random_state_costs

DISCOUNT = 0.95
TOLERANCE = 1e-10
PATIENCE = 30.0  # seconds for a factorisation that may not end
Problem = tuple[FiniteMDP, np.ndarray]


def main() -> list[Row]:
    rows = []
    for size in (128, 256):
        rows += compare(f"gridworld {size}²", *gridworld(size), fills_in=False)
        rows += compare(f"Garnet {size}²", *random_mdp(size**2), fills_in=True)
    rows += [occupancy_row(256, discount) for discount in (0.99, 0.999)]
    million = subprocess.run([sys.executable, __file__, "million"], capture_output=True, text=True, check=True)
    print(million.stdout, end="")
    return rows


def compare(case: str, mdp: FiniteMDP, cost: np.ndarray, fills_in: bool) -> list[Row]:
    def ours() -> Any:
        return mdp.plan(cost, TOLERANCE)

    own = f"certified {certified_error(mdp, cost, ours().values):.0e}"
    label, theirs, error = quantecon_best(mdp, cost, factorise=not fills_in)
    # In turns, so that both see the same load; the best of each.
    turns = [(seconds_of(ours), seconds_of(theirs)) for _ in range(9)]
    seconds, their_seconds = np.min(turns, axis=0)
    lu_seconds, lu_error = limited_policy_iteration(mdp, cost) if fills_in else policy_iteration(mdp, cost)
    return [
        Row(case, "policy iteration, splu", lu_seconds, seconds, 5, f"{own}; {lu_error}"),
        Row(case, f"QuantEcon {label}", their_seconds, seconds, 1, f"{own}; reference {error:.0e}"),
    ]


def occupancy_row(size: int, discount: float) -> Row:
    """Compare the occupancy of the policy that goes to the last corner; its error is measured in l1."""
    initial = np.full(size**2, 1 / size**2)
    mdp = FiniteMDP(gridworld_transitions(size), initial, discount)
    states = np.arange(size**2)
    away = np.ones((size**2, mdp.n_actions))
    away[-1] = 0.0
    actions = mdp.plan(away, TOLERANCE).actions
    chain = mdp.transitions[states * mdp.n_actions + actions]
    matrix = sp.csc_array((sp.eye_array(mdp.n_states) - discount * chain).T)

    def error(occupancy: np.ndarray) -> float:
        return float(np.abs((1 - discount) * initial - matrix @ occupancy).sum() / (1 - discount))

    def ours() -> np.ndarray:
        return mdp.state_occupancy(actions, TOLERANCE)

    def factorised() -> np.ndarray:
        return np.asarray(splu(matrix).solve((1 - discount) * initial))

    reached = f"l1 error at most {error(ours()):.0e}; reference {error(factorised()):.0e}"
    seconds, their_seconds = np.min([(seconds_of(ours), seconds_of(factorised)) for _ in range(5)], axis=0)
    return Row(f"way to a goal {size}², discount {discount}", "occupancy, splu", their_seconds, seconds, 2, reached)


def gridworld(size: int) -> Problem:
    """Return the gridworld of the paper's Appendix E, of another size."""
    mdp = FiniteMDP(gridworld_transitions(size), np.full(size**2, 1 / size**2), DISCOUNT)
    return mdp, np.repeat(random_state_costs(size**2, 1, np.random.default_rng(0)), 4, axis=1)


def random_mdp(n_states: int) -> Problem:
    rng = np.random.default_rng(0)
    mdp = garnet(n_states, n_actions=4, n_successors=5, discount=DISCOUNT, rng=rng)
    return mdp, rng.uniform(-1, 1, (n_states, 4))


def backup(mdp: FiniteMDP, cost: np.ndarray, values: np.ndarray) -> np.ndarray:
    return (1 - mdp.discount) * cost + mdp.discount * (mdp.transitions @ values).reshape(cost.shape)


def certified_error(mdp: FiniteMDP, cost: np.ndarray, values: np.ndarray) -> float:
    residual = backup(mdp, cost, values).min(axis=1) - values
    return float(mdp.discount * np.ptp(residual) / (1 - mdp.discount))


def seconds_of(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def policy_iteration(mdp: FiniteMDP, cost: np.ndarray) -> tuple[float, str]:
    """Policy iteration with one sparse factorisation an improvement."""
    start = time.perf_counter()
    states, values = np.arange(mdp.n_states), np.zeros(mdp.n_states)
    while True:
        actions = backup(mdp, cost, values).argmin(axis=1)
        chain = mdp.transitions[states * mdp.n_actions + actions]
        matrix = sp.csc_array(sp.eye_array(mdp.n_states) - mdp.discount * chain)
        values = splu(matrix).solve((1 - mdp.discount) * cost[states, actions])
        error = certified_error(mdp, cost, values)
        if error <= TOLERANCE:
            return time.perf_counter() - start, f"reference {error:.0e}"


def limited_policy_iteration(mdp: FiniteMDP, cost: np.ndarray) -> tuple[float, str]:
    """Policy iteration in a process of its own, stopped when its time is up: then the time is a lower bound."""
    process = multiprocessing.get_context("fork").Process(target=policy_iteration, args=(mdp, cost))
    start = time.perf_counter()
    process.start()
    process.join(PATIENCE)
    seconds = time.perf_counter() - start
    if process.is_alive():
        process.kill()
        process.join()
        return seconds, "reference stopped, unfinished"
    return seconds, "reference to the same certificate"


def quantecon_best(mdp: FiniteMDP, cost: np.ndarray, factorise: bool) -> tuple[str, Callable[[], Any], float]:
    """Return the fastest method of `DiscreteDP` in its sparse formulation, as a call, and its certified error."""
    states = np.repeat(np.arange(mdp.n_states), mdp.n_actions)
    actions = np.tile(np.arange(mdp.n_actions), mdp.n_states)
    rewards = -(1 - mdp.discount) * cost.ravel()
    problem = quantecon.markov.DiscreteDP(rewards, sp.csr_matrix(mdp.transitions), mdp.discount, states, actions)
    modified = {"method": "modified_policy_iteration"}
    methods: dict[str, dict[str, Any]] = {
        f"modified policy iteration, k={k}": modified | {"k": k} for k in (5, 10, 20, 50, 100)
    }
    methods["value iteration"] = {"method": "value_iteration"}
    if factorise:
        methods["policy iteration"] = {"method": "policy_iteration"}
    results = []
    for label, options in methods.items():
        solve = partial(problem.solve, epsilon=TOLERANCE, max_iter=10_000, **options)
        error = certified_error(mdp, cost, -solve().v)  # compiles
        if error > TOLERANCE:
            raise RuntimeError(f"QuantEcon's {label} reached {error} only")
        repeats = 1 if label == "policy iteration" else 3
        results.append((min(seconds_of(solve) for _ in range(repeats)), label, solve, error))
    _, label, solve, error = min(results, key=lambda result: result[0])
    return label, solve, error


def million_states() -> None:
    """Solve the gridworld of 1024² states and print what it took, everything included."""
    gridworld(8)[0].plan(np.zeros((64, 4)))  # compiles or loads
    start = time.perf_counter()
    mdp, cost = gridworld(1024)
    built = time.perf_counter()
    plan = mdp.plan(cost, TOLERANCE)
    planned = time.perf_counter()
    mdp.state_occupancy(plan.actions, TOLERANCE)
    ended = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"gridworld 1024², {mdp.n_states:,} states, {mdp.n_states * mdp.n_actions:,} pairs: built in "
        f"{built - start:.1f} s, planned in {planned - built:.1f} s (certified {plan.error_bound:.0e}), "
        f"occupancy in {ended - planned:.1f} s (1e-10); peak memory {peak:.2f} GiB"
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["million"]:
        million_states()
    else:
        run_benchmark(main, __doc__)
