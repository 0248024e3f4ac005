"""The linearly relaxed saddle-point problem (Section 4), which every primal-dual solver of the package solves.

    min over θ, max over λ and w of   L(θ, λ, w) = ⟨μ_θ, c_w − T_γ* u_λ⟩ + ⟨ν₀, u_λ⟩ − ⟨w, ρ⟩,

with μ_θ = Φθ, u_λ = Ψλ, c_w = Cw and ρ the expert's feature expectations. With the expert's own ρ = ρ_C(π_E) this is
the paper's L_r = ⟨μ_θ − μ_E, c_w − T_γ* u_λ⟩, because T_γ μ_E = ν₀; with the estimate ρ̂ it is the *empirical*
Lagrangian that is actually optimised. Everywhere below ρ is ``expert_features`` of the problem (ρ̂) unless
another vector is given: pass the true one to get L_r and the true residual.

Domains: θ in the simplex; w in the simplex, the unit l2 ball or another convex set; λ in the ball ‖λ‖₂ ≤ β/√n_u of the
paper, or in the box |λ_k| ≤ β. The *shifted* Lagrangian adds C_βγ⟨μ_θ, 1⟩ − 2⟨w, 1⟩ (no shift of w where it would not
be constant): the same residual, but gradients of one sign for the analysis of the stochastic method.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.arguments import checked
from lfd_gym.costs.costs import CostFunction, Costs, FunctionCosts, as_costs, model_costs
from lfd_gym.costs.sets import Ball, Box, CostClass
from lfd_gym.features.occupancy_features import FiniteOccupancyFeatures, OccupancyFeatures, TabularOccupancyFeatures
from lfd_gym.features.value_features import FiniteValueFeatures, TabularValueFeatures, ValueFeatures
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.solvers.saddle.value_radius import ValueDomain, automatic_radius, value_set, warn_if_radius_too_small
from lfd_gym.solvers.solution import SaddlePoint
from lfd_gym.validation import LARGEST_UNIT, FloatArray, check_type, discount_factor, distribution, finite_array

#: A `SaddlePoint`, or any three vectors (θ, λ, w).
PointLike: TypeAlias = tuple[ArrayLike, ArrayLike, ArrayLike]


@dataclass(frozen=True, eq=False, repr=False)
class SaddlePointProblem:
    """The data of the saddle-point problem; see the module's docstring for the problem itself.

    Use the constructors `tabular`, `linear` and `from_simulator`; they also choose or check ``value_radius``.

    Attributes
    ----------
    costs
        C and the set of its weights: a table over a finite space, or a function of observations and actions.
    expert_features
        ρ̂, (n_c,).
    occupancy_features, value_features
        Φ and Ψ.
    discount
        γ.
    value_radius
        β ≥ 2 for the ball; the half-width b > 0 for the box.
    value_domain
        ``"ball"``: ‖λ‖₂ ≤ β/√n_u; ``"box"``: |λ_k| ≤ b.
    mdp
        The model, if it is known. Without it only the sampled quantities of the solvers are available.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym import FiniteMDP, SaddlePointProblem
    >>> mdp = FiniteMDP([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], initial_distribution=[1.0, 0.0], discount=0.9)
    >>> costs = np.array([[0.0], [0.0], [1.0], [1.0]])  # state 1 is costly
    >>> expert = mdp.occupancy(mdp.optimal_policy(costs[:, 0])).ravel()
    >>> problem = SaddlePointProblem.tabular(mdp, costs, costs.T @ expert)
    >>> problem
    SaddlePointProblem(n_occupancy_features=4, n_value_features=2, n_costs=1, value_domain='ball', value_radius=2)
    >>> round(problem.saddle_point_residual((np.full(4, 0.25), np.zeros(2), [1.0])), 3)
    1.5
    >>> best_values = mdp.plan(costs[:, 0]).values
    >>> bool(problem.saddle_point_residual((expert, best_values, [1.0])) < 1e-9)
    True
    """

    costs: Costs
    expert_features: FloatArray
    occupancy_features: OccupancyFeatures
    value_features: ValueFeatures
    discount: float
    value_radius: float
    value_domain: ValueDomain = "ball"
    mdp: FiniteMDP | None = None

    def __post_init__(self) -> None:
        if self.value_domain not in get_args(ValueDomain):
            raise ValueError(f"value_domain must be one of {get_args(ValueDomain)}, got {self.value_domain!r}")
        try:
            object.__setattr__(self, "value_radius", float(self.value_radius))
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"value_radius must be a number, got {self.value_radius!r}; 'auto' is for tabular and linear problems"
            ) from None
        smallest = 2.0 if self.value_domain == "ball" else 0.0
        if not (np.isfinite(self.value_radius) and self.value_radius >= smallest and self.value_radius > 0):
            wanted = "at least 2" if self.value_domain == "ball" else "positive"
            raise ValueError(f"value_radius must be {wanted} for the {self.value_domain}, got {self.value_radius}")
        expert = finite_array("expert_features", self.expert_features, (None,))
        if np.abs(expert).max(initial=0.0) > LARGEST_UNIT:
            raise ValueError(f"expert_features must lie in [-1, 1], got {expert}")
        if self.costs.n_costs not in (None, expert.size):
            raise ValueError(f"expert_features must have length {self.costs.n_costs}, got {expert.size}")
        object.__setattr__(self, "expert_features", expert)
        object.__setattr__(self, "discount", discount_factor("discount", self.discount))
        if self.costs.table is not None:
            occupancy, _ = self.finite_features()
            n_pairs = occupancy.n_states * occupancy.n_actions
            if len(self.costs.table) != n_pairs:
                raise ValueError(f"costs must have shape ({n_pairs}, any), got {self.costs.table.shape}")
        if self.mdp is not None:
            self._check_model(self.mdp)

    def _check_model(self, mdp: FiniteMDP) -> None:
        model_costs("costs", self.costs, mdp.dynamics)
        occupancy, value = self.finite_features()
        if (occupancy.n_states, occupancy.n_actions) != (mdp.n_states, mdp.n_actions):
            raise ValueError(f"occupancy_features {occupancy} do not fit {mdp}")
        if value.n_states != mdp.n_states:
            raise ValueError(f"value_features {value} do not fit {mdp}")
        if self.discount != mdp.discount:
            raise ValueError(f"discount must be the mdp's, {mdp.discount}, got {self.discount}")

    # -- construction -------------------------------------------------------------------------------------------------

    @classmethod
    @checked
    def tabular(
        cls,
        mdp: FiniteMDP,
        cost_features: Costs | ArrayLike,
        expert_features: ArrayLike,
        *,
        value_radius: float | Literal["auto"] = "auto",
        value_domain: ValueDomain = "ball",
        cost_class: CostClass | None = None,
    ) -> SaddlePointProblem:
        """Return the problem without approximation of μ and u: Φ and Ψ are identities."""
        check_type("mdp", mdp, FiniteMDP)
        return cls.linear(
            mdp,
            cost_features,
            expert_features,
            occupancy_features=TabularOccupancyFeatures(mdp.n_states, mdp.n_actions),
            value_features=TabularValueFeatures(mdp.n_states),
            value_radius=value_radius,
            value_domain=value_domain,
            cost_class=cost_class,
        )

    @classmethod
    @checked
    def linear(
        cls,
        mdp: FiniteMDP,
        cost_features: Costs | ArrayLike,
        expert_features: ArrayLike,
        *,
        occupancy_features: FiniteOccupancyFeatures,
        value_features: FiniteValueFeatures,
        value_radius: float | Literal["auto"] = "auto",
        value_domain: ValueDomain = "ball",
        cost_class: CostClass | None = None,
    ) -> SaddlePointProblem:
        """Return the problem over given features of a known model.

        ``value_radius="auto"`` chooses it by `value_radius.automatic_radius`; a number that is too small to hold
        the optimal values of the costs draws an `LfdGymWarning`. If ``cost_class`` is not given it is the simplex, or
        what ``cost_features`` come with.
        """
        check_type("mdp", mdp, FiniteMDP)
        costs = model_costs("cost_features", cost_features, mdp.dynamics, cost_class)
        if value_radius == "auto":
            radius = automatic_radius(mdp, costs, value_features, value_domain)
        else:
            radius = float(value_radius)
            warn_if_radius_too_small(mdp, costs, value_features, value_domain, radius)
        return cls(
            costs=costs,
            expert_features=np.asarray(expert_features, dtype=np.float64),
            occupancy_features=occupancy_features,
            value_features=value_features,
            discount=mdp.discount,
            value_radius=radius,
            value_domain=value_domain,
            mdp=mdp,
        )

    @classmethod
    @checked
    def from_simulator(
        cls,
        cost_features: Costs | ArrayLike | CostFunction,
        expert_features: ArrayLike,
        *,
        occupancy_features: OccupancyFeatures,
        value_features: ValueFeatures,
        discount: float,
        value_radius: float,
        value_domain: ValueDomain = "ball",
        cost_class: CostClass | None = None,
    ) -> SaddlePointProblem:
        """Return the problem when the dynamics are known only through a generative model."""
        if callable(cost_features):  # with n_c, so that a function that returns another number of costs is refused
            weights = "simplex" if cost_class is None else cost_class
            cost_features = FunctionCosts(cost_features, np.size(expert_features), weights)
        if not hasattr(occupancy_features, "is_finite"):
            raise TypeError(f"occupancy_features must be OccupancyFeatures, got {type(occupancy_features).__name__}")
        n_actions = getattr(occupancy_features, "n_actions", None) if occupancy_features.is_finite else None
        return cls(
            costs=as_costs("cost_features", cost_features, n_actions, cost_class),
            expert_features=finite_array("expert_features", expert_features, (None,)),
            occupancy_features=occupancy_features,
            value_features=value_features,
            discount=discount,
            value_radius=value_radius,
            value_domain=value_domain,
        )

    def __repr__(self) -> str:
        return (
            f"SaddlePointProblem(n_occupancy_features={self.n_occupancy_features}, "
            f"n_value_features={self.n_value_features}, n_costs={self.n_costs}, "
            f"value_domain={self.value_domain!r}, value_radius={self.value_radius:g})"
        )

    # -- sizes and bounds ---------------------------------------------------------------------------------------------

    @property
    def n_occupancy_features(self) -> int:
        """n_μ."""
        return self.occupancy_features.n_features

    @property
    def n_value_features(self) -> int:
        """n_u."""
        return self.value_features.n_features

    @property
    def n_costs(self) -> int:
        """n_c."""
        return self.expert_features.size

    @cached_property
    def value_set(self) -> Ball | Box:
        """The domain of λ."""
        return value_set(self.value_domain, self.value_radius, self.n_value_features)

    @property
    def value_bound(self) -> float:
        """Bound of ‖u_λ‖∞ over the domain: β for the ball (Lemma 7), b·max_x‖ψ_x‖₁ for the box."""
        if self.value_domain == "ball":
            return self.value_radius
        return self.value_radius * self.value_features.row_l1_bound

    @property
    def cost_bound(self) -> float:
        """Bound of ‖c_w‖∞ over the class, for costs in [−1, 1]: 1 for the simplex, √n_c for the ball."""
        return self.costs.weights.largest_within(np.zeros(self.n_costs), np.ones(self.n_costs))

    @property
    def occupancy_shift(self) -> float:
        """C_βγ = 2·max(value_bound, cost_bound)/(1−γ) ≥ ‖c_w − T*u_λ‖∞; the paper's 2β/(1−γ) on its own domains."""
        return 2 * max(self.value_bound, self.cost_bound) / (1 - self.discount)

    @property
    def cost_shift(self) -> float:
        """2 where ⟨w, 1⟩ is constant over the class, as over the simplex; else 0."""
        ones, weights = np.ones(self.n_costs), self.costs.weights
        return 2.0 if weights.support(ones) == -weights.support(-ones) else 0.0

    # -- what the weights mean ----------------------------------------------------------------------------------------

    def finite_features(self) -> tuple[FiniteOccupancyFeatures, FiniteValueFeatures]:
        """Return Φ and Ψ as features over a finite space, or refuse."""
        occupancy, value = self.occupancy_features, self.value_features
        if not isinstance(occupancy, FiniteOccupancyFeatures):
            raise TypeError(f"occupancy_features must be over a finite space here, got {occupancy}")
        if not isinstance(value, FiniteValueFeatures):
            raise TypeError(f"value_features must be over a finite space here, got {value}")
        return occupancy, value

    @checked
    def occupancy(self, occupancy_weights: ArrayLike) -> FloatArray:
        """μ_θ, (S, A): a distribution over pairs, not necessarily an occupancy measure."""
        return self.finite_features()[0].combine(self._checked_theta(occupancy_weights))

    @checked
    def values(self, value_weights: ArrayLike) -> FloatArray:
        """u_λ, (S,)."""
        return self.finite_features()[1].function(
            finite_array("value_weights", value_weights, (self.n_value_features,))
        )

    @checked
    def policy(self, occupancy_weights: ArrayLike) -> Any:
        """π_θ(a|x) ∝ μ_θ(x, a): (S, A) over finite spaces, else what the features make of it."""
        theta = self._checked_theta(occupancy_weights)
        if (theta < 0).any():
            raise ValueError(f"occupancy_weights must be nonnegative, got {theta.min()} at index {theta.argmin()}")
        return self.occupancy_features.policy(theta)

    def check_point(self, point: PointLike) -> SaddlePoint:
        """Return (θ, λ, w) if they are in their domains, to rounding: outside, the residual bounds nothing."""
        theta, lam, w = self._weights(point)
        return SaddlePoint(
            theta,
            self.value_set.check("value_weights", lam, lam.size),
            self.costs.weights.check("cost_weights", w, w.size),
        )

    # -- the Lagrangian -----------------------------------------------------------------------------------------------

    def known_model(self) -> tuple[FiniteMDP, FloatArray]:
        """Return the model and C, or refuse if the model is not known."""
        if self.mdp is None or self.costs.table is None:
            raise ValueError("this needs the model: build the problem with an mdp, or use a sampled certificate")
        return self.mdp, self.costs.table

    def _expert(self, expert: ArrayLike | None) -> FloatArray:
        if expert is None:
            return self.expert_features
        return finite_array("expert", expert, (self.n_costs,))

    def _checked_theta(self, occupancy_weights: ArrayLike) -> FloatArray:
        return finite_array("occupancy_weights", occupancy_weights, (self.n_occupancy_features,))

    def _weights(self, point: PointLike) -> SaddlePoint:
        if len(point) != 3:
            raise ValueError(f"point must be occupancy_weights, value_weights and cost_weights, got {len(point)} parts")
        theta, lam, w = point
        return SaddlePoint(
            distribution("occupancy_weights of point", theta, self.n_occupancy_features),
            finite_array("value_weights of point", lam, (self.n_value_features,)),
            finite_array("cost_weights of point", w, (self.n_costs,)),
        )

    @checked
    def gradients(self, point: PointLike, expert: ArrayLike | None = None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """∇L in θ, λ and w: (Φᵀ(c_w − T*u_λ), Ψᵀ(ν₀ − Tμ_θ), Cᵀμ_θ − ρ)."""
        mdp, costs = self.known_model()
        phi, psi = self.finite_features()
        theta, lam, w = self._weights(point)
        occupancy = phi.combine(theta)
        advantages = costs @ w - mdp.bellman_adjoint(psi.function(lam)).ravel()
        return (
            phi.inner(advantages),
            psi.inner(mdp.initial_distribution - mdp.bellman_flow(occupancy)),
            costs.T @ occupancy.ravel() - self._expert(expert),
        )

    @checked
    def operator(self, point: PointLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """G(z) = (∇_θ, −∇_λ, −∇_w) of the shifted empirical Lagrangian: what Algorithm 1 estimates without bias."""
        theta, lam, w = self.gradients(point)
        return theta + self.occupancy_shift, -lam, self.cost_shift - w

    @checked
    def lagrangian(self, point: PointLike, expert: ArrayLike | None = None) -> float:
        """L(θ, λ, w): empirical, or the paper's L_r if ``expert`` is the expert's true ρ_C(π_E)."""
        _, slope, excess = self.gradients(point, expert)
        return float(slope @ np.asarray(point[1]) + excess @ np.asarray(point[2]))

    @checked
    def shifted_lagrangian(self, point: PointLike, expert: ArrayLike | None = None) -> float:
        """L + C_βγ⟨μ_θ, 1⟩ − 2⟨w, 1⟩: the paper's L̂_r, or L̄_r if ``expert`` is the expert's true ρ_C(π_E)."""
        shift = self.occupancy_shift - self.cost_shift * float(np.sum(point[2]))
        return self.lagrangian(point, expert) + shift

    # -- the saddle-point residual ------------------------------------------------------------------------------------

    @checked
    def upper_value(self, occupancy_weights: ArrayLike, expert: ArrayLike | None = None) -> float:
        """Maximise L(θ, ·, ·) over λ and w, in closed form."""
        point = (occupancy_weights, np.zeros(self.n_value_features), np.zeros(self.n_costs))
        _, slope, excess = self.gradients(point, expert)
        return float(self.value_set.support(slope)) + float(self.costs.weights.support(excess))

    @checked
    def lower_value(self, value_weights: ArrayLike, cost_weights: ArrayLike, expert: ArrayLike | None = None) -> float:
        """Minimise L(·, λ, w) over θ, in closed form."""
        mdp, costs = self.known_model()
        phi, psi = self.finite_features()
        lam = finite_array("value_weights", value_weights, (self.n_value_features,))
        w = finite_array("cost_weights", cost_weights, (self.n_costs,))
        values = psi.function(lam)
        advantages = costs @ w - mdp.bellman_adjoint(values).ravel()
        return float(phi.inner(advantages).min() + mdp.initial_distribution @ values - w @ self._expert(expert))

    @checked
    def saddle_point_residual(self, point: PointLike, expert: ArrayLike | None = None) -> float:
        """ε_sad(θ, λ, w) = max_{λ', w'} L(θ, λ', w') − min_{θ'} L(θ', λ, w), in closed form; zero at a saddle point.

        Empirical by default; the true residual if ``expert`` is the expert's true ρ_C(π_E).
        """
        theta, lam, w = self._weights(point)
        return self.upper_value(theta, expert) - self.lower_value(lam, w, expert)
