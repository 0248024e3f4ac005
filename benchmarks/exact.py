"""Exact apprenticeship to a certified gap of 1e-8: the cutting-plane method against HiGHS' HiPO and scipy's `linprog`.

Gridworlds with 5 costs and an expert estimated from 20 trajectories, treated as general sparse transitions. All times
are CPU seconds on one thread. The references get the primal program, their faster form; HiPO runs without crossover and
may stop at a relative gap of 1e-8; the time to set up a program is not counted. A reference that takes much longer than
its bar asks for is stopped; its row says so, and the ratio is then a lower bound.

``python benchmarks/exact.py --large`` adds HiPO at 256² and scipy at 128², which takes a quarter of an hour, and solves
512² and 1024² and more features.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is loaded

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from report_rows import Row, run_benchmark

import lfd_gym as lfd
from lfd_gym.envs import gridworld_transitions
from lfd_gym.envs.gridworld import random_state_costs
from lfd_gym.solvers.exact.exact_solution import ApprenticeshipProblem, ExactSolution
from lfd_gym.solvers.exact.linear_program import certified_answer, primal_program
from lfd_gym.solvers.highs import LinearProgramError, solve_with_hipo, solve_with_scipy

TOLERANCE = 1e-8
HIPO_BARS = {(16, 0.95): 2, (64, 0.95): 6, (128, 0.95): 7, (32, 0.99): 1, (64, 0.99): 2, (128, 0.99): 3}
SCIPY_BARS = {(64, 0.95): 50}
LARGE_HIPO_BARS = {(256, 0.95): 15, (256, 0.99): 25}
LARGE_SCIPY_BARS = {(128, 0.95): 200}
ALONE = ((64, 0.95, 20), (64, 0.95, 100), (512, 0.95, 5), (1024, 0.95, 5))


def main() -> list[Row]:
    large = "--large" in sys.argv[1:]
    solve(instance(8, 0.95))  # compiles
    hipo_bars = HIPO_BARS | LARGE_HIPO_BARS if large else HIPO_BARS
    scipy_bars = SCIPY_BARS | LARGE_SCIPY_BARS if large else SCIPY_BARS
    rows = [row(size, discount, ["hipo"], bar) for (size, discount), bar in hipo_bars.items()]
    rows += [row(size, discount, ["highs-ds", "highs-ipm"], bar) for (size, discount), bar in scipy_bars.items()]
    if large:
        for case in ALONE:
            alone = [sys.executable, __file__, "alone", *map(str, case)]
            print(subprocess.run(alone, capture_output=True, text=True, check=True).stdout, end="", flush=True)
    return rows


def instance(size: int, discount: float, n_costs: int = 5) -> ApprenticeshipProblem:
    """Return the paper's gridworld of another size, with ρ̂ from 20 trajectories of the optimal policy."""
    rng = np.random.default_rng(0)
    mdp = lfd.FiniteMDP(gridworld_transitions(size), np.full(size**2, 1 / size**2), discount)
    costs = np.repeat(random_state_costs(size**2, n_costs, rng), 4, axis=0)
    expert = mdp.optimal_policy(costs[:, 0])
    demonstrations = lfd.collect(lfd.TabularModel.of(mdp), expert, n_trajectories=20, horizon=200, rng=rng)
    rho = lfd.feature_expectations(demonstrations, costs, discount).values
    return ApprenticeshipProblem.checked(mdp, costs, rho)


def solve(problem: ApprenticeshipProblem) -> tuple[ExactSolution, float]:
    start = time.process_time()
    solution = lfd.solve_cutting_plane(problem.mdp, problem.costs, problem.expert, tolerance=TOLERANCE)
    return solution, time.process_time() - start


def repeats(problem: ApprenticeshipProblem) -> int:
    """Return how often to measure: short runs feel more of what else the machine does."""
    n_states = problem.mdp.n_states
    return 20 if n_states <= 32**2 else 5


def measured(problem: ApprenticeshipProblem) -> tuple[float, str]:
    """Return the least time of a few runs, and what was certified."""
    runs = [solve(problem) for _ in range(repeats(problem))]
    solution = runs[0][0]
    assert solution.status == "optimal", solution.status
    return min(seconds for _, seconds in runs), f"gap {solution.gap:.0e} in {solution.n_planner_calls} calls"


@dataclass(frozen=True)
class Reference:
    """How long a reference took, and what it reached; it may have been stopped before."""

    name: str
    seconds: float
    error: str


def row(size: int, discount: float, methods: list[str], bar: float) -> Row:
    """Compare with the fastest of some methods of HiGHS."""
    problem = instance(size, discount)
    before, error = measured(problem)
    patience = max(120.0, 2.5 * bar * before)
    n_references = 1 if methods != ["hipo"] else repeats(problem) if size <= 64 else 2
    references = [timed_reference(problem, method, patience) for method in methods for _ in range(n_references)]
    best = min(references, key=lambda each: each.seconds)
    after, _ = measured(problem)  # a machine with other work may be slow for the seconds that either took
    seconds = min(before, after)
    return Row(
        f"gridworld {size}², discount {discount}", best.name, best.seconds, seconds, bar, f"{error}; {best.error}"
    )


def timed_reference(problem: ApprenticeshipProblem, method: str, patience: float) -> Reference:
    """Time one method; HiPO at the loosest tolerance that certifies the gap."""
    program, read = primal_program(problem)
    name = "HiGHS HiPO" if method == "hipo" else f"scipy {method}"
    gap = np.inf
    for optimality in (TOLERANCE, TOLERANCE / 10, TOLERANCE / 100):
        start = time.process_time()
        try:
            if method == "hipo":
                answer = solve_with_hipo(program, patience, optimality)  # makes sure that HiPO ran
            else:
                answer = solve_with_scipy(program, method, patience)  # always far more accurate
        except LinearProgramError as end:
            if end.status != "time_limit" or (method == "hipo" and "Hipo:" not in str(end)):
                raise
            return Reference(name, time.process_time() - start, "reference stopped unfinished, so ratio ≥")
        seconds = time.process_time() - start
        gap = certified_answer(problem, read(answer), answer, TOLERANCE).gap
        if gap <= TOLERANCE:
            break
    return Reference(name, seconds, f"reference gap {gap:.0e}")


def alone(size: int, discount: float, n_costs: int) -> None:
    """Solve one instance and say what it took beyond the model."""
    problem = instance(size, discount, n_costs)
    solve(instance(8, 0.95, n_costs))
    before = resident_bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    solution, seconds = solve(problem)
    n_states = problem.mdp.n_states
    beyond = (resident_bytes("VmHWM") - before) / n_states
    print(
        f"gridworld {size}², discount {discount}, {n_costs} features: {solution.status}, gap {solution.gap:.1e}, "
        f"{solution.n_planner_calls} calls, {seconds:.2f} s CPU, {beyond:.0f} bytes per state beyond the model, "
        f"{resident_bytes('VmHWM') / 2**30:.2f} GiB at most"
    )


def resident_bytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} in /proc/self/status")


if __name__ == "__main__":
    if sys.argv[1:2] == ["alone"]:
        alone(int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
    else:
        run_benchmark(main, __doc__)
