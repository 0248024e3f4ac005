"""The command ``reproduce``: the experiment of the paper, and its statements as pictures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from lfd_gym.benchmark.presets import PAPER_COST_SEED, PAPER_COUNTS, PAPER_DISCOUNT, figure_spec
from lfd_gym.benchmark.runner import run_benchmark
from lfd_gym.commands.workers import Workers
from lfd_gym.paper.bound_curve import bound_points, write_bound_curve
from lfd_gym.paper.growth_curve import growth_points, write_growth_curve
from lfd_gym.paper.reproduction import write_figure
from lfd_gym.paper.residual_curve import residual_points, write_residual_curve


@dataclass(frozen=True)
class ReproduceFigure:
    """The figure of Appendix E: the cost of the learned policy against the number of demonstrations."""

    out: Path = Path("out/figure")
    """The folder for sample_traj.csv, the figure and the runs."""
    learners: tuple[str, ...] = ("cutting_plane",)
    """The first one is drawn as in the paper (e.g. mirror_descent for Algorithm 1); several are also compared, e.g.
    cutting_plane mirror_descent bc gail."""
    budgets: dict[str, int] = field(default_factory=dict)
    """Learners and their budgets, e.g. gail 100000; those not named have their own default."""
    discount: float = PAPER_DISCOUNT
    """The paper does not print it."""
    cost_seed: int = PAPER_COST_SEED
    """Draws the costs; the default's expert reaches the paper's -0.3536 at the default discount."""
    counts: tuple[int, ...] = PAPER_COUNTS
    """Numbers of demonstrations."""
    runs: int = 20
    """Runs for each number."""
    where: Annotated[Workers, tyro.conf.arg(name="")] = field(default_factory=Workers)

    def run(self) -> None:
        """Run what is missing and write the files."""
        spec = figure_spec(self.learners, self.budgets, self.discount, self.cost_seed, self.counts, self.runs)
        results = run_benchmark(spec, self.out, self.where.make())
        _say(write_figure(results))


@dataclass(frozen=True)
class ReproduceResidual:
    """The residual of Algorithm 1 against its iterations, for both schedules, beside 1/√N."""

    out: Path = Path("out/residual")
    """The folder for residual.csv and the figure."""
    size: int = 4
    """The side of the gridworld."""
    iterations: tuple[int, ...] = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
    """Numbers of iterations."""
    runs: int = 5
    """Runs for each number."""
    discount: float = PAPER_DISCOUNT
    """Of the costs."""
    force: bool = False
    """Replace what is there."""

    def run(self) -> None:
        """Run and write the files."""
        _check_new(self.out / "residual.csv", self.force)
        _say(write_residual_curve(self.out, residual_points(self.size, self.iterations, self.runs, self.discount)))


@dataclass(frozen=True)
class ReproduceBound:
    """The bounds of Theorem 1, of Proposition 4 and of the certificate, beside the true distance to the expert."""

    out: Path = Path("out/bound")
    """The folder for bound.csv and the figure."""
    size: int = 4
    """The side of the gridworld."""
    iterations: tuple[int, ...] = (10_000, 100_000, 1_000_000, 10_000_000)
    """Numbers of iterations."""
    demonstrations: int = 10_000
    """Number of demonstrations."""
    runs: int = 3
    """Runs for each number of iterations."""
    discount: float = PAPER_DISCOUNT
    """Of the costs."""
    force: bool = False
    """Replace what is there."""

    def run(self) -> None:
        """Run and write the files."""
        _check_new(self.out / "bound.csv", self.force)
        points = bound_points(self.size, self.iterations, self.demonstrations, self.runs, self.discount)
        _say(write_bound_curve(self.out, points))


@dataclass(frozen=True)
class ReproduceGrowth:
    """The cost of an iteration of Algorithm 1 as the state space grows."""

    out: Path = Path("out/growth")
    """The folder for growth.csv and the figure."""
    sizes: tuple[int, ...] = (8, 16, 32, 64, 128, 256, 512)
    """Sides of the gridworlds."""
    iterations: int = 200_000
    """Iterations that are timed together."""
    force: bool = False
    """Replace what is there."""

    def run(self) -> None:
        """Run and write the files."""
        _check_new(self.out / "growth.csv", self.force)
        _say(write_growth_curve(self.out, growth_points(self.sizes, self.iterations)))


AnyExperiment = (
    Annotated[ReproduceFigure, tyro.conf.subcommand("figure")]
    | Annotated[ReproduceResidual, tyro.conf.subcommand("residual")]
    | Annotated[ReproduceBound, tyro.conf.subcommand("bound")]
    | Annotated[ReproduceGrowth, tyro.conf.subcommand("growth")]
)


@dataclass(frozen=True)
class Reproduce:
    """Repeat the paper's experiment, or see its statements at work."""

    what: Annotated[AnyExperiment, tyro.conf.arg(name="")]
    """The experiment."""

    def run(self) -> None:
        """Run the experiment."""
        self.what.run()


def _check_new(table: Path, force: bool) -> None:
    """Refuse to replace what an earlier run found, before anything is run."""
    if table.exists() and not force:
        raise FileExistsError(f"{table} exists already; --force replaces it")


def _say(written: Iterable[Path]) -> None:
    for path in written:
        print(path)
