"""Confidence bounds of means, by betting.

X_1, X_2, … are independent, lie in [0, 1] and have the mean μ. Whoever thinks that μ ≤ x can be offered bets: a capital
of one is multiplied by 1 + λ (X_t − x) at each observation, with λ below 1/x. If μ ≤ x the capital is a nonnegative
supermartingale, and by Ville's inequality it *ever* reaches 1/δ with probability at most δ. So every x at which it has
reached 1/δ can be excluded: the largest such x is a lower confidence bound of μ at level 1 − δ (Waudby-Smith & Ramdas
2024; Orabona & Jun 2024).

The capital here is a mixture of constant bets λ_k = min(s 1.5^k, 0.995/x) and of one bet of Hoeffding's,

    K(x) = (1−h) mean_k Π_t (1 + λ_k (X_t − x))  +  h Π_t exp(s (X_t − x) − s²/8),        s = √(8 log(1/(h δ)) / n).

Each product falls with x, so that the bound is found by bisection. s is the best bet for fair coins, the largest
variance there is, and less variance wants larger ones. Constant bets alone lose some per cent on fair coins, which
Hoeffding's wins back. n is the number of observations that the bets are made for: it must not depend on them. With it
fixed in advance the bound is valid at *every* number of observations, also at one that was chosen by looking at them:
one may collect until satisfied.
"""

from __future__ import annotations

import math

import numpy as np

from lfd_gym._jit import jit
from lfd_gym.arguments import checked
from lfd_gym.validation import FloatArray, check_delta

#: h, the share of Hoeffding's bet.
_HOEFFDING = 0.25
_N_BETS, _RATIO = 10, 1.5
#: No bet risks more than this share of the capital.
_MOST = 0.995
_BISECTIONS = 30
#: More rows than this nobody plans.
_MOST_ROWS = 2**62


@checked
def lower_bound(samples: FloatArray, delta: float, *, planned: int | None = None, copies: float = 1.0) -> FloatArray:
    """Return (k,) lower confidence bounds of the means of the columns of (n, k) samples in [0, 1].

    Parameters
    ----------
    samples
        Rows are independent.
    delta
        The probability, for each column, that the mean is below the bound.
    planned
        The number of rows that was planned before any was seen; the number there is if not given, which then must not
        have been chosen by looking at them.
    copies
        What the bound would be if every row had been seen so often: no bound, a forecast for more or fewer rows.

    Examples
    --------
    >>> lower_bound(np.ones((100, 1)), delta=0.05).round(2)
    array([0.97])
    """
    check_delta(delta)
    if np.ndim(samples) != 2 or np.size(samples) == 0:
        raise ValueError(f"samples must have shape (n, k) with k and n at least 1, got {np.shape(samples)}")
    samples = np.asarray(samples, dtype=np.float64)
    copies = float(copies)
    if not 0 < copies < math.inf:
        raise ValueError(f"copies must be positive and finite, got {copies}")
    if not (samples.min() >= 0 and samples.max() <= 1):
        raise ValueError(f"samples must lie in [0, 1], got {samples.min()} to {samples.max()}")
    if planned is not None and not 1 <= planned <= _MOST_ROWS:
        raise ValueError(f"planned must be at least 1 and at most {_MOST_ROWS}, got {planned}")
    n = copies * (len(samples) if planned is None else planned)
    smallest = math.sqrt(8 * math.log(1 / (_HOEFFDING * delta)) / n)
    bets = smallest * np.power(_RATIO, np.arange(_N_BETS, dtype=np.float64))
    return np.array([_lower(np.ascontiguousarray(column), delta, bets, copies) for column in samples.T])


@checked
def upper_bound(samples: FloatArray, delta: float, *, planned: int | None = None, copies: float = 1.0) -> FloatArray:
    """Return (k,) upper confidence bounds, see `lower_bound`."""
    return 1 - lower_bound(1 - np.asarray(samples, dtype=np.float64), delta, planned=planned, copies=copies)


@jit
def _lower(samples: FloatArray, delta: float, bets: FloatArray, copies: float) -> float:
    """Find the largest x at which the capital has reached 1/δ; what bisection leaves open is left to the safe side."""
    low, high = 0.0, samples.mean()  # at the mean itself no bet has gained
    target = math.log(1 / delta)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if middle <= low:
            break
        if _log_capital(samples, middle, bets, copies) >= target:
            low = middle
        else:
            high = middle
    return low


@jit
def _log_capital(samples: FloatArray, x: float, bets: FloatArray, copies: float) -> float:
    n = samples.size
    hoeffding = math.log(_HOEFFDING) + copies * (bets[0] * (samples.sum() - n * x) - n * bets[0] ** 2 / 8)
    largest, total = hoeffding, 1.0  # the sum so far is total · exp(largest)
    share = math.log((1 - _HOEFFDING) / bets.size)
    for bet in bets:
        stake = min(bet, _MOST / x)
        gained = 0.0
        for value in samples:
            gained += math.log(1.0 + stake * (value - x))
        logarithm = share + copies * gained
        if logarithm > largest:
            total = total * math.exp(largest - logarithm) + 1.0
            largest = logarithm
        else:
            total += math.exp(logarithm - largest)
    return float(largest + math.log(total))
