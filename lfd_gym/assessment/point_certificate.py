"""Certificates of points of a saddle-point problem: what the residual says, and what is the features' fault."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym._splitmix import own_stream
from lfd_gym.arguments import checked
from lfd_gym.assessment.tables import at_most, html_table, probability
from lfd_gym.demonstrations.estimation import CostEstimate
from lfd_gym.features.occupancy_features import TabularOccupancyFeatures
from lfd_gym.model.criterion import Criterion
from lfd_gym.model.generative_model import GenerativeModel, check_generator
from lfd_gym.policies.conversion import PolicyLike, policy_table
from lfd_gym.solvers.saddle.approximation import ApproximationError, point_approximation_error
from lfd_gym.solvers.saddle.residual_sampling import sample_residual
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.solvers.solution import SaddlePoint
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray, check_delta


@dataclass(frozen=True)
class PointCertificate:
    """Bounds on a point of a saddle-point problem and its policy, together with probability at least ``1 - delta``.

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
    criterion
        How costs add up.
    residual, residual_bound
        The saddle-point residual with ρ̂, and an upper bound of the true one.
    approximation
        The terms of Propositions 4 and 5 at this point, if they were computed: residual + their sum bounds
        δ_C(π̂, π_E) − α* without looking at the policy itself.
    """

    delta: float
    evidence: str
    cost_distance: float
    cost_distance_bound: float
    criterion: Criterion
    residual: float
    residual_bound: float
    approximation: ApproximationError | None = None

    @property
    def excess_bound(self) -> float | None:
        """Propositions 4 and 5: upper bound of δ_C(π̂, π_E) − α*, from the residual and the approximation terms."""
        return None if self.approximation is None else self.residual_bound + self.approximation.total

    def _heading(self) -> str:
        return f"Certificate (probability {probability(self.delta)}; {self.evidence}; {self.criterion})"

    def _rows(self) -> list[tuple[str, str, str]]:
        """Return what was found, and how large it can be at most."""
        unit = 1 / self.criterion.scale
        found, bound = self.cost_distance, self.cost_distance_bound
        rows = [
            ("cost distance to the expert", f"{found:.4f}", at_most(bound, 4)),
            ("as a sum of rewards", f"{unit * found:.4g}", f"{at_most(unit * bound, 4)}  (per unit of reward)"),
            ("saddle-point residual", f"{self.residual:.4f}", at_most(self.residual_bound, 4)),
        ]
        if self.approximation is not None:
            terms = self.approximation
            for name, error, factor in (
                ("features: distance of occupancies", terms.occupancy_error, terms.occupancy_factor),
                ("features: values, or coherence", terms.value_error, terms.value_factor),
            ):
                rows.append((name, f"{error:.4f}", f"{at_most(error * factor, 4)}  (times {factor:.4g})"))
            excess = self.residual_bound + terms.total
            rows.append(("excess over the best policy", "", at_most(excess, 4)))
        return rows

    def __str__(self) -> str:
        lines = [self._heading(), f"{'':36}{'found':>10}{'at most':>12}"]
        for name, found, bound in self._rows():
            number, _, remark = bound.partition("  ")
            lines.append(f"  {name:34}{found:>10}{number:>12}" + (f"  {remark}" if remark else ""))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(self._heading(), ("", "found", "at most"), self._rows())


@checked
def certify_saddle_point(
    problem: SaddlePointProblem,
    point: SaddlePoint,
    *,
    expert: CostEstimate | None,
    delta: float,
    policy: PolicyLike | None = None,
    apprentice_occupancy: ArrayLike | None = None,
    model: GenerativeModel | None = None,
    rng: np.random.Generator | None = None,
    n_rollouts: int = 10_000,
    n_samples: int = 1_000_000,
    n_per_column: int = 10_000,
) -> PointCertificate:
    """Certify a point of a saddle-point problem and its policy.

    Where the problem's model is known, all but the demonstrations is exact. With a generative ``model`` instead, the
    bounds come from its fresh draws: that of the cost distance assumes nothing about features or how the policy was
    found, it compares rollouts of the policy with the demonstrations.

    Parameters
    ----------
    problem, point
        The problem; θ, λ, w in their domains.
    expert
        The estimate that the problem's ρ̂ is from; None if that is not estimated but known.
    delta
        Probability of failure, strictly between 0 and 1; with a ``model`` it is shared among demonstrations, rollouts
        and residual.
    policy
        The policy to certify; π_θ if not given, where Φ has one.
    apprentice_occupancy
        (S, A) occupancy of an apprentice policy, needed for the approximation terms unless Φ is tabular, where every
        occupancy is expressed exactly. The approximation terms are about π_θ and left out for another ``policy``.
    model, rng
        A simulator of the problem's dynamics, and what drives its draws, by a stream of their own, see `certify`.
    n_rollouts
        Rollouts of the policy, each so long that what is left is worth at most 1e-3.
    n_samples, n_per_column
        Draws for the residual, see `sample_residual`.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym import FiniteMDP, SaddlePointProblem, certify_saddle_point, solve_primal_dual_hybrid
    >>> mdp = FiniteMDP([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], initial_distribution=[1.0, 0.0], discount=0.9)
    >>> costs = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> expert = mdp.occupancy(mdp.optimal_policy(costs[:, 0])).ravel()
    >>> problem = SaddlePointProblem.tabular(mdp, costs, costs.T @ expert)
    >>> point = solve_primal_dual_hybrid(problem).point
    >>> certificate = certify_saddle_point(problem, point, expert=None, delta=0.05)
    >>> bool(certificate.cost_distance_bound < 1e-4)
    True
    """
    check_delta(delta)
    checked = problem.check_point(point)
    if expert is not None and not np.allclose(expert.values, problem.expert_features, rtol=0, atol=1e-12):
        raise ValueError(
            "expert must be the estimate that the problem's expert_features are from, got values "
            f"{expert.values} instead of {problem.expert_features}"
        )
    if model is None:
        return _certify_exactly(problem, checked, expert, delta, policy, apprentice_occupancy)
    if rng is None:
        raise ValueError("rng must be given: the certificate rests on draws of the model")
    rng = own_stream(check_generator("rng", rng), "certify_saddle_point")
    share = delta / 3
    if policy is None:
        policy = problem.occupancy_features.policy(checked.occupancy_weights)
    ours = Task(model, discount=problem.discount, costs=problem.costs).expected_costs(
        policy, rng=rng, n_rollouts=n_rollouts
    )
    low, high = _expert_sides(problem, expert, share)
    sampled = sample_residual(
        problem, model, checked, n_samples=n_samples, n_per_column=n_per_column, delta=share, rng=rng
    )
    weights = problem.costs.weights
    return PointCertificate(
        delta=delta,
        evidence=f"{n_rollouts} rollouts, {ours.n_steps + sampled.oracle_calls} draws of the model",
        cost_distance=float(weights.support(ours.values - problem.expert_features)),
        cost_distance_bound=_distance_bound(problem, ours.lower(share / 2) - high, ours.upper(share / 2) - low),
        criterion=Criterion(problem.discount),
        residual=sampled.estimate,
        residual_bound=sampled.bound + 2 * _class_radius(problem, low, high),
    )


def _certify_exactly(
    problem: SaddlePointProblem,
    point: SaddlePoint,
    expert: CostEstimate | None,
    delta: float,
    policy: PolicyLike | None,
    apprentice_occupancy: ArrayLike | None,
) -> PointCertificate:
    mdp, _ = problem.known_model()
    own = problem.policy(point.occupancy_weights)
    table = own if policy is None else policy_table(policy, mdp)
    ours = Task(mdp, costs=problem.costs).expected_costs(table)
    low, high = _expert_sides(problem, expert, delta)
    residual = problem.saddle_point_residual(point)
    approximation = None
    tabular = isinstance(problem.occupancy_features, TabularOccupancyFeatures)
    if policy is None and (apprentice_occupancy is not None or tabular):
        target = mdp.occupancy(table) if apprentice_occupancy is None else apprentice_occupancy
        approximation = point_approximation_error(problem, point, target)
    weights = problem.costs.weights
    return PointCertificate(
        delta=delta,
        evidence="known model",
        cost_distance=float(weights.support(ours.values - problem.expert_features)),
        cost_distance_bound=_distance_bound(problem, ours.values - ours.error - high, ours.values + ours.error - low),
        criterion=Criterion(problem.discount),
        residual=residual,
        residual_bound=residual + 2 * _class_radius(problem, low, high),
        approximation=approximation,
    )


def _expert_sides(
    problem: SaddlePointProblem, expert: CostEstimate | None, delta: float
) -> tuple[FloatArray, FloatArray]:
    """Return (n_c,) bounds of the expert's costs from below and above, which hold together."""
    if expert is None:
        return problem.expert_features, problem.expert_features
    return expert.lower(delta / 2), expert.upper(delta / 2)


def _distance_bound(problem: SaddlePointProblem, low: FloatArray, high: FloatArray) -> float:
    """Bound the distance where the differences of costs lie between ``low`` and ``high``; no more than is possible."""
    bound = problem.costs.weights.largest_within((low + high) / 2, (high - low) / 2)
    return min(bound, problem.costs.largest_distance)


def _class_radius(problem: SaddlePointProblem, low: FloatArray, high: FloatArray) -> float:
    """Largest |⟨w, ρ̂ − ρ⟩| over the class when ρ lies between ``low`` and ``high``."""
    radii = np.maximum(np.maximum(problem.expert_features - low, high - problem.expert_features), 0.0)
    return problem.costs.weights.largest_within(np.zeros_like(radii), radii)
