"""The commands ``benchmark`` and ``report``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import tyro

from lfd_gym.baselines import make_learner
from lfd_gym.benchmark.durations import forecast
from lfd_gym.benchmark.presets import Preset, narrowed, preset
from lfd_gym.benchmark.reading import read_spec
from lfd_gym.benchmark.report import write_report
from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.benchmark.runner import run_benchmark
from lfd_gym.benchmark.spec import EnvironmentSpec, LearnerSpec
from lfd_gym.benchmark.summary import conclusion, format_tables
from lfd_gym.commands.arguments import make_env
from lfd_gym.commands.workers import Workers
from lfd_gym.envs.named import import_modules


@dataclass(frozen=True)
class Benchmark:
    """Run a comparison of learners; started again in the same folder, it goes on where it stopped."""

    out: Path
    """The folder for results."""
    preset: Preset | None = None
    """A benchmark that comes with the package: quick (minutes), paper (the paper's experiment), classic (classic
    control, an evening), control (LunarLander and MuJoCo's pendulums, a night), or full (every learner, days)."""
    spec: Path | None = None
    """A benchmark of your own: a TOML file, or the spec.json of an earlier run."""
    environments: tuple[str, ...] = ()
    """Only the environments of these labels."""
    learners: tuple[str, ...] = ()
    """Only the learners of these labels."""
    demonstrations: tuple[int, ...] = ()
    """Only these numbers of demonstrations."""
    seeds: tuple[int, ...] = ()
    """Only these seeds."""
    retry_failed: bool = False
    """Run again what failed before."""
    imports: Annotated[tuple[str, ...], tyro.conf.arg(name="import")] = ()
    """Modules of yours that environments and learners of the spec come from; a file alone imports nothing."""
    where: Annotated[Workers, tyro.conf.arg(name="")] = field(default_factory=Workers)

    def run(self) -> None:
        """Run what is missing, print the summary, write the report."""
        if (self.preset is None) == (self.spec is None):
            raise ValueError("give either --preset or --spec")
        import_modules(self.imports)
        if self.preset is not None:
            spec = preset(self.preset)
        else:
            spec = read_spec(self.spec, self.imports, _try_out)  # type: ignore[arg-type]
        spec = narrowed(spec, self.environments, self.learners, self.demonstrations, self.seeds)
        print(f"{forecast(spec)}, {self.where.count} at a time; what is done already is not run again", flush=True)
        try:
            results = run_benchmark(spec, self.out, self.where.make(), retry_failed=self.retry_failed)
        except KeyboardInterrupt:
            print("the same call goes on where it stopped", file=sys.stderr)
            raise
        rows = results.rows()
        succeeded = [row for row in rows if row["status"] == "ok"]
        print(f"{format_tables(succeeded)}\n\n{conclusion(succeeded)}")
        _print_failures([row for row in rows if row["status"] != "ok"])
        print(f"results: {results.results_file}")
        print(f"report:  {write_report(self.out, self.imports)}")


def _try_out(part: EnvironmentSpec | LearnerSpec) -> None:
    """Refuse an environment or a learner that cannot be made, before anything runs."""
    what = f"{'environment' if isinstance(part, EnvironmentSpec) else 'learner'} {part.label}"
    try:
        if isinstance(part, EnvironmentSpec):
            make_env(part.env_id, part.kwargs).close()  # type: ignore[no-untyped-call]
        else:
            make_learner(part.name, **part.settings)
    except ImportError:
        return  # an extra that is not installed: those runs fail, the others do not
    except (TypeError, ValueError, gym.error.Error) as error:
        raise ValueError(f"{what}: {error}") from error


def _print_failures(rows: Sequence[dict[str, Any]]) -> None:
    """Print each error once, with how many runs ended by it."""
    cells: dict[str, list[str]] = {}
    for row in rows:
        cells.setdefault(row["error"].splitlines()[0], []).append(row["cell"])
    for error, those in cells.items():
        others = f" and {len(those) - 1} other runs" if len(those) > 1 else ""
        print(f"failed: {those[0]}{others}: {error}")


@dataclass(frozen=True)
class Report:
    """Write the report of a benchmark: one page with tables, charts and maps."""

    folder: tyro.conf.Positional[Path]
    """The folder of a benchmark run."""
    imports: Annotated[tuple[str, ...], tyro.conf.arg(name="import")] = ()
    """Modules of yours that environments of the run come from; a file alone imports nothing."""
    drop_torn: bool = False
    """Leave out lines of results.jsonl that are no results, for good."""

    def run(self) -> None:
        """Write the page and say where it is."""
        import_modules(self.imports)
        if self.drop_torn:
            dropped = ResultsFolder.open(self.folder, self.imports).drop_torn_rows()
            print(f"dropped {len(dropped)} lines of results.jsonl: {', '.join(map(str, dropped)) or 'none'}")
        print(f"report: {write_report(self.folder, self.imports)}")
