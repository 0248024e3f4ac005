"""Trajectories of finite models, one after the other in compiled code.

Every trajectory draws from its own stream, a counter scrambled by SplitMix64's finaliser (Steele, Lea & Flood, 2014),
so that it does not depend on which others are drawn with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym._jit import jit, jit_inline
from lfd_gym.generative_model import draw_alias
from lfd_gym.validation import FloatArray, IntArray

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S11, _S27, _S30, _S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
_ULP = 2.0**-53

AliasArrays = tuple[NDArray[Any], NDArray[Any], FloatArray, NDArray[np.int32]]


@jit
def simulate(
    policy: FloatArray,
    initial: AliasArrays,
    transitions: AliasArrays,
    absorbing_state: int,
    seeds: NDArray[np.uint64],
    horizon: int,
    observations: IntArray,
    actions: IntArray,
    lengths: IntArray,
) -> int:
    """Fill the flat ``observations`` and ``actions``, and the (m,) ``lengths``; return the number of actions.

    A trajectory ends on entering ``absorbing_state`` (−1: none) or after ``horizon`` actions. The arrays have room for
    m·(horizon + 1) and m·horizon entries.
    """
    n_actions = policy.shape[1]
    written = 0
    for k in range(seeds.size):
        counter = seeds[k]
        counter += _GAMMA
        state = draw_alias(initial[0], initial[1], initial[2], initial[3], 0, _uniform(counter))
        length = 0
        observations[written + k] = state
        while length < horizon and state != absorbing_state:
            counter += _GAMMA
            action = _draw_action(policy, state, _uniform(counter))
            counter += _GAMMA
            pair = state * n_actions + action
            state = draw_alias(transitions[0], transitions[1], transitions[2], transitions[3], pair, _uniform(counter))
            actions[written] = action
            written += 1
            length += 1
            observations[written + k] = state
        lengths[k] = length
    return written


@jit_inline
def _uniform(counter: np.uint64) -> float:
    """Return the number in [0, 1) that belongs to ``counter``."""
    z = (counter ^ (counter >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    z = z ^ (z >> _S31)
    return np.float64(z >> _S11) * _ULP


@jit_inline
def _draw_action(policy: FloatArray, state: int, uniform: float) -> int:
    """Invert the cumulative distribution of a row; an action of probability zero is never drawn."""
    total = 0.0
    last = 0
    for action in range(policy.shape[1]):
        if policy[state, action] > 0.0:
            last = action
            total += policy[state, action]
            if uniform < total:
                break
    return last
