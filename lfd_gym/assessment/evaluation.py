"""One evaluation for every policy.

On a known model (`FiniteMDP`) everything is exact: the policy is asked once for every state, and expected costs follow
from linear systems. On a generative model they are estimated by discounted rollouts, with intervals that hold together.

The first cost feature is the true cost. With ρ the expected costs of the policy, ρ_E those of the expert and ρ_U those
of the uniformly random policy:

- true gap: ρ_true − ρ_E,true (negative: better than the expert);
- 𝒞-distance: max over the cost class of ⟨w, ρ − ρ_E⟩;
- normalised score: (ρ_true − ρ_U,true) / (ρ_E,true − ρ_U,true): 0 for random, 1 for the expert;
- occupancy distance: total variation ½‖μ − μ_E‖₁;
- agreement: Σ_x d_E(x) Σ_a min(π(a|x), π_E(a|x)) over the states in which actions matter; for a deterministic expert
  the share of the expert's (discounted) time in which the policy does the same.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from lfd_gym.costs.costs import (
    CostClass,
    check_cost_class,
    check_cost_features,
    check_model_costs,
    check_sampled_costs,
    cost_distance,
)
from lfd_gym.demonstrations.rollout_estimates import CostRows, RolloutEstimate, estimate_costs, horizon_for
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.policies.policies import Policy, policy_table
from lfd_gym.resources import Resources
from lfd_gym.validation import FloatArray, discount_factor, finite_array

#: What is left of the discounted sum at the default horizon of rollouts.
_DEFAULT_TAIL = 1e-3


@dataclass(frozen=True)
class Sampling:
    """How an evaluation by rollouts was made, and how sure it is.

    Attributes
    ----------
    n_rollouts, horizon
        Number and length of the rollouts of each policy.
    confidence
        All intervals hold together with this probability (Student's intervals, Bonferroni's correction).
    expected_costs
        (n_c, 2).
    true_gap, cost_distance, normalised_score
        Pairs, or None if not known; the score also if the expert's and the random policy's costs cannot be told apart.
    """

    n_rollouts: int
    horizon: int
    confidence: float
    expected_costs: FloatArray
    true_gap: tuple[float, float] | None = None
    cost_distance: tuple[float, float] | None = None
    normalised_score: tuple[float, float] | None = None


@dataclass(frozen=True)
class Evaluation:
    """How good a policy is; see the module for the definitions. What cannot be known is None.

    Attributes
    ----------
    expected_costs
        (n_c,) ρ of every cost feature, normalised by (1−γ).
    deterministic
        Whether the most probable actions were taken, instead of drawing them.
    expert_costs
        (n_c,) ρ of the expert.
    true_gap, cost_distance, normalised_score, occupancy_distance, agreement
        Compared with the expert.
    sampling
        None if the evaluation is exact.
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
    sampling: Sampling | None = None
    resources: Resources | None = None

    @property
    def exact(self) -> bool:
        """Whether there is no sampling error."""
        return self.sampling is None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        plain: dict[str, Any] = _plain(self)
        return plain

    def __str__(self) -> str:
        kind = "exact" if self.sampling is None else f"{self.sampling.n_rollouts} rollouts"
        lines = [f"evaluation ({kind}, {'deterministic' if self.deterministic else 'stochastic'})"]
        lines.append(f"  {'expected costs':20}" + " ".join(f"{cost:+.4f}" for cost in self.expected_costs))
        for name in ("true_gap", "cost_distance", "normalised_score", "occupancy_distance", "agreement"):
            value = getattr(self, name)
            if value is None:
                continue
            interval = getattr(self.sampling, name, None)
            sure = "" if interval is None else f"  [{interval[0]:+.4f}, {interval[1]:+.4f}]"
            lines.append(f"  {name.replace('_', ' '):20}{value:+.4f}{sure}")
        if self.resources is not None:
            lines.append(f"  {'learned from':20}{self.resources}")
        return "\n".join(lines)


def evaluate(
    policy: Policy,
    model: FiniteMDP | GenerativeModel,
    cost_features: ArrayLike | CostRows,
    *,
    expert: Policy | None = None,
    expert_features: ArrayLike | None = None,
    cost_class: CostClass = "simplex",
    deterministic: bool = False,
    resources: Resources | None = None,
    discount: float | None = None,
    n_rollouts: int = 1000,
    horizon: int | None = None,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Evaluation:
    """Evaluate ``policy``: exactly on a `FiniteMDP`, by rollouts on any other generative model.

    Parameters
    ----------
    policy
        An (S, A) array, a policy of this package, or a policy or algorithm of Stable-Baselines3.
    model
        A `FiniteMDP`, or a `GenerativeModel`.
    cost_features
        (S·A, n_c) with entries in [−1, 1]; or, on a generative model, a function (observations, actions) → (n, n_c).
        The first is the true cost.
    expert
        The expert's policy, to compare with. If only its expected costs are known, give
        ``expert_features`` instead.
    cost_class
        For the 𝒞-distance.
    deterministic
        Take the most probable action instead of drawing one. Policies made from occupancy measures are stochastic, and
        making them deterministic changes them.
    resources
        What learning the policy took; kept in the result.
    discount, n_rollouts, horizon, confidence, rng
        For rollouts only: γ; number of rollouts; their length (by default until 0.1 % of the discounted weight is
        left); joint confidence of the intervals; the source of randomness.

    Examples
    --------
    >>> import numpy as np
    >>> from lfd_gym import FiniteMDP, evaluate
    >>> mdp = FiniteMDP(np.array([[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.0, 1.0]]]), [1.0, 0.0], discount=0.5)
    >>> costs = np.array([[1.0], [1.0], [0.0], [0.0]])
    >>> expert = mdp.optimal_policy(costs[:, 0])
    >>> evaluation = evaluate(np.full((2, 2), 0.5), mdp, costs, expert=expert)
    >>> round(evaluation.true_gap, 4), evaluation.agreement, evaluation.exact
    (0.1587, 0.5, True)
    """
    check_cost_class("cost_class", cost_class)
    if expert is not None and expert_features is not None:
        raise ValueError("give either expert or expert_features, not both")
    if isinstance(model, FiniteMDP):
        return _evaluate_exactly(
            policy, model, cost_features, expert, expert_features, cost_class, deterministic, resources
        )
    if discount is None or rng is None:
        raise ValueError("evaluation by rollouts needs discount and rng")
    if n_rollouts < 2 or not 0 < confidence < 1:
        raise ValueError(f"n_rollouts must be at least 2 and confidence in (0, 1), got {n_rollouts} and {confidence}")
    gamma = discount_factor("discount", discount)
    length = horizon_for(gamma, _DEFAULT_TAIL) if horizon is None else horizon
    rows = _cost_rows(cost_features, model)

    def estimate(rolled: Policy, mode: bool) -> RolloutEstimate:
        return estimate_costs(
            rolled, model, rows, gamma, n_rollouts=n_rollouts, horizon=length, deterministic=mode, rng=rng
        )

    ours = estimate(policy, deterministic)
    random = estimate(_UniformPolicy(model.action_space, rng), False)
    theirs: RolloutEstimate | FloatArray | None = None
    if expert is not None:
        theirs = estimate(expert, False)
    elif expert_features is not None:
        theirs = finite_array("expert_features", expert_features, (ours.means.size,))
    return _from_rollouts(ours, random, theirs, cost_class, confidence, deterministic, resources, length)


def _evaluate_exactly(
    policy: Policy,
    mdp: FiniteMDP,
    cost_features: ArrayLike | CostRows,
    expert: Policy | None,
    expert_features: ArrayLike | None,
    cost_class: CostClass,
    deterministic: bool,
    resources: Resources | None,
) -> Evaluation:
    if callable(cost_features):
        raise ValueError("cost_features must be an (S*A, n_c) array when the model is a FiniteMDP")
    costs = check_model_costs("cost_features", cost_features, mdp)
    table = policy_table(policy, mdp, deterministic=deterministic)
    occupancy = mdp.occupancy(table)
    ours = costs.T @ occupancy.ravel()
    known: dict[str, Any] = {}
    theirs: FloatArray | None = None
    if expert is not None:
        expert_table = policy_table(expert, mdp)
        expert_occupancy = mdp.occupancy(expert_table)
        theirs = costs.T @ expert_occupancy.ravel()
        known["occupancy_distance"] = _occupancy_distance(mdp, occupancy, expert_occupancy)
        known["agreement"] = _agreement(mdp, table, expert_table, expert_occupancy.sum(axis=1))
    elif expert_features is not None:
        theirs = finite_array("expert_features", expert_features, (costs.shape[1],))
    if theirs is not None:
        uniform = np.full((mdp.n_states, mdp.n_actions), 1 / mdp.n_actions)
        random = float(costs[:, 0] @ mdp.occupancy(uniform).ravel())
        known["expert_costs"] = theirs
        known["true_gap"] = float(ours[0] - theirs[0])
        known["cost_distance"] = cost_distance(ours - theirs, cost_class)
        known["normalised_score"] = _score(float(ours[0]), float(theirs[0]), random)
    return Evaluation(ours, deterministic, resources=resources, **known)


def _score(ours: float, theirs: float, random: float) -> float | None:
    """Return the normalised score, or None if the expert is no better or worse than random, up to rounding."""
    scale = theirs - random
    return (ours - random) / scale if abs(scale) > 1e-12 else None


def _occupancy_distance(mdp: FiniteMDP, one: FloatArray, other: FloatArray) -> float:
    difference = one - other
    if mdp.absorbing_state is not None:  # which action is "taken" there means nothing
        difference[mdp.absorbing_state] = difference[mdp.absorbing_state].sum() / mdp.n_actions
    return min(1.0, float(0.5 * np.abs(difference).sum()))  # two sums of one, up to rounding


def _agreement(mdp: FiniteMDP, one: FloatArray, other: FloatArray, weights: FloatArray) -> float | None:
    acting = np.arange(mdp.n_states) != mdp.absorbing_state
    weights = weights[acting]
    if weights.sum() <= 0:
        return None
    # Σ_a min(p, q) = 1 − ½Σ_a|p − q|. Both sums below add up in the same order, so the quotient is at most 1.
    apart = np.minimum(0.5 * np.abs(one - other)[acting].sum(axis=1), 1.0)
    return float(1 - (weights * apart).sum() / weights.sum())


# -- rollouts ---------------------------------------------------------------------------------------------------------


class _UniformPolicy:
    """The uniformly random policy of a space of actions."""

    def __init__(self, action_space: Any, rng: np.random.Generator) -> None:
        self._space = action_space
        self._rng = rng

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        n = len(observation)
        if isinstance(self._space, gym.spaces.Discrete):
            return self._rng.integers(int(self._space.n), size=n), None
        if isinstance(self._space, gym.spaces.Box) and self._space.is_bounded():
            return self._rng.uniform(self._space.low, self._space.high, (n, *self._space.shape)), None
        raise ValueError(f"there is no uniformly random policy over {self._space}")


def _cost_rows(cost_features: ArrayLike | CostRows, model: GenerativeModel) -> CostRows:
    if callable(cost_features):
        return cost_features
    n_states, n_actions = getattr(model.state_space, "n", None), getattr(model.action_space, "n", None)
    if n_states is None or n_actions is None:
        raise ValueError(
            "cost_features must be a function of (observations, actions) when states are not finitely many"
        )
    features = check_cost_features("cost_features", cost_features, int(n_states) * int(n_actions))
    check_sampled_costs("cost_features", features, model)
    return lambda observations, actions: features[observations * int(n_actions) + actions]


def _from_rollouts(
    ours: RolloutEstimate,
    random: RolloutEstimate,
    theirs: RolloutEstimate | FloatArray | None,
    cost_class: CostClass,
    confidence: float,
    deterministic: bool,
    resources: Resources | None,
    horizon: int,
) -> Evaluation:
    n_costs = ours.means.size
    n_means = n_costs * (2 if isinstance(theirs, RolloutEstimate) else 1) + 1
    level = 1 - (1 - confidence) / n_means
    box = ours.intervals(level)
    sampling = Sampling(len(ours.returns), horizon, confidence, expected_costs=box)
    if theirs is None:
        return Evaluation(ours.means, deterministic, sampling=sampling, resources=resources)
    expert = theirs.means if isinstance(theirs, RolloutEstimate) else theirs
    expert_box = theirs.intervals(level) if isinstance(theirs, RolloutEstimate) else np.stack([theirs, theirs], axis=1)
    difference = np.stack([box[:, 0] - expert_box[:, 1], box[:, 1] - expert_box[:, 0]], axis=1)
    random_box = random.intervals(level)[0]
    sampling = replace(
        sampling,
        true_gap=(float(difference[0, 0]), float(difference[0, 1])),
        cost_distance=_distance_range(difference, cost_class),
        normalised_score=_score_range(box[0], expert_box[0], random_box),
    )
    return Evaluation(
        ours.means,
        deterministic,
        expert_costs=expert,
        true_gap=float(ours.means[0] - expert[0]),
        cost_distance=cost_distance(ours.means - expert, cost_class),
        normalised_score=_score(float(ours.means[0]), float(expert[0]), float(random.means[0])),
        sampling=sampling,
        resources=resources,
    )


def _distance_range(difference: FloatArray, cost_class: CostClass) -> tuple[float, float]:
    """Return the smallest and largest 𝒞-distance over a box of differences, (n_c, 2)."""
    if cost_class == "simplex":
        return float(difference[:, 0].max()), float(difference[:, 1].max())
    nearest = np.maximum(0.0, np.maximum(difference[:, 0], -difference[:, 1]))
    return float(np.linalg.norm(nearest)), float(np.linalg.norm(np.abs(difference).max(axis=1)))


def _score_range(ours: FloatArray, theirs: FloatArray, random: FloatArray) -> tuple[float, float] | None:
    """Return the range of the score over three intervals: it is monotone in each argument, so corners suffice."""
    if theirs[0] - random[1] <= 0 <= theirs[1] - random[0]:
        return None
    corners = [(x - r) / (e - r) for x, e, r in itertools.product(ours, theirs, random)]
    return float(min(corners)), float(max(corners))


def _plain(value: Any) -> Any:
    """Turn nested results into JSON values."""
    if isinstance(value, Evaluation | Sampling | Resources):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value
