"""Make the pictures of the README and of the site's first page again: `make pictures`.

Without arguments: continuous control from one demonstration, and the gridworld. With ``--figures`` also those that
`lfd-gym reproduce` makes, which takes minutes. The expert of the first is a network kept in `benchmarks/experts`;
reading it needs the ``sb3`` extra.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import gymnasium as gym
import numpy as np
from matplotlib.figure import Figure

import lfd_gym as lfd
from lfd_gym.policies.tables import UniformPolicy

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
#: Picture → the figure that is reproduced, with its arguments.
REPRODUCED = {
    "paper_figure.png": ("figure.png", ["figure"]),
    "comparison.png": (
        "comparison.png",
        [
            "figure",
            "--learners",
            "cutting_plane",
            "mirror_descent",
            "bc",
            "gail",
            "--budgets",
            "gail",
            "150000",
            "--counts",
            "1",
            "3",
            "10",
            "30",
            "100",
            "--runs",
            "3",
        ],
    ),
    "residual.png": ("residual.png", ["residual"]),
    "bound.png": ("bound.png", ["bound"]),
    "growth.png": ("growth.png", ["growth"]),
}


def continuous_control() -> None:
    """Swing up a pendulum after one demonstration: what was learned, and how far it can be from what was shown."""
    rng = np.random.default_rng(0)
    env = gym.make("Pendulum-v1")
    expert = lfd.load_policy(ROOT / "benchmarks" / "experts" / "Pendulum-v1.npz")
    task = lfd.Task(env, lfd.collect(env, expert, n_trajectories=1, rng=rng), discount=0.98)
    result = lfd.learn(task, rng=rng)
    certificate = lfd.certify(result.policy, task, rng=rng, n_rollouts=1000)
    print(result.learner, result.facts["mode"])
    print(certificate)
    random = UniformPolicy(env.action_space)
    for name, policy in (("learned", result.policy), ("expert", expert), ("random", random)):
        returns = [np.asarray(episode.rewards).sum() for episode in lfd.collect(env, policy, 100, rng=rng)]
        print(name, "mean return of 100 episodes:", round(np.mean(returns), 1))

    figure = Figure(figsize=(12, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    lfd.plots.draw_policy(result.policy, task, left)
    for fresh in lfd.collect(env, result.policy, n_trajectories=3, rng=rng):
        states = task.simulator.states_of(fresh.observations)
        states[1:][np.abs(np.diff(states[:, 0])) > np.pi] = np.nan  # where the angle goes round
        left.plot(*states.T, color="gold", linewidth=1.5)
    left.set_title("Pendulum: one demonstration (black), three fresh episodes (yellow)", fontsize=11)
    left.set_xlabel("angle (0: upright)")
    left.set_ylabel("angular speed")
    lfd.plots.draw_certificate(certificate, right)
    right.set_title("How far it can be from what was shown (95 %)", fontsize=11)
    right.set_ylabel("cost distance")
    figure.savefig(IMAGES / "continuous.png", dpi=110)


def gridworld() -> None:
    """Draw the paper's gridworld with its expert."""
    env = gym.make("lfd_gym/StochasticGridworld-v0", size=16, cost_seed=576)
    mdp = lfd.FiniteMDP.from_env(env, discount=0.9)
    cost = env.unwrapped.cost_features[:, 0]
    expert = mdp.optimal_policy(cost)
    from matplotlib.image import imsave

    picture = lfd.envs.render_grid(cost, 16, policy=expert, occupancy=mdp.occupancy(expert))
    imsave(IMAGES / "gridworld.png", picture)


def reproduced() -> None:
    """Make the figures of the paper and of its statements."""
    for name, (made, arguments) in REPRODUCED.items():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "lfd_gym.cli", "reproduce", *arguments, "--out", f"{folder}/out"]
            subprocess.run(command, check=True)
            shutil.copy(Path(folder) / "out" / made, IMAGES / name)


if __name__ == "__main__":
    continuous_control()
    gridworld()
    if "--figures" in sys.argv[1:]:
        reproduced()
