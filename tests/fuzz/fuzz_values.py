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


#: Objects that hardly any argument takes, each made anew when it is drawn.
STRANGERS = [
    lambda: None, lambda: "", lambda: "text", lambda: "../../etc", lambda: "\x00", lambda: "é" * 300,
    lambda: b"bytes", lambda: [], lambda: (), lambda: {}, lambda: {"a": 1}, lambda: {1, 2}, lambda: object(),
    lambda: dict, lambda: int, lambda: (lambda *args, **kwargs: None), lambda: (lambda x: x),
    lambda: (lambda x, y: np.full(len(np.atleast_1d(x)), np.nan)), lambda: range(3), lambda: iter([1, 2]),
    lambda: (k for k in range(2)), lambda: Ellipsis, lambda: NotImplemented, lambda: ValueError("x"), lambda: types,
    lambda: math, lambda: pathlib.Path("nowhere") / "at" / "all", lambda: np.random.RandomState(0), lambda: np.random,
    lambda: [[1], [1, 2]], lambda: [None], lambda: ["a", "b"], lambda: [[[1.0]]], lambda: np.array(3.0),
    lambda: np.array([]), lambda: np.zeros((0, 3)), lambda: np.zeros((3, 0)), lambda: np.eye(2), lambda: np.eye(7),
    lambda: -np.ones(3), lambda: np.array([1, None], dtype=object), lambda: np.array(["a"]), lambda: np.array([1j]),
    lambda: np.array(["2020-01-01"], dtype="M8[D]"), lambda: np.zeros(2, dtype=[("a", float)]),
    lambda: np.ma.masked_array([1.0, 2.0], [True, False]), lambda: np.matrix([[1.0, 2.0]]),
    lambda: np.full((2, 2), np.nan), lambda: np.array([2**63], dtype=np.uint64), lambda: np.array([2**62, -(2**62)]),
    lambda: sp.eye(3), lambda: sp.csr_array((4, 4)), lambda: sp.coo_array(np.eye(2)), lambda: memoryview(b"abc"),
    lambda: bytearray(8), lambda: slice(0, 3), lambda: 10**400, lambda: gym.spaces.Discrete(3),
    lambda: gym.spaces.Text(3), lambda: gym.spaces.Graph(gym.spaces.Discrete(2), None), lambda: gym.Env,
    lambda: gym.Env(),
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
        return STRANGERS[rng.integers(len(STRANGERS))]()
    return pool[rng.integers(len(pool))]
