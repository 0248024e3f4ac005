"""The folder of a benchmark run: its spec and one tidy file of results, safe against being killed at any moment.

``spec.json`` says what is run; it is written once, and a run with another spec in the same folder is refused.
``experts/`` and ``demonstrations/`` hold what all learners share. ``results.jsonl`` holds one JSON object per finished
cell. A row is appended with a single write and flushed to disk; a row cut short by a kill is recognised by its missing
end and dropped when the run resumes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lfd_gym.benchmark.experts import References, Shown
from lfd_gym.benchmark.reading import read_spec
from lfd_gym.benchmark.spec import BenchmarkSpec
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.files import FileContentError, append_line, refusing, replacing_file
from lfd_gym.policies.files import load_policy, save_policy
from lfd_gym.policies.policy import Policy

Row = dict[str, Any]


class ResultsFolder:
    """Where a benchmark keeps what it has found so far.

    Parameters
    ----------
    path
        The folder; made if need be.
    spec
        What is to be run there.
    """

    def __init__(self, path: str | Path, spec: BenchmarkSpec) -> None:
        self.path = Path(path)
        self.spec = spec
        self.path.mkdir(parents=True, exist_ok=True)
        spec_file = self.path / "spec.json"
        if spec_file.exists():
            known = read_spec(spec_file, imported=None)
            if known != spec:
                difference = "\n".join(spec_differences(known.to_dict(), spec.to_dict()))
                raise ValueError(f"{self.path} holds the results of another benchmark; use a new folder.\n{difference}")
        else:
            for name in ("results.jsonl", "report.html"):
                if (self.path / name).exists():
                    raise FileExistsError(
                        f"{self.path} holds {name} and no spec.json, so no benchmark wrote it; use a new folder"
                    )
            _write(spec_file, json.dumps(spec.to_dict(), indent=2) + "\n")
        self._drop_torn_row()

    @classmethod
    def open(cls, path: str | Path, imported: Sequence[str] = ()) -> ResultsFolder:
        """Open the folder of an earlier run; ``imported`` as for `read_spec`."""
        spec_file = Path(path) / "spec.json"
        if not spec_file.exists():
            raise ValueError(f"{path} is not the folder of a benchmark: it has no spec.json")
        return cls(path, read_spec(spec_file, imported))

    @property
    def results_file(self) -> Path:
        """The file of results."""
        return self.path / "results.jsonl"

    def rows(self) -> list[Row]:
        """Return the rows recorded so far, in the order of the spec's cells."""
        if not self.results_file.exists():
            return []
        lines = self.results_file.read_bytes().splitlines()
        found = {row["cell"]: row for row in (self._row(k, line) for k, line in enumerate(lines, start=1))}
        return [found[cell.id] for cell in self.spec.cells() if cell.id in found]

    def _row(self, number: int, line: bytes) -> Row:
        """Return one row, or say where the file holds none."""
        problem = "is no result; lfd-gym report --drop-torn leaves such lines out"
        with refusing(f"{self.results_file}, line {number}", problem):
            row = json.loads(line.decode("utf-8"))
            if not isinstance(row, dict) or not isinstance(row["cell"], str) or not isinstance(row["status"], str):
                raise ValueError("it does not say its cell and its status")
            return row

    def drop_torn_rows(self) -> list[int]:
        """Rewrite the file without the lines that are no results, and return their numbers."""
        kept, dropped = [], []
        for number, line in enumerate(self.results_file.read_bytes().splitlines(), start=1):
            try:
                kept.append(self._row(number, line))
            except FileContentError:
                dropped.append(number)
        if dropped:
            self._rewrite(kept)
        return dropped

    def has_policy(self, cell: str) -> bool:
        """Whether the policy of a cell was kept: one that looks ahead with the simulator cannot be."""
        return self._policy_file(cell).exists()

    def policy(self, cell: str) -> Policy:
        """Return the policy found in a cell."""
        return load_policy(self._policy_file(cell))

    def append(self, row: Row, policy: Policy | None = None) -> None:
        """Record one row, and the policy found: after this returns, both survive a kill."""
        if policy is not None:
            file = self._policy_file(row["cell"])
            file.parent.mkdir(exist_ok=True)
            save_policy(policy, file, overwrite=True)
        append_line(self.results_file, json.dumps(row, allow_nan=False))

    # -- what is shown to learners ------------------------------------------------------------------------------------

    def shown(self, environment: str, wanted: Sequence[tuple[int, int]]) -> Shown | None:
        """Return what is shown in an environment, for these numbers of demonstrations and seeds; None if it is missing.

        What is kept is kept whole: the file with the references is written last.
        """
        file = self.path / "experts" / f"{environment}.json"
        files = {pair: self._demonstration_file(environment, *pair) for pair in wanted}
        if not file.exists() or not all(each.exists() for each in files.values()):
            return None
        with refusing(file, "does not hold the references of an expert"):
            kept = json.loads(file.read_text(encoding="utf-8"))
            references = None if kept["references"] is None else References(**kept["references"])
        policy = file.with_suffix(".npz")
        return Shown(
            load_policy(policy) if policy.exists() else None,
            references,
            {pair: Demonstrations.load(each) for pair, each in files.items()},
        )

    def keep_shown(self, environment: str, shown: Shown) -> None:
        """Keep what is shown in an environment."""
        for folder in ("experts", "demonstrations"):
            (self.path / folder).mkdir(exist_ok=True)
        for pair, demonstrations in shown.demonstrations.items():
            demonstrations.save(self._demonstration_file(environment, *pair), overwrite=True)
        file = self.path / "experts" / f"{environment}.json"
        if shown.expert is not None:
            save_policy(shown.expert, file.with_suffix(".npz"), overwrite=True)
        references = None if shown.references is None else asdict(shown.references)
        _write(file, json.dumps({"references": references}, indent=2) + "\n")

    def _demonstration_file(self, environment: str, count: int, seed: int) -> Path:
        return self.path / "demonstrations" / f"{environment}~m={count}~seed={seed}.npz"

    # -- files --------------------------------------------------------------------------------------------------------

    def forget_failures(self) -> None:
        """Drop the rows of failed cells, so that the next run tries them again."""
        self._rewrite([row for row in self.rows() if row["status"] == "ok"])

    def put_in_order(self) -> None:
        """Rewrite the file in the order of the spec's cells, so that it does not show how the cells were scheduled."""
        self._rewrite(self.rows())

    def _policy_file(self, cell: str) -> Path:
        return self.path / "policies" / f"{cell.replace('/', '~')}.npz"

    def _rewrite(self, rows: list[Row]) -> None:
        _write(self.results_file, "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows))

    def _drop_torn_row(self) -> None:
        if self.results_file.exists():
            content = self.results_file.read_bytes()
            if content and not content.endswith(b"\n"):
                _write(self.results_file, content[: content.rfind(b"\n") + 1].decode(errors="replace"))


def _write(path: Path, text: str) -> None:
    with replacing_file(path, overwrite=True) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def spec_differences(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """List what differs between two pieces of plain data, one line each."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from spec_differences(old.get(key), new.get(key), f"{where}.{key}" if where else str(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from spec_differences(before, after, f"{where}[{index}]")
    elif old != new:
        yield f"  {where}: {json.dumps(old)} there, {json.dumps(new)} asked for"


def first_seeds(results: ResultsFolder, rows: Sequence[Row]) -> dict[str, Row]:
    """Return the first row of each learner with the fewest demonstrations, which show most, and a policy kept."""
    fewest = min(row["n_demonstrations"] for row in rows)
    chosen: dict[str, Row] = {}
    for row in rows:
        if row["n_demonstrations"] == fewest and results.has_policy(row["cell"]):
            chosen.setdefault(row["learner"], row)
    return chosen
