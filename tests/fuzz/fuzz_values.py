"""Wrong values for an argument, given a right one: drawn from a seeded generator, so that call k can be drawn again."""

import math
import pathlib
import types

import gymnasium as gym
import numpy as np
import scipy.sparse as sp

NUMBERS = [
    0, 1, -1, 2, 7, -(2**31), 2**31, 2**53 + 1, 2**62 + 64, 2**63, -(2**63), 10**40,
    0.0, -0.0, 0.5, -0.5, 1.5, 1e-320, 1e-12, 1e12, 1e308, -1e308, math.nan, math.inf, -math.inf,
    True, False, 1j, np.float32(0.5), np.int8(-3), np.uint64(2**63), np.float64("nan"), np.bool_(True),
]  # fmt: skip
#: What an amount of work may be at most: more is no mistake, it takes as long as was asked for.
MOST_WORK = 50


def strangers():
    """Objects that hardly any argument takes, made anew for every call."""
    return [
        None, "", "text", "../../etc", "\x00", "é" * 300, b"bytes", [], (), {}, {"a": 1}, {1, 2}, object(), dict, int,
        lambda *args, **kwargs: None, lambda x: x, lambda x, y: np.full(len(np.atleast_1d(x)), np.nan),
        range(3), iter([1, 2]), (k for k in range(2)), Ellipsis, NotImplemented, ValueError("x"), types, math,
        pathlib.Path("nowhere") / "at" / "all", np.random.RandomState(0), np.random, [[1], [1, 2]], [None], ["a", "b"],
        [[[1.0]]], np.array(3.0), np.array([]), np.zeros((0, 3)), np.zeros((3, 0)), np.eye(2), np.eye(7), -np.ones(3),
        np.array([1, None], dtype=object), np.array(["a"]), np.array([1j]), np.array(["2020-01-01"], dtype="M8[D]"),
        np.zeros(2, dtype=[("a", float)]), np.ma.masked_array([1.0, 2.0], [True, False]), np.matrix([[1.0, 2.0]]),
        np.full((2, 2), np.nan), np.array([2**63], dtype=np.uint64), np.array([2**62, -(2**62)]), sp.eye(3),
        sp.csr_array((4, 4)), sp.coo_array(np.eye(2)), memoryview(b"abc"), bytearray(8), slice(0, 3), 10**400,
        gym.spaces.Discrete(3), gym.spaces.Text(3), gym.spaces.Graph(gym.spaces.Discrete(2), None), gym.Env, gym.Env(),
    ]  # fmt: skip


def changed_array(array, rng):
    """The same array, changed in one way that its shape, its kind or its numbers might be wrong."""
    changes = [
        lambda a: a.T, lambda a: a[:-1], lambda a: a[:0], lambda a: a[None], lambda a: a[..., None], lambda a: -1 * a,
        lambda a: a.ravel(), lambda a: np.concatenate([a, a]), lambda a: a.astype(object), lambda a: a.astype(complex),
        lambda a: a.astype(str), lambda a: a.astype(np.float32), lambda a: a.astype(np.uint64), lambda a: a * 1e308,
        lambda a: a.astype(np.int8), lambda a: a.tolist(), lambda a: a * 1e-320, lambda a: a[::-1], lambda a: a + 1,
        lambda a: np.full_like(a, 0), lambda a: a.astype(bool), lambda a: a[..., ::2],
        lambda a: a.astype(np.longdouble),
        lambda a: sp.coo_array(a), lambda a: a.astype(np.float16), lambda a: a.astype(">f8"),
        lambda a: np.asfortranarray(a),
    ]  # fmt: skip
    if rng.random() < 0.5 or array.size == 0:
        return changes[rng.integers(len(changes))](array)
    other = array.astype(float) if rng.random() < 0.7 else array.copy()
    value = [np.nan, np.inf, -np.inf, -1.0, 1e308, 1e-320, 2.0, 2.0**62, 1e300, 0.3][rng.integers(10)]
    other.flat[rng.integers(other.size)] = (
        value if other.dtype.kind == "f" else int(np.clip(np.nan_to_num(value), -9, 9))
    )
    return other


def wrong_value(right, pool, rng, amount):
    """Draw a value in the place of ``right``: a change of it, a number, a stranger, or another object of ours."""
    value = _any_value(right, pool, rng)
    if amount and isinstance(value, (int, float, np.number)) and value > MOST_WORK:
        return MOST_WORK
    return value


def changed_bytes(content, rng):
    """The same file after an accident: bits flipped, cut, with a part overwritten, repeated or left out."""
    data = bytearray(content)
    where, length = int(rng.integers(len(data))), int(rng.integers(1, 64))
    kind = rng.integers(6)
    if kind <= 1:
        for _ in range(int(rng.integers(1, 4))):
            data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    elif kind == 2:
        del data[where:]
    elif kind == 3:
        data[where : where + length] = bytes(len(data[where : where + length]))
    elif kind == 4:
        data[where:where] = data[where : where + length]
    else:
        del data[where : where + length]
    return bytes(data)


def _any_value(right, pool, rng):
    kind = rng.random()
    if isinstance(right, bytes):
        return changed_bytes(right, rng)
    if isinstance(right, np.ndarray) and kind < 0.5:
        return changed_array(right, rng)
    if isinstance(right, sp.sparray) and kind < 0.5:
        matrix = right.copy()
        part = getattr(matrix, ["data", "indices", "indptr"][rng.integers(3)])
        part[rng.integers(len(part))] = [-1, 2**30, 7, 0][rng.integers(4)]
        return matrix
    if isinstance(right, (list, tuple)) and right and kind < 0.5:
        items = list(right)
        place = rng.integers(len(items))
        items[place] = _any_value(items[place], pool, rng)
        return [items, items[:place], items * 2, tuple(items)][rng.integers(4)]
    if kind < 0.65:
        return NUMBERS[rng.integers(len(NUMBERS))]
    if kind < 0.85:
        known = strangers()
        return known[rng.integers(len(known))]
    return pool[rng.integers(len(pool))]
