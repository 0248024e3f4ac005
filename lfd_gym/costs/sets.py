"""Convex sets that weights live in: those of costs, and those of values.

A cost is c_w = Σ_i w_i c_i, and the class of costs is the set W of its weights:

- `Simplex`: C_conv, w ≥ 0 and Σ w_i = 1 (the paper's class);
- `Ball`: C_lin, ‖w‖₂ ≤ 1 (Abbeel & Ng).

For a difference of expected costs d = ρ(π) − ρ(π_E), the 𝒞-distance is the support function max_{w ∈ W} ⟨w, d⟩: the
largest coordinate over the simplex, the Euclidean norm over the ball. Weights of values lie in a `Ball` or a `Box`.

A class of your own derives from `ConvexSet` and says four things: ``support``, ``maximiser``, ``project``, ``radius``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.arguments import check_fields, checked
from lfd_gym.validation import FloatArray, check_delta, count, distribution, finite_array
from lfd_gym.validation import vectors as checked_vectors

_ROUNDING = 1e-8


class ConvexSet(ABC):
    """A convex set W of weights, of any number n of them.

    What is not abstract here holds for every set; where a set allows something sharper, it says so itself.
    """

    #: Whether no weight is ever negative.
    nonnegative: ClassVar[bool] = False

    @abstractmethod
    def support(self, vectors: FloatArray) -> FloatArray:
        """max_{w ∈ W} ⟨w, v⟩ of a vector, or of each row of a (…, n) array."""

    @abstractmethod
    def maximiser(self, vector: FloatArray) -> FloatArray:
        """Return weights that attain the support function at ``vector``."""

    @abstractmethod
    def project(self, vector: FloatArray) -> FloatArray:
        """argmin_{w ∈ W} ‖w − vector‖₂."""

    @abstractmethod
    def radius(self, size: int) -> float:
        """Return the largest ‖w‖₂ over W, for ``size`` weights."""

    @checked
    def centre(self, size: int) -> FloatArray:
        """Return weights to begin with."""
        return self.project(np.zeros(count("size", size)))

    @checked
    def check(self, name: str, weights: ArrayLike, size: int) -> FloatArray:
        """Return ``weights`` if they lie in W, to rounding, or say why they do not."""
        array = finite_array(name, weights, (count("size", size),))
        away = float(np.linalg.norm(array - self.project(array)))
        if away > _ROUNDING * max(1.0, self.radius(size)):
            raise ValueError(f"{name} must lie in {self}, got {array}, which is {away:.3g} away from it")
        return array

    def gauge(self, vector: FloatArray) -> float:
        """Return the smallest t with ``vector`` in t·W; for sets around zero."""
        raise TypeError(f"{self} has no gauge")

    def average(self, total: FloatArray, count: int) -> FloatArray:
        """Return the mean of ``count`` weights of W, given their sum."""
        return np.asarray(total / count)

    # -- steps of mirror ascent ---------------------------------------------------------------------------------------

    def mirror_step(self, weights: FloatArray, change: FloatArray) -> FloatArray:
        """Return the weights after a step of ascent: the projection of the sum."""
        return self.project(weights + change)

    def temper(self, weights: FloatArray, power: float) -> FloatArray:
        """Return the weights of dual averaging with steps shorter by ``power``: the same, without an entropy."""
        return weights

    def step_scale(self, size: int, gradient_norm: float) -> float:
        """Return √N times the step of mirror ascent over N rounds, for gradients of this root mean square norm."""
        return self.radius(size) / gradient_norm

    # -- over boxes of vectors ----------------------------------------------------------------------------------------

    def largest(self, rows: FloatArray) -> float:
        """Return the largest |⟨w, row⟩| over W and the rows of an (m, n) array."""
        return float(max(self.support(rows).max(), self.support(-rows).max()))

    def largest_within(self, vector: FloatArray, radii: FloatArray) -> float:
        """Bound the support function from above over all vectors within ``radii`` of ``vector``."""
        return float(self.support(vector)) + self.radius(vector.size) * float(np.linalg.norm(radii))

    def smallest_within(self, vector: FloatArray, radii: FloatArray) -> float:
        """Bound the support function from below over all vectors within ``radii`` of ``vector``."""
        return float(self.support(vector)) - self.largest_within(np.zeros_like(vector), radii)

    @checked
    def deviation(self, size: int, n_samples: float, delta: float, norm: float | None = None) -> float:
        """With probability 1 − ``delta``: a bound of the support function of (mean − expectation).

        With the same probability it bounds that of (expectation − mean), by symmetry. The mean is over independent
        vectors of 2-norm at most ``norm``; if that is not given, with entries in [−1, 1].
        Here by McDiarmid's inequality for the 2-norm, whose expectation is at most norm/√n_samples.
        """
        _check_deviation(size, n_samples, delta)
        largest = math.sqrt(size) if norm is None else norm
        return self.radius(size) * largest * (1 + math.sqrt(2 * math.log(1 / delta))) / math.sqrt(n_samples)


@dataclass(frozen=True)
class Simplex(ConvexSet):
    """w ≥ 0, Σ w_i = 1."""

    nonnegative: ClassVar[bool] = True

    def support(self, vectors: FloatArray) -> FloatArray:
        """Return the largest coordinate."""
        return np.asarray(checked_vectors("vectors", vectors).max(axis=-1))

    def maximiser(self, vector: FloatArray) -> FloatArray:
        """All of the weight on the largest coordinate, the first on ties."""
        vector = _vector(vector)
        weights = np.zeros_like(vector)
        weights[np.argmax(vector)] = 1.0
        return weights

    def project(self, vector: FloatArray) -> FloatArray:
        """max(vector − t, 0) for the t that makes it sum to one."""
        vector = _vector(vector)
        vector = vector - vector.max()  # which changes nothing, and leaves nothing too large to add to
        falling = np.sort(vector)[::-1]
        excess = (falling.cumsum() - 1) / np.arange(1, vector.size + 1)
        return np.asarray(np.maximum(vector - excess[np.flatnonzero(falling > excess)[-1]], 0.0))

    def radius(self, size: int) -> float:
        """One, at the corners."""
        return 1.0

    @checked
    def centre(self, size: int) -> FloatArray:
        """Equal weights."""
        return np.full(count("size", size), 1 / size)

    @checked
    def check(self, name: str, weights: ArrayLike, size: int) -> FloatArray:
        """Return a distribution, rescaled to sum to one to rounding."""
        return distribution(name, weights, count("size", size))

    def average(self, total: FloatArray, count: int) -> FloatArray:
        """Return the mean, which sums to one to rounding."""
        return np.asarray(total / total.sum())

    def mirror_step(self, weights: FloatArray, change: FloatArray) -> FloatArray:
        """w_i ∝ w_i exp(change_i): the step of the entropy, kept away from underflow."""
        raised = np.maximum(weights * np.exp(change), 1e-280)
        return np.asarray(raised / raised.sum())

    def temper(self, weights: FloatArray, power: float) -> FloatArray:
        """w_i ∝ w_i^power."""
        raised = (weights / weights.max()) ** power
        return np.asarray(raised / raised.sum())

    def step_scale(self, size: int, gradient_norm: float) -> float:
        """√(ln n): gradients are bounded by one in the dual norm of the entropy."""
        return math.sqrt(math.log(size))

    def largest(self, rows: FloatArray) -> float:
        """Return the largest entry in absolute value."""
        return float(np.abs(rows).max())

    def largest_within(self, vector: FloatArray, radii: FloatArray) -> float:
        """Attained: the largest coordinate of the sum."""
        vector, radii = _within(vector, radii)
        return float((vector + radii).max())

    def smallest_within(self, vector: FloatArray, radii: FloatArray) -> float:
        """Attained: the largest coordinate of the difference."""
        vector, radii = _within(vector, radii)
        return float((vector - radii).max())

    @checked
    def deviation(self, size: int, n_samples: float, delta: float, norm: float | None = None) -> float:
        """By Hoeffding's inequality for each coordinate."""
        _check_deviation(size, n_samples, delta)
        return math.sqrt(2 * math.log(size / delta) / n_samples)


class SymmetricSet(ConvexSet):
    """A set that stays the same when any weight changes its sign: the support function depends on |v| alone."""

    def largest(self, rows: FloatArray) -> float:
        """Return the largest support function of a row."""
        return float(self.support(rows).max())

    def largest_within(self, vector: FloatArray, radii: FloatArray) -> float:
        """Attained: the support function of |vector| + radii."""
        vector, radii = _within(vector, radii)
        return float(self.support(np.abs(vector) + radii))

    def smallest_within(self, vector: FloatArray, radii: FloatArray) -> float:
        """Attained: the support function of what is left of |vector|."""
        vector, radii = _within(vector, radii)
        return float(self.support(np.maximum(0.0, np.abs(vector) - radii)))


@dataclass(frozen=True)
class Ball(SymmetricSet):
    """‖w‖₂ ≤ ``bound``."""

    bound: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        _check_bound(self.bound)

    def support(self, vectors: FloatArray) -> FloatArray:
        """``bound`` times the 2-norm."""
        vectors = checked_vectors("vectors", vectors)
        norms = np.linalg.norm(vectors) if vectors.ndim == 1 else np.sqrt(np.einsum("...i,...i->...", vectors, vectors))
        return np.asarray(self.bound * norms)

    def maximiser(self, vector: FloatArray) -> FloatArray:
        """Scale the vector to norm ``bound``; zero for zero."""
        vector = _vector(vector)
        norm = np.linalg.norm(vector)
        return np.asarray(vector / norm * self.bound) if norm > 0 else np.zeros_like(vector)

    def project(self, vector: FloatArray) -> FloatArray:
        """Shorten the vector if it is too long."""
        vector = _vector(vector)
        norm = float(np.linalg.norm(vector))
        return np.asarray(vector * min(1.0, self.bound / norm) if norm > 0 else vector)

    def radius(self, size: int) -> float:
        """``bound``."""
        return self.bound

    def gauge(self, vector: FloatArray) -> float:
        """‖vector‖₂/``bound``."""
        vector = _vector(vector)
        return float(np.linalg.norm(vector)) / self.bound


@dataclass(frozen=True)
class Box(SymmetricSet):
    """|w_k| ≤ ``bound``."""

    bound: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        _check_bound(self.bound)

    def support(self, vectors: FloatArray) -> FloatArray:
        """``bound`` times the 1-norm."""
        return np.asarray(self.bound * np.abs(checked_vectors("vectors", vectors)).sum(axis=-1))

    def maximiser(self, vector: FloatArray) -> FloatArray:
        """Return a corner."""
        vector = _vector(vector)
        return np.asarray(self.bound * np.sign(vector))

    def project(self, vector: FloatArray) -> FloatArray:
        """Cut every entry to the box."""
        vector = _vector(vector)
        return np.clip(vector, -self.bound, self.bound)

    def radius(self, size: int) -> float:
        """``bound``·√size, at the corners."""
        return self.bound * math.sqrt(size)

    def gauge(self, vector: FloatArray) -> float:
        """Return the largest entry in absolute value, over ``bound``."""
        vector = _vector(vector)
        return float(np.abs(vector).max()) / self.bound


def _check_bound(bound: float) -> None:
    if not 0 < bound < math.inf:
        raise ValueError(f"bound must be positive and finite, got {bound}")


#: The class of costs: by its name, or any set of weights.
CostClass: TypeAlias = Literal["simplex", "ball"] | ConvexSet

_NAMED: dict[str, ConvexSet] = {"simplex": Simplex(), "ball": Ball()}


def cost_weights_set(name: str, cost_class: CostClass) -> ConvexSet:
    """Return the set of weights that ``cost_class`` names or is."""
    if isinstance(cost_class, ConvexSet):
        return cost_class
    if cost_class not in _NAMED:
        raise ValueError(f"{name} must be one of {tuple(_NAMED)} or a ConvexSet, got {cost_class!r}")
    return _NAMED[cost_class]


def _vector(vector: FloatArray) -> FloatArray:
    return finite_array("vector", checked_vectors("vector", vector), (None,))


def _within(vector: FloatArray, radii: FloatArray) -> tuple[FloatArray, FloatArray]:
    vector = _vector(vector)
    return vector, finite_array("radii", radii, vector.shape)


def _check_deviation(size: int, n_samples: float, delta: float) -> None:
    count("size", size)
    check_delta(delta)
    if not n_samples > 0:
        raise ValueError(f"n_samples must be positive, got {n_samples}")
