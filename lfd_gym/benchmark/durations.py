"""How long a benchmark will take, before it is begun."""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium as gym

from lfd_gym.benchmark.spec import BenchmarkSpec, Cell, EnvironmentSpec
from lfd_gym.model.dynamics import FiniteDynamics

#: Processor seconds of learning with the usual budget, measured on one core: on the paper's gridworld, and on CartPole;
#: of networks that learn step by step roughly, since they were measured beside other work.
_ON_TABLES = {
    **dict.fromkeys(("expert", "random", "tabular_bc", "apprentice_bc", "cutting_plane", "lpal", "plug_in"), 0.1),
    **{"bc": 6.0, "gail": 70.0, "airl": 70.0, "mirror_descent": 3.0},
}
_ELSEWHERE = {
    **{"random": 0.0, "bc": 3.0, "grid": 6.0, "gail": 220.0},
    **{"sqil": 40.0, "iq_learn": 95.0, "primal_dual_rl": 75.0},
}
#: The usual budgets of those whose time goes by them.
_USUAL = {
    **{"bc": 1000, "gail": 1_000_000, "airl": 1_000_000, "mirror_descent": 10_000_000, "grid": 120},
    **dict.fromkeys(("sqil", "iq_learn", "primal_dual_rl"), 30_000),
}
#: Of judging a policy beside: exactly, and by episodes.
_EXACTLY, _BY_EPISODES = 0.3, 7.0


@dataclass(frozen=True)
class Forecast:
    """What a benchmark will take.

    Attributes
    ----------
    n_runs
        How many runs there are.
    hours
        Of the processor, for those of which it is known.
    unknown
        Labels of the learners of which it is not.
    """

    n_runs: int
    hours: float
    unknown: tuple[str, ...]

    def __str__(self) -> str:
        text = f"{self.n_runs} runs, about {self.hours:.2g} hours of processor time"
        return f"{text}, not counting {', '.join(self.unknown)}" if self.unknown else text


def forecast(spec: BenchmarkSpec) -> Forecast:
    """Say how much processor time the runs of a benchmark take, as far as it is known."""
    with_table = {environment.label: _has_table(environment) for environment in spec.environments}
    total, cells = 0.0, spec.cells()
    unknown: dict[str, None] = {}
    for cell in cells:
        seconds = _seconds(cell, with_table[cell.environment.label])
        total += seconds or 0.0
        if seconds is None:
            unknown[cell.learner.label] = None
    return Forecast(len(cells), total / 3600, tuple(unknown))


def _seconds(cell: Cell, with_table: bool) -> float | None:
    known = (_ON_TABLES if with_table else _ELSEWHERE).get(cell.learner.name)
    if known is None:
        return None
    if cell.learner.budget is not None and cell.learner.name in _USUAL:
        known *= cell.learner.budget / _USUAL[cell.learner.name]
    return known + (_EXACTLY if with_table else _BY_EPISODES)


def _has_table(environment: EnvironmentSpec) -> bool:
    try:
        return FiniteDynamics.known_of(gym.make(environment.env_id, **environment.kwargs))
    except Exception:  # whatever is wrong with it is said when its cells fail
        return False
