"""Certificates: how far a trained policy can be from the expert, and how much of that is the features' fault."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.assessment.expert_bounds import least_expert_costs
from lfd_gym.assessment.tables import html_table
from lfd_gym.costs.costs import Costs
from lfd_gym.costs.sets import Ball, ConvexSet
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.estimation import CostEstimate, Truncation
from lfd_gym.features.occupancy_features import TabularOccupancyFeatures
from lfd_gym.model.criterion import Criterion
from lfd_gym.model.generative_model import GenerativeModel, TabularModel
from lfd_gym.policies.conversion import PolicyLike, policy_table
from lfd_gym.solvers.saddle.approximation import ApproximationError, point_approximation_error
from lfd_gym.solvers.saddle.residual_sampling import sample_residual
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem
from lfd_gym.solvers.solution import SaddlePoint
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray, check_delta

#: Rollouts of a table, which take no time.
_N_ROLLOUTS = 10_000


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
        Upper bound of the true δ_C(π̂, π_E) = max over the class of ρ_c(π̂) − ρ_c(π_E), whatever the features are. If
        ``about`` is ``"demonstrations"``, of the same with ρ̂ in place of ρ(π_E). Where the model is known it may be
        below ``cost_distance``: no expert pays as little as an unlucky estimate says.
    about
        Whom the bound compares with: the ``"expert"``, or these ``"demonstrations"`` alone, where the costs were chosen
        after looking at them, so that they are no independent estimate of the expert's costs.
    criterion
        How costs add up.
    assumptions
        What must be true beside, in words.
    per_norm
        Whether the class is the unit ball of a space of costs: a cost of norm B is bounded by B times the bound.
    residual, residual_bound
        The saddle-point residual with ρ̂, and an upper bound of the true one; None if only a policy was certified.
    approximation
        The terms of Propositions 4 and 5 at this point, if they were computed: residual + their sum bounds
        δ_C(π̂, π_E) − α* without looking at the policy itself.
    """

    delta: float
    evidence: str
    cost_distance: float
    cost_distance_bound: float
    criterion: Criterion
    about: Literal["expert", "demonstrations"] = "expert"
    assumptions: tuple[str, ...] = ()
    per_norm: bool = False
    residual: float | None = None
    residual_bound: float | None = None
    approximation: ApproximationError | None = None

    @property
    def excess_bound(self) -> float | None:
        """Propositions 4 and 5: upper bound of δ_C(π̂, π_E) − α*, from the residual and the approximation terms."""
        if self.residual_bound is None or self.approximation is None:
            return None
        return self.residual_bound + self.approximation.total

    def _heading(self) -> str:
        said = "; ".join([self.evidence, str(self.criterion), *self.assumptions])
        return f"Certificate (probability {1 - self.delta:g}; {said})"

    def _rows(self) -> list[tuple[str, str, str]]:
        """Return what was found, and how large it can be at most."""
        target = "expert" if self.about == "expert" else "demonstrations"
        unit = 1 / self.criterion.scale
        found, bound = self.cost_distance, self.cost_distance_bound
        rows = [
            (
                f"cost distance to the {target}",
                f"{found:.4f}",
                f"{bound:.4f}" + "  (times B for a cost of norm B)" * self.per_norm,
            ),
            ("as a sum of rewards", f"{unit * found:.4g}", f"{unit * bound:.4g}  (per unit of reward)"),
        ]
        if self.residual is not None and self.residual_bound is not None:
            rows.append(("saddle-point residual", f"{self.residual:.4f}", f"{self.residual_bound:.4f}"))
        if self.approximation is not None:
            terms = self.approximation
            for name, error, factor in (
                ("features: distance of occupancies", terms.occupancy_error, terms.occupancy_factor),
                ("features: values, or coherence", terms.value_error, terms.value_factor),
            ):
                rows.append((name, f"{error:.4f}", f"{error * factor:.4f}  (times {factor:.4g})"))
            rows.append(("excess over the best policy", "", f"{self.excess_bound:.4f}"))
        return rows

    def __str__(self) -> str:
        lines = [self._heading(), f"{'':36}{'found':>10}{'at most':>12}"]
        for name, found, bound in self._rows():
            number, _, remark = bound.partition("  ")
            lines.append(f"  {name:34}{found:>10}{number:>12}" + (f"  {remark}" if remark else ""))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(self._heading(), ("", "found", "at most"), self._rows())


def certify(
    policy: PolicyLike,
    task: Task,
    *,
    delta: float = 0.05,
    rng: np.random.Generator | None = None,
    deterministic: bool = False,
    n_rollouts: int | None = None,
    held_out: Demonstrations | None = None,
    expert: Literal["any", "deterministic"] = "any",
    truncation: Truncation = "paper",
) -> Certificate:
    """Bound δ_C(π, π_E) for any policy, whoever learned it and however.

    The bound rests on the demonstrations and, where the model is not known, on fresh rollouts of the policy. Costs that
    were chosen after looking at the demonstrations, such as the default ones of a continuous task, say nothing about
    the expert behind them: the certificate is then about the distance to these demonstrations, unless ``held_out`` ones
    are given.

    Parameters
    ----------
    policy
        Anything that `lfd_gym.as_policy` takes.
    task
        With demonstrations and costs.
    delta
        Probability of failure.
    rng
        Drives the rollouts; what it draws must not have been used in training. Not used where the model is known.
    deterministic
        Whether it is the policy's best actions that are certified.
    n_rollouts
        How many rollouts, where the model is not known: 10,000 of a table, see `Task.expected_costs` for others.
    held_out
        Demonstrations of the same expert that were neither learned from nor looked at when costs were chosen; the
        expert's expected costs are then estimated from them alone.
    expert
        ``"deterministic"``: the expert is taken to do the same whenever it is in the same state, which says much more
        where the model is known. The certificate says that it assumes this; if it is not true, the bound may be false.
    truncation
        What is done about the unseen end of each demonstration, see `feature_expectations`. It moves
        ``cost_distance``, not the bound.

    Notes
    -----
    Over costs with weights in the simplex the bound is the largest difference of one-sided bounds, see
    `lfd_gym.assessment.expert_bounds`. Over other classes the norm of the difference is bounded directly, see
    `CostEstimate.class_radius`; where costs are a table, also from two-sided bounds of each cost, and the better of the
    two counts, each at half of δ. No bound exceeds what is possible.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> rng = np.random.default_rng(0)
    >>> env = gym.make("lfd_gym/StochasticGridworld-v0", size=5)
    >>> mdp, costs = lfd.FiniteMDP.from_env(env, discount=0.9), env.unwrapped.cost_features
    >>> demos = lfd.collect(env, mdp.optimal_policy(costs[:, 0]), 1000, 100, rng)
    >>> certificate = lfd.certify(np.full((25, 4), 0.25), lfd.Task(env, demos, discount=0.9), delta=0.05)
    >>> 0 < certificate.cost_distance_bound < 1
    True
    """
    check_delta(delta)
    if expert not in ("any", "deterministic"):
        raise ValueError(f"expert must be 'any' or 'deterministic', got {expert!r}")
    if expert == "deterministic":
        task.needs("model", "certifying with a deterministic expert")
    theirs = task.expert_features(truncation, held_out)
    if n_rollouts is None and task.access == "simulator" and isinstance(task.simulator, TabularModel):
        n_rollouts = _N_ROLLOUTS
    ours = task.expected_costs(policy, rng=rng, n_rollouts=n_rollouts, deterministic=deterministic)
    about_expert = held_out is not None or not task.costs.chosen_from_demonstrations
    evidence = "known model" if ours.exact else f"{ours.n_trajectories} rollouts"
    kind = "demonstrations" if held_out is None else "held-out demonstrations"
    comparison = _Comparison(task, ours, theirs, held_out, about_expert, expert == "deterministic")
    return Certificate(
        delta=delta,
        evidence=f"{evidence}, {theirs.n_trajectories} {kind}",
        cost_distance=float(task.costs.weights.support(ours.values - theirs.values)),
        cost_distance_bound=comparison.bound(delta),
        criterion=task.criterion,
        about="expert" if about_expert else "demonstrations",
        assumptions=("if the expert is deterministic",) if expert == "deterministic" else (),
        per_norm=task.costs.weights == Ball() and task.costs.table is None,
    )


@dataclass(frozen=True)
class _Comparison:
    """A policy's expected costs beside the expert's, or those of the demonstrations."""

    task: Task
    ours: CostEstimate
    theirs: CostEstimate
    held_out: Demonstrations | None
    about_expert: bool
    deterministic_expert: bool

    def bound(self, delta: float) -> float:
        """How far apart they can be, with probability 1 − ``delta``."""
        costs: Costs = self.task.costs
        if costs.weights.nonnegative:  # only that the policy pays more counts
            share = delta / self._n_unsure
            high = self.ours.upper(share) - self._expert_side(share, 1)
            return costs.weights.largest_within(high, np.zeros_like(high))
        if costs.table is None:
            return self._by_norm(delta)
        return min(self._by_norm(delta / 2), self._by_sides(delta / 2))

    @property
    def _n_unsure(self) -> int:
        """How many estimates share the confidence, at least one."""
        return max(1, (not self.ours.exact) + self.about_expert)

    def _by_norm(self, delta: float) -> float:
        costs: Costs = self.task.costs
        apart = float(costs.weights.support(self.ours.values - self.theirs.values))
        for estimate in (self.ours, self.theirs) if self.about_expert else (self.ours,):
            apart += estimate.class_radius(costs, delta / self._n_unsure)
        return min(apart, costs.largest_distance)

    def _by_sides(self, delta: float) -> float:
        share = delta / (2 * self._n_unsure)
        high = self.ours.upper(share) - self._expert_side(share, 1)
        low = self.ours.lower(share) + self._expert_side(share, -1)
        weights: ConvexSet = self.task.costs.weights
        return weights.largest_within((high + low) / 2, (high - low) / 2)

    def _expert_side(self, delta: float, sign: int) -> FloatArray:
        """Return lower bounds of ``sign`` times the costs that are compared with."""
        if not self.about_expert:
            return sign * self.theirs.values
        dynamics = self.task.dynamics
        if dynamics is None:
            return self.theirs.lower(delta) if sign == 1 else -self.theirs.upper(delta)
        used = self.task.demonstrations if self.held_out is None else self.held_out
        signed = replace(self.theirs, trajectory_values=sign * self.theirs.trajectory_values)
        shown = (used, self.task.demonstrations) if self.deterministic_expert else ()
        agreeing = [part for part in shown if part is not None]
        return least_expert_costs(dynamics, sign * self.task.cost_table, signed, used, delta, agreeing_with=agreeing)


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
) -> Certificate:
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
        A simulator of the problem's dynamics, and what drives its draws: not one that the training used.
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
    share = delta / 3
    if policy is None:
        policy = problem.occupancy_features.policy(checked.occupancy_weights)
    ours = Task(model, discount=problem.discount, costs=problem.costs).expected_costs(
        policy, rng=rng, n_rollouts=n_rollouts
    )
    difference = ours.values - problem.expert_features
    expert_radii = _radii(problem, expert, share)
    sampled = sample_residual(
        problem, model, checked, n_samples=n_samples, n_per_column=n_per_column, delta=share, rng=rng
    )
    weights = problem.costs.weights
    return Certificate(
        delta=delta,
        evidence=f"{n_rollouts} rollouts, {ours.n_steps + sampled.oracle_calls} draws of the model",
        cost_distance=float(weights.support(difference)),
        cost_distance_bound=weights.largest_within(difference, ours.radius(share) + expert_radii),
        criterion=Criterion(problem.discount),
        residual=sampled.estimate,
        residual_bound=sampled.bound + 2 * _class_radius(expert_radii, weights),
    )


def _certify_exactly(
    problem: SaddlePointProblem,
    point: SaddlePoint,
    expert: CostEstimate | None,
    delta: float,
    policy: PolicyLike | None,
    apprentice_occupancy: ArrayLike | None,
) -> Certificate:
    mdp, costs = problem.known_model()
    own = problem.policy(point.occupancy_weights)
    table = own if policy is None else policy_table(policy, mdp)
    difference = costs.T @ mdp.occupancy(table).ravel() - problem.expert_features
    radii = _radii(problem, expert, delta)
    residual = problem.saddle_point_residual(point)
    approximation = None
    tabular = isinstance(problem.occupancy_features, TabularOccupancyFeatures)
    if policy is None and (apprentice_occupancy is not None or tabular):
        target = mdp.occupancy(table) if apprentice_occupancy is None else apprentice_occupancy
        approximation = point_approximation_error(problem, point, target)
    weights = problem.costs.weights
    return Certificate(
        delta=delta,
        evidence="known model",
        cost_distance=float(weights.support(difference)),
        cost_distance_bound=weights.largest_within(difference, radii),
        criterion=Criterion(problem.discount),
        residual=residual,
        residual_bound=residual + 2 * _class_radius(radii, weights),
        approximation=approximation,
    )


def _radii(problem: SaddlePointProblem, expert: CostEstimate | None, delta: float) -> FloatArray:
    return np.zeros(problem.n_costs) if expert is None else expert.radius(delta)


def _class_radius(radii: FloatArray, weights: ConvexSet) -> float:
    """Largest |⟨w, ρ̂ − ρ⟩| over the class when |ρ̂ − ρ| ≤ ``radii``."""
    return weights.largest_within(np.zeros_like(radii), radii)
