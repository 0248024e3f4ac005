"""What solvers return: one vocabulary for all of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

from lfd_gym.features.value_features import Values
from lfd_gym.validation import FloatArray

#: How a solver ended. ``"optimal"``: what was asked for is reached. Otherwise what came first: a limit, the accuracy
#: that floating-point numbers allow (``"inaccurate"``), or a signal (``"interrupted"``).
Status = Literal["optimal", "iteration_limit", "time_limit", "inaccurate", "interrupted"]


class SaddlePoint(NamedTuple):
    """A point of the saddle-point problem: θ, λ and w. Any three arrays in this order may stand for it."""

    occupancy_weights: FloatArray
    value_weights: FloatArray
    cost_weights: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Solution:
    """A policy, and the cost that it is good for.

    Attributes
    ----------
    policy
        The apprentice: an (S, A) array over finite spaces, else a policy of observations; None if the solver has none.
    cost_weights
        w, (n_c,).
    values
        Values that belong to the cost: an (S,) array over finite spaces, else a function of observations.
    status
        How the solver ended, see `Status`.
    oracle_calls
        Draws of a next state that the solver made; 0 for those that know the model.
    """

    policy: Any
    cost_weights: FloatArray
    values: Values | None
    status: Status
    oracle_calls: int = 0

    def __repr__(self) -> str:
        found = ((each.name, getattr(self, each.name)) for each in fields(self))
        numbers = (f"{name}={value!r}" for name, value in found if isinstance(value, int | float | str))
        return f"{type(self).__name__}({', '.join(numbers)})"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ExactSolution(Solution):
    """An apprentice policy of a known model, the cost weights of the dual, and how far both can be from optimal.

    The policy is an (S, A) array; in states it never visits it takes the greedy action for ``values``. These are the
    optimal values of c_w, feasible for the dual. The status is ``"optimal"`` if the gap asked for is certified.

    Attributes
    ----------
    occupancy
        (S, A) the policy's occupancy measure.
    apprentice_value
        The policy's distance to the expert over the cost class, max_w ⟨w, ρ(policy) − ρ⟩; it estimates α*.
    lower_bound, upper_bound
        Certified: α* and ``apprentice_value`` lie between them, up to rounding.
    n_planner_calls
        How many MDPs were solved on the way; 0 for the linear program.
    """

    policy: FloatArray
    values: FloatArray
    occupancy: FloatArray
    apprentice_value: float
    lower_bound: float
    upper_bound: float
    n_planner_calls: int

    @property
    def gap(self) -> float:
        """upper_bound − lower_bound."""
        return self.upper_bound - self.lower_bound


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SaddlePointSolution(Solution):
    """An approximate saddle point. ``values`` are u_λ; the status is ``"optimal"`` if the residual is small enough.

    Attributes
    ----------
    point
        θ, λ and w.
    residual
        The (empirical) saddle-point residual of the point; None if the model is not known.
    n_iterations
        Iterations done.
    """

    point: SaddlePoint
    residual: float | None
    n_iterations: int
