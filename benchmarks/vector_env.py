"""Steps per second of the vectorised gridworld against Gymnasium's `SyncVectorEnv` over as many copies."""

import time

import gymnasium as gym
import numpy as np
from report_rows import Row, run_benchmark
from scipy.stats import chi2

from lfd_gym.envs import gridworld_transitions
from lfd_gym.envs.vector import RESETS_IN_SAME_STEP

ID = "lfd_gym/StochasticGridworld-v0"
NUM_ENVS = 64
STEPS = 400  # two episodes, restarts included


def main() -> list[Row]:
    native = gym.make_vec(
        ID, num_envs=NUM_ENVS, vectorization_mode="custom" if RESETS_IN_SAME_STEP else "vector_entry_point"
    )
    reference = gym.make_vec(ID, num_envs=NUM_ENVS, vectorization_mode="sync")
    pvalues = [law_pvalue(envs) for envs in (native, reference)]  # compiles, too
    times = np.array([(run_seconds(native), run_seconds(reference)) for _ in range(9)])
    seconds, reference_seconds = np.median(times, axis=0)
    print(f"{NUM_ENVS * STEPS / seconds:,.0f} steps/s on Gymnasium {gym.__version__}")
    return [
        Row(
            case=f"{NUM_ENVS} gridworlds 16², {STEPS} steps each",
            reference=f"SyncVectorEnv, Gymnasium {gym.__version__}",
            reference_seconds=reference_seconds,
            seconds=seconds,
            bar=20,
            error=f"χ² against the exact transitions: p = {pvalues[0]:.2f}, reference p = {pvalues[1]:.2f}",
        )
    ]


def run_seconds(envs: gym.vector.VectorEnv) -> float:
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(4, size=(STEPS, NUM_ENVS))
    start = time.perf_counter()
    for step_actions in actions:
        envs.step(step_actions)
    return time.perf_counter() - start


def law_pvalue(envs: gym.vector.VectorEnv, episodes: int = 10) -> float:
    """Test the directions moved, pooled over all cells away from the walls, against the exact transitions."""
    law = gridworld_transitions(16)
    rng = np.random.default_rng(0)
    moves = {-16: 0, 16: 1, -1: 2, 1: 3}
    counts = np.zeros((4, 4))
    for episode in range(episodes):
        states, _ = envs.reset(seed=episode * NUM_ENVS)  # SyncVectorEnv gives the copies consecutive seeds
        for _ in range(199):  # one short of the limit: no restart
            actions = rng.integers(4, size=NUM_ENVS)
            successors = envs.step(actions)[0]
            inner = (states % 16 > 0) & (states % 16 < 15) & (states // 16 > 0) & (states // 16 < 15)
            directions = [moves[move] for move in (successors - states)[inner].tolist()]
            np.add.at(counts, (actions[inner], directions), 1)
            states = successors
    centre = 8 * 16 + 8
    rows = law[centre * 4 : centre * 4 + 4, :].toarray()[:, [centre + move for move in moves]]
    expected = counts.sum(axis=1, keepdims=True) * rows
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), df=12))


if __name__ == "__main__":
    run_benchmark(main, __doc__)
