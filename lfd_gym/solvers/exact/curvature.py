"""A quadratic model of g about the best weights, fitted to the slopes of the cuts.

g(w) = min_π ⟨w, ρ(π) − ρ⟩ is piecewise linear, but with many states it has so many pieces that it looks smooth from the
distance of two queries. The cut d_k made at w_k is then the gradient there, and how gradients differ tells the
curvature: seen from the best weights c, with y = Qᵀ(w − c) in the plane of the simplex, B y_k ≈ Qᵀ(d_c − d_k). BFGS
updates turn these pairs into one positive definite B, from the farthest to the nearest, which have the last word:

    g(w) ≈ g(c) + ⟨d_c, w − c⟩ − ½ yᵀB y.

Where pieces show, on small problems, and where B has many entries for few pairs, this says nothing. So the model is
trusted only while it predicts new values of g clearly better than the cuts alone do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lfd_gym._jit import jit
from lfd_gym.validation import FloatArray

# Of the last two forecasts, relative to the error of the cuts. On gridworlds 0.5 takes a tenth more planner calls, 0.9
# about as many; to trust the model always takes 1.7 times as many with 20 features.
_TRUSTED_ERROR = 0.7
_SMALLEST_COSINE = 1e-8
_SMALLEST_STEP = 1e-12
_SMALLEST_EIGENVALUE = 1e-9


@dataclass(frozen=True, eq=False)
class QuadraticModel:
    """value + ⟨gradient, w − centre⟩ − ½ (w − centre)ᵀ·curvature·(w − centre), on the plane of the simplex.

    Attributes
    ----------
    centre, gradient
        (n_c,) c and d_c.
    value
        g(c).
    curvature
        Q·B·Qᵀ, (n_c, n_c).
    directions
        Q·B^{−1/2}, (n_c, n_c − 1): moves of the weights in which the curvature is the identity.
    """

    centre: FloatArray
    gradient: FloatArray
    value: float
    curvature: FloatArray
    directions: FloatArray

    def __call__(self, weights: FloatArray) -> float:
        """Return the value at ``weights``."""
        move = weights - self.centre
        return float(self.value + self.gradient @ move - 0.5 * move @ self.curvature @ move)

    @property
    def peak(self) -> FloatArray:
        """The maximiser, (n_c,): it sums to one, but may have negative entries."""
        return self.centre + self.directions @ (self.gradient @ self.directions)

    @property
    def rise(self) -> float:
        """The maximum minus ``value``."""
        return 0.5 * float(((self.gradient @ self.directions) ** 2).sum())


def fit_curvature(
    points: FloatArray, cuts: FloatArray, best: int, value: float, plane: FloatArray
) -> QuadraticModel | None:
    """Fit the model to cuts, (K, n_c), made at ``points``, (K, n_c), about the one of index ``best``.

    ``plane`` is Q, (n_c, n_c − 1). Returns nothing if no pair shows a curvature.
    """
    fitted, curvature, directions = _secant_curvature(points, cuts, best, plane)
    return QuadraticModel(points[best], cuts[best], value, curvature, directions) if fitted else None


class Trust:
    """Whether forecasts have lately been right."""

    def __init__(self) -> None:
        self._right = (False, False)

    def judge(self, forecast: float, cut_model: float, value: float) -> None:
        """Compare what the quadratic model and the cuts said with the ``value`` of g that was then found."""
        self._right = (self._right[1], abs(forecast - value) < _TRUSTED_ERROR * (cut_model - value))

    def __bool__(self) -> bool:
        return all(self._right)


@jit
def _secant_curvature(
    points: FloatArray, cuts: FloatArray, best: int, plane: FloatArray
) -> tuple[bool, FloatArray, FloatArray]:
    """Return whether there is a pair, Q·B·Qᵀ and Q·B^{−1/2}."""
    size = plane.shape[1]
    steps = (points - points[best]) @ plane
    falls = (cuts[best] - cuts) @ plane
    lengths = np.sqrt((steps**2).sum(axis=1))
    products = (steps * falls).sum(axis=1)
    usable = (lengths > _SMALLEST_STEP) & (products > _SMALLEST_COSINE * lengths * np.sqrt((falls**2).sum(axis=1)))
    pairs = np.array([k for k in np.argsort(-lengths) if usable[k]])
    matrix = np.zeros((size, size))
    if pairs.size == 0:
        return False, plane @ matrix @ plane.T, plane @ matrix
    nearest = pairs[-1]
    for i in range(size):
        matrix[i, i] = products[nearest] / lengths[nearest] ** 2
    for k in pairs:
        image = matrix @ steps[k]
        scale = np.dot(image, steps[k])
        if scale <= 0.0:  # to rounding, nothing is left of earlier pairs in this direction
            continue
        for i in range(size):
            for j in range(size):
                matrix[i, j] += falls[k, i] * falls[k, j] / products[k] - image[i] * image[j] / scale
    eigenvalues, axes = np.linalg.eigh(matrix)
    if not eigenvalues[-1] > 0.0:
        return False, plane @ matrix @ plane.T, plane @ matrix
    eigenvalues = np.maximum(eigenvalues, _SMALLEST_EIGENVALUE * eigenvalues[-1])
    return True, plane @ matrix @ plane.T, plane @ (axes / np.sqrt(eigenvalues))
