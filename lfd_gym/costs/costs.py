"""Cost features and the two classes of costs built from them.

A cost is c_w = Σ_i w_i c_i, with the features c_i in the columns of ``cost_features``, (S·A, n_c), entries in [−1, 1].
The class says which weights are allowed:

- ``"simplex"``: C_conv, w ≥ 0 and Σ w_i = 1 (the paper's class);
- ``"ball"``: C_lin, ‖w‖₂ ≤ 1 (Abbeel & Ng).

For a difference of feature expectations d = ρ(π) − ρ(π_E), the 𝒞-distance is max_w ⟨w, d⟩: the largest coordinate over
the simplex, the Euclidean norm over the ball.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.validation import LARGEST_UNIT, FloatArray, distribution, finite_array

CostClass = Literal["simplex", "ball"]

_ROUNDING = 1e-8


def check_cost_class(name: str, cost_class: str) -> None:
    """Refuse anything but the two classes."""
    if cost_class not in get_args(CostClass):
        raise ValueError(f"{name} must be one of {get_args(CostClass)}, got {cost_class!r}")


def check_cost_features(name: str, cost_features: ArrayLike, n_pairs: int) -> FloatArray:
    """Return cost features as an (S·A, n_c) array with entries in [−1, 1], or name the feature that is not."""
    features = finite_array(name, cost_features, (n_pairs, None))
    if features.shape[1] == 0:
        raise ValueError(f"{name} must have at least one column")
    largest = np.abs(features).max(axis=0, initial=0.0)
    if (largest > LARGEST_UNIT).any():
        column = int(np.argmax(largest > LARGEST_UNIT))
        raise ValueError(
            f"{name} must lie in [-1, 1], but feature {column} reaches {largest[column]}; "
            "lfd_gym.normalise_costs rescales them"
        )
    return features


def check_model_costs(name: str, cost_features: ArrayLike, mdp: FiniteMDP) -> FloatArray:
    """Check the cost features of a model: also that nothing is paid in its absorbing state."""
    features = check_cost_features(name, cost_features, mdp.n_states * mdp.n_actions)
    if mdp.absorbing_state is not None:
        check_end_is_free(name, features, mdp.absorbing_state, mdp.n_actions)
    return features


def check_sampled_costs(name: str, cost_features: ArrayLike, model: GenerativeModel) -> None:
    """Check that a table of costs has nothing to pay in the absorbing states of a finite model.

    Rollouts end there and count nothing more, so only then do they and the table speak of the same costs. The table may
    leave out states that come last.
    """
    n_states, n_actions = getattr(model.state_space, "n", None), getattr(model.action_space, "n", None)
    if n_states is None or n_actions is None:
        return
    features = finite_array(name, cost_features, (None, None))
    for state in np.flatnonzero(model.is_absorbing(np.arange(n_states))):
        check_end_is_free(name, features, int(state), int(n_actions))


def check_end_is_free(name: str, features: FloatArray, state: int, n_actions: int) -> None:
    """Check that nothing is paid in the absorbing ``state``: that is what makes the end of a trajectory its end."""
    costs = features[state * n_actions : (state + 1) * n_actions]
    if costs.any():
        action, column = (int(i) for i in np.argwhere(costs)[0])
        raise ValueError(
            f"{name} must be zero in the absorbing state {state}, where trajectories end, "
            f"got {costs[action, column]} for action {action}, feature {column}"
        )


def check_cost_weights(name: str, cost_weights: ArrayLike, n_costs: int, cost_class: CostClass) -> FloatArray:
    """Return weights of the class, to rounding, or say why they are not."""
    if cost_class == "simplex":
        return distribution(name, cost_weights, n_costs)
    weights = finite_array(name, cost_weights, (n_costs,))
    if np.linalg.norm(weights) > 1 + _ROUNDING:
        raise ValueError(f"{name} must have norm at most 1 for the ball, got {np.linalg.norm(weights)}")
    return weights


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
