"""The linearly relaxed saddle-point problem (Section 4), which every primal-dual solver of the package solves.

    min over θ, max over λ and w of   L(θ, λ, w) = ⟨μ_θ, c_w − T_γ* u_λ⟩ + ⟨ν₀, u_λ⟩ − ⟨w, ρ⟩,

with μ_θ = Φθ, u_λ = Ψλ, c_w = Cw and ρ the expert's feature expectations. With the expert's own ρ = ρ_C(π_E) this is
the paper's L_r = ⟨μ_θ − μ_E, c_w − T_γ* u_λ⟩, because T_γ μ_E = ν₀; with the estimate ρ̂ it is the *empirical*
Lagrangian that is actually optimised. Everywhere below ρ is ``expert_features`` of the problem (ρ̂) unless
another vector is given: pass the true one to get L_r and the true residual.

Domains: θ in the simplex; w in the simplex or the unit l2 ball; λ in the ball ‖λ‖₂ ≤ β/√n_u of the paper, or in the box
|λ_k| ≤ β. The *shifted* Lagrangian adds C_βγ⟨μ_θ, 1⟩ − 2⟨w, 1⟩ (no shift of w over the ball, where it would not be
constant): the same residual, but gradients of one sign for the analysis of the stochastic method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lfd_gym.costs.costs import (
    CostClass,
    check_cost_class,
    check_cost_features,
    check_cost_weights,
    check_model_costs,
    cost_distance,
    hidden_rows,
)
from lfd_gym.features.occupancy_features import (
    FiniteOccupancyFeatures,
    OccupancyFeatures,
    TabularOccupancyFeatures,
)
from lfd_gym.features.value_features import FiniteValueFeatures, TabularValueFeatures, ValueFeatures
from lfd_gym.model.mdp import FiniteMDP, policy_from_occupancy
from lfd_gym.solvers.saddle.value_radius import automatic_radius, warn_if_radius_too_small
from lfd_gym.validation import LARGEST_UNIT, FloatArray, discount_factor, distribution, finite_array

ValueDomain = Literal["ball", "box"]
#: How far a point may leave its domain, relative to the domain's size.
_ROUNDING = 1e-8
CostFunction: TypeAlias = Callable[[NDArray[Any], NDArray[Any]], FloatArray]


@dataclass(frozen=True, eq=False, repr=False)
class SaddlePointProblem:
    """The data of the saddle-point problem; see the module's docstring for the problem itself.

    Use the constructors `tabular`, `linear` and `from_simulator`; they also choose or check ``value_radius``.

    Attributes
    ----------
    cost_features
        C: (S·A, n_c) array with entries in [−1, 1]; or, for spaces that cannot be enumerated, a function
        (observations, actions) → (n, n_c).
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
    cost_class
        ``"simplex"`` or ``"ball"``.
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
    >>> round(problem.saddle_point_residual(np.full(4, 0.25), np.zeros(2), [1.0]), 3)
    1.5
    >>> best_values = mdp.plan(costs[:, 0]).values
    >>> bool(problem.saddle_point_residual(expert, best_values, [1.0]) < 1e-9)
    True
    """

    cost_features: FloatArray | CostFunction
    expert_features: FloatArray
    occupancy_features: OccupancyFeatures
    value_features: ValueFeatures
    discount: float
    value_radius: float
    value_domain: ValueDomain = "ball"
    cost_class: CostClass = "simplex"
    mdp: FiniteMDP | None = None

    def __post_init__(self) -> None:
        check_cost_class("cost_class", self.cost_class)
        if self.value_domain not in get_args(ValueDomain):
            raise ValueError(f"value_domain must be one of {get_args(ValueDomain)}, got {self.value_domain!r}")
        try:
            object.__setattr__(self, "value_radius", float(self.value_radius))
        except (TypeError, ValueError):
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
        object.__setattr__(self, "expert_features", expert)
        object.__setattr__(self, "discount", discount_factor("discount", self.discount))
        if not callable(self.cost_features):
            self._check_cost_array(self.cost_features, expert.size)
        if self.mdp is not None:
            self._check_model(self.mdp)

    def _check_cost_array(self, cost_features: ArrayLike, n_costs: int) -> None:
        features = self.occupancy_features
        if not isinstance(features, FiniteOccupancyFeatures | TabularOccupancyFeatures):
            raise ValueError("cost_features must be a function when occupancy_features are not over a finite space")
        costs = check_cost_features("cost_features", cost_features, features.n_states * features.n_actions)
        if costs.shape[1] != n_costs:
            raise ValueError(f"expert_features must have length {costs.shape[1]}, got {n_costs}")
        object.__setattr__(self, "cost_features", costs)

    def _check_model(self, mdp: FiniteMDP) -> None:
        if callable(self.cost_features):
            raise ValueError("cost_features must be an (S*A, n_c) array when the mdp is known")
        occupancy, value = self.finite_features()
        if (occupancy.n_states, occupancy.n_actions) != (mdp.n_states, mdp.n_actions):
            raise ValueError(f"occupancy_features {occupancy} do not fit {mdp}")
        if value.n_states != mdp.n_states:
            raise ValueError(f"value_features {value} do not fit {mdp}")
        if self.discount != mdp.discount:
            raise ValueError(f"discount must be the mdp's, {mdp.discount}, got {self.discount}")
        check_model_costs("cost_features", self.cost_features, mdp)

    # -- construction -------------------------------------------------------------------------------------------------

    @classmethod
    def tabular(
        cls,
        mdp: FiniteMDP,
        cost_features: ArrayLike,
        expert_features: ArrayLike,
        *,
        value_radius: float | Literal["auto"] = "auto",
        value_domain: ValueDomain = "ball",
        cost_class: CostClass = "simplex",
    ) -> SaddlePointProblem:
        """Return the problem without approximation of μ and u: Φ and Ψ are identities."""
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
    def linear(
        cls,
        mdp: FiniteMDP,
        cost_features: ArrayLike,
        expert_features: ArrayLike,
        *,
        occupancy_features: FiniteOccupancyFeatures | TabularOccupancyFeatures,
        value_features: FiniteValueFeatures | TabularValueFeatures,
        value_radius: float | Literal["auto"] = "auto",
        value_domain: ValueDomain = "ball",
        cost_class: CostClass = "simplex",
    ) -> SaddlePointProblem:
        """Return the problem over given features of a known model.

        ``value_radius="auto"`` chooses it by `value_radius.automatic_radius`; a number that is too small to hold
        the optimal values of the cost features draws an `LfdGymWarning`.
        """
        costs = check_model_costs("cost_features", cost_features, mdp)
        if value_radius == "auto":
            radius = automatic_radius(mdp, costs, value_features, value_domain, cost_class)
        else:
            radius = float(value_radius)
            warn_if_radius_too_small(mdp, costs, value_features, value_domain, radius)
        return cls(
            cost_features=costs,
            expert_features=np.asarray(expert_features, dtype=np.float64),
            occupancy_features=occupancy_features,
            value_features=value_features,
            discount=mdp.discount,
            value_radius=radius,
            value_domain=value_domain,
            cost_class=cost_class,
            mdp=mdp,
        )

    @classmethod
    def from_simulator(
        cls,
        cost_features: FloatArray | CostFunction,
        expert_features: ArrayLike,
        *,
        occupancy_features: OccupancyFeatures,
        value_features: ValueFeatures,
        discount: float,
        value_radius: float,
        value_domain: ValueDomain = "ball",
        cost_class: CostClass = "simplex",
    ) -> SaddlePointProblem:
        """Return the problem when the dynamics are known only through a generative model."""
        return cls(
            cost_features=cost_features,
            expert_features=np.asarray(expert_features, dtype=np.float64),
            occupancy_features=occupancy_features,
            value_features=value_features,
            discount=discount,
            value_radius=value_radius,
            value_domain=value_domain,
            cost_class=cost_class,
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

    @property
    def value_bound(self) -> float:
        """Bound of ‖u_λ‖∞ over the domain: β for the ball (Lemma 7), b·max_x‖ψ_x‖₁ for the box."""
        if self.value_domain == "ball":
            return self.value_radius
        return self.value_radius * self.value_features.row_l1_bound

    @property
    def cost_bound(self) -> float:
        """Bound of ‖c_w‖∞ over the class: 1 for the simplex, √n_c for the ball."""
        return 1.0 if self.cost_class == "simplex" else float(np.sqrt(self.n_costs))

    @property
    def occupancy_shift(self) -> float:
        """C_βγ = 2·max(value_bound, cost_bound)/(1−γ) ≥ ‖c_w − T*u_λ‖∞; the paper's 2β/(1−γ) on its own domains."""
        return 2 * max(self.value_bound, self.cost_bound) / (1 - self.discount)

    @property
    def cost_shift(self) -> float:
        """2 over the simplex; 0 over the ball, where ⟨w, 1⟩ is not constant."""
        return 2.0 if self.cost_class == "simplex" else 0.0

    # -- what the weights mean ----------------------------------------------------------------------------------------

    def finite_features(
        self,
    ) -> tuple[FiniteOccupancyFeatures | TabularOccupancyFeatures, FiniteValueFeatures | TabularValueFeatures]:
        """Return Φ and Ψ as features over a finite space, or refuse."""
        occupancy, value = self.occupancy_features, self.value_features
        if not isinstance(occupancy, FiniteOccupancyFeatures | TabularOccupancyFeatures):
            raise TypeError(f"occupancy_features must be over a finite space here, got {occupancy}")
        if not isinstance(value, FiniteValueFeatures | TabularValueFeatures):
            raise TypeError(f"value_features must be over a finite space here, got {value}")
        return occupancy, value

    def occupancy(self, occupancy_weights: FloatArray) -> FloatArray:
        """μ_θ, (S, A): a distribution over pairs, not necessarily an occupancy measure."""
        return self.finite_features()[0].combine(np.asarray(occupancy_weights, dtype=np.float64))

    def values(self, value_weights: FloatArray) -> FloatArray:
        """u_λ, (S,)."""
        return self.finite_features()[1].combine(np.asarray(value_weights, dtype=np.float64))

    def policy(self, occupancy_weights: FloatArray) -> FloatArray:
        """π_θ(a|x) ∝ μ_θ(x, a), (S, A); uniform where μ_θ vanishes."""
        return policy_from_occupancy(self.occupancy(occupancy_weights))

    def pair_costs(
        self, observations: NDArray[Any], actions: NDArray[Any], ended: NDArray[np.bool_] | None = None
    ) -> FloatArray:
        """Return the rows of C for a batch of pairs, (n, n_c); a function's costs are zero in the absorbing state.

        ``ended`` is what the model's ``is_absorbing`` says of the pairs' states. Without it the absorbing state is
        known only by NaN in observations: that of a finite model, an integer like any other, is not recognised.
        """
        if callable(self.cost_features):
            costs = np.asarray(self.cost_features(observations, actions), dtype=np.float64)
            if costs.shape != (len(observations), self.n_costs):
                raise ValueError(
                    f"cost_features must return shape {(len(observations), self.n_costs)}, got {costs.shape}"
                )
            if np.issubdtype(observations.dtype, np.floating):
                costs = np.where(hidden_rows(observations)[:, None], 0.0, costs)
            if ended is not None:
                costs = np.where(ended[:, None], 0.0, costs)
            if not np.abs(costs).max(initial=0.0) <= 1:  # or NaN; in the simulators' inner loop the full check is slow
                check_cost_features("cost_features(observations, actions)", costs, len(observations))
            return costs
        return np.asarray(self.cost_features[observations * self.finite_features()[0].n_actions + actions])

    def check_point(
        self, occupancy_weights: ArrayLike, value_weights: ArrayLike, cost_weights: ArrayLike
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (θ, λ, w) if they are in their domains, to rounding: outside, the residual bounds nothing."""
        theta, lam, _ = self._weights(occupancy_weights, value_weights, cost_weights)
        w = check_cost_weights("cost_weights", cost_weights, self.n_costs, self.cost_class)
        if self.value_domain == "ball":
            measure, size, limit = "norm", np.linalg.norm(lam), self.value_radius / np.sqrt(self.n_value_features)
        else:
            measure, size, limit = "entries", np.abs(lam).max(), self.value_radius
        if size > limit * (1 + _ROUNDING):
            raise ValueError(
                f"value_weights must have {measure} at most {limit} in the {self.value_domain}, got {size}"
            )
        return theta, lam, w

    # -- the Lagrangian -----------------------------------------------------------------------------------------------

    def known_model(self) -> tuple[FiniteMDP, FloatArray]:
        """Return the model and C, or refuse if the model is not known."""
        if self.mdp is None or callable(self.cost_features):
            raise ValueError("this needs the model: build the problem with an mdp, or use a sampled certificate")
        return self.mdp, self.cost_features

    def _expert(self, expert: ArrayLike | None) -> FloatArray:
        if expert is None:
            return self.expert_features
        return finite_array("expert", expert, (self.n_costs,))

    def gradients(
        self,
        occupancy_weights: ArrayLike,
        value_weights: ArrayLike,
        cost_weights: ArrayLike,
        expert: ArrayLike | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """∇L in θ, λ and w: (Φᵀ(c_w − T*u_λ), Ψᵀ(ν₀ − Tμ_θ), Cᵀμ_θ − ρ)."""
        mdp, costs = self.known_model()
        phi, psi = self.finite_features()
        theta, lam, w = self._weights(occupancy_weights, value_weights, cost_weights)
        occupancy = phi.combine(theta)
        advantages = costs @ w - mdp.bellman_adjoint(psi.combine(lam)).ravel()
        return (
            phi.inner(advantages),
            psi.inner(mdp.initial_distribution - mdp.bellman_flow(occupancy)),
            costs.T @ occupancy.ravel() - self._expert(expert),
        )

    def _weights(
        self, occupancy_weights: ArrayLike, value_weights: ArrayLike, cost_weights: ArrayLike
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        return (
            distribution("occupancy_weights", occupancy_weights, self.n_occupancy_features),
            finite_array("value_weights", value_weights, (self.n_value_features,)),
            finite_array("cost_weights", cost_weights, (self.n_costs,)),
        )

    def operator(
        self, occupancy_weights: ArrayLike, value_weights: ArrayLike, cost_weights: ArrayLike
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """G(z) = (∇_θ, −∇_λ, −∇_w) of the shifted empirical Lagrangian: what Algorithm 1 estimates without bias."""
        theta, lam, w = self.gradients(occupancy_weights, value_weights, cost_weights)
        return theta + self.occupancy_shift, -lam, self.cost_shift - w

    def lagrangian(
        self,
        occupancy_weights: ArrayLike,
        value_weights: ArrayLike,
        cost_weights: ArrayLike,
        expert: ArrayLike | None = None,
    ) -> float:
        """L(θ, λ, w): empirical, or the paper's L_r if ``expert`` is the expert's true ρ_C(π_E)."""
        _, slope, excess = self.gradients(occupancy_weights, value_weights, cost_weights, expert)
        return float(slope @ np.asarray(value_weights) + excess @ np.asarray(cost_weights))

    def shifted_lagrangian(
        self,
        occupancy_weights: ArrayLike,
        value_weights: ArrayLike,
        cost_weights: ArrayLike,
        expert: ArrayLike | None = None,
    ) -> float:
        """L + C_βγ⟨μ_θ, 1⟩ − 2⟨w, 1⟩: the paper's L̂_r, or L̄_r if ``expert`` is the expert's true ρ_C(π_E)."""
        shift = self.occupancy_shift - self.cost_shift * float(np.sum(cost_weights))
        return self.lagrangian(occupancy_weights, value_weights, cost_weights, expert) + shift

    # -- the saddle-point residual ------------------------------------------------------------------------------------

    def largest_value_gain(self, slope: FloatArray) -> float:
        """Maximise ⟨slope, λ⟩ over the domain of λ: (β/√n_u)‖slope‖₂ over the ball, b‖slope‖₁ over the box."""
        if self.value_domain == "ball":
            return float(self.value_radius / np.sqrt(self.n_value_features) * np.linalg.norm(slope))
        return float(self.value_radius * np.abs(slope).sum())

    def upper_value(self, occupancy_weights: ArrayLike, expert: ArrayLike | None = None) -> float:
        """Maximise L(θ, ·, ·) over λ and w, in closed form."""
        zero = np.zeros(self.n_value_features)
        _, slope, excess = self.gradients(occupancy_weights, zero, np.zeros(self.n_costs), expert)
        return self.largest_value_gain(slope) + cost_distance(excess, self.cost_class)

    def lower_value(self, value_weights: ArrayLike, cost_weights: ArrayLike, expert: ArrayLike | None = None) -> float:
        """Minimise L(·, λ, w) over θ, in closed form."""
        mdp, costs = self.known_model()
        phi, psi = self.finite_features()
        lam = finite_array("value_weights", value_weights, (self.n_value_features,))
        w = finite_array("cost_weights", cost_weights, (self.n_costs,))
        values = psi.combine(lam)
        advantages = costs @ w - mdp.bellman_adjoint(values).ravel()
        return float(phi.inner(advantages).min() + mdp.initial_distribution @ values - w @ self._expert(expert))

    def saddle_point_residual(
        self,
        occupancy_weights: ArrayLike,
        value_weights: ArrayLike,
        cost_weights: ArrayLike,
        expert: ArrayLike | None = None,
    ) -> float:
        """ε_sad(θ, λ, w) = max_{λ', w'} L(θ, λ', w') − min_{θ'} L(θ', λ, w), in closed form; zero at a saddle point.

        Empirical by default; the true residual if ``expert`` is the expert's true ρ_C(π_E).
        """
        return self.upper_value(occupancy_weights, expert) - self.lower_value(value_weights, cost_weights, expert)
