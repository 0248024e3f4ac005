"""The learner ``primal_dual_rl`` beside behavioural cloning, on tasks that may be played in but not put into a state.

Environments are wrapped so that nothing but their episodes is known. Experts are those of ``experts.py``: the heuristic
for the lander, networks elsewhere. Scores are 0 for the random policy and 1 for the expert, by the returns of whole
episodes; policies take their best actions. Nothing is given but the environment, the demonstrations and the discount,
0.99, and all settings are the default ones. ``--every 20`` shows every 20th transition only.

Settings were chosen with seeds 0 to 3 and 40 to 51, after figures of seeds 100 to 102, 200 to 202, 210, 220 to 222 and
230 to 232 were seen; the default seeds are others. Each finished cell is a line of the file of results, and one that is
there is not run again: results of other code or budgets belong into another file. Processor time is that of learning;
``--speed`` says how many updates a second this machine does at the moment, ours and those of Stable-Baselines3's own
SAC with networks of the same sizes.

    OMP_NUM_THREADS=1 python benchmarks/neural.py
    python benchmarks/neural.py --tasks CartPole-v1 --demonstrations 1 4 10 --every 20 --learners primal_dual_rl
    python benchmarks/neural.py --speed
"""

import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import tyro
from continuous import print_table, processor_time
from experts import Kind, ReferenceReturns, episode_returns, has_expert, installed_id, load_expert

import lfd_gym as lfd
from lfd_gym.demonstrations.demonstrations import Episode
from lfd_gym.policies.tables import UniformPolicy

Record = dict[str, Any]

DISCOUNT = 0.99
#: Of the episodes that are scored: nothing else begins as they do.
TEST_SEED = 20_000
#: Task → demonstrations, and which of their transitions are shown, if nothing else is asked for.
TASKS = {
    "Pendulum-v1": (1, 1),
    "InvertedDoublePendulum-v5": (1, 1),
    "HalfCheetah-v5": (1, 1),
    "Hopper-v5": (1, 1),
    "LunarLander-v3": (5, 1),
    "CartPole-v1": (1, 20),
}

#: Of learners whose own default takes much longer than primal_dual_rl.
BUDGETS = {"gail": 400_000}


@dataclass(frozen=True)
class Options:
    """Measure scores and times, and print a table of them."""

    tasks: tuple[str, ...] = tuple(TASKS)
    """Environments."""
    demonstrations: tuple[int, ...] = ()
    """How many trajectories are given; by default 5 of the lander, 1 elsewhere."""
    every: int | None = None
    """Every so many transitions one is shown; by default 20 of CartPole, all elsewhere."""
    learners: tuple[str, ...] = ("primal_dual_rl", "bc")
    """Whose policies are scored."""
    seeds: tuple[int, ...] = (320, 321, 322, 323, 324)
    """Of demonstrations and learners; the default ones were never used to choose anything."""
    budget: int | None = None
    """Of primal_dual_rl, in environment steps."""
    episodes: int = 100
    """How many are scored."""
    out: Path = Path("out/neural.jsonl")
    """The file of results."""
    markdown: bool = False
    """Print the table as Markdown."""
    speed: bool = False
    """Print updates a second, and nothing else."""


@dataclass(frozen=True)
class Cell:
    """One run of one learner."""

    task: str
    m: int
    every: int
    learner: str
    seed: int
    budget: int | None

    def __str__(self) -> str:
        return f"{self.task} m={self.m} every {self.every} {self.learner} seed {self.seed}"


def cells(options: Options) -> Iterator[Cell]:
    """Yield what the options ask for."""
    for task in options.tasks:
        m, every = TASKS[task]
        for n_demonstrations in options.demonstrations or (m,):
            for seed in options.seeds:
                for learner in options.learners:
                    budget = options.budget if learner == "primal_dual_rl" else BUDGETS.get(learner)
                    yield Cell(task, n_demonstrations, options.every or every, learner, seed, budget)


class Opaque(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Changes nothing, but nobody knows that: only episodes are left."""

    def __init__(self, env: gym.Env) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)


def fragments(demos: lfd.Demonstrations, every: int, rng: np.random.Generator) -> lfd.Demonstrations:
    """Show every so many transitions one, from a random one of the first on; each is a fragment of its own."""
    pieces = []
    for episode in demos:
        actions = np.asarray(episode.actions)
        for t in range(int(rng.integers(min(every, len(actions)))), len(actions), every):
            ended = episode.terminated and t == len(actions) - 1
            pieces.append(Episode(episode.observations[t : t + 2], actions[t : t + 1], None, ended, truncated=False))
    return lfd.Demonstrations.from_episodes(pieces, demos.observation_space, demos.action_space)


def kind_of(task: str) -> Kind:
    return "sb3" if has_expert(task, "sb3") else "rule"


@cache
def references(task: str, n_episodes: int) -> ReferenceReturns:
    """Return what the random policy and the expert get."""
    uniform = UniformPolicy(gym.make(installed_id(task)).action_space)
    expert = load_expert(task, kind_of(task))
    return ReferenceReturns(*(episode_returns(task, who, n_episodes, TEST_SEED) for who in (uniform, expert)))


def measured(cell: Cell, options: Options) -> Record:
    """Run one cell."""
    env = Opaque(gym.make(installed_id(cell.task)))
    demos = lfd.collect(env, load_expert(cell.task, kind_of(cell.task)), cell.m, rng=np.random.default_rng(cell.seed))
    if cell.every > 1:
        demos = fragments(demos, cell.every, np.random.default_rng([cell.seed, 1]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", lfd.LfdGymWarning)
        begun = processor_time()
        task = lfd.Task(env, demos, discount=DISCOUNT)
        result = lfd.learn(task, cell.learner, rng=np.random.default_rng(cell.seed), budget=cell.budget)
        seconds = processor_time() - begun
    scale = references(cell.task, options.episodes)
    policy = lfd.as_policy(result.policy, deterministic=True)
    returns = episode_returns(cell.task, policy, options.episodes, TEST_SEED)
    return {
        **asdict(cell),
        "score": scale.score(float(returns.mean())),
        "return": float(returns.mean()),
        "median_return": float(np.median(returns)),
        "random_return": float(scale.random.mean()),
        "expert_return": float(scale.expert.mean()),
        "cpu": seconds,
        "env_steps": result.resources.env_steps,
        "warnings": [str(each.message) for each in caught if issubclass(each.category, lfd.LfdGymWarning)],
        **result.facts,
    }


def read(path: Path) -> dict[Cell, Record]:
    """Return the finished cells of a file of results."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []
    return {Cell(**{name: line[name] for name in Cell.__dataclass_fields__}): line for line in lines}


def run(options: Options) -> dict[Cell, Record]:
    """Run the cells that are not in the file yet; return all that are asked for and came to an end."""
    done, asked = read(options.out), list(cells(options))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for k, cell in enumerate(asked):
        if cell in done:
            continue
        print(f"… {k + 1}/{len(asked)} {cell}", end="", file=sys.stderr, flush=True)
        try:
            record = measured(cell, options)
        except Exception as error:  # the others can still be run, and this one again
            print(f": {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            continue
        done[cell] = record
        with options.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(f": {record['score']:.3f}, {record['cpu']:.0f} s", file=sys.stderr, flush=True)
    return {cell: done[cell] for cell in asked if cell in done}


HEADER = ("task", "m", "every", "learner", "seeds", "score: median (worst)", "each", "CPU s (most)", "distance", "kept")


def table(found: dict[Cell, Record]) -> list[tuple[str, ...]]:
    """Return the lines of the table, the header first."""
    rows: dict[tuple[Any, ...], list[Record]] = {}
    for cell, record in found.items():
        rows.setdefault((cell.task, cell.m, cell.every, cell.learner), []).append(record)
    lines: list[tuple[str, ...]] = [HEADER]
    for (task, m, every, learner), records in rows.items():
        scores, seconds = [r["score"] for r in records], [r["cpu"] for r in records]
        distances = [f"{r['distance']:.3f}" for r in records if "distance" in r]
        kept = ["first" if r["snapshot"] == 0 else str(r["snapshot"]) for r in records if "snapshot" in r]
        lines.append(
            (
                *(task, str(m), str(every), learner, str(len(records))),
                f"{np.median(scores):.3f} ({min(scores):.3f})",
                " / ".join(f"{score:.3f}" for score in scores),
                f"{np.median(seconds):.0f} ({max(seconds):.0f})",
                " / ".join(distances),
                " / ".join(kept),
            )
        )
    return lines


def updates_per_second(n_updates: int = 400) -> dict[str, float]:
    """Return how many updates a CPU second has, beside Stable-Baselines3's SAC of the same sizes."""
    import torch
    from stable_baselines3 import SAC

    from lfd_gym.baselines.neural.buffer import DemonstratedSteps
    from lfd_gym.baselines.neural.envs import CostVecEnv, training_envs
    from lfd_gym.baselines.neural.game import Game
    from lfd_gym.baselines.neural.players import CloningActorCritic

    torch.set_num_threads(1)
    env = Opaque(gym.make("Pendulum-v1"))
    demos = lfd.collect(env, load_expert("Pendulum-v1", "rule"), 1, rng=np.random.default_rng(0))
    task = lfd.Task(env, demos, discount=DISCOUNT)
    game = Game(task)
    envs = CostVecEnv(training_envs(task, 4), task, game, None, alternate=True)
    seen, done = (torch.as_tensor(np.array(part)) for part in (demos.acted_on, demos.actions))
    steps = DemonstratedSteps(seen, done / 2, seen, torch.zeros(len(seen), 1))
    settings: dict[str, Any] = {"learning_starts": 900, "batch_size": 128, "device": "cpu", "gradient_steps": 1}
    ours = CloningActorCritic(
        envs, steps, [128, 128], 0, learning_rate=5e-4, train_freq=1, buffer_size=1000, **settings
    )
    stock = SAC("MlpPolicy", gym.make("Pendulum-v1"), policy_kwargs={"net_arch": [128, 128]}, **settings)
    found = {}
    for name, model in (("primal_dual_rl", ours), ("SAC", stock)):
        model.learn(1000)
        begun = time.process_time()
        model.train(n_updates, 128)
        found[name] = n_updates / (time.process_time() - begun)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return 1 if a cell failed."""
    options = tyro.cli(Options, args=arguments, description=__doc__)
    if options.speed:
        print(", ".join(f"{name} {speed:.0f} updates/s" for name, speed in updates_per_second().items()))
        return 0
    unknown = set(options.tasks) - set(TASKS)
    if unknown:
        sys.exit(f"there are no experts of {', '.join(sorted(unknown))}; there are of {', '.join(TASKS)}")
    found = run(options)
    print_table(table(found), options.markdown)
    return int(len(found) < len(list(cells(options))))


if __name__ == "__main__":
    sys.exit(main())
