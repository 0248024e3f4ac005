"""The certificate that assumes nothing: for any policy, whoever learned it and however."""

from __future__ import annotations

import numpy as np

from lfd_gym.assessment.certificate import Certificate, largest_distance
from lfd_gym.costs.costs import CostClass, check_cost_class, check_model_costs, check_sampled_costs, cost_distance
from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.estimation import FeatureExpectations, feature_expectations
from lfd_gym.demonstrations.rollout_estimates import CostRows, horizon_for
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.model.mdp import FiniteMDP
from lfd_gym.policies.policies import Policy, policy_table
from lfd_gym.validation import FloatArray, check_delta


def certify_policy(
    policy: Policy,
    model: FiniteMDP | GenerativeModel,
    cost_features: FloatArray | CostRows,
    expert: FeatureExpectations,
    *,
    delta: float,
    rng: np.random.Generator,
    cost_class: CostClass = "simplex",
    deterministic: bool = False,
    n_rollouts: int = 10_000,
) -> Certificate:
    """Bound δ_C(π, π_E) from the demonstrations and, if the model is not known, fresh rollouts of the policy.

    Parameters
    ----------
    policy
        Anything that `lfd_gym.evaluate` takes.
    model
        A `FiniteMDP`: the policy's expected costs are exact, only the expert's are estimates. Or a `GenerativeModel`.
    cost_features
        As for `lfd_gym.evaluate`.
    expert
        Estimated from the demonstrations, with the same costs and, if the model is known, its discount.
    delta
        Probability of failure.
    rng
        Drives the rollouts; what it draws must not have been used in training. Not used on a known model.
    cost_class
        The class of costs.
    deterministic
        Whether it is the policy's most probable actions that are certified.
    n_rollouts
        On a generative model.

    Examples
    --------
    >>> import gymnasium as gym, numpy as np, lfd_gym as lfd
    >>> rng = np.random.default_rng(0)
    >>> env = gym.make("lfd_gym/StochasticGridworld-v0", size=5)
    >>> mdp, costs = lfd.FiniteMDP.from_env(env, discount=0.9), env.unwrapped.cost_features
    >>> demos = lfd.collect(env, mdp.optimal_policy(costs[:, 0]), 1000, 100, rng)
    >>> expert = lfd.feature_expectations(demos, costs, 0.9)
    >>> certificate = lfd.certify_policy(np.full((25, 4), 0.25), mdp, costs, expert, delta=0.05, rng=rng)
    >>> 0 < certificate.cost_distance < certificate.cost_distance_bound
    True
    """
    check_delta(delta)
    check_cost_class("cost_class", cost_class)
    if isinstance(model, FiniteMDP):
        if callable(cost_features):
            raise ValueError("cost_features must be an (S*A, n_c) array when the model is a FiniteMDP")
        if model.discount != expert.discount:
            raise ValueError(
                f"expert was estimated with discount {expert.discount}, but the model's is {model.discount}"
            )
        costs = check_model_costs("cost_features", cost_features, model)
        _check_n_costs(expert, costs.shape[1])
        occupancy = model.occupancy(policy_table(policy, model, deterministic=deterministic))
        difference = costs.T @ occupancy.ravel() - expert.values
        radii = expert.radius(delta)
        evidence = f"known model, {expert.n_trajectories} demonstrations"
    else:
        if not callable(cost_features):
            check_sampled_costs("cost_features", cost_features, model)
        rollouts = collect(
            model, policy, n_rollouts, horizon_for(expert.discount, 1e-3), rng, deterministic=deterministic
        )
        estimate = feature_expectations(rollouts, cost_features, expert.discount)
        _check_n_costs(expert, estimate.values.size)
        difference = estimate.values - expert.values
        radii = expert.radius(delta / 2) + estimate.radius(delta / 2)
        evidence = f"{n_rollouts} rollouts, {expert.n_trajectories} demonstrations"
    return Certificate(
        delta=delta,
        evidence=evidence,
        cost_distance=cost_distance(difference, cost_class),
        cost_distance_bound=largest_distance(difference, radii, cost_class),
    )


def _check_n_costs(expert: FeatureExpectations, n_costs: int) -> None:
    if expert.values.shape != (n_costs,):
        raise ValueError(f"expert must have {n_costs} values, one for each of cost_features, got {expert.values.size}")
