"""Turning whatever stands for a policy into actions, with random numbers that come from the caller.

A policy is an (S, A) array, an object with ``action_probabilities``, one with Stable-Baselines3's ``predict``, or any
callable that maps a batch of observations to a batch of actions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.model.generative_model import TabularModel
from lfd_gym.policies.policies import (
    Policy,
    Predictor,
    ProbabilisticPolicy,
    action_probabilities,
    policy_table,
    sample_rows,
)
from lfd_gym.validation import FloatArray, policy_array

ActingPolicy: TypeAlias = Policy | Callable[[NDArray[Any]], Any]


class Actor:
    """Draws actions of a policy for batches of observations.

    Parameters
    ----------
    policy
        See the module. Recurrent policies are refused.
    action_space
        Of single actions.
    deterministic
        Passed on to ``predict``; other policies decide for themselves, so there it must be False.
    rng
        What actions are drawn with where the policy says its probabilities.
    """

    def __init__(
        self, policy: ActingPolicy, action_space: gym.Space[Any], deterministic: bool, rng: np.random.Generator
    ) -> None:
        self._predicts = isinstance(policy, Predictor)
        if deterministic and not self._predicts:
            raise ValueError("deterministic=True is for policies with `predict`; this one decides for itself")
        if not (isinstance(policy, np.ndarray | Predictor | ProbabilisticPolicy) or callable(policy)):
            raise TypeError(
                "policy must be an (S, A) array, have `predict` or `action_probabilities`, or be callable; "
                f"got {type(policy).__name__}"
            )
        self._policy: Any = policy
        self._space = action_space
        self._deterministic = deterministic
        self._rng = rng
        self._draws = isinstance(action_space, gym.spaces.Discrete) and says_probabilities(policy) and not deterministic

    def __call__(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Return one action for each observation."""
        if self._draws:
            n_actions = int(self._space.n)  # type: ignore[attr-defined]
            return sample_rows(action_probabilities(self._policy, observations, n_actions), self._rng)
        if self._predicts:
            chosen, hidden = self._policy.predict(observations, deterministic=self._deterministic)
            if hidden is not None:
                raise ValueError(
                    f"{type(self._policy).__name__} is recurrent: it must remember, which is not supported"
                )
        else:
            chosen = self._policy(observations)
        actions = np.asarray(chosen)
        wanted = (len(observations), *(self._space.shape or ()))
        if actions.shape != wanted:
            raise ValueError(f"policy must return actions of shape {wanted}, got {actions.shape}")
        return actions

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Have a ``predict`` that draws with torch's global stream draw from one seeded by ``rng`` instead."""
        if self._draws or not self._predicts:
            yield
            return
        seed = int(self._rng.integers(2**63))
        torch: Any = sys.modules.get("torch")
        if torch is None:
            yield
            return
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield


def says_probabilities(policy: Any) -> bool:
    """Whether a policy over finitely many actions can be asked for their probabilities."""
    if isinstance(policy, np.ndarray | ProbabilisticPolicy):
        return True
    network = policy if hasattr(policy, "get_distribution") else getattr(policy, "policy", None)
    return hasattr(network, "get_distribution")


def tabulated(policy: ActingPolicy, model: TabularModel, deterministic: bool, n_draws: int) -> FloatArray | None:
    """Return ``policy`` as an (S, A) array if it has one and asking for it pays off for ``n_draws`` actions."""
    if isinstance(policy, np.ndarray):
        if deterministic:
            raise ValueError("deterministic=True is for policies with `predict`; this one decides for itself")
        return policy_array("policy", policy, model.n_states, model.n_actions)
    knows_table = says_probabilities(policy) or (deterministic and isinstance(policy, Predictor))
    if not knows_table or model.n_states > 10 * n_draws:
        return None
    if isinstance(policy, Predictor):
        Actor(policy, model.action_space, deterministic=True, rng=np.random.default_rng(0))(np.zeros(1, dtype=np.int64))
    return policy_table(policy, model, deterministic=deterministic)  # type: ignore[arg-type]
