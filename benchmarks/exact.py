"""Exact apprenticeship to a certified gap of 1e-8: the cutting-plane method against HiGHS' HiPO and scipy's `linprog`.

Gridworlds with 5 costs and an expert estimated from 20 trajectories, treated as general sparse transitions. All times
are CPU seconds on one thread. HiPO solves the primal program, its faster form, without crossover, and may stop at a
relative gap of 1e-8; the time to set up a program is not counted. A reference that would take much longer than its bar
asks for is stopped; its row says so, and the ratio is then a lower bound.

``python benchmarks/exact.py --large`` adds 256², and then solves 512² and 1024² and more features.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is loaded

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from report_rows import Row, print_rows

import lfd_gym as lfd
from lfd_gym.envs import gridworld_transitions
from lfd_gym.envs.gridworld import random_state_costs
from lfd_gym.exact_solution import ApprenticeshipProblem, ExactSolution
from lfd_gym.highs import LinearProgramError, Program, solve_with_hipo, solve_with_scipy
from lfd_gym.linear_program import certified_answer, primal_program

TOLERANCE = 1e-8
HIPO_BARS = {(16, 0.95): 2, (64, 0.95): 6, (128, 0.95): 7, (32, 0.99): 1, (64, 0.99): 2, (128, 0.99): 3}
LARGE_HIPO_BARS = {(256, 0.95): 15, (256, 0.99): 25}
SCIPY_BARS = {(64, 0.95): 50, (128, 0.95): 200}


def main() -> list[Row]:
    large = "--large" in sys.argv[1:]
    solve(instance(8, 0.95))  # compiles
    rows = [hipo_row(size, discount, bar) for (size, discount), bar in HIPO_BARS.items()]
    rows += [scipy_row(size, discount, bar) for (size, discount), bar in SCIPY_BARS.items()]
    if large:
        rows += [hipo_row(size, discount, bar) for (size, discount), bar in LARGE_HIPO_BARS.items()]
        for size, discount, n_costs in ((64, 0.95, 20), (64, 0.95, 100), (512, 0.95, 5), (1024, 0.95, 5)):
            alone = [sys.executable, __file__, "alone", str(size), str(discount), str(n_costs)]
            print(subprocess.run(alone, capture_output=True, text=True, check=True).stdout, end="", flush=True)
    return rows


def instance(size: int, discount: float, n_costs: int = 5) -> ApprenticeshipProblem:
    """Return the paper's gridworld of another size, with ρ̂ from 20 trajectories of the optimal policy."""
    rng = np.random.default_rng(0)
    mdp = lfd.FiniteMDP(gridworld_transitions(size), np.full(size**2, 1 / size**2), discount)
    costs = np.repeat(random_state_costs(size**2, n_costs, rng), 4, axis=0)
    expert = mdp.optimal_policy(costs[:, 0])
    demonstrations = lfd.collect(lfd.TabularModel.from_mdp(mdp), expert, n_trajectories=20, horizon=200, rng=rng)
    rho = lfd.feature_expectations(demonstrations, costs, discount).values
    return ApprenticeshipProblem.checked(mdp, costs, rho)


def solve(problem: ApprenticeshipProblem) -> tuple[ExactSolution, float]:
    start = time.process_time()
    solution = lfd.solve_cutting_plane(problem.mdp, problem.cost_features, problem.expert, tolerance=TOLERANCE)
    return solution, time.process_time() - start


def measured(problem: ApprenticeshipProblem) -> tuple[float, str]:
    """Return the least time of a few runs, and what was certified."""
    runs = [solve(problem) for _ in range(5 if problem.mdp.n_states <= 128**2 else 2)]
    solution = runs[0][0]
    assert solution.status == "optimal", solution.status
    return min(seconds for _, seconds in runs), f"gap {solution.gap:.0e} in {solution.n_planner_calls} calls"


@dataclass(frozen=True)
class Reference:
    """How long a reference took, and how good its answer is."""

    seconds: float
    error: str


def hipo_row(size: int, discount: float, bar: float) -> Row:
    problem = instance(size, discount)
    seconds, error = measured(problem)
    patience = max(10.0, 10 * bar * seconds)
    repeats = 3 if size <= 64 else 1
    references = [timed_reference(problem, "hipo", patience) for _ in range(repeats)]
    reference = min(references, key=lambda each: each.seconds)
    case = f"gridworld {size}², discount {discount}"
    return Row(case, "HiGHS HiPO", reference.seconds, seconds, bar, f"{error}; {reference.error}")


def scipy_row(size: int, discount: float, bar: float) -> Row:
    """Compare with the faster of scipy's two methods; each gets the time that makes the ratio clear."""
    problem = instance(size, discount)
    seconds, error = measured(problem)
    patience = max(5.0, 1.5 * bar * seconds)
    references = {name: timed_reference(problem, name, patience) for name in ("highs-ds", "highs-ipm")}
    best = min(references, key=lambda name: references[name].seconds)
    case = f"gridworld {size}², discount {discount}"
    return Row(case, f"scipy {best}", references[best].seconds, seconds, bar, f"{error}; {references[best].error}")


def timed_reference(problem: ApprenticeshipProblem, method: str, patience: float) -> Reference:
    program, read = primal_program(problem)
    start = time.process_time()
    try:
        answer = run_reference(program, method, patience)
    except LinearProgramError as end:
        return Reference(time.process_time() - start, f"reference ended early: {end.status}")
    seconds = time.process_time() - start
    return Reference(seconds, f"reference gap {certified_answer(problem, read(answer), answer, TOLERANCE).gap:.0e}")


def run_reference(program: Program, method: str, patience: float):
    if method == "hipo":
        return solve_with_hipo(program, patience, optimality=TOLERANCE)
    return solve_with_scipy(program, method, patience)


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
        print_rows(main())
