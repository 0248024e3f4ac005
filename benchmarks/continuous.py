"""The learner ``grid`` beside behavioural cloning and GAIL, on classic control and MuJoCo's InvertedPendulum.

Experts are those of ``experts.py``. Scores are 0 for the random policy and 1 for the expert, by the returns of whole
episodes of the Gymnasium environment; networks take their best actions there. Nothing is given to ``grid`` but the
environment, the demonstrations and the discount: 0.99, and 0.98 for Pendulum, whose episodes have 200 steps.

Conditions:

    plain             demonstrations as the expert gives them
    noisy             a tenth of the expert's actions are random ones; 1 is still the expert without noise
    subsampled        every fifth pair of the demonstrations is known, and stands for the four that follow it: with
                      weights γ^t of steps the pair at 5k then weighs γ^5k·(1 − γ^5) in all, as it must, and neither the
                      discount nor the simulator changes
    no-actions        actions are erased, so that costs are those of observations alone; BC and GAIL need actions, and
                      are left out
    changed-physics   learned as in plain, and played with the physics of changed_physics.py, which says what 1 is there
    n50 … n400        as plain, with about so many generic costs, for other frequencies than the default ones
    narrow, wide      as plain, with kernels of half and of twice the width

With changed physics ``replanned`` plans in the changed simulator for the cost that ``grid`` recovered, and sees no
demonstrations there; ``relearned`` is ``grid`` in it with the old demonstrations; all others, the ``expert`` too, keep
their policies. Elsewhere ``replanned`` plans where the cost was learned.

Each finished cell is a line of the file of results, and a cell that is there is not run again: results of other code or
budgets belong into another file. Processor time is that of learning, in all processes, after compilation. GAIL takes
minutes for a cell, and is run with the first of the seeds only: the column ``seeds`` says how many there were.

    OMP_NUM_THREADS=1 python benchmarks/continuous.py --tasks CartPole-v1 Pendulum-v1 --demonstrations 1 5
    python benchmarks/continuous.py --learners grid bc replanned relearned expert --conditions changed-physics
    python benchmarks/continuous.py --learners grid --conditions plain n50 n100 n200 n400 narrow wide
"""

import json
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import tyro
from changed_physics import CHANGES, changed_references, make_env, planned_policy, returns_of
from experts import RULES, Kind, ReferenceReturns, load_expert
from numpy.typing import NDArray

import lfd_gym as lfd
from lfd_gym.baselines import make_learner
from lfd_gym.baselines.grid_starts import demonstrated_states
from lfd_gym.policies.tables import UniformPolicy

Learner = Literal["grid", "bc", "gail", "replanned", "relearned", "expert"]
OtherCosts = Literal["n50", "n100", "n200", "n400", "narrow", "wide"]
Condition = Literal["plain", "noisy", "subsampled", "no-actions", "changed-physics", OtherCosts]
Record = dict[str, Any]

DISCOUNT, OTHER_DISCOUNTS = 0.99, {"Pendulum-v1": 0.98}
NOISE, EVERY = 0.1, 5
#: Of the episodes that are scored: nothing else begins as they do.
TEST_SEED = 20_000
#: What each learner runs, and whether its policy is a network.
RUNS = {"replanned": "grid", "relearned": "grid"}
NETWORKS = ("bc", "gail")


@dataclass(frozen=True)
class Options:
    """Measure scores and times, and print a table of them."""

    tasks: tuple[str, ...] = tuple(RULES)
    """Environments."""
    experts: tuple[Kind, ...] = ("rule", "sb3")
    """Written rules, trained networks."""
    demonstrations: tuple[int, ...] = (1, 5, 10)
    """How many trajectories are given."""
    learners: tuple[Learner, ...] = ("grid", "bc", "gail")
    """Whose policies are scored; replanned, relearned and expert are for changed physics."""
    conditions: tuple[Condition, ...] = ("plain",)
    """What is demonstrated and where it is played, see above."""
    seeds: tuple[int, ...] = (100, 101, 102, 103, 104)
    """Of the demonstrations; the default ones were never used to choose anything."""
    gail_seeds: int = 1
    """With how many of the seeds GAIL is run."""
    gail_steps: int = 300_000
    """Environment steps that GAIL may take."""
    episodes: int = 100
    """How many are scored."""
    out: Path = Path("out/continuous.jsonl")
    """The file of results."""
    markdown: bool = False
    """Print the table as Markdown."""


@dataclass(frozen=True)
class Cell:
    """One run of one learner."""

    task: str
    expert: Kind
    m: int
    learner: Learner
    condition: Condition
    seed: int

    @property
    def discount(self) -> float:
        """γ."""
        return OTHER_DISCOUNTS.get(self.task, DISCOUNT)

    @property
    def row(self) -> tuple[Any, ...]:
        """What cells of one row of the table have in common."""
        return self.task, self.expert, self.m, self.condition, self.learner

    @property
    def change(self) -> dict[str, float] | None:
        """The physics it is played with; None as they are."""
        return CHANGES[self.task][1] if self.condition == "changed-physics" else None

    @property
    def possible(self) -> bool:
        """Whether there is such a cell."""
        if self.condition == "no-actions" and self.learner in NETWORKS:
            return False
        if self.learner == "relearned" and self.condition != "changed-physics":
            return False
        return self.task in CHANGES or self.condition != "changed-physics"

    def __str__(self) -> str:
        return f"{self.task} {self.expert} m={self.m} {self.condition} {self.learner} seed {self.seed}"


def cells(options: Options) -> Iterator[Cell]:
    """Yield what the options ask for; what shares a learned policy follows each other."""
    for task in options.tasks:
        for expert in options.experts:
            for m in options.demonstrations:
                for k, seed in enumerate(options.seeds):
                    for learner in options.learners:
                        if learner == "gail" and k >= options.gail_seeds:
                            continue
                        asked = (Cell(task, expert, m, learner, condition, seed) for condition in options.conditions)
                        yield from (cell for cell in asked if cell.possible)


# -- demonstrations ---------------------------------------------------------------------------------------------------


class NoisyPolicy(lfd.Policy):
    """Takes a random action now and then."""

    def __init__(self, policy: lfd.Policy, random: UniformPolicy, noise: float) -> None:
        self.policy, self.random, self.noise = policy, random, noise

    def sample(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        meant, random = self.policy.sample(observations, rng), self.random.sample(observations, rng)
        slips = rng.random(len(meant)) < self.noise
        return np.where(slips.reshape(-1, *(1,) * (meant.ndim - 1)), random, meant)

    def greedy(self, observations: NDArray[Any]) -> NDArray[Any]:
        return self.policy.greedy(observations)


def subsampled(demos: lfd.Demonstrations, every: int) -> lfd.Demonstrations:
    """Let each pair that is known stand for those that follow it; the last observation is kept."""
    episodes = []
    for episode in demos:
        assert episode.actions is not None
        known = np.arange(len(episode.actions)) // every * every
        seen = episode.observations[np.append(known, len(known))]
        episodes.append(episode._replace(observations=seen, actions=episode.actions[known], rewards=None))
    assert demos.action_space is not None
    return lfd.Demonstrations.from_episodes(
        episodes, demos.observation_space, demos.action_space, demos.horizon, demos.provenance
    )


def demonstrations(cell: Cell) -> lfd.Demonstrations:
    """Return what the learner is shown."""
    env, expert = make_env(cell.task), load_expert(cell.task, cell.expert)
    if cell.condition == "noisy":
        expert = NoisyPolicy(expert, UniformPolicy(env.action_space), NOISE)
    demos = lfd.collect(env, expert, cell.m, rng=np.random.default_rng(cell.seed))
    if cell.condition == "subsampled":
        return subsampled(demos, EVERY)
    return demos.without_actions() if cell.condition == "no-actions" else demos


# -- learning ---------------------------------------------------------------------------------------------------------


def other_costs(default: lfd.FourierCosts, condition: Condition) -> lfd.FourierCosts:
    """Return the generic costs of a task with another number of them, or other widths."""
    factor = {"narrow": 0.5, "wide": 2.0}.get(condition, 1.0)
    frequencies, widths = default.frequencies / factor, [width * factor for width in default.widths]
    if condition.startswith("n") and condition[1:].isdigit():
        n_frequencies = int(condition[1:]) // 2  # a cosine and a sine each
        normal = np.random.default_rng(1).standard_normal((n_frequencies, frequencies.shape[1]))
        frequencies = normal / np.resize(widths, n_frequencies)[:, None]
    return lfd.FourierCosts(
        default.coding,
        frequencies,
        widths=widths,
        constant=default.constant,
        weights=default.weights,
        chosen_from=f"{default.chosen_from}, {condition}",
        chosen_from_demonstrations=True,
    )


def task_of(cell: Cell, demos: lfd.Demonstrations) -> lfd.Task:
    """Return what is to be learned."""
    env = make_env(cell.task, cell.change if cell.learner == "relearned" else None)
    task = lfd.Task(env, demos, discount=cell.discount)
    if cell.condition in get_args(OtherCosts):
        return replace(task, costs=other_costs(task.costs, cell.condition))
    return task


@lru_cache(maxsize=2)
def learned(cell: Cell, budget: int | None) -> tuple[lfd.LearningResult, lfd.Task, float, list[str]]:
    """Learn; return the result, its task, the processor time and the warnings."""
    demos = demonstrations(cell)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", lfd.LfdGymWarning)
        begun = processor_time()
        task = task_of(cell, demos)
        name = RUNS.get(cell.learner, cell.learner)
        result = lfd.learn(task, name, rng=np.random.default_rng(cell.seed), budget=budget)
        seconds = processor_time() - begun
    said = [str(each.message) for each in caught if issubclass(each.category, lfd.LfdGymWarning)]
    return result, task, seconds, said


def processor_time() -> float:
    """Return the time of this process and of those it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def as_learned(cell: Cell) -> Cell:
    """Return the cell that learns what this one plays."""
    if cell.learner == "relearned":
        return cell
    learner: Any = RUNS.get(cell.learner, cell.learner)
    return replace(cell, learner=learner, condition="plain" if cell.change is not None else cell.condition)


def policy_of(cell: Cell, gail_steps: int) -> tuple[lfd.Policy, Record]:
    """Return the policy that is scored, and what is to be told of it."""
    if cell.learner == "expert":
        return load_expert(cell.task, cell.expert), {"cpu": 0.0}
    result, task, seconds, said = learned(as_learned(cell), gail_steps if cell.learner == "gail" else None)
    known = ("mode", "distance", "distance_of_random", "grid", "repeat", "share_of_starts_far", "unseen_mass")
    facts = {"cpu": seconds, "warnings": said, **{name: result.facts[name] for name in known if name in result.facts}}
    if cell.learner != "replanned":
        return lfd.as_policy(result.policy, deterministic=cell.learner in NETWORKS), facts
    assert result.costs is not None
    assert result.cost_weights is not None
    begun = processor_time()
    policy = planned_policy(
        make_env(cell.task, cell.change),
        demonstrated_states(task),
        result.costs,
        result.cost_weights,
        cell.discount,
        np.random.default_rng(cell.seed),
    )
    return policy, {"cpu": processor_time() - begun}


def warm_up(cell: Cell) -> None:
    """Compile and import what the learners of a task need, on a grid of few points."""
    plain = replace(cell, condition="plain")
    task = task_of(plain, demonstrations(plain))
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if cell.learner in NETWORKS:
            lfd.learn(task, "bc", rng=rng, budget=1)
        elif cell.learner != "expert":
            lfd.learn(task, make_learner("grid", n_points=7), rng=rng, budget=6)


# -- scores -----------------------------------------------------------------------------------------------------------


@cache
def references(task: str, expert: Kind, discount: float, changed: bool, n_episodes: int) -> ReferenceReturns:
    """Return what the random policy and the expert get."""
    if changed:
        return changed_references(task, expert, discount, n_episodes, TEST_SEED)
    uniform = UniformPolicy(make_env(task).action_space)
    found = [returns_of(task, who, None, n_episodes, TEST_SEED) for who in (uniform, load_expert(task, expert))]
    return ReferenceReturns(*found)


def measured(cell: Cell, options: Options) -> Record:
    """Run one cell."""
    policy, facts = policy_of(cell, options.gail_steps)
    scale = references(cell.task, cell.expert, cell.discount, cell.change is not None, options.episodes)
    begun = time.perf_counter()
    returns = returns_of(cell.task, policy, cell.change, options.episodes, TEST_SEED)
    return {
        **asdict(cell),
        "score": scale.score(float(returns.mean())),
        "return": float(returns.mean()),
        "random_return": float(scale.random.mean()),
        "expert_return": float(scale.expert.mean()),
        "episodes": options.episodes,
        "playing_seconds": time.perf_counter() - begun,
        **facts,
    }


def read(path: Path) -> dict[Cell, Record]:
    """Return the finished cells of a file of results."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    names = Cell.__dataclass_fields__
    return {Cell(**{name: line[name] for name in names}): line for line in lines}


def run(options: Options) -> dict[Cell, Record]:
    """Run the cells that are not in the file yet; return all that are asked for and came to an end."""
    done, asked = read(options.out), list(cells(options))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    warm: set[tuple[str, bool]] = set()
    for k, cell in enumerate(asked):
        if cell in done:
            continue
        print(f"… {k + 1}/{len(asked)} {cell}", end="", file=sys.stderr, flush=True)
        try:
            kind = (cell.task, cell.learner in NETWORKS)
            if kind not in warm and cell.learner != "expert":
                warm_up(cell)
                warm.add(kind)
            record = measured(cell, options)
        except Exception as error:  # the others can still be run, and this one again
            print(f": {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            continue
        done[cell] = record
        with options.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        about = f"{record.get('mode', '')} {record['score']:.3f}, {record['cpu']:.1f} s".strip()
        print(f": {about}", file=sys.stderr, flush=True)
    return {cell: done[cell] for cell in asked if cell in done}


# -- the table --------------------------------------------------------------------------------------------------------

HEADER = (
    *("task", "expert", "m", "condition", "learner", "seeds", "score [worst]", "to plain", "CPU s (most)"),
    *("modes", "distance"),
)


def table(found: dict[Cell, Record]) -> list[tuple[str, ...]]:
    """Return the lines of the table, the header first."""
    rows: dict[tuple[Any, ...], list[Record]] = {}
    for cell, record in found.items():
        rows.setdefault(cell.row, []).append(record)
    means = {row: float(np.mean([record["score"] for record in records])) for row, records in rows.items()}
    lines: list[tuple[str, ...]] = [HEADER]
    for row, records in rows.items():
        task, expert, m, condition, learner = row
        scores, seconds = [r["score"] for r in records], [r["cpu"] for r in records]
        plain = means.get((task, expert, m, "plain", learner)) if condition != "plain" else None
        modes = Counter(record["mode"] for record in records if "mode" in record)
        distances = [record["distance"] for record in records if "distance" in record]
        lines.append(
            (
                *(task, expert, str(m), condition, learner, str(len(records))),
                f"{means[row]:.3f} [{min(scores):.3f}]",
                "" if plain is None else f"{means[row] - plain:+.3f}",
                f"{np.mean(seconds):.1f} ({max(seconds):.1f})",
                ", ".join(f"{mode} {count}" for mode, count in modes.most_common()),
                f"{np.mean(distances):.3f}" if distances else "",
            )
        )
    return lines


def print_table(lines: Sequence[tuple[str, ...]], markdown: bool) -> None:
    """Print lines as text, or as Markdown."""
    if markdown:
        lines = [lines[0], ("---",) * len(lines[0]), *lines[1:]]
        print("\n".join(f"| {' | '.join(line)} |" for line in lines))
        return
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return 1 if a cell failed."""
    options = tyro.cli(Options, args=arguments, description=__doc__)
    unknown = set(options.tasks) - set(RULES)
    if unknown:
        sys.exit(f"there are no experts of {', '.join(sorted(unknown))}; there are of {', '.join(RULES)}")
    found = run(options)
    print_table(table(found), options.markdown)
    changed = {cell.task for cell in found if cell.condition == "changed-physics"}
    for task in sorted(changed):
        print(f"{'- ' if options.markdown else ''}{task}, changed physics: {CHANGES[task][0]}")
    return int(len(found) < len(list(cells(options))))


if __name__ == "__main__":
    sys.exit(main())
