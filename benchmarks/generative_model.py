"""Drawing transitions: alias tables against a loop that puts the environment into each state and steps."""

import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from report_rows import Row, run_benchmark

import lfd_gym as lfd
from lfd_gym.validation import IntArray

RESET_BAR = 200.0
SET_STATE_BAR = 100.0
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


def best_seconds(draw: Callable[..., IntArray], *arguments: Any) -> tuple[float, IntArray]:
    """Return the shortest time of several calls, and what the last one drew."""
    seconds = []
    for _ in range(REPEATS):
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


def main() -> list[Row]:
    return compare(16) + compare(128)


if __name__ == "__main__":
    run_benchmark(main, __doc__)
