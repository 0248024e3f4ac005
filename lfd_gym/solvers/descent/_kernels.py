"""The inner loop of Algorithm 1 for finite models: O(n_c + nnz(ψ)) a round, whatever the number of states and actions.

Letters: θ = v/S occupancy weights, λ = s·z value weights, w cost weights; Φ, Ψ, C features; γ discount. A round draws

    i uniform, (x, a) ~ φ_i, y ~ P(·|x, a)                       for the gradient in θ,
    x' ~ ν₀, j ~ θ, (x₂, a₂) ~ φ_j, y₂ ~ P(·|x₂, a₂)              for the gradient in λ,
    k ~ θ, (x₃, a₃) ~ φ_k                                         for the gradient in w,

all independent. With the advantage f(x, a, y) = c_w(x, a) − (u_λ(x) − γ u_λ(y))/(1−γ), the gradient in θ is

    shifted (the paper):   n_μ (f(x, a, y) + shift) e_i;
    balanced:              f(x, a, y)/(1/n_μ + θ_i) e_i + f(x₂, a₂, y₂)/(1/n_μ + θ_j) e_j.

The balanced one has one sample from each half of the mixture ½ uniform + ½ θ, weighted by the mixture. Both are
unbiased: P(i = l)·f/(1/n_μ + θ_l) + P(j = l)·f/(1/n_μ + θ_l) = f.

Draws that do not depend on the iterates are made for a block of rounds ahead, so that what they will read is on its way
into the caches. That holds for proposals of the sampler too, until it is rebuilt (see `_weight_sampler`); whether one
is accepted is decided in its round.
"""

from __future__ import annotations

from math import exp, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lfd_gym._jit import Record, jit_melted, jit_raw
from lfd_gym._splitmix import uniform
from lfd_gym.solvers.descent._outcome_table import OutcomeTable, draw, read_slot
from lfd_gym.solvers.descent._prefetch import prefetch
from lfd_gym.solvers.descent._value_ascent import (
    DENSE,
    IDENTITY,
    ValuePlayer,
    ValueRows,
    add_dense_rows,
    add_entry,
    add_row,
    clip_dense,
    clip_entry,
    clip_row,
    dense_product,
    project_to_ball,
    rebase,
    sparse_product,
    wants_rebase,
)
from lfd_gym.solvers.descent._weight_sampler import (
    LARGEST,
    SMALLEST,
    WeightSampler,
    find_rise,
    rebuild,
    set_weight,
    wants_rebuild,
)
from lfd_gym.validation import FloatArray, IntArray

#: What does not change during an epoch. Flags are integers.
SETTINGS = np.dtype(
    [(name, "f8") for name in ("discount", "shift", "radius", "headroom")]
    + [(name, "f8") for name in ("occupancy_step", "value_step", "cost_step")]
    + [(name, "i8") for name in ("n_actions", "tabular_columns", "row_kind")]
    + [(name, "i8") for name in ("box", "cost_ball", "balanced", "value_step_decays")]
)

#: iteration: rounds done; for_j, for_k: proposals of the sampler used up.
COUNTERS = np.dtype([("iteration", "i8"), ("for_j", "i8"), ("for_k", "i8")])

#: Rows of the tape of draws made ahead, and the streams of random numbers that make them. After the row of an index
#: comes that of its pair, then that of its successor.
_START, _I, _PAIR, _NEXT, _J, _PAIR_2, _NEXT_2, _K, _PAIR_3 = range(9)
_N_ROWS = 9
#: More streams. Those of j and k are counted by proposals, the others by rounds.
_ACCEPT_J, _ACCEPT_K = _N_ROWS, _N_ROWS + 1
N_STREAMS = _N_ROWS + 2

BLOCK = 32
#: A larger rise in one round would overflow; it also puts all other weights on their floor.
_LARGEST_EXPONENT = 640.0
#: Columns of a record of draws.
DRAWS = ("i", "pair", "next", "start", "j", "pair_2", "next_2", "k", "pair_3")


class Tape(NamedTuple):
    """Working memory of draws made ahead: (9, BLOCK) draws and (BLOCK,) fractions of slots."""

    draws: IntArray
    fractions: FloatArray


def blank_tape() -> Tape:
    """Return a tape to give to `advance`."""
    return Tape(np.zeros((_N_ROWS, BLOCK), np.int64), np.zeros(BLOCK))


class ProblemArrays(NamedTuple):
    """The problem and its oracle as arrays; row r of C begins at ``costs[r * cost_stride]``."""

    costs: FloatArray
    cost_stride: int
    expert: FloatArray
    columns: OutcomeTable
    transitions: OutcomeTable
    initial: OutcomeTable
    rows: ValueRows


class RunState(NamedTuple):
    """All that changes during a run; ``cost_weights`` is (2, n_c) with w and Σ_n w_n."""

    seeds: NDArray[np.uint64]
    counters: NDArray[np.void]
    sampler: WeightSampler
    player: ValuePlayer
    cost_weights: FloatArray


@jit_melted
def _fill_rounds(tape: Tape, problem: ProblemArrays, state: RunState, settings: Record) -> None:
    """Make the draws of the next rounds that do not depend on the iterates: i, (x, a), y and x'."""
    first = state.counters[0].iteration
    draws, fractions = tape
    sampler, starts = state.sampler, problem.initial.slots
    for b in range(BLOCK):
        i = int(uniform(state.seeds[_I], first + b) * sampler.weights.size)
        draws[_I, b] = i
        prefetch(sampler.weights, i)
        position = uniform(state.seeds[_START], first + b) * problem.initial.width
        k = int(position)
        draws[_START, b] = k
        fractions[b] = position - k
        prefetch(starts, k)
    for b in range(BLOCK):
        x = read_slot(starts, draws[_START, b], fractions[b])
        draws[_START, b] = x
        if settings.row_kind == IDENTITY:
            prefetch(state.player.entries, x)
    _fill_pairs(tape, _I, first, problem, state, settings)
    _prefetch_costs(tape, _PAIR, problem)
    _fill_successors(tape, _NEXT, first, problem, state, settings)


@jit_melted
def _fill_proposals(
    tape: Tape, row: int, first: int, problem: ProblemArrays, state: RunState, settings: Record
) -> None:
    """Propose indices by the alias table of the sampler, with a pair for each, and for j a successor."""
    draws, fractions = tape
    sampler = state.sampler
    for b in range(BLOCK):
        position = uniform(state.seeds[row], first + b) * sampler.weights.size
        k = int(position)
        draws[row, b] = k
        fractions[b] = position - k
        prefetch(sampler.weights, k)
    for b in range(BLOCK):
        k = draws[row, b]
        slot = sampler.weights[k]
        alias = slot.alias
        i = k if fractions[b] < slot.threshold else alias
        draws[row, b] = i
        prefetch(sampler.weights, i)
    _fill_pairs(tape, row, first, problem, state, settings)
    if row == _K or settings.balanced:
        _prefetch_costs(tape, row + 1, problem)
    if row == _J:
        _fill_successors(tape, _NEXT_2, first, problem, state, settings)


@jit_melted
def _fill_pairs(
    tape: Tape, index_row: int, first: int, problem: ProblemArrays, state: RunState, settings: Record
) -> None:
    """Draw pairs from the columns in row ``index_row`` of the tape into the next row."""
    draws = tape.draws
    for b in range(BLOCK):
        pair = draws[index_row, b]
        if not settings.tabular_columns:
            pair = draw(problem.columns, pair, uniform(state.seeds[index_row + 1], first + b))
        draws[index_row + 1, b] = pair


@jit_melted
def _prefetch_costs(tape: Tape, pair_row: int, problem: ProblemArrays) -> None:
    """Ask for the first costs of pairs; the processor itself goes on with the following ones."""
    for b in range(BLOCK):
        prefetch(problem.costs, tape.draws[pair_row, b] * problem.cost_stride)


@jit_melted
def _fill_successors(
    tape: Tape, next_row: int, first: int, problem: ProblemArrays, state: RunState, settings: Record
) -> None:
    """Draw the successors of the pairs in the row before; the values of both states are asked for."""
    draws, fractions = tape
    slots, width = problem.transitions
    for b in range(BLOCK):
        pair = draws[next_row - 1, b]
        position = uniform(state.seeds[next_row], first + b) * width
        k = int(position)
        draws[next_row, b] = pair * width + k
        fractions[b] = position - k
        prefetch(slots, pair * width + k)
        if settings.row_kind == IDENTITY:
            prefetch(state.player.entries, pair // settings.n_actions)
    for b in range(BLOCK):
        y = read_slot(slots, draws[next_row, b], fractions[b])
        draws[next_row, b] = y
        if settings.row_kind == IDENTITY:
            prefetch(state.player.entries, y)


@jit_melted
def _next_accepted(tape: Tape, row: int, last: int, problem: ProblemArrays, state: RunState, settings: Record) -> int:
    """Return the place on the tape of the first accepted proposal after place ``last``; ``row`` is that of j or k."""
    while True:
        last += 1
        counters = state.counters[0]
        key = counters.for_j if row == _J else counters.for_k
        if last == BLOCK:
            _fill_proposals(tape, row, key, problem, state, settings)
            last = 0
        if row == _J:
            counters.for_j += 1
        else:
            counters.for_k += 1
        if _accept(tape.draws, row, last, key, problem, state, settings):
            return last


@jit_melted
def _accept(
    draws: IntArray, row: int, b: int, key: int, problem: ProblemArrays, state: RunState, settings: Record
) -> bool:
    """Say whether proposal ``b`` of the tape is accepted; one from the journal of rises takes its place there."""
    weights, rises, run = state.sampler.weights, state.sampler.rises, state.sampler.numbers[0]
    mass = uniform(state.seeds[_ACCEPT_J if row == _J else _ACCEPT_K], key) * (run.mass + run.excess)
    if mass < run.mass:
        i = draws[row, b]
        if mass * weights[i].base < weights[i].value * run.mass:
            return True
        run.waste += 1
        return False
    mass -= run.mass
    entry = find_rise(rises, run.n_rises, mass)
    if entry > 0:
        mass -= rises[entry - 1].cumulative
    i = rises[entry].index
    run.waste += 2
    if rises[entry].floor + mass >= weights[i].value:
        return False
    pair = i
    if not settings.tabular_columns:
        pair = draw(problem.columns, i, uniform(state.seeds[row + 1], key))
    draws[row, b] = i
    draws[row + 1, b] = pair
    if row == _J:
        draws[_NEXT_2, b] = draw(problem.transitions, pair, uniform(state.seeds[_NEXT_2], key))
    return True


@jit_melted
def _value(rows: ValueRows, player: ValuePlayer, row_kind: int, x: int) -> float:
    """⟨ψ_x, z⟩."""
    if row_kind == IDENTITY:
        return float(player.entries[x].value)
    if row_kind == DENSE:
        return dense_product(rows.matrix, x, player.dense)
    return sparse_product(rows, player.entries, x)


@jit_melted
def _advantage(problem: ProblemArrays, state: RunState, settings: Record, pair: int, y: int) -> float:
    """c_w(x, a) − (u_λ(x) − γ u_λ(y))/(1−γ)."""
    w = state.cost_weights
    first = pair * problem.cost_stride
    cost = 0.0
    for c in range(w.shape[1]):
        cost += problem.costs[first + c] * w[0, c]
    here = _value(problem.rows, state.player, settings.row_kind, pair // settings.n_actions)
    there = _value(problem.rows, state.player, settings.row_kind, y)
    scale = state.player.numbers[0].scale / (1.0 - settings.discount)
    return float(cost - scale * (here - settings.discount * there))


@jit_melted
def _exponential(x: float) -> float:
    """exp(x); near zero, where almost all steps are, its Taylor polynomial to double precision."""
    if abs(x) < 0.03:
        return 1 + x * (
            1 + x * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * (1 / 120 + x * (1 / 720 + x * (1 / 5040 + x / 40320))))))
        )
    return exp(min(x, _LARGEST_EXPONENT))


@jit_melted
def _shrink(sampler: WeightSampler, settings: Record, i: int, gradient: float) -> None:
    """θ_i ∝ θ_i·exp(−η·gradient)."""
    value = sampler.weights[i].value * _exponential(-settings.occupancy_step * gradient)
    set_weight(sampler, i, min(max(value, SMALLEST), LARGEST), settings.headroom)


@jit_melted
def _value_ascent(
    rows: ValueRows, player: ValuePlayer, settings: Record, step: float, start: int, here: int, there: int
) -> None:
    """λ ← Π(λ + step·(ψ_start − (ψ_here − γψ_there)/(1−γ)))."""
    run = player.numbers[0]
    change = step / run.scale
    change_here = -change / (1.0 - settings.discount)
    change_there = -change_here * settings.discount
    if settings.row_kind == IDENTITY:
        add_entry(player, start, change)
        add_entry(player, here, change_here)
        add_entry(player, there, change_there)
    elif settings.row_kind == DENSE:
        add_dense_rows(rows.matrix, player, start, here, there, change, change_here, change_there)
    else:
        add_row(rows, player, start, change)
        add_row(rows, player, here, change_here)
        add_row(rows, player, there, change_there)
    if not settings.box:
        project_to_ball(run, settings.radius)
    elif settings.row_kind == DENSE:
        clip_dense(player.dense, settings.radius)
    elif settings.row_kind == IDENTITY:
        clip_entry(player.entries, start, settings.radius)
        clip_entry(player.entries, here, settings.radius)
        clip_entry(player.entries, there, settings.radius)
    else:
        clip_row(rows, player.entries, start, settings.radius)
        clip_row(rows, player.entries, here, settings.radius)
        clip_row(rows, player.entries, there, settings.radius)


@jit_melted
def _cost_ascent(problem: ProblemArrays, w: FloatArray, settings: Record, pair: int) -> None:
    """Add w to its sum, then w ∝ w·exp(step·g) over the simplex, w ← Π(w + step·g) over the ball, g = c(x, a) − ρ̂.

    Over the simplex the paper's shift of g by −2 cancels in the normalisation.
    """
    n = w.shape[1]
    first = pair * problem.cost_stride
    total = 0.0
    for c in range(n):
        w[1, c] += w[0, c]
    if settings.cost_ball:
        for c in range(n):
            w[0, c] += settings.cost_step * (problem.costs[first + c] - problem.expert[c])
            total += w[0, c] * w[0, c]
        total = max(sqrt(total), 1.0)
    else:
        for c in range(n):
            factor = _exponential(settings.cost_step * (problem.costs[first + c] - problem.expert[c]))
            w[0, c] = max(w[0, c] * factor, SMALLEST)
            total += w[0, c]
    scale = 1.0 / total
    for c in range(n):
        w[0, c] *= scale


@jit_melted
def _occupancy_descent(
    problem: ProblemArrays, state: RunState, settings: Record, i: int, pair: int, y: int, j: int, pair_2: int, y_2: int
) -> None:
    """θ ∝ θ·exp(−η·g) for the gradient g of the module's docstring; both samples are taken at the same θ, λ and w."""
    sampler = state.sampler
    n = sampler.weights.size
    f = _advantage(problem, state, settings, pair, y)
    if settings.balanced:
        f_2 = _advantage(problem, state, settings, pair_2, y_2)
        uniform_share = sampler.numbers[0].total / n
        f *= sampler.numbers[0].total / (uniform_share + sampler.weights[i].value)
        f_2 *= sampler.numbers[0].total / (uniform_share + sampler.weights[j].value)
        _shrink(sampler, settings, i, f)
        _shrink(sampler, settings, j, f_2)
    else:
        _shrink(sampler, settings, i, n * (f + settings.shift))


@jit_raw
def advance(
    problem: ProblemArrays,
    state: RunState,
    settings_array: NDArray[np.void],
    n_rounds: int,
    tape: Tape,
    record: IntArray,
) -> None:
    """Do ``n_rounds`` rounds.

    The draws of the first rounds go to the rows of ``record``, (any, 9).
    """
    settings, counters = settings_array[0], state.counters[0]
    sampler, player = state.sampler, state.player
    run, value_run = sampler.numbers[0], player.numbers[0]
    draws = tape.draws
    at_round = at_j = at_k = BLOCK - 1
    for done in range(n_rounds):
        at_round += 1
        if at_round == BLOCK:
            _fill_rounds(tape, problem, state, settings)
            at_round = 0
        at_j = _next_accepted(tape, _J, at_j, problem, state, settings)
        at_k = _next_accepted(tape, _K, at_k, problem, state, settings)
        start, i, pair, y = draws[_START, at_round], draws[_I, at_round], draws[_PAIR, at_round], draws[_NEXT, at_round]
        j, pair_2, y_2 = draws[_J, at_j], draws[_PAIR_2, at_j], draws[_NEXT_2, at_j]
        k, pair_3 = draws[_K, at_k], draws[_PAIR_3, at_k]
        if done < record.shape[0]:
            for c, value in enumerate((i, pair, y, start, j, pair_2, y_2, k, pair_3)):
                record[done, c] = value

        run.clock += 1.0 / run.total
        value_run.clock += value_run.scale
        counters.iteration += 1
        _occupancy_descent(problem, state, settings, i, pair, y, j, pair_2, y_2)
        step = settings.value_step
        if settings.value_step_decays:
            step /= sqrt(float(counters.iteration))
        _value_ascent(problem.rows, player, settings, step, start, pair_2 // settings.n_actions, y_2)
        _cost_ascent(problem, state.cost_weights, settings, pair_3)

        run.until_rebuild -= 1
        value_run.until_rebase -= 1
        if wants_rebuild(sampler.weights.size, run):
            rebuild(sampler, settings.headroom)
            at_j = at_k = BLOCK - 1
        if wants_rebase(value_run):
            rebase(player)
