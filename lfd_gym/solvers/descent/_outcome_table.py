"""Alias tables of many distributions for the kernel: as a rule, a draw reads one cache line.

Every row has ``width`` slots side by side, so nothing needs to be read to know where they are. Rows have outcomes of
any number n all the same, because a slot can refer to others: it then stands for n slots elsewhere, among which what is
left of the uniform number chooses evenly.

- A row of n < width outcomes has them in its first n slots, and the rest refer to those: each of the n is chosen with
  probability 1/width + (width − n)/width·1/n = 1/n.
- All slots of a row of n > width outcomes refer to n slots behind the last row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lfd_gym._jit import jit, jit_melted
from lfd_gym.model.generative_model import AliasTable
from lfd_gym.validation import FloatArray, IntArray

#: ``outcome`` with probability ``threshold``, else ``alias``; or, with outcome −n, the n slots from ``alias`` on.
SLOT = np.dtype([("threshold", "f8"), ("outcome", "i4"), ("alias", "i4")])

#: More slots than so many for each outcome are not spent on a greater width.
_LARGEST_GROWTH = 1.25
_MOST_SLOTS = 2**31


class OutcomeTable(NamedTuple):
    """The slots of all rows, and how many each has."""

    slots: NDArray[np.void]
    width: int


def empty_table() -> OutcomeTable:
    """Return a table without rows."""
    return OutcomeTable(np.zeros(0, SLOT), 1)


def outcome_table(table: AliasTable) -> OutcomeTable:
    """Return the distributions of ``table`` in this layout."""
    sizes = np.diff(table.offsets)
    if (sizes < 1).any():
        raise ValueError(f"distribution {np.argmin(sizes)} has no outcomes")
    width, n_slots = _width(sizes)
    if n_slots > _MOST_SLOTS:
        raise ValueError(f"a table has at most 2**31 slots, these distributions need {n_slots}")
    slots = np.zeros(n_slots, SLOT)
    _fill(*table.arrays, width, slots)
    return OutcomeTable(slots, width)


def _width(sizes: IntArray) -> tuple[int, int]:
    """Return the width with the fewest draws by reference that needs not many more slots, and how many it needs."""
    counts = np.bincount(sizes)
    widths = np.arange(1, counts.size)
    n_outcomes = int(sizes.sum())
    in_place = np.cumsum(counts[1:] * widths)  # outcomes of rows that are no longer than the width
    n_slots = sizes.size * widths + n_outcomes - in_place
    affordable = n_slots <= _LARGEST_GROWTH * n_outcomes
    affordable[0] = True
    best = int(np.argmax(np.where(affordable, in_place / widths, -1.0)))
    return int(widths[best]), int(n_slots[best])


@jit
def _fill(
    offsets: IntArray,
    outcomes: IntArray,
    thresholds: FloatArray,
    aliases: IntArray,
    width: int,
    slots: NDArray[np.void],
) -> None:
    behind = (offsets.size - 1) * width
    for row in range(offsets.size - 1):
        first = offsets[row]
        size = offsets[row + 1] - first
        home, n_own = row * width, size
        if size > width:
            home, n_own = behind, 0
            behind += size
        for k in range(size):
            slots[home + k].threshold = thresholds[first + k]
            slots[home + k].outcome = outcomes[first + k]
            slots[home + k].alias = aliases[first + k]
        for k in range(row * width + n_own, (row + 1) * width):
            slots[k].outcome = -size
            slots[k].alias = home


@jit_melted
def read_slot(slots: NDArray[np.void], k: int, fraction: float) -> int:
    """Return the outcome that ``fraction``, uniform on [0, 1), chooses in slot ``k``."""
    if slots[k].outcome < 0:
        position = -slots[k].outcome * fraction
        among = int(position)
        fraction = position - among
        k = slots[k].alias + among
    slot = slots[k]
    alias = int(slot.alias)  # read in any case: the compiler then selects without a branch
    outcome = int(slot.outcome)
    return outcome if fraction < slot.threshold else alias


@jit_melted
def draw(table: OutcomeTable, row: int, number: float) -> int:
    """Draw from a row: the integer part of number·width says the slot, the fraction chooses in it."""
    position = number * table.width
    k = int(position)
    return read_slot(table.slots, row * table.width + k, position - k)
