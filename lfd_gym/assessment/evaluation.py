"""One evaluation for every policy.

Where the model is known everything is exact: the policy is asked once for every state, and expected costs follow from
linear systems. Else they are estimated by rollouts, with intervals that hold together. Costs add up as the task's
`Criterion` says.

With ρ the expected costs of the policy, ρ_E those of the expert and ρ_U those of the uniformly random policy:

- true gap: ρ_true − ρ_E,true (negative: better than the expert);
- 𝒞-distance: max over the cost class of ⟨w, ρ − ρ_E⟩;
- normalised score: (ρ_true − ρ_U,true) / (ρ_E,true − ρ_U,true): 0 for random, 1 for the expert; where there is no true
  cost, the same of the mean returns of episodes, the expert's of its policy or of the demonstrations' rewards;
- reward units: the mean return and length of whole episodes, and the discounted return, Σ γ^t r_t over the steps that
  count for the criterion;
- occupancy distance: total variation ½‖μ − μ_E‖₁;
- agreement: Σ_x d_E(x) Σ_a min(π(a|x), π_E(a|x)) over the states in which actions matter; for a deterministic expert
  the share of the expert's (discounted) time in which the policy does the same.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from lfd_gym._splitmix import own_stream
from lfd_gym.arguments import checked
from lfd_gym.assessment.scores import played_returns, reward_units, score, score_range
from lfd_gym.assessment.tables import at_least, at_most, html_table, probability
from lfd_gym.costs.costs import CostFunction, Costs, as_costs
from lfd_gym.costs.sets import ConvexSet, CostClass, SymmetricSet
from lfd_gym.demonstrations.estimation import CostEstimate
from lfd_gym.demonstrations.rollout_costs import Returns
from lfd_gym.engines import Engine
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.model.generative_model import GenerativeModel, check_generator
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.policies.conversion import PolicyLike, as_policy, policy_table
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.resources import Resources
from lfd_gym.task import Task
from lfd_gym.validation import FloatArray, finite_array

#: What is shown of an evaluation, in this order, where it is known.
_SHOWN = (
    "episode_return",
    "expert_return",
    "random_return",
    "episode_length",
    "discounted_return",
    "true_cost",
    "true_gap",
    "normalised_score",
    "cost_distance",
    "occupancy_distance",
    "agreement",
)
_MOST_SHOWN = 8


@dataclass(frozen=True)
class Sampling:
    """How an evaluation by rollouts was made, and how sure it is.

    Attributes
    ----------
    n_rollouts, horizon
        Number and length of the rollouts of each policy.
    confidence
        All intervals of costs hold together with this probability: betting bounds, which are valid for any bounded
        cost and any number of rollouts (`lfd_gym.confidence`), with Bonferroni's correction. Those of returns, which
        are not known to be bounded, are Student's, each for itself.
    expected_costs
        (n_c, 2).
    true_gap, cost_distance, normalised_score, episode_return, discounted_return
        Pairs, or None if not known; the score also if the expert's and the random policy's costs cannot be told apart.
    """

    n_rollouts: int
    horizon: int
    confidence: float
    expected_costs: FloatArray
    true_gap: tuple[float, float] | None = None
    cost_distance: tuple[float, float] | None = None
    normalised_score: tuple[float, float] | None = None
    episode_return: tuple[float, float] | None = None
    discounted_return: tuple[float, float] | None = None


@dataclass(frozen=True)
class Evaluation:
    """How good a policy is; see the module for the definitions. What cannot be known is None.

    Attributes
    ----------
    expected_costs
        (n_c,) ρ of every cost, normalised by (1−γ).
    deterministic
        Whether the most probable actions were taken, instead of drawing them.
    expert_costs
        (n_c,) ρ of the expert, known or estimated from the demonstrations.
    true_gap, cost_distance, normalised_score, occupancy_distance, agreement
        Compared with the expert.
    true_cost, expert_true_cost
        ρ_true of the policy and of the expert.
    episode_return, episode_length, discounted_return
        In the units of the environment's reward: of whole episodes, undiscounted, where episodes were played; and
        discounted.
    expert_return, random_return
        Episode returns to compare with, where episodes were played.
    criterion
        How costs add up, in words.
    n_expert_demonstrations
        How many demonstrations the expert's costs were estimated from, where its policy is not known.
    about
        Whom the policy is compared with. ``"demonstrations"``: the costs were chosen after looking at them, so that
        intervals of what compares with the expert are about these demonstrations, not about the expert behind them.
    sampling
        None if the policy's own costs are exact.
    resources
        What was used to learn the policy.
    """

    expected_costs: FloatArray
    deterministic: bool
    expert_costs: FloatArray | None = None
    true_gap: float | None = None
    cost_distance: float | None = None
    normalised_score: float | None = None
    occupancy_distance: float | None = None
    agreement: float | None = None
    true_cost: float | None = None
    expert_true_cost: float | None = None
    episode_return: float | None = None
    episode_length: float | None = None
    discounted_return: float | None = None
    expert_return: float | None = None
    random_return: float | None = None
    criterion: str = ""
    n_expert_demonstrations: int | None = None
    about: Literal["expert", "demonstrations"] = "expert"
    sampling: Sampling | None = None
    resources: Resources | None = None

    @property
    def exact(self) -> bool:
        """Whether there is no sampling error, neither in the policy's costs nor in the expert's."""
        return self.sampling is None and self.n_expert_demonstrations is None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        plain: dict[str, Any] = _plain(self)
        return plain

    def _heading(self) -> str:
        kind = "exact" if self.sampling is None else f"{self.sampling.n_rollouts} rollouts"
        return f"evaluation ({kind}, {'deterministic' if self.deterministic else 'stochastic'}, {self.criterion})"

    def _rows(self) -> list[tuple[str, str]]:
        costs = [f"{cost:+.4f}" for cost in self.expected_costs]
        if len(costs) > _MOST_SHOWN:
            costs = [*costs[:_MOST_SHOWN], f"… ({len(costs)} costs)"]
        rows = [("expected costs", " ".join(costs))]
        for name in _SHOWN:
            value = getattr(self, name)
            if value is not None:
                interval = getattr(self.sampling, name, None)
                sure = "" if interval is None else f"  [{_ends(*interval)}]"
                rows.append((name.replace("_", " "), f"{value:+.4f}{sure}"))
        if self.n_expert_demonstrations is not None:
            estimated = f"estimated from {self.n_expert_demonstrations} demonstrations"
            chosen = f"these {self.n_expert_demonstrations} demonstrations, after looking at which costs were chosen"
            rows.append(("compared with", chosen) if self.about == "demonstrations" else ("expert", estimated))
        if self.sampling is not None:
            rows.append(
                ("intervals", f"{probability(1 - self.sampling.confidence)}; of costs by betting, of returns Student's")
            )
        if self.resources is not None:
            rows.append(("learned from", str(self.resources)))
        return rows

    def __str__(self) -> str:
        return "\n".join([self._heading(), *(f"  {name:20}{value}" for name, value in self._rows())])

    def _repr_html_(self) -> str:
        return html_table(self._heading(), ("", "value"), self._rows())


@checked
def evaluate(
    policy: PolicyLike,
    task: Task | FiniteMDP | GenerativeModel,
    costs: Costs | ArrayLike | CostFunction | None = None,
    *,
    expert: PolicyLike | None = None,
    expert_features: ArrayLike | None = None,
    true_cost: Any = None,
    cost_class: CostClass | None = None,
    discount: float | None = None,
    deterministic: bool = False,
    resources: Resources | None = None,
    n_rollouts: int | None = None,
    horizon: int | None = None,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
    engine: Engine | None = None,
) -> Evaluation:
    """Evaluate ``policy``: exactly where the model is known, else by rollouts.

    Parameters
    ----------
    policy
        An (S, A) array, a policy of this package, a policy or algorithm of Stable-Baselines3, or a function.
    task
        What the policy is for. A `FiniteMDP` or a `GenerativeModel` will do, with ``costs`` and what else is known:
        ``expert``, ``true_cost``, ``cost_class`` and, for a generative model, the ``discount``, as for `Task`.
    expert_features
        (n_c,) the expert's expected costs, to compare with where its policy is not known. If not given, those
        estimated from the demonstrations of the task.
    deterministic
        Take the most probable action instead of drawing one. Policies made from occupancy measures are stochastic, and
        making them deterministic changes them.
    resources
        What learning the policy took; kept in the result.
    n_rollouts, horizon, confidence, rng
        For rollouts only: number of rollouts, see `Task.expected_costs`; their length (by default until 0.1 % of the
        discounted weight is left); joint confidence of the intervals; the source of randomness, from which rollouts
        have a stream of their own: they are none that were played with the same seed for demonstrations or learning.
    engine
        Spreads rollouts over processes or machines, with the same result whatever their number: `ProcessEngine` or
        `RayEngine` of `lfd_gym.engines`.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym import FiniteMDP, evaluate
    >>> mdp = FiniteMDP(np.array([[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.0, 1.0]]]), [1.0, 0.0], discount=0.5)
    >>> costs = np.array([[1.0], [1.0], [0.0], [0.0]])
    >>> expert = mdp.optimal_policy(costs[:, 0])
    >>> evaluation = evaluate(np.full((2, 2), 0.5), mdp, costs, expert=expert, true_cost=costs[:, 0])
    >>> round(evaluation.true_gap, 4), evaluation.agreement, evaluation.exact
    (0.1587, 0.5, True)
    """
    if not isinstance(task, Task):
        task = _task(task, costs, cost_class, discount, true_cost, expert)
    elif any(given is not None for given in (costs, expert, true_cost, cost_class, discount)):
        raise ValueError("costs, expert, true_cost, cost_class and discount are those of the task: give them to it")
    if task.expert is not None and expert_features is not None:
        raise ValueError("give either expert or expert_features, not both")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence}")
    if n_rollouts is not None and n_rollouts < 2:
        raise ValueError(f"n_rollouts must be at least 2, got {n_rollouts}")
    rng = None if rng is None else own_stream(check_generator("rng", rng), "evaluate")
    if task.costs is None and task.true_cost is None:
        raise ValueError("costs must be given: the environment has none of its own, and there are no demonstrations")

    def assess(rolled: PolicyLike, greedy: bool) -> tuple[CostEstimate, Returns | None]:
        found, gained = task.assess(
            rolled,
            rng=rng,
            n_rollouts=n_rollouts,
            horizon=horizon,
            deterministic=greedy,
            with_true_cost=True,
            engine=engine,
        )
        if gained is None and not found.exact:
            assert rng is not None
            gained = played_returns(task, rolled, rng, n_rollouts, greedy)
        return found, gained

    ours, gained = assess(policy, deterministic)
    n_costs = ours.values.size - (task.true_cost is not None)
    random: tuple[CostEstimate, Returns | None] | None = None
    theirs: tuple[CostEstimate | None, Returns | None]
    to_compare = task.expert is not None and task.true_cost is not None
    if to_compare or (gained is not None and _has_uniform(task.action_space)):
        random = assess(UniformPolicy(task.action_space), False)
    if task.expert is not None:
        theirs = assess(task.expert, False)
    else:
        theirs = _expert_features(task, expert_features, n_costs), None
    evaluation = _compare(task, ours, theirs[0], random[0] if random and to_compare else None, n_costs, confidence)
    evaluation |= reward_units(task, evaluation, gained, theirs[1], random[1] if random else None, confidence)
    one_policy = deterministic or as_policy(policy).has_probabilities  # a mixture is several
    if task.expert is not None and ours.exact and one_policy:
        evaluation |= _compare_occupancies(task, policy, deterministic)
    return Evaluation(deterministic=deterministic, resources=resources, criterion=str(task.criterion), **evaluation)


def _has_uniform(space: gym.Space[Any]) -> bool:
    return not isinstance(space, gym.spaces.Box) or space.is_bounded()


def _task(
    model: FiniteMDP | GenerativeModel,
    costs: Costs | ArrayLike | CostFunction | None,
    cost_class: CostClass | None,
    discount: float | None,
    true_cost: Any,
    expert: PolicyLike | None,
) -> Task:
    n_actions = getattr(getattr(model, "action_space", model), "n", getattr(model, "n_actions", None))
    given = None if costs is None else as_costs("costs", costs, n_actions, cost_class)
    return Task(model, discount=discount, costs=given, true_cost=true_cost, expert=expert)  # type: ignore[arg-type]


def _expert_features(task: Task, given: ArrayLike | None, n_costs: int) -> CostEstimate | None:
    if given is not None:
        return CostEstimate.exactly(finite_array("expert_features", given, (n_costs,)), task.criterion)
    return None if task.demonstrations is None or task.costs is None else task.expert_features()


def _compare(
    task: Task,
    ours: CostEstimate,
    theirs: CostEstimate | None,
    random: CostEstimate | None,
    n_costs: int,
    confidence: float,
) -> dict[str, Any]:
    """Return what expected costs tell; the true cost is the last one, where it is known."""
    unsure = [part for part in (ours, theirs) if part is not None and not part.exact]
    by_norm = task.costs is not None and task.costs.table is None and not task.costs.weights.nonnegative
    doubt = (1 - confidence) / (2 if by_norm else 1)  # half of it is for the distance
    share = doubt / max(1, sum(part.values.size for part in unsure) + (random is not None))
    box = ours.intervals(1 - share)
    known: dict[str, Any] = {"expected_costs": ours.values[:n_costs]}
    ranges: dict[str, Any] = {"expected_costs": box[:n_costs]}
    if task.true_cost is not None:
        known["true_cost"] = float(ours.values[-1])
    if theirs is not None:
        known["expert_costs"] = theirs.values[:n_costs]
        if task.expert is None and not theirs.exact:
            known["n_expert_demonstrations"] = theirs.n_trajectories
        # Costs that were chosen from the demonstrations do not tell how far these are from the expert.
        fixed = task.costs is not None and task.costs.chosen_from_demonstrations and task.expert is None
        known["about"] = "demonstrations" if fixed and not theirs.exact else "expert"
        expert_box = np.stack([theirs.values, theirs.values], axis=1) if fixed else theirs.intervals(1 - share)
        if task.costs is not None:
            weights: ConvexSet = task.costs.weights
            distance = float(weights.support(ours.values[:n_costs] - theirs.values[:n_costs]))
            known["cost_distance"] = distance
            if by_norm:
                parts = [part.first(n_costs) for part in unsure if not (fixed and part is theirs)]
                half = sum(part.class_radius(task.costs, doubt / len(parts)) for part in parts)
                largest = task.costs.largest_distance
                least = 0.0 if isinstance(weights, SymmetricSet) else -largest
                ranges["cost_distance"] = max(least, distance - half), min(distance + half, largest)
            else:
                middle, radii = _middle(box[:n_costs], expert_box[:n_costs])
                ranges["cost_distance"] = weights.smallest_within(middle, radii), weights.largest_within(middle, radii)
        if task.true_cost is not None and theirs.values.size > n_costs:
            known["expert_true_cost"] = float(theirs.values[-1])
            known["true_gap"] = float(ours.values[-1] - theirs.values[-1])
            ranges["true_gap"] = (float(box[-1, 0] - expert_box[-1, 1]), float(box[-1, 1] - expert_box[-1, 0]))
            if random is not None:
                numbers = [float(part.values[-1]) for part in (ours, theirs, random)]
                known["normalised_score"] = score(*numbers)
                ranges["normalised_score"] = score_range(box[-1], expert_box[-1], random.intervals(1 - share)[-1])
    if not ours.exact:
        known["sampling"] = Sampling(ours.n_trajectories, ours.horizon or 0, confidence, **ranges)
    return known


def _middle(ours: FloatArray, theirs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the middle and half the width of the intervals of the difference of two boxes, (n, 2) each."""
    low, high = ours[:, 0] - theirs[:, 1], ours[:, 1] - theirs[:, 0]
    return (low + high) / 2, (high - low) / 2


def _compare_occupancies(task: Task, policy: PolicyLike, deterministic: bool) -> dict[str, Any]:
    mdp = task.dynamics
    assert mdp is not None
    table = policy_table(policy, mdp, deterministic=deterministic)
    expert_table = policy_table(task.expert, mdp)  # type: ignore[arg-type]
    occupancy, expert_occupancy = task.occupancy(table), task.occupancy(expert_table)
    return {
        "occupancy_distance": _occupancy_distance(mdp, occupancy, expert_occupancy),
        "agreement": _agreement(mdp, table, expert_table, expert_occupancy.sum(axis=1)),
    }


def _occupancy_distance(mdp: FiniteDynamics, one: FloatArray, other: FloatArray) -> float:
    difference = one - other
    if mdp.absorbing_state is not None:  # which action is "taken" there means nothing
        difference[mdp.absorbing_state] = difference[mdp.absorbing_state].sum() / mdp.n_actions
    return min(1.0, float(0.5 * np.abs(difference).sum()))  # two sums of one, up to rounding


def _agreement(mdp: FiniteDynamics, one: FloatArray, other: FloatArray, weights: FloatArray) -> float | None:
    acting = np.arange(mdp.n_states) != mdp.absorbing_state
    weights = weights[acting]
    if weights.sum() <= 0:
        return None
    # Σ_a min(p, q) = 1 − ½Σ_a|p − q|. Both sums below add up in the same order, so the quotient is at most 1.
    apart = np.minimum(0.5 * np.abs(one - other)[acting].sum(axis=1), 1.0)
    return float(1 - (weights * apart).sum() / weights.sum())


def _ends(low: float, high: float) -> str:
    """Return the ends of an interval, rounded outwards."""
    return f"{float(at_least(low, 4)):+.4f}, {float(at_most(high, 4)):+.4f}"


def _plain(value: Any) -> Any:
    """Turn nested results into JSON values."""
    if isinstance(value, Evaluation | Sampling | Resources):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value
