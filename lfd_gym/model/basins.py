"""A preconditioner for chains that move through basins: follow the most probable successor until it goes in circles.

Under a good policy most states lead quickly to a few places, where the chain then stays for long. All states that lead
to the same circle form a basin. What is slow about (I − W) x = r at a discount near one is how much of x each basin has
as a whole; what happens inside is soon settled by a Gauss–Seidel sweep along the flow. So an approximate solution is
found in two steps:

- a small chain between the basins, Galerkin's: values are taken as constant over a basin, and distributions as
  proportional to ``share``, how the chain spreads over a basin in which it stays; a few sweeps solve it;
- one sweep over all states, basin by basin, each from its circle upwards for values, downwards for distributions.

Both are linear, so a Krylov method may use them. For the letters see `krylov`. States are numbered anew, basin by basin
and along the sweep: what is read together then lies together, which halves the time of a sweep.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lfd_gym._jit import jit
from lfd_gym.validation import FloatArray

Indices = NDArray[Any]

# A chain flows if its most probable successors have more than this probability on average. Under the uniform policy of
# a gridworld, which does not, basins mean nothing.
_FLOW = 0.5
# Two to eight steps of spreading do about the same; with none it takes twice as many products.
_SPREADING_STEPS = 3
# Sweeps over the chain between basins: as many as cost about one over all states, at most this many. Measured on
# gridworlds at γ = 0.99: for values 12 sweeps need 1.3 times the products of 40, for distributions as many.
_MOST_VALUE_SWEEPS = 40
_MOST_DISTRIBUTION_SWEEPS = 12


class Basins(NamedTuple):
    """A new order of states, in which basin b has the places ``starts[b]`` to ``starts[b + 1]``.

    Without basins, B = 0, the order is the old one.

    Attributes
    ----------
    order
        (S,) the old number of each state.
    starts
        (B + 1,) where basins begin.
    share
        (S,) of its basin's mass, in the new order.
    offsets, successors, weights, scale
        The chain between basins without its diagonal: rows and right-hand sides are multiplied by
        ``scale`` = 1/(1 − W_bb) instead.
    n_sweeps
        Over that chain, to solve it roughly.
    """

    order: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    share: FloatArray
    offsets: NDArray[np.uint32]
    successors: NDArray[np.uint32]
    weights: FloatArray
    scale: FloatArray
    n_sweeps: int


#: Offsets, successors and weights of W.
Chain = tuple[Indices, Indices, FloatArray]


def no_basins(n_states: int) -> Basins:
    """Leave the states in their order."""
    order, none, nothing = np.arange(n_states, dtype=np.uint32), np.zeros(1, np.uint32), np.zeros(0)
    return Basins(order, none, nothing, none, none, nothing, nothing, 0)


def find_basins(
    offsets: Indices, successors: Indices, weights: FloatArray, transposed: bool
) -> tuple[Basins, Chain] | None:
    """Find the basins of a chain; return them and the chain in their order, or nothing if the chain does not flow."""
    following, flows = _most_probable_successors(offsets, successors, weights, transposed)
    return _basins_along(offsets, successors, weights, transposed, following) if flows else None


@jit
def _basins_along(
    offsets: Indices, successors: Indices, weights: FloatArray, transposed: bool, following: NDArray[np.uint32]
) -> tuple[Basins, Chain]:
    """Return the basins of going to ``following`` from each state, and the chain in their order."""
    basin, depth, n_basins = _basins_and_depths(following)
    if transposed:  # the sweep goes down the flow
        basin = (n_basins - 1 - basin).astype(np.uint32)
        key = (depth.max() - depth).astype(np.uint32)
    else:
        key = depth
    order = _sorted_by(basin, _sorted_by(key, np.arange(basin.size).astype(np.uint32)))
    chain = _renumbered(offsets, successors, weights, order)
    basin = basin[order]
    starts = np.zeros(n_basins + 1, np.uint32)
    for place in range(basin.size):
        starts[basin[place] + 1] = place + 1
    share = _shares(*chain, transposed, basin, depth[order], n_basins)
    coarse_offsets, neighbours, between, scale = _between(*chain, transposed, basin, starts, share)
    most_sweeps = _MOST_DISTRIBUTION_SWEEPS if transposed else _MOST_VALUE_SWEEPS
    n_sweeps = min(max(chain[2].size // max(neighbours.size, 1), 1), most_sweeps)
    return Basins(order, starts, share, coarse_offsets, neighbours, between, scale, n_sweeps), chain


@jit
def _most_probable_successors(
    offsets: Indices, successors: Indices, weights: FloatArray, transposed: bool
) -> tuple[NDArray[np.uint32], bool]:
    """Return the most probable successor of each state, and whether they are probable."""
    n_states = offsets.size - 1
    following = np.arange(n_states).astype(np.uint32)
    largest = np.zeros(n_states)
    for row in range(n_states):
        if transposed:
            for k in range(offsets[row], offsets[row + 1]):
                if weights[k] > largest[successors[k]]:
                    largest[successors[k]] = weights[k]
                    following[successors[k]] = row
        else:
            for k in range(offsets[row], offsets[row + 1]):
                if weights[k] > largest[row]:
                    largest[row] = weights[k]
                    following[row] = successors[k]
    return following, largest.mean() > _FLOW


@jit
def _basins_and_depths(following: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.uint32], int]:
    """Return the basin of each state, its distance to the circle along ``following``, and the number of basins."""
    n_states = following.size
    unseen, pending = np.uint32(2**32 - 1), np.uint32(2**32 - 2)
    basin = np.full(n_states, unseen)
    depth = np.zeros(n_states, np.uint32)
    path = np.empty(n_states, np.uint32)
    n_basins = 0
    for first in range(n_states):
        length = 0
        state = np.uint32(first)
        while basin[state] == unseen:
            basin[state] = pending
            path[length] = state
            length += 1
            state = following[state]
        if basin[state] == pending:  # a new circle
            on_circle = True
            while on_circle:
                length -= 1
                basin[path[length]] = n_basins
                on_circle = path[length] != state
            n_basins += 1
        for k in range(length - 1, -1, -1):
            basin[path[k]] = basin[state]
            depth[path[k]] = depth[following[path[k]]] + 1
    return basin, depth, n_basins


@jit
def _sorted_by(key: NDArray[np.uint32], items: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Sort ``items`` by their keys, which are not large; items of the same key stay in order."""
    places = np.zeros(key.max() + 2, np.uint32)
    for item in items:
        places[key[item] + 1] += 1
    for k in range(places.size - 1):
        places[k + 1] += places[k]
    result = np.empty_like(items)
    for item in items:
        result[places[key[item]]] = item
        places[key[item]] += 1
    return result


@jit
def _renumbered(offsets: Indices, successors: Indices, weights: FloatArray, order: NDArray[np.uint32]) -> Chain:
    """Return W with its states in a new order."""
    n_states = order.size
    place = np.empty_like(order)
    for new in range(n_states):
        place[order[new]] = new
    new_offsets = np.empty_like(offsets)
    new_successors = np.empty(offsets[n_states], successors.dtype)
    new_weights = np.empty(offsets[n_states])
    n_entries = 0
    for new in range(n_states):
        new_offsets[new] = n_entries
        row = order[new]
        for k in range(offsets[row], offsets[row + 1]):
            new_successors[n_entries] = place[successors[k]]
            new_weights[n_entries] = weights[k]
            n_entries += 1
    new_offsets[n_states] = n_entries
    return new_offsets, new_successors, new_weights


@jit
def _shares(
    offsets: Indices,
    successors: Indices,
    weights: FloatArray,
    transposed: bool,
    basin: NDArray[np.uint32],
    depth: NDArray[np.uint32],
    n_basins: int,
) -> FloatArray:
    """Let mass on the circles spread for a few steps; return the share each state then has of its basin."""
    n_states = basin.size
    mass, after = np.zeros(n_states), np.empty(n_states)
    for state in range(n_states):
        if depth[state] == 0:
            mass[state] = 1.0
    for _ in range(_SPREADING_STEPS):
        after[:] = 0.0
        for row in range(n_states):
            if transposed:
                for k in range(offsets[row], offsets[row + 1]):
                    after[row] += weights[k] * mass[successors[k]]
            elif mass[row] > 0:
                for k in range(offsets[row], offsets[row + 1]):
                    after[successors[k]] += weights[k] * mass[row]
        mass, after = after, mass
    total = np.zeros(n_basins)
    for state in range(n_states):
        total[basin[state]] += mass[state]
    for state in range(n_states):
        if total[basin[state]] > 0:
            mass[state] /= total[basin[state]]
    return mass


@jit
def _between(
    offsets: Indices,
    successors: Indices,
    weights: FloatArray,
    transposed: bool,
    basin: NDArray[np.uint32],
    starts: NDArray[np.uint32],
    share: FloatArray,
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], FloatArray, FloatArray]:
    """Return the chain between basins."""
    n_basins = starts.size - 1
    coarse_offsets = np.zeros(n_basins + 1, np.uint32)
    coarse_successors = np.empty(8 * n_basins, np.uint32)
    coarse_weights = np.empty(8 * n_basins)
    scale = np.empty(n_basins)
    found_in = np.full(n_basins, n_basins, np.uint32)  # the row in which a neighbour was last met, and where
    entry = np.empty(n_basins, np.uint32)
    n_entries = np.uint32(0)
    for b in range(n_basins):
        coarse_offsets[b] = n_entries
        diagonal = 0.0
        for row in range(starts[b], starts[b + 1]):
            if not transposed and share[row] == 0:
                continue
            for k in range(offsets[row], offsets[row + 1]):
                weight = weights[k] * (share[successors[k]] if transposed else share[row])
                if weight == 0:
                    continue
                other = basin[successors[k]]
                if other == b:
                    diagonal += weight
                elif found_in[other] == b:
                    coarse_weights[entry[other]] += weight
                else:
                    if n_entries == coarse_successors.size:
                        coarse_successors = np.concatenate((coarse_successors, np.empty_like(coarse_successors)))
                        coarse_weights = np.concatenate((coarse_weights, np.empty_like(coarse_weights)))
                    found_in[other] = b
                    entry[other] = n_entries
                    coarse_successors[n_entries] = other
                    coarse_weights[n_entries] = weight
                    n_entries += np.uint32(1)
        scale[b] = 1.0 / (1.0 - diagonal)
        coarse_weights[coarse_offsets[b] : n_entries] *= scale[b]
    coarse_offsets[n_basins] = n_entries
    return coarse_offsets, coarse_successors[:n_entries], coarse_weights[:n_entries], scale


@jit
def approximate_solution(
    offsets: Indices,
    successors: Indices,
    weights: FloatArray,
    basins: Basins,
    residual: FloatArray,
    x: FloatArray,
    transposed: bool,
) -> None:
    """Write to ``x`` an approximate solution of (I − W) x = residual, all in the new order; linear in ``residual``."""
    starts, share = basins.starts, basins.share
    n_basins = starts.size - 1
    right, coarse = np.empty(n_basins), np.zeros(n_basins)
    for b in range(n_basins):
        total = 0.0
        if transposed:
            for state in range(starts[b], starts[b + 1]):
                total += residual[state]
        else:
            for state in range(starts[b], starts[b + 1]):
                total += residual[state] * share[state]
        right[b] = total * basins.scale[b]
    for sweep in range(basins.n_sweeps):
        for step in range(n_basins):
            b = n_basins - 1 - step if sweep % 2 == 1 else step
            total = right[b]
            for k in range(basins.offsets[b], basins.offsets[b + 1]):
                total += basins.weights[k] * coarse[basins.successors[k]]
            coarse[b] = total
    for b in range(n_basins):
        for state in range(starts[b], starts[b + 1]):
            x[state] = coarse[b] * share[state] if transposed else coarse[b]
    for row in range(x.size):
        value = residual[row]
        for k in range(offsets[row], offsets[row + 1]):
            value += weights[k] * x[successors[k]]
        x[row] = value
