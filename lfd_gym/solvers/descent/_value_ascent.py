"""The player λ inside the kernel: u_λ(x) = ψ_x·λ and the projected step along sparse or dense rows of Ψ.

λ = s·z. Over the ball, projection is one multiplication of s, with ‖z‖² kept up to date; over the box s stays 1 and the
touched entries are clipped. Averages Σ_n λ_n are lazy for sparse rows: with the clock Q_n = Σ_{m≤n} s_m, an entry that
kept z_k since Q was Q' has gained z_k·(Q − Q'). Dense rows touch every entry in every step, so there is nothing to put
off, and the entries lie side by side in memory.

A step adds ψ_x', ψ_x and ψ_y one after the other, and only then projects: the three may share entries (a self-loop is
x = y), and each contribution must count.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lfd_gym._jit import Record, jit_melted, jit_raw
from lfd_gym.solvers.descent._prefetch import aligned_zeros
from lfd_gym.validation import FloatArray, IntArray

IDENTITY, SPARSE, DENSE = 0, 1, 2
#: value: z_k; sum: settled part of the average; since: clock up to which it is settled. Padded to half a cache line.
ENTRY = np.dtype([("value", "f8"), ("sum", "f8"), ("since", "f8"), ("unused", "f8")])
#: scale: s; square: ‖z‖²; clock: Q.
PLAYER = np.dtype([("scale", "f8"), ("square", "f8"), ("clock", "f8"), ("until_rebase", "i8")])

#: Below, steps of the clock, the scale, would lose too many digits beside the clock.
_SMALLEST_SCALE = 1e-6
_ROUNDS_PER_ENTRY = 16


class ValueRows(NamedTuple):
    """The rows ψ_x: CSR arrays, or a matrix, or neither for the identity."""

    offsets: IntArray
    columns: NDArray[np.int32]
    data: FloatArray
    matrix: FloatArray


class ValuePlayer(NamedTuple):
    """The arrays of λ: ``entries`` for sparse rows; ``dense``, (2, n_u) with z and the sums, for dense ones."""

    entries: NDArray[np.void]
    dense: FloatArray
    numbers: NDArray[np.void]


def zero_player(n: int, kind: int) -> ValuePlayer:
    """Return λ = 0 in n dimensions."""
    player = ValuePlayer(
        aligned_zeros(0 if kind == DENSE else n, ENTRY), np.zeros((2, n if kind == DENSE else 0)), np.zeros(1, PLAYER)
    )
    player.numbers["scale"] = 1.0
    player.numbers["until_rebase"] = _ROUNDS_PER_ENTRY * n
    return player


@jit_raw
def dense_product(matrix: FloatArray, x: int, dense: FloatArray) -> float:
    """⟨ψ_x, z⟩ of a dense row, in four running sums, which the processor adds side by side."""
    a = b = c = d = 0.0
    n = dense.shape[1]
    for k in range(0, n - 3, 4):
        a += matrix[x, k] * dense[0, k]
        b += matrix[x, k + 1] * dense[0, k + 1]
        c += matrix[x, k + 2] * dense[0, k + 2]
        d += matrix[x, k + 3] * dense[0, k + 3]
    for k in range(n - n % 4, n):
        a += matrix[x, k] * dense[0, k]
    return (a + b) + (c + d)


@jit_raw
def sparse_product(rows: ValueRows, entries: NDArray[np.void], x: int) -> float:
    """⟨ψ_x, z⟩ of a sparse row."""
    total = 0.0
    for k in range(rows.offsets[x], rows.offsets[x + 1]):
        total += rows.data[k] * entries[rows.columns[k]].value
    return total


@jit_melted
def add_entry(player: ValuePlayer, k: int, change: float) -> None:
    """Settle entry ``k`` and add ``change`` to z_k."""
    entry = player.entries[k]
    run = player.numbers[0]
    old = entry.value
    entry.sum += old * (run.clock - entry.since)
    entry.since = run.clock
    entry.value = old + change
    run.square += change * (2.0 * old + change)


@jit_raw
def add_row(rows: ValueRows, player: ValuePlayer, x: int, change: float) -> None:
    """Add ``change``·ψ_x to z."""
    for k in range(rows.offsets[x], rows.offsets[x + 1]):
        add_entry(player, rows.columns[k], change * rows.data[k])


@jit_melted
def clip_entry(entries: NDArray[np.void], k: int, bound: float) -> None:
    """Project entry ``k`` onto [−bound, bound]."""
    entries[k].value = min(max(entries[k].value, -bound), bound)


@jit_raw
def clip_row(rows: ValueRows, entries: NDArray[np.void], x: int, bound: float) -> None:
    """Clip the entries that ψ_x touches."""
    for k in range(rows.offsets[x], rows.offsets[x + 1]):
        clip_entry(entries, rows.columns[k], bound)


@jit_raw
def add_dense_rows(
    matrix: FloatArray,
    player: ValuePlayer,
    start: int,
    here: int,
    there: int,
    change: float,
    change_here: float,
    change_there: float,
) -> None:
    """Settle all entries, then add the three rows to z."""
    dense, scale = player.dense, player.numbers[0].scale
    square = 0.0
    for k in range(dense.shape[1]):
        dense[1, k] += scale * dense[0, k]
        dense[0, k] += change * matrix[start, k] + change_here * matrix[here, k] + change_there * matrix[there, k]
    for k in range(dense.shape[1]):
        square += dense[0, k] * dense[0, k]
    player.numbers[0].square = square


@jit_melted
def project_to_ball(run: Record, radius: float) -> None:
    """Rescale λ = s·z to norm at most ``radius``."""
    if run.scale * run.scale * run.square > radius * radius:
        run.scale = radius / sqrt(run.square)


@jit_raw
def clip_dense(dense: FloatArray, bound: float) -> None:
    """Project every entry onto [−bound, bound]."""
    for k in range(dense.shape[1]):
        dense[0, k] = min(max(dense[0, k], -bound), bound)


@jit_melted
def wants_rebase(run: Record) -> bool:
    """Say whether rounding or the range of the scale ask for a rebase."""
    return bool(run.until_rebase <= 0 or run.scale < _SMALLEST_SCALE)


@jit_raw
def rebase(player: ValuePlayer) -> None:
    """Settle the averages, move the scale into z and compute ‖z‖² afresh."""
    entries, dense, run = player.entries, player.dense, player.numbers[0]
    square = 0.0
    for k in range(entries.size):
        entry = entries[k]
        entry.sum += entry.value * (run.clock - entry.since)
        entry.since = 0.0
        entry.value *= run.scale
        square += entry.value * entry.value
    for k in range(dense.shape[1]):
        dense[0, k] *= run.scale
        square += dense[0, k] * dense[0, k]
    run.square = square
    run.scale = 1.0
    run.clock = 0.0
    run.until_rebase = _ROUNDS_PER_ENTRY * (entries.size + dense.shape[1])
