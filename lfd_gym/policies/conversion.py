"""Whatever can act, turned into a `Policy`.

Wherever a policy is asked for, this is accepted:

- a `Policy`;
- an (S, A) array whose rows are distributions over actions;
- an object with ``probabilities(observations) -> (n, A)``;
- a policy or algorithm of Stable-Baselines3, or any object with its ``predict``, recurrent ones too. The policy of an
  algorithm is its network: that of DQN is the greedy one, without the random actions of its training. This module does
  not import torch;
- a function from a batch of observations to a batch of actions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.arguments import checked
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.model.mdp import FiniteMDP, one_hot
from lfd_gym.policies.networks import network_policy
from lfd_gym.policies.policy import FinitePolicy, Policy
from lfd_gym.policies.predictors import Predictor, PredictorPolicy
from lfd_gym.policies.tables import GreedyPolicy, TablePolicy
from lfd_gym.validation import FloatArray, IntArray, policy_array

#: How alike the probabilities of one and the same policy are that is asked twice.
_ALIKE = 1e-6


@runtime_checkable
class Stated(Protocol):
    """A policy over finitely many actions that says their probabilities."""

    def probabilities(self, observations: Any) -> Any:
        """Return the (n, A) distributions over actions for n observations."""
        ...


#: Whatever `as_policy` accepts.
PolicyLike: TypeAlias = Policy | FloatArray | Stated | Predictor | Callable[[NDArray[Any]], Any]


@checked
def as_policy(policy: PolicyLike, *, deterministic: bool = False) -> Policy:
    """Return ``policy`` as a `Policy`, see the module; if ``deterministic``, one that takes its best actions."""
    found = _wrapped(policy)
    return GreedyPolicy(found) if deterministic and not isinstance(found, GreedyPolicy) else found


def _wrapped(policy: Any) -> Policy:
    if isinstance(policy, Policy):
        return policy
    if isinstance(getattr(policy, "inner", None), Policy):  # ours in the shape of Stable-Baselines3
        return policy.inner  # type: ignore[no-any-return]
    if isinstance(policy, np.ndarray):
        return TablePolicy(policy)
    if isinstance(policy, Stated) and not isinstance(policy, type):
        return _StatedPolicy(policy)
    if isinstance(policy, Predictor) and not isinstance(policy, type):
        return network_policy(policy) or PredictorPolicy(policy)
    if callable(policy) and not isinstance(policy, type):
        return FunctionPolicy(policy)
    found = f"the class {policy.__name__}" if isinstance(policy, type) else type(policy).__name__
    raise TypeError(
        "policy must be an (S, A) array, have `probabilities` or `predict`, or be a function of observations; "
        f"got {found}"
    )


class FunctionPolicy(Policy):
    """A function from a batch of observations to a batch of actions."""

    def __init__(self, function: Callable[[NDArray[Any]], Any]) -> None:
        self.function = function

    def sample(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Call the function; it draws, if it does, with a generator of its own."""
        actions = self.function(observations)
        if isinstance(actions, tuple) and len(actions) == 2 and actions[1] is None:
            raise ValueError(
                "policy must return actions alone, got a pair, as `predict` of Stable-Baselines3 returns: "
                "pass the model itself, or return the first of the pair"
            )
        return np.asarray(actions)

    def greedy(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Refuse: a function decides for itself."""
        raise ValueError("deterministic=True is for policies that draw; a function decides for itself")

    def __repr__(self) -> str:
        return f"FunctionPolicy({getattr(self.function, '__name__', type(self.function).__name__)})"


class _StatedPolicy(FinitePolicy):
    """An object that says its probabilities."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.observation_space = getattr(source, "observation_space", None)
        self.action_space = getattr(source, "action_space", None)

    def probabilities(self, observations: NDArray[Any]) -> FloatArray:
        rows = np.asarray(self.source.probabilities(observations), dtype=np.float64)
        return policy_array("probabilities of the policy", rows, len(observations), rows.shape[-1])

    def __repr__(self) -> str:
        return f"policy({self.source})"


def policy_table(
    policy: PolicyLike, dynamics: FiniteDynamics | FiniteMDP, *, deterministic: bool = False
) -> FloatArray:
    """Return ``policy`` as an (S, A) array, by asking it for every state; others than ours twice, as they may remember.

    A policy for the environment knows nothing of the absorbing state that `FiniteDynamics.from_env` appends; no action
    matters there, and its row is uniform.

    Parameters
    ----------
    policy
        See the module. A table may leave out the last row if that is the absorbing state.
    dynamics
        Its states are the observations, as integers or, for a policy over a `Box`, as one-hot vectors.
    deterministic
        Whether to take the most probable action instead of drawing one.
    """
    n_states, n_actions = dynamics.n_states, dynamics.n_actions
    visible = n_states - (dynamics.absorbing_state == n_states - 1)
    found = as_policy(policy, deterministic=deterministic)
    base = found.policy if isinstance(found, GreedyPolicy) else found
    if isinstance(base, TablePolicy) and base.table.shape != (visible, n_actions):
        table = policy_array("policy", base.table, n_states, n_actions)
        found = as_policy(TablePolicy(table[:visible]), deterministic=base is not found)
    if not (found.has_probabilities or deterministic):
        raise ValueError(
            f"policy {found} does not say its action probabilities: pass deterministic=True to take its "
            "deterministic actions, or judge it by rollouts"
        )
    states = _state_observations(found, visible)
    rows = _rows(found, states, n_actions)
    again = _rows(found, states, n_actions) if isinstance(base, _StatedPolicy | PredictorPolicy) else rows
    if not np.allclose(rows, again, rtol=0, atol=_ALIKE):
        state = int(np.abs(rows - again).sum(axis=1).argmax())
        raise ValueError(
            f"policy {found} was asked twice and does not do the same in state {state}: one that remembers, or draws "
            "where it should not, has no table. Judge it by rollouts, in a TabularModel of the environment"
        )
    full = np.full((n_states, n_actions), 1 / n_actions)
    full[:visible] = rows
    return full


def _rows(policy: Policy, states: NDArray[Any], n_actions: int) -> FloatArray:
    """Ask for the distributions over actions in every state, or for the best actions."""
    if policy.has_probabilities:
        return policy_array("probabilities of the policy", policy.probabilities(states), len(states), n_actions)
    return one_hot(_action_indices(policy.greedy(states), n_actions), n_actions)


def _state_observations(policy: Policy, n_states: int) -> NDArray[Any]:
    space = policy.observation_space
    if isinstance(space, gym.spaces.Box):
        if len(space.shape) != 1 or space.shape[0] < n_states:
            raise ValueError(f"policy observes {space}, which cannot be one-hot vectors of {n_states} states")
        return np.eye(n_states, space.shape[0], dtype=space.dtype)
    if isinstance(space, gym.spaces.Discrete) and space.n < n_states:
        raise ValueError(f"policy observes {space}, but there are {n_states} states that can be observed")
    return np.arange(n_states)


def _action_indices(actions: Any, n_actions: int) -> IntArray:
    array = np.asarray(actions)
    if not np.issubdtype(array.dtype, np.integer) or array.ndim != 1:
        raise ValueError(f"policy must predict a vector of integer actions, got {array.dtype} of shape {array.shape}")
    if array.size and (array.min() < 0 or array.max() >= n_actions):
        raise ValueError(f"policy must predict actions in [0, {n_actions}), got {array.min()} to {array.max()}")
    return array.astype(np.int64)
