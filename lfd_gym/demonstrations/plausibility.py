"""Whether demonstrations can be what certificates take them for: independent trajectories of a known world.

Not every mistake shows, but some do: trajectories that were copied; pieces from within episodes, which begin where no
episode does; steps that were left out; episodes that a time limit cut and that are marked as terminated.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from scipy.special import bdtr, bdtrc

from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.validation import IntArray

#: What is less likely than this is not taken for chance.
_SELDOM = 1e-3
_HARDLY_EVER = 1e-6


def doubt(demonstrations: Demonstrations, dynamics: FiniteDynamics | None) -> str:
    """Return why these are no independent trajectories of the world, where it is known; empty if nothing shows.

    Examples
    --------
    >>> import lfd_gym as lfd
    >>> mdp = lfd.FiniteMDP([[0.0, 1.0], [0.0, 1.0]], initial_distribution=[1.0, 0.0], discount=0.9)
    >>> demos = lfd.collect(lfd.TabularModel.of(mdp), np.ones((2, 1)), 3, 5, np.random.default_rng(0))
    >>> doubt(demos, mdp.dynamics)
    ''
    """
    found = _copies(demonstrations)
    if dynamics is not None:
        found = found or _beginnings(demonstrations, dynamics) or _steps(demonstrations, dynamics)
    return found


def n_different(demonstrations: Demonstrations) -> int:
    """Return how many trajectories differ from each other."""
    return len(_counts(demonstrations))


def _counts(demonstrations: Demonstrations) -> Counter[tuple[bytes, bytes]]:
    return Counter(
        (each.observations.tobytes(), b"" if each.actions is None else each.actions.tobytes())
        for each in demonstrations
    )


def _copies(demonstrations: Demonstrations) -> str:
    """Say that every trajectory is there the same number of times, or a multiple of it, if that is no chance.

    Of one that is drawn at all, the number is a multiple of k with a probability of at most 1/√(2k).
    """
    counts = _counts(demonstrations)
    times = math.gcd(*counts.values())
    if times < 2 or (2 * times) ** (-0.5 * (len(counts) - 1)) >= _SELDOM:
        return ""
    return f"they are {len(counts)} trajectories, each of which is there {times} times or a multiple of that"


def _beginnings(demonstrations: Demonstrations, dynamics: FiniteDynamics) -> str:
    """Say where they begin too often or too seldom."""
    m = len(demonstrations)
    firsts = demonstrations.observations[demonstrations.offsets[:-1] + np.arange(m)].astype(np.int64)
    if firsts.max() >= dynamics.n_states:
        return f"trajectory {int(firsts.argmax())} begins at the end"
    counts = np.bincount(firsts, minlength=dynamics.n_states)
    expected = dynamics.initial_distribution
    chance = np.minimum(bdtr(counts, m, expected), bdtrc(counts - 1, m, expected))
    state = int(chance.argmin())
    if chance[state] >= _HARDLY_EVER / counts.size:
        return ""
    return (
        f"{counts[state]} of {m} trajectories begin in state {state}, where episodes begin with probability "
        f"{expected[state]:.3g}"
    )


def _steps(demonstrations: Demonstrations, dynamics: FiniteDynamics) -> str:
    """Say which step or which end cannot have happened."""
    seen = demonstrations.observations.astype(np.int64)
    before = np.arange(demonstrations.n_transitions) + demonstrations.trajectory_indices
    nexts = seen[before + 1]
    acted = demonstrations.lengths > 0
    if dynamics.absorbing_state is not None:
        at_once = demonstrations.terminated & ~acted
        wrong = at_once & (
            seen[demonstrations.offsets[1:] + np.arange(len(demonstrations))] != dynamics.absorbing_state
        )
        if wrong.any():
            return f"trajectory {int(wrong.argmax())} is marked as terminated before its first step"
        nexts[demonstrations.offsets[1:][acted & demonstrations.terminated] - 1] = dynamics.absorbing_state
    states = seen[before]
    known = (states < dynamics.n_states) & (nexts < dynamics.n_states)
    possible = np.zeros(before.size, dtype=bool)
    if demonstrations.actions is None:
        for action in range(dynamics.n_actions):
            possible[known] |= _has(dynamics, states[known] * dynamics.n_actions + action, nexts[known])
    else:
        actions = demonstrations.actions.astype(np.int64)
        possible[known] = _has(dynamics, states[known] * dynamics.n_actions + actions[known], nexts[known])
    if possible.all():
        return ""
    step = int(possible.argmin())
    k = int(demonstrations.trajectory_indices[step])
    by = "" if demonstrations.actions is None else f" by action {int(demonstrations.actions[step])}"
    if demonstrations.terminated[k] and step == demonstrations.offsets[k + 1] - 1:
        return f"trajectory {k} is marked as terminated after state {states[step]}{by}, where this world does not end"
    return f"trajectory {k} goes from state {states[step]}{by} to {nexts[step]}, which this world never does"


def _has(dynamics: FiniteDynamics, rows: IntArray, columns: IntArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Say which transitions have a positive probability."""
    table = dynamics.transitions
    pairs = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr)) * dynamics.n_states + table.indices
    wanted = rows * dynamics.n_states + columns
    places = np.minimum(np.searchsorted(pairs, wanted), pairs.size - 1)  # they rise: rows and columns are sorted
    return np.asarray(pairs[places] == wanted)
