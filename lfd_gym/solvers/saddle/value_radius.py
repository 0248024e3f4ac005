"""How large the domain of the value weights has to be.

A domain that leaves out the optimal values makes the *exact* saddle point a bad policy, so the radius is a modelling
choice, not a tuning constant. Two facts make it computable for a known model:

- the Lagrangian does not change when a constant is added to u, because ⟨T_γ μ − ν₀, 1⟩ = 0 for every distribution μ;
  so a value function V is as good as represented when some V − k is;
- V*_w, the optimal values of the cost Σ w_i c_i with w ≥ 0, lie between Σ w_i V*_i and Σ w_i V^π_i for every policy π;
  we take the optimal one of the average cost. Hence ‖V*_w − k‖ ≤ Σ w_i ‖max(|V*_i − k_i|, |V^π_i − k_i|)‖ with
  k = Σ w_i k_i, in the 2-norm and in the sup norm, at the price of one planning problem for each feature.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import lsmr

from lfd_gym.costs.costs import CostClass
from lfd_gym.features.value_features import FiniteValueFeatures, TabularValueFeatures
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.validation import FloatArray, LfdGymWarning

if TYPE_CHECKING:
    from lfd_gym.solvers.saddle.saddle_point import ValueDomain

_PLAN_TOLERANCE = 1e-6
_SMALLEST_BOX = 1e-3  # a domain of width zero would not be one, also when all values are the same


def automatic_radius(
    mdp: FiniteMDP,
    cost_features: FloatArray,
    value_features: FiniteValueFeatures | TabularValueFeatures,
    domain: ValueDomain,
    cost_class: CostClass,
) -> float:
    """Return a radius whose domain does not leave out the optimal values of any cost in the class.

    Over indicator features (tabular, state aggregation) this is certain: for every cost c_w of the class, the best
    sup-norm approximation of V*_w by the features, up to a constant, lies in the domain. Over other features the radius
    is that of the least-squares fits of V*_i and V^π_i (see above), the two ends between which V*_w lies.
    """
    signs = (1,) if cost_class == "simplex" else (1, -1)
    policy = mdp.optimal_policy(cost_features.mean(axis=1), _PLAN_TOLERANCE)
    needs = [
        max(_needed_by_feature(mdp, sign * cost, policy, value_features, domain) for sign in signs)
        for cost in cost_features.T
    ]
    need = float(np.max(needs) if cost_class == "simplex" else np.linalg.norm(needs))
    return max(need, 2.0 if domain == "ball" else _SMALLEST_BOX)


def warn_if_radius_too_small(
    mdp: FiniteMDP,
    cost_features: FloatArray,
    value_features: FiniteValueFeatures | TabularValueFeatures,
    domain: ValueDomain,
    radius: float,
) -> None:
    """Warn when the domain leaves out the optimal values of a cost feature, or their fit if Ψ cannot represent them."""
    for feature, cost in enumerate(cost_features.T):
        plan = mdp.plan(cost, _PLAN_TOLERANCE)
        weights = fitted_weights(value_features, plan.values)
        if domain == "box" and (cells := _cells(value_features)) is not None:
            need = float(np.ptp(weights[np.unique(cells)])) / 2  # a constant may be added to all of them
        else:
            need = _radius_of(weights, domain)
        rounding = plan.error_bound * (np.sqrt(mdp.n_states * value_features.n_features) if domain == "ball" else 1.0)
        if radius < need - rounding:
            warnings.warn(
                f"value_radius {radius:.4g} leaves out the optimal values of cost feature {feature}, which need "
                f"{need:.4g}: the saddle point of this problem may be a bad policy. Use value_radius='auto'"
                + (" or value_domain='box'." if domain == "ball" else "."),
                LfdGymWarning,
                stacklevel=4,
            )
            return


def fitted_weights(value_features: FiniteValueFeatures | TabularValueFeatures, values: FloatArray) -> FloatArray:
    """Return the smallest λ of the least-squares fit of ``values`` by Ψλ plus a free constant."""
    if isinstance(value_features, TabularValueFeatures):
        return np.asarray(values - values.mean())
    # A heavily scaled column of ones makes the constant free in the minimum-norm solution.
    scale = 1e3
    ones = sp.csr_array(np.full((values.size, 1), scale))
    design = sp.hstack([value_features.matrix, ones], format="csr")
    return np.asarray(lsmr(design, values, atol=1e-12, btol=1e-12, maxiter=10_000)[0][:-1])


def _radius_of(weights: FloatArray, domain: ValueDomain) -> float:
    if domain == "ball":
        return float(np.sqrt(weights.size) * np.linalg.norm(weights))
    return float(np.abs(weights).max())


def _needed_by_feature(
    mdp: FiniteMDP,
    cost: FloatArray,
    policy: FloatArray,
    value_features: FiniteValueFeatures | TabularValueFeatures,
    domain: ValueDomain,
) -> float:
    best = mdp.plan(cost, _PLAN_TOLERANCE)
    other = mdp.value_function(policy, cost)
    # V* ≤ V^π, but what is computed may cross by rounding.
    lower, upper = best.values - best.error_bound, np.maximum(other, best.values) + best.error_bound
    cells = _cells(value_features)
    if cells is None:
        return max(_radius_of(fitted_weights(value_features, v), domain) for v in (best.values, other))
    lowest = np.full(value_features.n_features, np.inf)
    highest = np.full(value_features.n_features, -np.inf)
    np.minimum.at(lowest, cells, lower)
    np.maximum.at(highest, cells, upper)
    occupied = np.isfinite(lowest)
    lowest, highest = lowest[occupied], highest[occupied]
    if domain == "box":
        return float((highest.max() - lowest.min()) / 2)
    constant = _best_constant((lowest + highest) / 2, (highest - lowest) / 2)
    deviations = np.maximum(np.abs(lowest - constant), np.abs(highest - constant))
    return float(np.sqrt(value_features.n_features) * np.linalg.norm(deviations))


def _best_constant(centres: FloatArray, half_widths: FloatArray) -> float:
    """Minimise Σ_j (|centre_j − k| + half_width_j)² over k by bisection on its (increasing) derivative."""
    low, high = float(centres.min()), float(centres.max())
    for _ in range(60):
        middle = (low + high) / 2
        if ((np.abs(centres - middle) + half_widths) * np.sign(middle - centres)).sum() > 0:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def _cells(value_features: FiniteValueFeatures | TabularValueFeatures) -> NDArray[np.intp] | None:
    """Return the one feature of each state if Ψ holds indicators of a partition, else None."""
    if isinstance(value_features, TabularValueFeatures):
        return np.arange(value_features.n_states)
    rows = value_features.matrix
    if (np.diff(rows.indptr) == 1).all() and (rows.data == 1).all():
        return rows.indices.astype(np.intp)
    return None
