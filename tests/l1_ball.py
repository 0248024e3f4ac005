"""A set of cost weights that the package does not know: the l1 ball. For tests of what any convex set must get."""

import numpy as np

from lfd_gym import ConvexSet, Simplex


class L1Ball(ConvexSet):
    """‖w‖₁ ≤ 1, written with what a user has to write and no more."""

    def support(self, vectors):
        return np.asarray(np.abs(vectors).max(axis=-1))

    def maximiser(self, vector):
        weights = np.zeros_like(vector)
        largest = np.argmax(np.abs(vector))
        weights[largest] = np.sign(vector[largest])
        return weights

    def project(self, vector):
        size = np.abs(vector)
        return np.sign(vector) * (Simplex().project(size) if size.sum() > 1 else size)

    def radius(self, size):
        return 1.0

    def __repr__(self):
        return "L1Ball()"
