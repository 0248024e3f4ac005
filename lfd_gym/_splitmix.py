"""Random numbers by counting: number k of a stream is a hash of ``seed + k·φ`` (SplitMix64 of Steele, Lea & Flood).

A kernel that needs draw k of a stream computes it from k alone. So draws can be made ahead of their use, thrown away
and made again, and a run that is cut into pieces anywhere sees the same numbers. Numba's own generator is three times
slower and keeps a hidden state.
"""

import zlib

import numpy as np
from numpy.typing import NDArray

from lfd_gym._jit import jit_melted

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
_RESOLUTION = 2.0**-53


@jit_melted
def uniform(seed: np.uint64, k: int) -> float:
    """Return number ``k`` of the stream of ``seed``: uniform on the multiples of 2⁻⁵³ in [0, 1)."""
    bits = seed + np.uint64(k) * _GOLDEN
    bits = (bits ^ (bits >> _30)) * _FIRST
    bits = (bits ^ (bits >> _27)) * _SECOND
    bits = bits ^ (bits >> _31)
    return np.float64(np.int64(bits >> _11)) * _RESOLUTION


def own_stream(rng: np.random.Generator, purpose: str) -> np.random.Generator:
    """Return a generator that follows from ``rng``, but draws nothing that ``rng`` has drawn, or will, elsewhere.

    Whoever begins with the same seed everywhere would else judge a policy on the very episodes it was learned from.
    """
    return np.random.default_rng([int(rng.integers(2**63)), zlib.crc32(purpose.encode())])


def draw_seeds(n: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Draw the seeds of ``n`` streams."""
    return rng.integers(2**64, size=n, dtype=np.uint64)
