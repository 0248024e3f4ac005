"""Costs that environments with finitely many states come with, or that follow from their rewards."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from lfd_gym.arguments import checked
from lfd_gym.costs.costs import Costs, normalise_costs
from lfd_gym.envs.gridworld import random_state_costs
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.model.wrappers import peel, unwrap_states
from lfd_gym.validation import FloatArray

#: Costs beside that of the reward, for environments that bring nothing else.
_N_DISTRACTORS = 4


@checked
def reward_cost(env: gym.Env[Any, Any]) -> FloatArray:
    """Return the (S·A,) expected cost of each pair, −E[reward], of a tabular environment.

    The pairs are those of ``FiniteMDP.from_env(env, …)``: where episodes can end, the last A entries, all zero, belong
    to the absorbing state. The scale is the environment's own; `lfd_gym.normalise_costs` brings costs to [−1, 1].

    Examples
    --------
    >>> import gymnasium as gym
    >>> from lfd_gym import FiniteMDP, reward_cost
    >>> env = gym.make("FrozenLake-v1", is_slippery=False)
    >>> mdp = FiniteMDP.from_env(env, discount=0.9)
    >>> cost = reward_cost(env)
    >>> cost.shape == (mdp.n_states * mdp.n_actions,)
    True
    >>> round(float(mdp.plan(cost).values[0]), 6)  # the goal is six moves away: −(1 − γ) γ⁵
    -0.059049
    """
    source: Any = unwrap_states(env)
    if hasattr(source, "transitions") and hasattr(source, "cost_features"):
        return np.array(source.cost_features[:, 0])
    if not hasattr(source, "P"):
        raise TypeError(
            f"env {env} has no table of rewards: a tabular environment offers `cost_features` with the true cost in "
            "column 0 (as lfd_gym's environments do) or `P` (as Gymnasium's toy_text does)"
        )
    table = source.P
    n_actions = len(table[0])
    costs = [
        0.0 - sum(probability * reward for probability, _, reward, _ in table[state][action])
        for state in range(len(table))
        for action in range(n_actions)
    ]
    ends = any(end for actions in table.values() for outcomes in actions.values() for *_, end in outcomes)
    return np.array(costs + [0.0] * (n_actions * ends))


def true_cost(env: gym.Env[Any, Any]) -> FloatArray | None:
    """Return `reward_cost` scaled to [−1, 1], or None if the environment as wrapped has no table of rewards."""
    if not FiniteDynamics.known_of(env):
        return None
    source: Any = env.unwrapped
    has_rewards = hasattr(source, "P") or (hasattr(source, "transitions") and hasattr(source, "cost_features"))
    return normalise_costs(reward_cost(env)) if has_rewards else None


def own_costs(env: gym.Env[Any, Any]) -> Costs | FloatArray | None:
    """Return the costs that an environment, with its wrappers, comes with, or None if it has none.

    The environment's ``costs``, if they are `Costs`, or its ``cost_features``, (S·A, n_c). A tabular environment that
    brings a reward only gives its cost, scaled to [−1, 1], followed by four costs of states drawn like those of the
    paper's experiment and zero at the end: whoever learns from demonstrations is not told which of them is meant.
    """
    try:
        source = unwrap_states(env)
    except TypeError:
        return None
    if not FiniteDynamics.known_of(env) and peel(env)[0]:  # functions of other observations than those of env
        return None
    if isinstance(getattr(source, "costs", None), Costs):
        return source.costs  # type: ignore[no-any-return]
    if hasattr(source, "cost_features"):
        return np.asarray(source.cost_features)
    if not FiniteDynamics.known_of(env):
        return None
    dynamics = FiniteDynamics.from_env(env)
    others = random_state_costs(dynamics.n_states, _N_DISTRACTORS, np.random.default_rng(0)).copy()
    if dynamics.absorbing_state is not None:
        others[dynamics.absorbing_state] = 0.0
    return np.hstack([normalise_costs(reward_cost(env)[:, None]), np.repeat(others, dynamics.n_actions, axis=0)])
