"""What a benchmark found, in one sentence and in tables: by learner, and by environment and number of demonstrations.

A learner *reaches the expert* where its mean score over seeds is at least `REACHED`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lfd_gym.assessment.statistics import Interval, run_interval
from lfd_gym.benchmark.spec import named_stream
from lfd_gym.validation import FloatArray

Row = dict[str, Any]

#: A mean score from here on is that of the expert, for all practical purposes.
REACHED = 0.95
#: Learners that are there to compare with.
REFERENCES = ("expert", "random")


@dataclass(frozen=True)
class Group:
    """The runs of one learner in one environment with the same number of demonstrations, one for each seed."""

    environment: str
    n_demonstrations: int
    learner: str
    rows: tuple[Row, ...]

    @property
    def scores(self) -> list[float]:
        """The normalised scores, as far as there are any."""
        found = (row["evaluation"]["normalised_score"] for row in self.rows)
        return [round(float(score), 9) + 0.0 for score in found if score is not None]  # no minus before a zero

    @property
    def score(self) -> float | None:
        """Their mean."""
        return float(np.mean(self.scores)) if self.scores else None

    @property
    def best_score(self) -> float | None:
        """The mean score of the best checkpoints; None where learners have none, or a run is of before there were."""
        if not all(row.get("best") for row in self.rows):
            return None
        return self.mean(lambda row: row["best"]["normalised_score"])

    @property
    def reached(self) -> bool:
        """Whether the expert is reached."""
        return self.score is not None and self.score >= REACHED

    @property
    def bound(self) -> float | None:
        """The mean certified distance."""
        return self.mean(lambda row: row["facts"].get("certified_distance"))

    @property
    def n_beat_random(self) -> int:
        """Of how many runs the certificate says that they are nearer to the expert than random play."""
        return sum(not row["facts"].get("certificate_empty", True) for row in self.rows)

    def mean(self, value_of: Callable[[Row], Any]) -> float | None:
        """Return the mean of what is known of the runs, None if nothing is."""
        return mean_of(self.rows, value_of)


@dataclass(frozen=True)
class SummaryRow:
    """What a learner reached, over all its successful runs.

    Attributes
    ----------
    learner
        Its label.
    knows, costs
        What it was told, in words.
    score
        Interquartile mean of the normalised score with its 95 % interval over runs, see `run_interval`; None if no run
        has a score.
    n_reached, n_groups
        In how many of the environments with their numbers of demonstrations the expert is reached.
    steps, cpu_seconds
        Means over runs; steps are environment steps plus draws from a simulator or model.
    n_runs
        How many runs succeeded.
    """

    learner: str
    knows: str
    costs: str
    score: Interval | None
    n_reached: int
    n_groups: int
    steps: float
    cpu_seconds: float
    n_runs: int


def groups_of(rows: Iterable[Row]) -> list[Group]:
    """Put the successful runs of different seeds together, in the order in which they come."""
    found: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        if row["status"] == "ok":
            found.setdefault((row["environment"], row["n_demonstrations"], row["learner"]), []).append(row)
    return [Group(*key, tuple(same)) for key, same in found.items()]


def summarise(rows: Sequence[Row]) -> list[SummaryRow]:
    """Summarise successful rows by learner, best score first."""
    groups = groups_of(rows)
    learners = dict.fromkeys(group.learner for group in groups)
    summary = [_summary_of(learner, [group for group in groups if group.learner == learner]) for learner in learners]
    return sorted(summary, key=lambda entry: np.inf if entry.score is None else -entry.score.value)


def conclusion(rows: Sequence[Row]) -> str:
    """Say in one sentence who reaches the expert from the fewest demonstrations."""
    groups = [group for group in groups_of(rows) if group.learner not in REFERENCES and group.scores]
    if not groups:
        return "No run of a learner came to an end with a score."
    fewest = {name: min(g.n_demonstrations for g in groups if g.environment == name) for name in _environments(groups)}
    first = [group for group in groups if group.n_demonstrations == fewest[group.environment]]
    counts: dict[str, list[bool]] = {}
    for group in sorted(first, key=lambda group: -(group.score or 0.0)):
        counts.setdefault(group.learner, []).append(group.reached)
    ranked = sorted(counts.items(), key=lambda item: -sum(item[1]))
    some = [(learner, sum(hits), len(hits)) for learner, hits in ranked if any(hits)]
    none = [learner for learner, hits in ranked if not any(hits)]
    start = f"From {_words(set(fewest.values()))}"
    standard = f"(a mean score of {REACHED:g} or more)"
    if not some:
        return f"{start}, nobody reaches the expert {standard} {_places(list(fewest))}: not {_listed(none, 'nor')}."
    if len(fewest) == 1:
        reach = "reaches" if len(some) == 1 else "reach"
        said = f"{_listed([learner for learner, _, _ in some])} {reach} the expert {_places(list(fewest))} {standard}"
    else:
        alike: dict[tuple[int, int], list[str]] = {}
        for learner, hits, total in sorted(some, key=lambda entry: (-entry[1], entry[2])):
            alike.setdefault((hits, total), []).append(learner)
        parts = [f"{_listed(learners)} on {hits} of {total}" for (hits, total), learners in alike.items()]
        reach = "reach" if len(next(iter(alike.values()))) > 1 else "reaches"
        parts[0] = parts[0].replace(" on ", f" {reach} the expert on ", 1)
        said = f"{'; '.join(parts)} environments {standard}"
    return f"{start}, {said}" + (f"; {_listed(none)} {'do' if len(none) > 1 else 'does'} not." if none else ".")


def format_tables(rows: Sequence[Row]) -> str:
    """Return a text table for each environment: a line for each learner, its score at each number of demonstrations."""
    groups, blocks = groups_of(rows), []
    for environment in _environments(groups):
        here = [group for group in groups if group.environment == environment]
        counts = sorted({group.n_demonstrations for group in here})
        seeds = len({row["seed"] for group in here for row in group.rows})
        head = ["learner", "knows", *(f"m={count}" for count in counts), "steps", "CPU s"]
        lines = [head, *(_line(learner, here, counts) for learner in _by_score(here))]
        widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
        said = ("  ".join(_placed(text, k, widths[k]) for k, text in enumerate(line)).rstrip() for line in lines)
        heading = f"{environment}: final score by demonstrations m, mean and worst of {seeds} seeds"
        blocks.append("\n".join([heading, *said]))
    return "\n\n".join(blocks)


def _line(learner: str, groups: Sequence[Group], counts: Sequence[int]) -> list[str]:
    own = {group.n_demonstrations: group for group in groups if group.learner == learner}
    rows = [row for group in own.values() for row in group.rows]
    scores = [score_text(own[count]) if count in own else "" for count in counts]
    steps, seconds = mean_of(rows, samples_of) or 0.0, mean_of(rows, seconds_of) or 0.0
    return [learner, knowledge(rows[0]), *scores, f"{steps:,.0f}", f"{seconds:.1f}"]


def _placed(text: str, column: int, width: int) -> str:
    return text.ljust(width) if column < 2 else text.rjust(width)


def _by_score(groups: Sequence[Group]) -> list[str]:
    """Return the learners, the best mean score first."""
    scores: dict[str, list[float]] = {}
    for group in groups:
        scores.setdefault(group.learner, []).extend(group.scores)
    return sorted(scores, key=lambda learner: -np.mean(scores[learner]) if scores[learner] else np.inf)


# -- single runs ------------------------------------------------------------------------------------------------------


def samples_of(row: Row) -> float:
    """Return the environment steps plus draws of a simulator or model of a run."""
    used = row["evaluation"]["resources"]
    return float(used["env_steps"] + used["oracle_calls"])


def seconds_of(row: Row) -> float:
    """Return the processor seconds of a run's learning."""
    return float(row["evaluation"]["resources"]["cpu_seconds"])


def knowledge(row: Row) -> str:
    """Say what a learner of a run was told: how much of the world, and whose costs."""
    told = row["knows"]
    words = {"demonstrations": "data only"}.get(told["access"], told["access"])
    if told["expert"]:
        words = "the expert"
    return f"{words}, {told['costs']} costs" if told["costs"] else words


def score_text(group: Group) -> str:
    """Return the mean score and the worst; nothing where there is none."""
    if group.score is None:
        return "-"
    return f"{group.score:.3f}" + (f" ({min(group.scores):.3f})" if len(group.scores) > 1 else "")


def interval_text(interval: Interval) -> str:
    """Return the ends of an interval, with the number of runs it rests on; one run has none."""
    if interval.n_runs == 1:
        return "one run"
    return f"[{interval.low:.3f}, {interval.high:.3f}] of {interval.n_runs}"


def mean_of(rows: Sequence[Row], value_of: Callable[[Row], Any]) -> float | None:
    """Return the mean of what is known of some runs, None if nothing is."""
    found = [value for value in map(value_of, rows) if value is not None]
    return float(np.mean(found)) if found else None


# -- the small things -------------------------------------------------------------------------------------------------


def _summary_of(learner: str, groups: Sequence[Group]) -> SummaryRow:
    rows = [row for group in groups for row in group.rows]
    words = sorted({knowledge(row) for row in rows})
    matrix = _score_matrix(groups)
    return SummaryRow(
        learner=learner,
        knows=" / ".join(dict.fromkeys(text.partition(", ")[0] for text in words)),
        costs=" / ".join(dict.fromkeys(text.partition(", ")[2].removesuffix(" costs") for text in words)).strip(" /"),
        score=None if matrix is None else run_interval(matrix, named_stream(f"bootstrap of {learner}")),
        n_reached=sum(group.reached for group in groups),
        n_groups=len(groups),
        steps=mean_of(rows, samples_of) or 0.0,
        cpu_seconds=mean_of(rows, seconds_of) or 0.0,
        n_runs=len(rows),
    )


def _score_matrix(groups: Sequence[Group]) -> FloatArray | None:
    """Return the (runs, tasks) scores; where runs failed, every task keeps as many runs as the one with the fewest."""
    tasks = [
        [row["evaluation"]["normalised_score"] for row in sorted(group.rows, key=lambda row: int(row["seed"]))]
        for group in groups
    ]
    known = [[score for score in scores if score is not None] for scores in tasks]
    known = [scores for scores in known if scores]
    if not known:
        return None
    fewest = min(map(len, known))
    return np.array([scores[:fewest] for scores in known]).T


def _environments(groups: Sequence[Group]) -> list[str]:
    return list(dict.fromkeys(group.environment for group in groups))


def _places(environments: Sequence[str]) -> str:
    return f"on {environments[0]}" if len(environments) == 1 else f"on any of {len(environments)} environments"


def _words(counts: set[int]) -> str:
    if counts == {1}:
        return "one demonstration"
    if len(counts) == 1:
        return f"{next(iter(counts))} demonstrations"
    return f"the fewest demonstrations ({_listed([str(count) for count in sorted(counts)], 'or')})"


def _listed(words: Sequence[str], last: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"
