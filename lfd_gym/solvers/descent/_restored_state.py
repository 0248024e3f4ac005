"""What must be true of the state of a compiled run before its kernel goes on from it.

The kernel follows indices and counts without looking, and draws by rejection until something is accepted. A state that
passes here keeps every index inside its array, and gives every draw a chance to be accepted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lfd_gym.solvers.descent._value_ascent import ValuePlayer
from lfd_gym.solvers.descent._weight_sampler import WeightSampler
from lfd_gym.solvers.descent.solver_checkpoint import require

_ROUNDING = 1e-6
#: Far more rounds than can be done; the counters of proposals run ahead of that of rounds.
_MOST_ROUNDS = 2**60
#: Between rebuilds the total falls to a sixteenth at most, and each rise adds at most 1.25 times the total.
_LARGEST_ENVELOPE = 32.0


def check_counters(counters: NDArray[np.void]) -> None:
    """Check how many rounds and proposals there were."""
    for name in counters.dtype.names or ():
        require((counters[name] >= 0) & (counters[name] < _MOST_ROUNDS), f"counter {name} must not be negative or huge")


def check_sampler(sampler: WeightSampler) -> None:
    """Check the weights, their alias table and the journal of rises."""
    weights, rises, run = sampler.weights, sampler.rises, sampler.numbers[0]
    n = weights.size
    require((weights["alias"] >= 0) & (weights["alias"] < n), f"aliases must lie in [0, {n})")
    require((sampler.stack >= 0) & (sampler.stack < n), f"stack must lie in [0, {n})")
    require((rises["index"] >= 0) & (rises["index"] < n), f"rises must be of weights in [0, {n})")
    require(0 <= run["n_rises"] <= n + 1, f"n_rises must lie in [0, {n + 1}]")
    require(run["waste"] >= 0, "waste must not be negative")
    require(run["until_rebuild"] <= 16 * n, f"until_rebuild must be at most {16 * n}")
    require(weights["value"] > 0, "weights must be positive")
    require(weights["base"] > 0, "bases must be positive")
    require(weights["ceiling"] >= weights["base"] * (1 - _ROUNDING), "ceilings must not lie below their bases")
    require(weights["value"] <= weights["ceiling"] * (1 + _ROUNDING), "weights must not exceed their ceilings")
    require((weights["since"] >= 0) & (weights["since"] <= run["clock"]), "clocks must not run ahead")
    require(weights["sum"] >= 0, "sums of weights must not be negative")
    _check_masses(sampler, float(weights["value"].sum()))


def _check_masses(sampler: WeightSampler, total: float) -> None:
    weights, run = sampler.weights, sampler.numbers[0]
    n_rises, n = int(run["n_rises"]), weights.size
    journal = sampler.rises["cumulative"][:n_rises]
    require(np.diff(journal, prepend=0.0) >= 0, "journal of rises must not fall")
    require(run["excess"] == (journal[-1] if n_rises else 0.0), "excess must be the mass of its journal")
    require(run["peak"] > 0, "peak must be positive")
    require(abs(run["total"] - total) <= _ROUNDING * run["peak"], "total must be the sum of its weights")
    mass = float(weights["base"].sum())
    require(abs(run["mass"] - mass) <= _ROUNDING * mass, "mass must be the sum of its bases")
    # A total that has fallen far behind its peak is mended before the next draw.
    fallen = run["total"] * 16 < run["peak"]
    enough = mass + float(run["excess"]) <= _LARGEST_ENVELOPE * (n + 1) * total
    require(run["total"] > 0 and (fallen or enough), "weights must not be negligible beside their ceilings")


def check_player(player: ValuePlayer) -> None:
    """Check what is kept of λ beside its entries."""
    run, n = player.numbers[0], max(player.entries.size, player.dense.shape[1])
    require(run["scale"] > 0, "scale of λ must be positive")
    require(run["square"] >= -_ROUNDING, "squared norm of λ must not be negative")
    require(run["clock"] >= 0, "clock of λ must not be negative")
    require(run["until_rebase"] <= 16 * n, f"until_rebase must be at most {16 * n}")
