"""The domain of the value weights, and how large it has to be.

A domain that leaves out the optimal values makes the *exact* saddle point a bad policy, so the radius is a modelling
choice, not a tuning constant. Two facts make it computable for a known model:

- the Lagrangian does not change when a constant is added to u, because ⟨T_γ μ − ν₀, 1⟩ = 0 for every distribution μ;
  so a value function V is as good as represented when some V − k is;
- V*_w, the optimal values of the cost Σ w_i c_i with w ≥ 0, lie between Σ w_i V*_i and Σ w_i V^π_i for every policy π;
  we take the optimal one of the average cost. Hence ‖V*_w − k‖ ≤ Σ w_i ‖max(|V*_i − k_i|, |V^π_i − k_i|)‖ with
  k = Σ w_i k_i, in the 2-norm and in the sup norm, at the price of one planning problem for each cost. Where weights
  may be negative, the same holds for |w_i| and the larger need of c_i and −c_i.
"""

from __future__ import annotations

import warnings
from functools import singledispatch
from math import sqrt
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import lsmr

from lfd_gym.costs.costs import TableCosts
from lfd_gym.costs.sets import Ball, Box
from lfd_gym.features.value_features import FiniteValueFeatures
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.validation import FloatArray, LfdGymWarning

ValueDomain = Literal["ball", "box"]

_PLAN_TOLERANCE = 1e-6
#: The smallest automatic radius. A box of width zero would not be one, also when all values are the same.
_SMALLEST = {"ball": 2.0, "box": 1e-3}


def value_set(domain: ValueDomain, radius: float, n_features: int) -> Ball | Box:
    """Return the domain of λ: ‖λ‖₂ ≤ β/√n_u for the ball of radius β, |λ_k| ≤ b for the box of radius b."""
    return Ball(radius / sqrt(n_features)) if domain == "ball" else Box(radius)


def automatic_radius(
    mdp: FiniteMDP, costs: TableCosts, value_features: FiniteValueFeatures, domain: ValueDomain
) -> float:
    """Return a radius whose domain does not leave out the optimal values of any cost in the class.

    Over indicator features (tabular, state aggregation) this is certain: for every cost c_w of the class, the best
    sup-norm approximation of V*_w by the features, up to a constant, lies in the domain. Over other features the radius
    is that of the least-squares fits of V*_i and V^π_i (see above), the two ends between which V*_w lies.
    """
    unit = value_set(domain, 1.0, value_features.n_features)
    signs = (1,) if costs.weights.nonnegative else (1, -1)
    policy = mdp.optimal_policy(costs.table.mean(axis=1), _PLAN_TOLERANCE)
    needs = [
        max(_needed_by_cost(mdp, sign * cost, policy, value_features, unit) for sign in signs) for cost in costs.table.T
    ]
    return max(costs.weights.largest_within(np.zeros(costs.n_costs), np.array(needs)), _SMALLEST[domain])


def warn_if_radius_too_small(
    mdp: FiniteMDP, costs: TableCosts, value_features: FiniteValueFeatures, domain: ValueDomain, radius: float
) -> None:
    """Warn when the domain leaves out the optimal values of a cost, or their fit if Ψ cannot represent them."""
    unit = value_set(domain, 1.0, value_features.n_features)
    cells = _cells(value_features)
    for feature, cost in enumerate(costs.table.T):
        plan = mdp.plan(cost, _PLAN_TOLERANCE)
        weights = fitted_weights(value_features, plan.values)
        if cells is None:
            need = unit.gauge(weights)
        else:
            weights = weights[np.unique(cells)]
            need = _gauge_up_to_a_constant(unit, weights, weights)
        if radius < need - unit.gauge(np.full(mdp.n_states, plan.error_bound)):
            warnings.warn(
                f"value_radius {radius:.4g} leaves out the optimal values of cost feature {feature}, which need "
                f"{need:.4g}: the saddle point of this problem may be a bad policy. Use value_radius='auto'; a box "
                "needs a smaller one than a ball.",
                LfdGymWarning,
                stacklevel=4,
            )
            return


def fitted_weights(value_features: FiniteValueFeatures, values: FloatArray) -> FloatArray:
    """Return the smallest λ of the least-squares fit of ``values`` by Ψλ plus a free constant."""
    if value_features.is_tabular:
        return np.asarray(values - values.mean())
    # A heavily scaled column of ones makes the constant free in the minimum-norm solution.
    scale = 1e3
    ones = sp.csr_array(np.full((values.size, 1), scale))
    design = sp.hstack([value_features.matrix, ones], format="csr")
    return np.asarray(lsmr(design, values, atol=1e-12, btol=1e-12, maxiter=10_000)[0][:-1])


def _needed_by_cost(
    mdp: FiniteMDP, cost: FloatArray, policy: FloatArray, value_features: FiniteValueFeatures, unit: Ball | Box
) -> float:
    best = mdp.plan(cost, _PLAN_TOLERANCE)
    other = mdp.value_function(policy, cost)
    # V* ≤ V^π, but what is computed may cross by rounding.
    lower, upper = best.values - best.error_bound, np.maximum(other, best.values) + best.error_bound
    cells = _cells(value_features)
    if cells is None:
        return max(unit.gauge(fitted_weights(value_features, v)) for v in (best.values, other))
    lowest = np.full(value_features.n_features, np.inf)
    highest = np.full(value_features.n_features, -np.inf)
    np.minimum.at(lowest, cells, lower)
    np.maximum.at(highest, cells, upper)
    occupied = np.isfinite(lowest)
    return _gauge_up_to_a_constant(unit, lowest[occupied], highest[occupied])


@singledispatch
def _gauge_up_to_a_constant(unit: Ball | Box, lowest: FloatArray, highest: FloatArray) -> float:
    """Minimise the gauge of max(|lowest − k|, |highest − k|) over constants k."""
    constant = _best_constant((lowest + highest) / 2, (highest - lowest) / 2)
    return unit.gauge(np.maximum(np.abs(lowest - constant), np.abs(highest - constant)))


@_gauge_up_to_a_constant.register
def _(unit: Box, lowest: FloatArray, highest: FloatArray) -> float:
    return float((highest.max() - lowest.min()) / 2) / unit.bound


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


def _cells(value_features: FiniteValueFeatures) -> NDArray[np.intp] | None:
    """Return the one feature of each state if Ψ holds indicators of a partition, else None."""
    if value_features.is_tabular:
        return np.arange(value_features.n_states)
    rows = value_features.matrix
    if (np.diff(rows.indptr) == 1).all() and (rows.data == 1).all():
        return rows.indices.astype(np.intp)
    return None
