"""Choosing a discount that demonstrations can speak about."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from lfd_gym.arguments import checked
from lfd_gym.demonstrations.demonstrations import Demonstrations

#: How much of the discounted mass may lie beyond the end of demonstrations that were cut.
_UNSEEN = 0.05
#: What 1 − γ may be, times a power of ten.
_READABLE = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)


@checked
def suggest_discount(demonstrations: Demonstrations) -> float:
    """Suggest a discount γ for a task: as far-sighted as the demonstrations can speak about, and a readable number.

    A trajectory that was cut after T actions says nothing of what came later, and that carries γ^T of the discounted
    mass: no amount of such data makes an estimate or a certificate better than that. A larger γ looks further ahead and
    sees less. So this is, up to rounding down, the largest γ for which γ^T is 5 % on average over the trajectories that
    did not terminate. Where all of them terminated nothing is unseen; then it is the γ under which the last step of the
    longest one still weighs 5 % of the first.

    It is a starting point. If you know how far ahead the expert looks, say so: 1/(1−γ) is that number of steps.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> env = gym.make("Pendulum-v1")  # 200 steps
    >>> demos = lfd.collect(env, lambda seen: np.zeros((len(seen), 1)), 2, rng=np.random.default_rng(0))
    >>> lfd.suggest_discount(demos)
    0.985
    >>> round(0.985**200, 3)
    0.049
    """
    lengths = demonstrations.lengths
    cut = lengths[~demonstrations.terminated & (lengths > 0)]
    if cut.size == 0:
        cut = lengths[lengths == lengths.max(initial=0)]
    if cut.size == 0 or cut.max() == 0:
        raise ValueError("demonstrations must hold at least one action to choose a discount for")
    if cut.max() == 1:
        return _UNSEEN
    largest = float(brentq(lambda discount: np.mean(discount**cut) - _UNSEEN, 0.0, 1.0, xtol=1e-15))
    return _rounded_down(largest)


def _rounded_down(discount: float) -> float:
    """Return the next smaller discount whose distance from 1 is a readable number; 0.05 at least."""
    gap = 1 - discount
    scale = 10.0 ** math.floor(math.log10(gap))
    readable = next(step * scale for step in _READABLE if step * scale >= gap * (1 - 1e-9))
    return max(_UNSEEN, round(1 - readable, 12))
