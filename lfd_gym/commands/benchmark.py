"""The commands ``benchmark`` and ``report``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from lfd_gym.benchmark.presets import Preset, preset
from lfd_gym.benchmark.report import write_report
from lfd_gym.benchmark.results import ResultsFolder
from lfd_gym.benchmark.runner import run_benchmark
from lfd_gym.benchmark.spec import BenchmarkSpec
from lfd_gym.benchmark.summary import format_summary, summarise
from lfd_gym.engines import Engine, ProcessEngine, RayEngine
from lfd_gym.envs.named import import_modules


@dataclass(frozen=True)
class EngineSettings:
    """Where runs happen."""

    engine: Literal["processes", "ray"] = "processes"
    """Processes of this machine (joblib), or a Ray cluster."""
    workers: int = os.cpu_count() or 1
    """How many runs at a time on this machine."""
    address: str | None = None
    """Of a running Ray cluster, e.g. auto; without it Ray is started on this machine."""

    def make(self) -> Engine:
        """Return the engine."""
        if self.engine == "ray":
            return RayEngine(self.address, self.workers)
        return ProcessEngine(self.workers)


@dataclass(frozen=True)
class Benchmark:
    """Run a comparison of learners; started again in the same folder, it goes on where it stopped."""

    out: Path
    """The folder for results."""
    preset: Preset | None = None
    """A benchmark that comes with the package: quick (a minute), paper (minutes), or full (hours)."""
    spec: Path | None = None
    """A benchmark of your own: a TOML file, or the spec.json of an earlier run."""
    retry_failed: bool = False
    """Run again what failed before."""
    imports: Annotated[tuple[str, ...], tyro.conf.arg(name="import")] = ()
    """Modules of yours that environments and learners of the spec come from; a file alone imports nothing."""
    where: Annotated[EngineSettings, tyro.conf.arg(name="")] = EngineSettings()

    def run(self) -> None:
        """Run what is missing, print the summary, write the report."""
        if (self.preset is None) == (self.spec is None):
            raise ValueError("give either --preset or --spec")
        import_modules(self.imports)
        if self.preset is not None:
            spec = preset(self.preset)
        else:
            spec = BenchmarkSpec.from_file(self.spec, self.imports)  # type: ignore[arg-type]
        results = run_benchmark(spec, self.out, self.where.make(), retry_failed=self.retry_failed)
        rows = results.rows()
        print(format_summary(summarise([row for row in rows if row["status"] == "ok"])))
        failed = [row for row in rows if row["status"] != "ok"]
        for row in failed:
            print(f"failed: {row['cell']}: {row['error'].splitlines()[0]}")
        print(f"results: {results.results_file}")
        print(f"report:  {write_report(self.out, self.imports)}")


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
