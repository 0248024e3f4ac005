"""Drawing an index in proportion to weights that change one at a time, in constant expected time and without drift.

The weights v_i are unnormalised: θ_i = v_i/S with S = Σ v. A draw is exact by rejection from an envelope that may be
out of date, c_i ≥ v_i, in two parts:

- an alias table over the bases b_i of the last rebuild: propose i with probability b_i/Σb, accept if r·b_i < v_i with
  r uniform (always so while v_i ≥ b_i);
- a journal of rises: when v_i outgrows its ceiling, an entry (i, floor, top) with the old and a new, higher ceiling is
  appended. Its mass is top − floor. Propose an entry by bisection in the running sums, with t uniform between its
  floor and its top, and accept if t < v_i. Running sums of positive numbers cannot drift or turn negative.

Weights that only fall never touch the journal. Each rejection and each look into the journal is counted as waste; when
the waste has cost as much as building the table anew, it is built anew. So rebuilding is never more than a constant
share of the work, however the weights move.

Averages Σ_n θ_n are lazy: with the clock R_n = Σ_{m≤n} 1/S_m, a coordinate that kept v_i since R was R' has gained
v_i·(R − R'). A rebuild settles all coordinates, restarts the clock and rescales to S = 1, so nothing under- or
overflows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lfd_gym._jit import Record, jit_melted, jit_raw
from lfd_gym.solvers.descent._prefetch import aligned_zeros
from lfd_gym.validation import IntArray

#: All there is of weight i, in one cache line. value: v_i; base: b_i; ceiling: top of the envelope; since: clock up to
#: which the average is settled; sum: settled part of it. Slot i of the table yields i with probability ``threshold``,
#: else ``alias``.
WEIGHT = np.dtype(
    [(name, "f8") for name in ("value", "base", "ceiling", "sum", "since", "threshold")]
    + [("alias", "i8"), ("unused", "i8")]
)
#: cumulative: mass of this entry and of all before it.
RISE = np.dtype([("index", "i8"), ("floor", "f8"), ("cumulative", "f8")])
#: total: S; peak: largest S since the rebuild; clock: R; mass: Σ b_i; excess: mass of the journal.
SAMPLER = np.dtype(
    [("total", "f8"), ("peak", "f8"), ("clock", "f8"), ("mass", "f8"), ("excess", "f8")]
    + [(name, "i8") for name in ("n_rises", "waste", "until_rebuild")]
)

#: Weights stay above this share of the total, so that none is lost for good.
SMALLEST = 1e-280
#: Where weights stop to rise within a round: a column may be drawn twice in it.
LARGEST = 1e280
#: Ceilings of weights that may rise stand this much above them.
HEADROOM = 1.25
#: Between rebuilds S stays within these factors, or steps of the clock, 1/S, would vanish beside the clock.
_LARGEST_TOTAL = 1e4
_LARGEST_FALL = 16.0
_ROUNDS_PER_WEIGHT = 16


class WeightSampler(NamedTuple):
    """The arrays of a sampler over n weights."""

    weights: NDArray[np.void]
    rises: NDArray[np.void]
    stack: IntArray
    numbers: NDArray[np.void]


def uniform_sampler(n: int, headroom: float) -> WeightSampler:
    """Return a sampler of ``n`` equal weights."""
    weights = aligned_zeros(n, WEIGHT)
    weights["value"] = 1.0 / n
    sampler = WeightSampler(weights, np.zeros(n + 2, RISE), np.zeros(n, np.int64), np.zeros(1, SAMPLER))
    rebuild(sampler, headroom)
    return sampler


@jit_raw
def settle(sampler: WeightSampler) -> None:
    """Bring every average up to the clock and restart the clock."""
    weights, clock = sampler.weights, sampler.numbers[0].clock
    for i in range(weights.size):
        weights[i].sum += weights[i].value * (clock - weights[i].since)
        weights[i].since = 0.0
    sampler.numbers[0].clock = 0.0


@jit_raw
def rebuild(sampler: WeightSampler, headroom: float) -> None:
    """Settle the averages, rescale the weights to S = 1, and build the table over bases ``headroom``·v_i."""
    settle(sampler)
    weights, run = sampler.weights, sampler.numbers[0]
    total = 0.0  # summed afresh: after a deep fall of the largest weight, run.total is but rounding
    for i in range(weights.size):
        total += weights[i].value
    scale = 1.0 / total
    total = 0.0
    for i in range(weights.size):
        value = max(weights[i].value * scale, SMALLEST)
        weights[i].value = value
        weights[i].base = headroom * value
        weights[i].ceiling = headroom * value
        total += value
    run.total = total
    run.peak = total
    run.mass = headroom * total
    run.excess = 0.0
    run.n_rises = 0
    run.waste = 0
    run.until_rebuild = _ROUNDS_PER_WEIGHT * weights.size
    _build_table(sampler, weights.size / run.mass)


@jit_raw
def _build_table(sampler: WeightSampler, scale: float) -> None:
    """Vose's construction. Slots still to be filled grow from the front of ``stack``, overfull ones from the back."""
    weights, stack = sampler.weights, sampler.stack
    n = weights.size
    n_low = 0
    first_high = n
    for i in range(n):
        share = weights[i].base * scale
        weights[i].threshold = share
        weights[i].alias = i
        if share < 1.0:
            stack[n_low] = i
            n_low += 1
        else:
            first_high -= 1
            stack[first_high] = i
    while n_low > 0 and first_high < n:
        n_low -= 1
        low = stack[n_low]
        high = stack[first_high]
        weights[low].alias = high
        left = (weights[high].threshold + weights[low].threshold) - 1.0
        weights[high].threshold = left
        if left < 1.0:
            first_high += 1
            stack[n_low] = high
            n_low += 1
    # What is left over is full up to rounding.
    for k in range(n_low):
        weights[stack[k]].threshold = 1.0


@jit_melted
def wants_rebuild(n: int, run: Record) -> bool:
    """Say whether waste, the journal, rounding or the range of the numbers ask for a rebuild."""
    return bool(
        run.waste > n
        or run.n_rises > n - 1
        or run.until_rebuild <= 0
        or run.total * _LARGEST_FALL < run.peak
        or run.total > _LARGEST_TOTAL
    )


@jit_melted
def set_weight(sampler: WeightSampler, i: int, value: float, headroom: float) -> None:
    """Settle coordinate ``i`` and give it the weight ``value``."""
    weight = sampler.weights[i]
    run = sampler.numbers[0]
    old = weight.value
    weight.sum += old * (run.clock - weight.since)
    weight.since = run.clock
    weight.value = value
    run.total += value - old
    run.peak = max(run.peak, run.total)
    if value > weight.ceiling:
        top = headroom * value
        run.excess += top - weight.ceiling
        rise = sampler.rises[run.n_rises]
        rise.index = i
        rise.floor = weight.ceiling
        rise.cumulative = run.excess
        run.n_rises += 1
        weight.ceiling = top


@jit_raw
def find_rise(rises: NDArray[np.void], n_rises: int, mass: float) -> int:
    """Return the first entry of the journal whose cumulative mass exceeds ``mass``, the last if none does."""
    low = 0
    high = n_rises - 1
    while low < high:
        middle = (low + high) >> 1
        if rises[middle].cumulative > mass:
            high = middle
        else:
            low = middle + 1
    return low


@jit_raw
def temper(sampler: WeightSampler, power: float, headroom: float) -> None:
    """θ_i ∝ θ_i^power, and rebuild."""
    settle(sampler)
    weights = sampler.weights
    largest = 0.0
    for i in range(weights.size):
        largest = max(largest, weights[i].value)
    for i in range(weights.size):
        weights[i].value = (weights[i].value / largest) ** power
    rebuild(sampler, headroom)
