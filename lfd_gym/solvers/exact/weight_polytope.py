"""Polytopes of cost weights by their vertices: the double description method.

A polytope is the part of the simplex with ⟨w, a_k⟩ ≥ 0 for some normals a_k. A further half-space keeps the vertices
inside it and adds one where it crosses an edge. Edges are recognised by the constraints that both ends satisfy with
equality, n−2 or more of them, and no third vertex satisfies them all. Constraint j < n is w_j ≥ 0, constraint n + k is
the k-th half-space; those that hold with equality at a vertex are bits of unsigned words, so that a polytope of
thousands of vertices and hundreds of half-spaces takes a fraction of a second for one more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lfd_gym._jit import jit
from lfd_gym.validation import FloatArray, IntArray

Words = NDArray[np.uint64]

_BITS = 64


class WeightPolytope:
    """Starts as the simplex of ``size`` weights; vertices can be marked as checked.

    A vertex counts as on a half-space's boundary if its product with the normal is at most ``tolerance``.
    """

    def __init__(self, size: int, tolerance: float) -> None:
        self.vertices = np.eye(size)
        self.normals = np.empty((0, size))
        self._checked = np.zeros(size, dtype=bool)
        self._tolerance = tolerance
        self._equalities = np.zeros((size, size // _BITS + 1), dtype=np.uint64)
        for constraint in range(size):
            self._set(constraint, np.arange(size) != constraint)

    def unchecked(self) -> int | None:
        """Return the index of a vertex that is not marked yet."""
        open_vertices = np.flatnonzero(~self._checked)
        return int(open_vertices[0]) if open_vertices.size else None

    def mark_checked(self, index: int) -> None:
        """Mark a vertex."""
        self._checked[index] = True

    def intersect(self, normal: FloatArray) -> None:
        """Keep the part with ⟨w, normal⟩ ≥ 0."""
        n_constraints = len(normal) + len(self.normals)
        if n_constraints == _BITS * self._equalities.shape[1]:
            self._equalities = np.column_stack([self._equalities, np.zeros(len(self.vertices), dtype=np.uint64)])
        products = self.vertices @ normal
        inside = np.flatnonzero(products > self._tolerance)
        outside = np.flatnonzero(products < -self._tolerance)
        ends = np.argwhere(_edges(self._equalities, inside, outside, len(normal) - 2))
        a, b = inside[ends[:, 0]], outside[ends[:, 1]]
        share = (products[a] / (products[a] - products[b]))[:, None]
        crossings = (1 - share) * self.vertices[a] + share * self.vertices[b]
        common = self._equalities[a] & self._equalities[b]
        kept = products >= -self._tolerance
        self.vertices = np.concatenate([self.vertices[kept], crossings])
        self.normals = np.concatenate([self.normals, normal[None]])
        self._checked = np.concatenate([self._checked[kept], np.zeros(len(a), dtype=bool)])
        self._equalities = np.concatenate([self._equalities[kept], common])
        on_boundary = np.concatenate([products[kept] <= self._tolerance, np.ones(len(a), dtype=bool)])
        self._set(n_constraints, on_boundary)

    def _set(self, constraint: int, vertices: NDArray[np.bool_]) -> None:
        """Note that ``vertices`` satisfy ``constraint`` with equality."""
        self._equalities[vertices, constraint // _BITS] |= np.uint64(1) << np.uint64(constraint % _BITS)


@jit
def _edges(equalities: Words, inside: IntArray, outside: IntArray, least_common: int) -> NDArray[np.bool_]:
    """Return which pairs of a vertex of ``inside`` and one of ``outside`` span an edge."""
    n_words = equalities.shape[1]
    edges = np.zeros((inside.size, outside.size), dtype=np.bool_)
    common = np.empty(n_words, dtype=np.uint64)
    for i in range(inside.size):
        for j in range(outside.size):
            count = 0
            for k in range(n_words):
                common[k] = equalities[inside[i], k] & equalities[outside[j], k]
                count += _count_bits(common[k])
            if count >= least_common:
                edges[i, j] = _nothing_between(equalities, common, inside[i], outside[j])
    return edges


@jit
def _count_bits(word: np.uint64) -> int:
    count = 0
    while word != 0:
        word &= word - np.uint64(1)
        count += 1
    return count


@jit
def _nothing_between(equalities: Words, common: Words, a: int, b: int) -> bool:
    """Say whether no vertex other than ``a`` and ``b`` satisfies the ``common`` constraints with equality."""
    for vertex in range(len(equalities)):
        contained = vertex != a and vertex != b
        k = 0
        while contained and k < common.size:
            contained = common[k] & ~equalities[vertex, k] == 0
            k += 1
        if contained:
            return False
    return True
