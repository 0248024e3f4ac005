"""Trajectories of finite models, one after the other in compiled code.

Every trajectory draws from its own stream, so that it does not depend on which others are drawn with it: number 0 for
the first state, then 2t + 1 and 2t + 2 for action t and what comes of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym._jit import jit, jit_inline
from lfd_gym._splitmix import uniform
from lfd_gym.model.generative_model import draw_alias
from lfd_gym.validation import FloatArray, IntArray

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
) -> tuple[int, int]:
    """Fill the flat ``observations`` and ``actions``, and the (m,) ``lengths``, as far as they have room.

    A trajectory ends on entering ``absorbing_state`` (−1: none) or after ``horizon`` actions. Returns the number of
    trajectories that are done, and of their actions: before each, there must be room for one of full length.
    """
    n_actions = policy.shape[1]
    written = 0
    for k in range(seeds.size):
        if written + horizon > actions.size or written + k + horizon + 1 > observations.size:
            return k, written
        state = draw_alias(initial[0], initial[1], initial[2], initial[3], 0, uniform(seeds[k], 0))
        length = 0
        observations[written + k] = state
        while length < horizon and state != absorbing_state:
            action = _draw_action(policy, state, uniform(seeds[k], 2 * length + 1))
            pair = state * n_actions + action
            state = draw_alias(
                transitions[0], transitions[1], transitions[2], transitions[3], pair, uniform(seeds[k], 2 * length + 2)
            )
            actions[written] = action
            written += 1
            length += 1
            observations[written + k] = state
        lengths[k] = length
    return seeds.size, written


@jit_inline
def _draw_action(policy: FloatArray, state: int, u: float) -> int:
    """Invert the cumulative distribution of a row; an action of probability zero is never drawn."""
    total = 0.0
    last = 0
    for action in range(policy.shape[1]):
        if policy[state, action] > 0.0:
            last = action
            total += policy[state, action]
            if u < total:
                break
    return last
