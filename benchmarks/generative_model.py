"""Drawing transitions, against a loop that puts the environment into each state and steps.

Of finite environments by alias tables, of classic control in compiled batches, of MuJoCo in several processes. The
error is the distance from the exact distribution or, as classic control and MuJoCo draw nothing, the largest difference
from what the loop comes to, with the number of pairs where only one of the two says that the episode has ended.
"""

import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from report_rows import Row, run_benchmark

import lfd_gym as lfd
from lfd_gym.envs.processes import sample_next_in_processes
from lfd_gym.envs.simulator import SimulatorModel
from lfd_gym.validation import FloatArray, IntArray

RESET_BAR = 200.0
SET_STATE_BAR = 100.0
CLASSIC_BAR = 50.0
PROCESSES_BAR = 1.3  # of two shared cores
CLASSIC_IDS = ("CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1", "Pendulum-v1")
N_PAIRS = 20_000
REPEATS = 7


def through_reset(env: gym.Env[Any, Any], pairs: list[tuple[int, int]]) -> IntArray:
    """Draw as a user of the Gymnasium interface does."""
    drawn = []
    for state, action in pairs:
        env.reset(options={"state": state})
        drawn.append(env.step(action)[0])
    return np.array(drawn)


def through_set_state(env: gym.Env[Any, Any], pairs: list[tuple[int, int]]) -> IntArray:
    """Draw without wrappers and without reset, the fastest way this environment has."""
    bare: Any = env.unwrapped
    drawn = []
    for state, action in pairs:
        bare.set_state(state)
        drawn.append(bare.step(action)[0])
    return np.array(drawn)


def best_seconds(draw: Callable[..., Any], *arguments: Any, repeats: int = REPEATS) -> tuple[float, Any]:
    """Return the shortest time of several calls, and what the last one drew."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        drawn = draw(*arguments)
        seconds.append(time.perf_counter() - start)
    return min(seconds), drawn


def distance(mdp: lfd.FiniteMDP, states: IntArray, actions: IntArray, drawn: IntArray) -> float:
    """Total variation distance of the states drawn from their exact distribution, over all pairs together."""
    rows = mdp.transitions[states * mdp.n_actions + actions]
    exact = np.asarray(rows.sum(axis=0)).ravel() / len(drawn)
    return float(np.abs(np.bincount(drawn, minlength=mdp.n_states) / len(drawn) - exact).sum() / 2)


def compare(size: int) -> list[Row]:
    """Draw the same pairs in all three ways."""
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=size)
    env.reset(seed=0)
    mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    model = lfd.as_generative_model(env)
    rng = np.random.default_rng(0)
    states = rng.integers(mdp.n_states, size=N_PAIRS)
    actions = rng.integers(mdp.n_actions, size=N_PAIRS)
    pairs = list(zip(states.tolist(), actions.tolist(), strict=True))
    model.sample_next(states, actions, rng)  # compiles
    seconds, ours = best_seconds(model.sample_next, states, actions, rng)
    rows = []
    for name, loop, bar in (
        ("reset to state, step", through_reset, RESET_BAR),
        ("set_state, step, unwrapped", through_set_state, SET_STATE_BAR),
    ):
        reference_seconds, theirs = best_seconds(loop, env, pairs)
        distances = [distance(mdp, states, actions, drawn) for drawn in (theirs, ours)]
        error = "distance from exact: reference {:.3f}, ours {:.3f}".format(*distances)
        case = f"{N_PAIRS:,} transitions, gridworld {size}²"
        rows.append(Row(case, name, reference_seconds, seconds, bar, error))
    return rows


def difference(theirs: FloatArray, ours: FloatArray) -> str:
    """Say by how much next states differ, and how many ends."""
    ended = np.isnan(theirs), np.isnan(ours)
    both = ~(ended[0] | ended[1])
    largest = np.abs(theirs[both] - ours[both]).max()
    return f"largest difference {largest:.1g}, other ends: {(ended[0] != ended[1]).any(axis=1).sum()}"


def compare_classic(env_id: str) -> Row:
    """Step the same pairs compiled and by the environment."""
    model: Any = lfd.as_generative_model(gym.make(env_id))
    rng = np.random.default_rng(0)
    model.action_space.seed(0)
    actions = np.array([model.action_space.sample() for _ in range(N_PAIRS)])
    states = model.sample_initial(N_PAIRS, rng) * rng.uniform(-3, 3, size=(N_PAIRS, 1))
    model.sample_next(states, actions, rng)  # compiles
    seconds, ours = best_seconds(model.sample_next, states, actions, rng)
    reference_seconds, theirs = best_seconds(SimulatorModel.sample_next, model, states, actions, rng, repeats=3)
    case = f"{N_PAIRS:,} transitions, {env_id}, {N_PAIRS / seconds:,.0f}/s"
    return Row(case, "step by step", reference_seconds, seconds, CLASSIC_BAR, difference(theirs, ours))


def compare_processes(env_id: str, n_processes: int = 2) -> Row:
    """Step the same pairs in two processes and in this one."""
    model = lfd.as_generative_model(gym.make(env_id))
    rng = np.random.default_rng(0)
    model.action_space.seed(0)
    actions = np.array([model.action_space.sample() for _ in range(N_PAIRS)])
    states = model.sample_initial(N_PAIRS, rng) * rng.uniform(-30, 30, size=(N_PAIRS, 1))
    ways = [(model, states, actions, np.random.default_rng(0), n) for n in (1, n_processes)]
    (reference_seconds, theirs), (seconds, ours) = (best_seconds(sample_next_in_processes, *way) for way in ways)
    case = f"{N_PAIRS:,} transitions, {env_id}, {n_processes} processes, {N_PAIRS / seconds:,.0f}/s"
    return Row(case, "this process", reference_seconds, seconds, PROCESSES_BAR, difference(theirs, ours))


def main() -> list[Row]:
    classic = [compare_classic(env_id) for env_id in CLASSIC_IDS]
    return [*compare(16), *compare(128), *classic, compare_processes("InvertedPendulum-v4")]


if __name__ == "__main__":
    run_benchmark(main, __doc__)
