"""Write `docs/results.md` from the result files in `benchmarks/results/`, and add those of a benchmark run to them.

A result file has a line of JSON for each run, with what the page needs and where it comes from. What others have
published, and under what protocol, is in `published.json`, as facts.

    lfd-gym benchmark --preset classic --out out/classic     # any benchmark
    python benchmarks/results_page.py --add out/classic      # takes its runs over, and writes the page
    python benchmarks/results_page.py                        # writes the page
"""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import tyro

from lfd_gym.assessment.statistics import run_interval
from lfd_gym.benchmark import ResultsFolder
from lfd_gym.benchmark.presets import Preset, preset
from lfd_gym.benchmark.spec import EnvironmentSpec, named_stream
from lfd_gym.benchmark.summary import knowledge, mean_of

Line = dict[str, Any]

ROOT = Path(__file__).parents[1]
#: With fewer runs than this an interval says nothing.
FEWEST_FOR_INTERVAL = 3
SOURCES = {
    "ppil": "Viano et al., *Proximal Point Imitation Learning* (2022), offline experiments: the **best checkpoint** "
    "during learning, experts of their own",
    "iq": "README of IQ-Learn: one demonstration of which every 20th pair is shown",
    "p2il": "the runs stored in the P2IL repository, at 495,000 environment steps",
}
NOTES = """\
Scores are 0 for the random policy and 1 for the expert, by the returns of 100 whole episodes of the policy **at the end
of learning**, or, on tables, by the known true cost. Behind the mean score over seeds stand the worst and the best of
them; with three seeds or more there is Student's 95 % interval. *Best checkpoint*: the mean score of the best of the
final policy and those after each tenth of the budget, chosen in each run by the returns of 20 episodes and measured by
100 others. To choose it takes the reward, which learners are not shown: it is there for comparison with others who
publish it. Learners that do not play have no checkpoints, and runs of before they were kept have none either.
Experts and demonstrations are those that come with the package ([`lfd.datasets`](demonstrations.md)); each seed is
shown other episodes of them, whole ones. *Knows*: what the learner was told of the world, and whose costs it weighed.
*Certified*: the mean bound of the distance to the demonstrations (*data*) or to the expert, which holds with 95 %
certainty in each run, and in how many runs it is below the distance of random play."""


@dataclass(frozen=True)
class Options:
    """Add results, and write the page."""

    add: tuple[Path, ...] = ()
    """Folders of benchmark runs to take over; a run that is there already is replaced."""
    results: Path = ROOT / "benchmarks" / "results"
    """The folder of result files."""
    page: Path = ROOT / "docs" / "results.md"
    """What is written."""


# -- result files -----------------------------------------------------------------------------------------------------


def add(folder: Path, results: Path) -> Path:
    """Take the successful runs of a benchmark over into the file of the same name."""
    run = ResultsFolder.open(folder)
    file = results / f"{folder.resolve().name}.jsonl"
    places = {environment.label: environment for environment in run.spec.environments}
    known = {line["cell"]: line for line in read(file)}
    for row in run.rows():
        if row["status"] == "ok":
            known[row["cell"]] = shortened(row, places[row["environment"]])
    file.write_text("".join(json.dumps(line) + "\n" for line in known.values()), encoding="utf-8")
    return file


#: What is kept of the best checkpoint.
_BEST = {"score": "normalised_score", "return": "episode_return", "after": "after"}


def shortened(row: Line, place: EnvironmentSpec) -> Line:
    """Return what is kept of a run."""
    found, facts, origin = row["evaluation"], row["facts"], row["provenance"]
    used = found["resources"]
    best = row.get("best") or {}
    return {
        **{name: row[name] for name in ("cell", "environment", "learner", "n_demonstrations", "seed", "knows")},
        **{"env_id": place.env_id, "discount": place.discount, "expert": place.expert},
        "score": found["normalised_score"],
        **{name: found[name] for name in ("episode_return", "expert_return", "random_return", "true_gap")},
        **{f"best_{name}": best.get(key) for name, key in _BEST.items()},
        "n_episodes": None if found["sampling"] is None else found["sampling"]["n_rollouts"],
        **{"cpu_seconds": round(used["cpu_seconds"], 3), "steps": used["env_steps"] + used["oracle_calls"]},
        **{"bound": facts["certified_distance"], "about": facts["certified_about"]},
        "beats_random": not facts["certificate_empty"],
        **{"config": origin["config"], "revision": origin["revision"], "versions": origin["versions"]},
    }


def read(file: Path) -> list[Line]:
    """Return the lines of a result file."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


# -- the page ---------------------------------------------------------------------------------------------------------


def page(results: Path) -> str:
    """Return the page."""
    files = {file.stem: read(file) for file in sorted(results.glob("*.jsonl"))}
    lines = [line for those in files.values() for line in those]
    parts = ["# Results", NOTES, "## What was run", "\n".join(run_text(name, those) for name, those in files.items())]
    for environment in dict.fromkeys(line["environment"] for line in lines):
        own = [line for line in lines if line["environment"] == environment]
        parts += [f"## {environment}", own_table(own)]
    published = json.loads((results / "published.json").read_text(encoding="utf-8"))
    parts += ["## What others have published", published_text(published, lines), ADDING]
    return "\n\n".join(parts) + "\n"


ADDING = """\
## Adding a row

```sh
lfd-gym benchmark --preset classic --learners bc grid --demonstrations 1 5 --seeds 0 1 --out out/classic
python benchmarks/results_page.py --add out/classic
```

The second command takes the runs over into `benchmarks/results/classic.jsonl` and writes this page again."""


def run_text(name: str, lines: Sequence[Line]) -> str:
    """Say what a file holds: learners that were run alike together."""
    alike: dict[str, list[Line]] = {}
    for learner in dict.fromkeys(line["learner"] for line in lines):
        own = [line for line in lines if line["learner"] == learner]
        alike.setdefault(where_text(own), []).extend(own)
    parts = [f"{listed(line['learner'] for line in own)} on {where} ({len(own)} runs)" for where, own in alike.items()]
    return f"- `{name}`: {len(lines)} runs; {'; '.join(parts)}.{part_of_preset(name, lines)}"


def where_text(lines: Sequence[Line]) -> str:
    """Say on what, with how many demonstrations, on which seeds and with which versions some runs were."""
    seeds, counts = sorted({line["seed"] for line in lines}), sorted({line["n_demonstrations"] for line in lines})
    versions = {(line["versions"]["gymnasium"], line["versions"]["numpy"]) for line in lines}
    made_with = listed(f"Gymnasium {gymnasium}, NumPy {numpy}" for gymnasium, numpy in sorted(versions))
    return (
        f"{listed(line['environment'] for line in lines)} with {listed(counts)} demonstrations, seeds {listed(seeds)}, "
        f"{made_with}, revision {listed(line['revision'] for line in lines)}"
    )


def part_of_preset(name: str, lines: Sequence[Line]) -> str:
    """Say what a preset of this name would run beside."""
    if name not in get_args(Preset):
        return ""
    cells, done = preset(name).cells(), {line["cell"] for line in lines}
    if all(cell.id in done for cell in cells):
        return " That is the whole preset."
    more = {cell.learner.label for cell in cells} - {line["learner"] for line in lines}
    counts, seeds = listed(sorted({c.n_demonstrations for c in cells})), listed(sorted({c.seed for c in cells}))
    others = " and more learners" if more else ""
    return f" It is a part of the preset, which has {counts} demonstrations, seeds {seeds}{others}; no more was run."


def own_table(lines: Sequence[Line]) -> str:
    """Return the table of one environment."""
    first = lines[0]
    who = (
        f"`{first['env_id']}`, discount {first['discount']:g}, expert: `{first['expert']}`"
        + (f", whose mean return is {first['expert_return']:.1f}" if first["expert_return"] is not None else "")
        + (f", that of random play {first['random_return']:.1f}" if first["random_return"] is not None else "")
    )
    head = (
        "| m | learner | final score (worst to best) | 95 % interval | best checkpoint | final return | seeds "
        "| certified | steps | CPU s | knows |"
    )
    table = [head, "|---:|---|---:|---|---:|---:|---:|---|---:|---:|---|"]
    groups: dict[tuple[int, str], list[Line]] = {}
    for line in sorted(lines, key=lambda line: (line["n_demonstrations"], -(line["score"] or 0.0))):
        groups.setdefault((line["n_demonstrations"], line["learner"]), []).append(line)
    table += [own_line(*key, those) for key, those in groups.items()]
    return f"{who}.\n\n" + "\n".join(table)


def own_line(count: int, learner: str, lines: Sequence[Line]) -> str:
    """Return the line of one learner with one number of demonstrations."""
    scores = [line["score"] for line in lines if line["score"] is not None]
    score = f"{sum(scores) / len(scores):.3f} ({min(scores):.3f} to {max(scores):.3f})" if scores else "-"
    interval = "-"
    if len(scores) >= FEWEST_FOR_INTERVAL:
        found = run_interval([[score] for score in scores], named_stream(f"results of {lines[0]['cell']}"))
        interval = f"{found.low:.3f} to {found.high:.3f}"
    gained, bound = (mean_of(lines, lambda line, name=name: line[name]) for name in ("episode_return", "bound"))
    bests = [line.get("best_score") for line in lines]
    best = "-" if None in bests else f"{sum(bests) / len(bests):.3f}"
    about = {"demonstrations": "data"}.get(lines[0]["about"], lines[0]["about"])
    nearer = sum(line["beats_random"] for line in lines)
    certified = "-" if bound is None else f"{bound:.3f} to the {about}; {nearer} of {len(lines)} beat random"
    steps, seconds = (mean_of(lines, lambda line, name=name: line[name]) for name in ("steps", "cpu_seconds"))
    final = "-" if gained is None else f"{gained:.1f}"
    texts = (count, f"`{learner}`", score, interval, best, final, len(lines), certified)
    return f"| {' | '.join(map(str, texts))} | {steps:,.0f} | {seconds:.1f} | {knowledge(lines[0])} |"


def published_text(published: Sequence[Line], lines: Sequence[Line]) -> str:
    """Return the tables of others, with ours from the fewest demonstrations beside them."""
    parts = [
        "Returns as their authors give them, with the number of demonstrations before the colon. They are facts about "
        "other protocols, not runs of ours: experts, checkpoints and versions of the environments differ. Ours are of "
        "the final policy, and where there are any also of the best checkpoint."
    ]
    for task in dict.fromkeys(entry["task"] for entry in published):
        table = ["| system | return by demonstrations | source |", "|---|---|---|"]
        for entry in (each for each in published if each["task"] == task):
            said = ", ".join(f"{count}: {value}" for count, value in entry["returns"].items())
            table.append(f"| {entry['system']} | {said} | {SOURCES[entry['source']]} |")
        ours = [line for line in lines if line["env_id"].partition("-v")[0] == task.partition("-v")[0]]
        for learner in dict.fromkeys(line["learner"] for line in ours):
            table += our_lines(learner, [line for line in ours if line["learner"] == learner])
        if not ours:
            table.append("| here | not run yet | |")
        parts.append(f"### {task}\n\n" + "\n".join(table))
    return "\n\n".join(parts)


def our_lines(learner: str, own: Sequence[Line]) -> list[str]:
    """Return the lines of one learner of ours: its final policies, and its best checkpoints if there are any."""
    n_seeds, lines = len({line["seed"] for line in own}), []
    seeds = "one seed" if n_seeds == 1 else f"{n_seeds} seeds"
    for kept, what in (("episode_return", "final policy"), ("best_return", "**best checkpoint**")):
        said = []
        for count in sorted({line["n_demonstrations"] for line in own}):
            found = [line.get(kept) for line in own if line["n_demonstrations"] == count]
            if None not in found:
                said.append(f"{count}: {sum(found) / len(found):.0f}")
        if said:
            lines.append(f"| **`{learner}`, here** | {', '.join(said)} | {what}, {seeds}, expert as above |")
    return lines


def listed(values: Iterable[Any]) -> str:
    """Return distinct values as a text."""
    return ", ".join(str(value) for value in dict.fromkeys(values))


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for."""
    options = tyro.cli(Options, args=arguments, description=__doc__)
    for folder in options.add:
        print(f"runs of {folder}: {add(folder, options.results)}")
    options.page.write_text(page(options.results), encoding="utf-8")
    print(f"written: {options.page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
