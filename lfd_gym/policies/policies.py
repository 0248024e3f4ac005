"""What can be asked of a policy, whatever made it.

A policy here is one of

- an (S, A) array whose rows are distributions over actions;
- an object with ``action_probabilities(observations) -> (n, A)``;
- an actor-critic policy or algorithm of Stable-Baselines3 over discrete actions;
- any object with Stable-Baselines3's ``predict(observations, deterministic=…)``. It does not say its probabilities, so
  it can be tabulated only as a deterministic policy.

This module does not import torch: networks are recognised by their methods.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.model.mdp import FiniteMDP, one_hot
from lfd_gym.validation import FloatArray, IntArray, policy_array


@runtime_checkable
class Predictor(Protocol):
    """Stable-Baselines3's convention for policies and algorithms."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """Return actions for a batch of observations, and the next hidden state."""
        ...


@runtime_checkable
class ProbabilisticPolicy(Protocol):
    """A policy over finitely many actions that says its probabilities."""

    def action_probabilities(self, observations: Any) -> FloatArray:
        """Return the (n, A) distributions over actions for n observations."""
        ...


Policy: TypeAlias = FloatArray | ProbabilisticPolicy | Predictor


def policy_table(policy: Policy, mdp: FiniteMDP, *, deterministic: bool = False) -> FloatArray:
    """Return ``policy`` as an (S, A) array, by asking it once for every state of ``mdp``.

    A policy for the environment knows nothing of the absorbing state that `FiniteMDP.from_env` appends; no action
    matters there, and its row is uniform.

    Parameters
    ----------
    policy
        See the module. An array may leave out the last row if that is the absorbing state.
    mdp
        Its states are the observations, as integers or, for a policy over a `Box`, as one-hot vectors.
    deterministic
        Whether to take the most probable action instead of drawing one.
    """
    visible = mdp.n_states - (mdp.absorbing_state == mdp.n_states - 1)
    if isinstance(policy, np.ndarray):
        table = policy
        if table.shape != (visible, mdp.n_actions):
            table = policy_array("policy", table, mdp.n_states, mdp.n_actions)
        observations = np.arange(visible)
        rows = action_probabilities(table, observations, mdp.n_actions, deterministic=deterministic)
    else:
        observations = _state_observations(policy, visible)
        rows = action_probabilities(policy, observations, mdp.n_actions, deterministic=deterministic)
    full = np.full((mdp.n_states, mdp.n_actions), 1 / mdp.n_actions)
    full[:visible] = rows
    return full


def action_probabilities(
    policy: Policy, observations: NDArray[Any], n_actions: int, *, deterministic: bool = False
) -> FloatArray:
    """Return the (n, A) probabilities with which ``policy`` takes each action on a batch of observations.

    For an array, the observations are states.
    """
    if says_probabilities(policy):
        if isinstance(policy, np.ndarray):
            rows = np.asarray(policy[observations], dtype=np.float64)
        elif isinstance(policy, ProbabilisticPolicy):
            rows = policy.action_probabilities(observations)
        else:
            rows = _network_probabilities(_network(policy), observations)
        rows = policy_array("probabilities of the policy", rows, len(observations), n_actions)
        return one_hot(rows.argmax(axis=1), n_actions) if deterministic else rows
    if not isinstance(policy, Predictor):
        raise TypeError(f"policy must be an (S, A) array or have a predict method, got {type(policy).__name__}")
    if not deterministic:
        raise ValueError(
            f"{type(policy).__name__} does not say its action probabilities: pass deterministic=True to take its "
            "deterministic actions, or evaluate it by rollouts on a generative model"
        )
    actions, _ = policy.predict(observations, deterministic=True)
    return one_hot(_action_indices(actions, n_actions), n_actions)


def draw_actions(
    policy: Policy,
    observations: NDArray[Any],
    action_space: gym.Space[Any],
    rng: np.random.Generator,
    *,
    deterministic: bool = False,
) -> NDArray[Any]:
    """Return one action for each observation, drawn with ``rng`` wherever the policy says its probabilities."""
    if isinstance(action_space, gym.spaces.Discrete) and says_probabilities(policy):
        rows = action_probabilities(policy, observations, int(action_space.n), deterministic=deterministic)
        return rows.argmax(axis=1) if deterministic else sample_rows(rows, rng)
    if not isinstance(policy, Predictor):
        raise TypeError(f"policy must be an (S, A) array or have a predict method, got {type(policy).__name__}")
    return np.asarray(policy.predict(observations, deterministic=deterministic)[0])


def says_probabilities(policy: Policy) -> bool:
    """Whether the probabilities of the policy's actions can be asked for, not only its actions."""
    if isinstance(policy, np.ndarray | ProbabilisticPolicy):
        return True
    network = _network(policy)
    return hasattr(network, "get_distribution") and isinstance(network.action_space, gym.spaces.Discrete)


def sample_rows(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one index from each row of a (n, A) array of distributions; an index of probability zero is never drawn."""
    totals = probabilities.cumsum(axis=1)
    # The product may round up to the total itself, which no index would own.
    uniforms = np.minimum(rng.random(len(probabilities)) * totals[:, -1], np.nextafter(totals[:, -1], 0))
    return np.asarray((totals <= uniforms[:, None]).sum(axis=1))


def _network(policy: Any) -> Any:
    """Return the network of a Stable-Baselines3 algorithm, or the policy itself."""
    return policy if hasattr(policy, "get_distribution") else getattr(policy, "policy", policy)


def _network_probabilities(network: Any, observations: NDArray[Any]) -> FloatArray:
    network.set_training_mode(False)
    tensor, _ = network.obs_to_tensor(observations)
    rows = network.get_distribution(tensor).distribution.probs.detach().cpu().numpy().astype(np.float64)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))  # single precision sums to one only to 1e-7


def _state_observations(policy: Any, n_states: int) -> NDArray[Any]:
    space = getattr(policy, "observation_space", None)
    if isinstance(space, gym.spaces.Box):
        if len(space.shape) != 1 or space.shape[0] < n_states:
            raise ValueError(f"policy observes {space}, which cannot be one-hot vectors of {n_states} states")
        return np.eye(n_states, space.shape[0], dtype=space.dtype)
    if isinstance(space, gym.spaces.Discrete) and space.n < n_states:
        raise ValueError(f"policy observes {space}, but the mdp has {n_states} states that can be observed")
    return np.arange(n_states)


def _action_indices(actions: Any, n_actions: int) -> IntArray:
    array = np.asarray(actions)
    if not np.issubdtype(array.dtype, np.integer) or array.ndim != 1:
        raise ValueError(f"policy must predict a vector of integer actions, got {array.dtype} of shape {array.shape}")
    if array.size and (array.min() < 0 or array.max() >= n_actions):
        raise ValueError(f"policy must predict actions in [0, {n_actions}), got {array.min()} to {array.max()}")
    return array.astype(np.int64)
