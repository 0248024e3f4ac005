"""Algorithm 1 against a literal NumPy loop, the growth of its time with the grid, and its memory.

Both sides run the same problem with the same steps. Times are seconds for a million iterations, the best of a few
short runs taken in turn. The error is the largest difference of the last iterates when the literal loop replays the
draws of the compiled one. The last rows are not ratios to a reference: their bars are on the exponent of the growth of
the time of an iteration from the 16² to the 1024² grid (printed as 0.25/exponent), and on the peak memory of a whole
run on the 1024² grid in a process of its own (printed as 2 GiB/peak).
"""

import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from math import log
from typing import Any

import gymnasium as gym
import numpy as np
from reference_mirror_descent import FreshDraws, ReplayedDraws, literal_mirror_descent
from report_rows import Row, run_benchmark

import lfd_gym as lfd
from lfd_gym.solvers.descent._kernels import DRAWS
from lfd_gym.solvers.descent.finite_descent import FiniteDescent, FiniteOracle
from lfd_gym.solvers.descent.gradient_norms import estimate_gradient_norms
from lfd_gym.solvers.descent.step_sizes import StepSizes, paper_steps, practical_steps

REFERENCE = "literal NumPy loop"
DISCOUNT, RADIUS = 0.9, 33.0
MILLION = 1_000_000


def grid_problem(size: int) -> tuple[lfd.SaddlePointProblem, lfd.TabularModel]:
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=size, cost_seed=0)
    mdp = lfd.FiniteMDP.from_env(env, discount=DISCOUNT)
    costs = env.unwrapped.cost_features
    problem = lfd.SaddlePointProblem(
        costs=lfd.TableCosts(costs, mdp.n_actions),
        expert_features=np.zeros(costs.shape[1]),
        occupancy_features=lfd.features.TabularOccupancyFeatures(mdp.n_states, mdp.n_actions),
        value_features=lfd.features.TabularValueFeatures(mdp.n_states),
        discount=DISCOUNT,
        value_radius=RADIUS,
        mdp=mdp,
    )
    return problem, lfd.TabularModel.of(mdp)


def low_dimensional_problem() -> tuple[lfd.SaddlePointProblem, lfd.TabularModel]:
    tabular, model = grid_problem(16)
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lfd.LfdGymWarning)
        problem = lfd.SaddlePointProblem.linear(
            tabular.mdp,
            tabular.costs,
            tabular.expert_features,
            occupancy_features=lfd.features.FiniteOccupancyFeatures(
                rng.dirichlet(np.ones(1024), size=32).T, n_actions=4
            ),
            value_features=lfd.features.FiniteValueFeatures(rng.uniform(-1, 1, (256, 32))),
            value_radius=8.0,
        )
    return problem, model


def steps_of(problem: lfd.SaddlePointProblem, model: lfd.TabularModel, schedule: str, horizon: int) -> StepSizes:
    if schedule == "paper":
        return paper_steps(problem, horizon)
    norms = estimate_gradient_norms(problem, model, 1, np.random.default_rng(0))
    return practical_steps(problem, horizon, norms)


def replay_error(problem: lfd.SaddlePointProblem, oracle: FiniteOracle, steps: StepSizes, n: int) -> float:
    descent = FiniteDescent(oracle, steps, np.random.default_rng(0))
    record = np.zeros((n, len(DRAWS)), np.int64)
    descent.advance(n, record)
    iterates, _ = literal_mirror_descent(problem, steps, n, ReplayedDraws(record))
    return max(float(np.abs(a - b).max()) for a, b in zip(descent.current(), iterates, strict=True))


def seconds_of(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def compare(
    name: str,
    problem: lfd.SaddlePointProblem,
    model: lfd.TabularModel,
    schedule: str,
    n_literal: int,
    bar: float,
    n_ours: int = 300_000,
    repeats: int = 12,
) -> Row:
    steps = steps_of(problem, model, schedule, MILLION)
    oracle = FiniteOracle(problem, model)
    error = replay_error(problem, oracle, steps, n_literal)
    reference, ours = np.inf, np.inf
    for repeat in range(repeats):
        descent = FiniteDescent(oracle, steps, np.random.default_rng(repeat))
        ours = min(ours, seconds_of(lambda: descent.advance(n_ours)) / n_ours)  # noqa: B023
        draws = FreshDraws(problem, np.random.default_rng(repeat))
        literal = seconds_of(lambda: literal_mirror_descent(problem, steps, n_literal, draws))  # noqa: B023
        reference = min(reference, literal / n_literal)
    return Row(name, REFERENCE, reference * MILLION, ours * MILLION, bar, f"iterates replayed to {error:.0e}")


def time_per_iteration(size: int, schedule: str, n_iterations: int, repeats: int = 4) -> float:
    problem, model = grid_problem(size)
    oracle = FiniteOracle(problem, model)
    steps = steps_of(problem, model, schedule, 10 * MILLION)
    descent = FiniteDescent(oracle, steps, np.random.default_rng(0))
    return min(seconds_of(lambda: descent.advance(n_iterations)) for _ in range(repeats)) / n_iterations


def growth_row(schedule: str) -> Row:
    sizes = (16, 64, 256, 1024)
    times = [time_per_iteration(size, schedule, 500_000) for size in sizes]
    exponent = log(times[-1] / times[0]) / log((sizes[-1] / sizes[0]) ** 2)
    shown = ", ".join(f"{size}²: {1e9 * t:.0f} ns" for size, t in zip(sizes, times, strict=True))
    return Row(f"growth to 1024², {schedule}", "exponent 0.25", 0.25, exponent, 1.0, shown)


def peak_memory_of_a_run() -> None:
    """Solve on the 1024² grid and print the peak memory of this process in bytes and the residual."""
    problem, model = grid_problem(1024)
    solution = lfd.solve_mirror_descent(problem, model, 2 * MILLION, np.random.default_rng(0), progress=False)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, solution.residual)


def memory_row() -> Row:
    run = subprocess.run([sys.executable, __file__, "memory"], capture_output=True, text=True, check=True)
    peak, residual = (float(word) for word in run.stdout.split())
    return Row(
        "peak memory of a run, 1024²", "2 GiB", 2.0, peak / 2**30, 1.0, f"{peak / 2**30:.2f} GiB, SPR {residual:.2f}"
    )


def main() -> list[Row]:
    return [
        compare("tabular 16², paper", *grid_problem(16), "paper", 2000, 800.0),
        compare("tabular 64², paper", *grid_problem(64), "paper", 300, 2500.0),
        compare("tabular 256², paper", *grid_problem(256), "paper", 20, 25_000.0),
        compare("tabular 16², rising weights (practical)", *grid_problem(16), "practical", 2000, 250.0),
        compare("32 dense features, 16², practical", *low_dimensional_problem(), "practical", 2000, 400.0),
        growth_row("paper"),
        growth_row("practical"),
        memory_row(),
    ]


if __name__ == "__main__":
    if sys.argv[1:] == ["memory"]:
        peak_memory_of_a_run()
    else:
        run_benchmark(main, __doc__)
