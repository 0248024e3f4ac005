"""Make the pictures of the README and of the site's first page again: `make pictures`.

Without arguments: continuous control from one demonstration, the gridworld, and the models of the pages on
environments. With ``--figures`` also those that `lfd-gym reproduce` makes, which takes minutes. The expert of the first
is a network kept in `benchmarks/experts`; reading it needs the ``sb3`` extra.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

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


def graph(page: str) -> None:
    """Draw the environment of a page's example, which has no geometry, as a graph: its states on a circle."""
    (example,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "environments" / f"{page}.md").read_text(), re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(example, names)
    mdp = lfd.FiniteMDP.from_env(names["env"], discount=0.9)
    cost = names["env"].unwrapped.cost_features[:, 0]
    expert = mdp.optimal_policy(cost)
    visits = mdp.occupancy(expert).sum(axis=1)
    moves = (np.asarray(mdp.transitions.todense()).reshape(mdp.n_states, mdp.n_actions, -1) * expert[..., None]).sum(1)
    paid = (cost.reshape(mdp.n_states, -1) * expert).sum(axis=1)
    angles = np.pi / 2 - 2 * np.pi * np.arange(mdp.n_states) / mdp.n_states
    places = np.column_stack([np.cos(angles), np.sin(angles)])

    figure = Figure(figsize=(6.4, 5.4), layout="constrained")
    axes = figure.subplots()
    sizes = 250 + 2500 * visits
    for state, following in zip(*np.nonzero(moves), strict=True):
        if state != following:
            look = {"arrowstyle": "-|>", "connectionstyle": "arc3,rad=0.15", "color": "0.45"}
            look |= {"shrinkA": sizes[state] ** 0.5 / 2, "shrinkB": sizes[following] ** 0.5 / 2}
            look |= {"linewidth": 0.3 + 3 * moves[state, following], "alpha": 0.2 + 0.7 * moves[state, following]}
            axes.annotate("", places[following], places[state], arrowprops=look)
    drawn = axes.scatter(*places.T, s=sizes, c=paid, cmap="coolwarm", edgecolors="0.3", zorder=3)
    for state, place in enumerate(places):
        axes.text(*place, str(state), ha="center", va="center", fontsize=8, zorder=4)
    axes.set_axis_off()
    axes.set(aspect="equal", xlim=(-1.25, 1.25), ylim=(-1.25, 1.25))
    figure.colorbar(drawn, ax=axes, label="cost of the expert's action", shrink=0.7)
    figure.savefig(IMAGES / f"{page}.png", dpi=100)


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
    graph("garnet")
    graph("tabular")
    if "--figures" in sys.argv[1:]:
        reproduced()
