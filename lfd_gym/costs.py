"""Cost features and the two classes of costs built from them.

A cost is c_w = Σ_i w_i c_i, with the features c_i in the columns of ``cost_features``, (S·A, n_c), entries in [−1, 1].
The class says which weights are allowed:

- ``"simplex"``: C_conv, w ≥ 0 and Σ w_i = 1 (the paper's class);
- ``"ball"``: C_lin, ‖w‖₂ ≤ 1 (Abbeel & Ng).

For a difference of feature expectations d = ρ(π) − ρ(π_E), the 𝒞-distance is max_w ⟨w, d⟩: the largest coordinate over
the simplex, the Euclidean norm over the ball.
"""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.validation import FloatArray, finite_array

CostClass = Literal["simplex", "ball"]


def check_cost_class(name: str, cost_class: str) -> None:
    """Refuse anything but the two classes."""
    if cost_class not in get_args(CostClass):
        raise ValueError(f"{name} must be one of {get_args(CostClass)}, got {cost_class!r}")


def check_cost_features(name: str, cost_features: ArrayLike, n_pairs: int) -> FloatArray:
    """Return cost features as an (S·A, n_c) array with entries in [−1, 1], or name the feature that is not."""
    features = finite_array(name, cost_features, (n_pairs, None))
    if features.shape[1] == 0:
        raise ValueError(f"{name} must have at least one column")
    largest = np.abs(features).max(axis=0)
    if (largest > 1).any():
        column = int(np.argmax(largest > 1))
        raise ValueError(
            f"{name} must lie in [-1, 1], but feature {column} reaches {largest[column]}; "
            "lfd_gym.normalise_costs rescales them"
        )
    return features


def normalise_costs(cost_features: ArrayLike) -> FloatArray:
    """Divide each feature that leaves [−1, 1] by its largest absolute value; the others stay as they are.

    Signs and zeros are kept, so costs at an absorbing state stay zero. A weight w_i learned for the result is
    w_i / max(1, max |c_i|) for the feature as it was.

    Parameters
    ----------
    cost_features
        (S·A, n_c), or (S·A,) for one cost.

    Examples
    --------
    >>> normalise_costs([[4.0, 0.5], [-8.0, 0.0]])
    array([[ 0.5,  0.5],
           [-1. ,  0. ]])
    """
    array = np.asarray(cost_features, dtype=np.float64)
    features = finite_array("cost_features", array, (None,) * max(1, min(array.ndim, 2)))
    return np.asarray(features / np.maximum(1.0, np.abs(features).max(axis=0, initial=0.0)))


def cost_distance(difference: FloatArray, cost_class: CostClass) -> float:
    """Maximise ⟨w, difference⟩ over the class."""
    return float(difference.max() if cost_class == "simplex" else np.linalg.norm(difference))


def worst_weights(difference: FloatArray, cost_class: CostClass) -> FloatArray:
    """Weights that attain `cost_distance`; on ties of the simplex, the first coordinate."""
    if cost_class == "simplex":
        weights = np.zeros_like(difference)
        weights[np.argmax(difference)] = 1.0
        return weights
    norm = np.linalg.norm(difference)
    return difference / norm if norm > 0 else np.zeros_like(difference)
