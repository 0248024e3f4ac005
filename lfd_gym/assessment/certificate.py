"""Certificates: how far a trained policy can be from the expert, and how much of that is the features' fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.costs.costs import CostClass, check_sampled_costs, cost_distance
from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.estimation import feature_expectations
from lfd_gym.demonstrations.rollout_estimates import horizon_for
from lfd_gym.features.occupancy_features import TabularOccupancyFeatures, TileOccupancyFeatures, TilePolicy
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.solvers.saddle.approximation import ApproximationError, point_approximation_error
from lfd_gym.solvers.saddle.residual_sampling import sample_residual
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.validation import FloatArray, check_delta

_TAIL = 1e-3

#: Probability of failure → bounds on |ρ̂ − ρ_C(π_E)|, one number or (n_c,), e.g. ``FeatureExpectations.radius``.
ExpertRadius: TypeAlias = Callable[[float], FloatArray | float]


def exactly_known(delta: float) -> float:
    """Return the radius of an expert whose feature expectations are known exactly: zero."""
    return 0.0


@dataclass(frozen=True)
class Certificate:
    """Bounds on a trained policy that hold together with probability at least ``1 - delta``.

    Attributes
    ----------
    delta
        Probability of failure. What was computed from the model is certain; demonstrations and rollouts are not.
    evidence
        What the bounds rest on.
    cost_distance
        δ_C(π̂, π_E) with the demonstrations' ρ̂ in place of the expert's.
    cost_distance_bound
        Upper bound of the true δ_C(π̂, π_E) = max over the class of ρ_c(π̂) − ρ_c(π_E), whatever the features are.
    residual, residual_bound
        The saddle-point residual with ρ̂, and an upper bound of the true one; None if only a policy was certified.
    approximation
        The terms of Proposition 4 at this point, if they were computed: residual + their sum bounds
        δ_C(π̂, π_E) − α* without looking at the policy itself.
    """

    delta: float
    evidence: str
    cost_distance: float
    cost_distance_bound: float
    residual: float | None = None
    residual_bound: float | None = None
    approximation: ApproximationError | None = None

    @property
    def excess_bound(self) -> float | None:
        """Proposition 4: upper bound of δ_C(π̂, π_E) − α*, from the residual and the approximation terms."""
        if self.residual_bound is None or self.approximation is None:
            return None
        return self.residual_bound + self.approximation.total

    def __str__(self) -> str:
        rows = [("cost distance to the expert", self.cost_distance, self.cost_distance_bound)]
        if self.residual is not None and self.residual_bound is not None:
            rows.append(("saddle-point residual", self.residual, self.residual_bound))
        lines = [
            f"Certificate (probability {1 - self.delta:g}; {self.evidence})",
            f"{'':36}{'found':>10}{'at most':>12}",
        ]
        lines += [f"  {name:34}{found:10.4f}{bound:12.4f}" for name, found, bound in rows]
        if self.approximation is not None:
            terms = self.approximation
            for name, error, factor in (
                ("features: distance of occupancies", terms.occupancy_error, terms.occupancy_factor),
                ("features: distance of values", terms.value_error, terms.value_factor),
            ):
                lines.append(f"  {name:34}{error:10.4f}{error * factor:12.4f}  (times {factor:.4g})")
            lines.append(f"  {'excess over the best policy':34}{'':10}{self.excess_bound:12.4f}")
        return "\n".join(lines)


def certify(
    problem: SaddlePointProblem,
    occupancy_weights: ArrayLike,
    value_weights: ArrayLike,
    cost_weights: ArrayLike,
    *,
    expert_radius: ExpertRadius,
    delta: float,
    policy: ArrayLike | None = None,
    apprentice_occupancy: ArrayLike | None = None,
) -> Certificate:
    """Certify a point of a problem whose model is known: all but the demonstrations is exact.

    Parameters
    ----------
    problem
        With a known model.
    occupancy_weights, value_weights, cost_weights
        θ, λ, w, in their domains.
    expert_radius
        How far ρ̂ may be from the expert's ρ, by probability of failure; `exactly_known` if it is not an estimate.
    delta
        Probability of failure, strictly between 0 and 1.
    policy
        The (S, A) policy to certify; π_θ if not given.
    apprentice_occupancy
        (S, A) occupancy of an apprentice policy, needed for the approximation terms unless Φ is tabular, where every
        occupancy is expressed exactly. The approximation terms are about π_θ and left out for another ``policy``.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym import FiniteMDP, SaddlePointProblem, solve_primal_dual_hybrid
    >>> mdp = FiniteMDP([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], initial_distribution=[1.0, 0.0], discount=0.9)
    >>> costs = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> expert = mdp.occupancy(mdp.optimal_policy(costs[:, 0])).ravel()
    >>> problem = SaddlePointProblem.tabular(mdp, costs, costs.T @ expert)
    >>> solution = solve_primal_dual_hybrid(problem)
    >>> weights = solution.occupancy_weights, solution.value_weights, solution.cost_weights
    >>> certificate = certify(problem, *weights, expert_radius=exactly_known, delta=0.05)
    >>> bool(certificate.cost_distance_bound < 1e-4)
    True
    """
    mdp, costs = problem.known_model()
    check_delta(delta)
    theta, lam, w = problem.check_point(occupancy_weights, value_weights, cost_weights)
    table = problem.policy(theta) if policy is None else np.asarray(policy, dtype=np.float64)
    difference = costs.T @ mdp.occupancy(table).ravel() - problem.expert_features
    radii = np.broadcast_to(expert_radius(delta), difference.shape)
    residual = problem.saddle_point_residual(theta, lam, w)
    approximation = None
    tabular = isinstance(problem.occupancy_features, TabularOccupancyFeatures)
    if policy is None and (apprentice_occupancy is not None or tabular):
        target = mdp.occupancy(table) if apprentice_occupancy is None else apprentice_occupancy
        approximation = point_approximation_error(problem, theta, lam, w, target)
    return Certificate(
        delta=delta,
        evidence="known model",
        cost_distance=cost_distance(difference, problem.cost_class),
        cost_distance_bound=largest_distance(difference, radii, problem.cost_class),
        residual=residual,
        residual_bound=residual + 2 * _class_radius(radii, problem.cost_class),
        approximation=approximation,
    )


def certify_from_samples(
    problem: SaddlePointProblem,
    model: GenerativeModel,
    occupancy_weights: ArrayLike,
    value_weights: ArrayLike,
    cost_weights: ArrayLike,
    *,
    expert_radius: ExpertRadius,
    delta: float,
    rng: np.random.Generator,
    policy: Any = None,
    n_rollouts: int = 10_000,
    n_samples: int = 1_000_000,
    n_per_column: int = 10_000,
) -> Certificate:
    """Certify a point and its policy from fresh draws of a generative model, without knowing the model.

    The bound on the cost distance assumes nothing about features or how the policy was found: it compares rollouts of
    the policy with the demonstrations. All draws must be fresh: ``rng`` must not be one that the training used.

    Parameters
    ----------
    problem, model
        The problem, and a simulator of its dynamics.
    occupancy_weights, value_weights, cost_weights
        θ, λ, w, in their domains.
    expert_radius, delta
        As for `certify`. The probability of failure is shared among demonstrations, rollouts and residual.
    rng
        Drives all draws.
    policy
        Anything `collect` takes: an (S, A) array, or an object with ``action_probabilities`` or ``predict``. π_θ if not
        given, where Φ says it: over finite spaces and tiles.
    n_rollouts
        Rollouts of the policy, each so long that what is left is worth at most 1e-3.
    n_samples, n_per_column
        Draws for the residual, see `sample_residual`.
    """
    check_delta(delta)
    theta, lam, w = problem.check_point(occupancy_weights, value_weights, cost_weights)
    if not callable(problem.cost_features):
        check_sampled_costs("cost_features", problem.cost_features, model)
    share = delta / 3
    if policy is None:
        policy = _policy_of(problem, theta)
    rollouts = collect(model, policy, n_rollouts, horizon_for(problem.discount, _TAIL), rng)
    costs = problem.pair_costs if callable(problem.cost_features) else problem.cost_features
    estimate = feature_expectations(rollouts, costs, problem.discount)
    difference = estimate.values - problem.expert_features
    expert_radii = np.broadcast_to(expert_radius(share), difference.shape)
    sampled = sample_residual(
        problem,
        model,
        theta,
        lam,
        w,
        n_samples=n_samples,
        n_per_column=n_per_column,
        delta=share,
        rng=rng,
    )
    return Certificate(
        delta=delta,
        evidence=f"{n_rollouts} rollouts, {len(rollouts.actions) + sampled.oracle_calls} draws of the model",
        cost_distance=cost_distance(difference, problem.cost_class),
        cost_distance_bound=largest_distance(difference, estimate.radius(share) + expert_radii, problem.cost_class),
        residual=sampled.estimate,
        residual_bound=sampled.bound + 2 * _class_radius(expert_radii, problem.cost_class),
    )


def _policy_of(problem: SaddlePointProblem, occupancy_weights: FloatArray) -> FloatArray | TilePolicy:
    features = problem.occupancy_features
    if isinstance(features, TileOccupancyFeatures):
        return features.policy(occupancy_weights)
    return problem.policy(occupancy_weights)


def _class_radius(radii: FloatArray, cost_class: CostClass) -> float:
    """Largest |⟨w, ρ̂ − ρ⟩| over the class when |ρ̂ − ρ| ≤ ``radii``."""
    return float(radii.max() if cost_class == "simplex" else np.linalg.norm(radii))


def largest_distance(difference: FloatArray, radii: FloatArray, cost_class: CostClass) -> float:
    """Largest cost distance of any vector within ``radii`` of ``difference``."""
    furthest = difference + radii if cost_class == "simplex" else np.abs(difference) + radii
    return cost_distance(furthest, cost_class)
