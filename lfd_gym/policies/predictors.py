"""Objects that act as Stable-Baselines3's do, by ``predict``, recurrent ones too. torch is not imported."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.policies.policy import Actor, Policy
from lfd_gym.spaces import from_array
from lfd_gym.validation import IntArray


@runtime_checkable
class Predictor(Protocol):
    """Stable-Baselines3's convention for policies and algorithms."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """Return actions for a batch of observations, and the next hidden state."""
        ...


class PredictorPolicy(Policy):
    """Anything with Stable-Baselines3's ``predict``; its probabilities are not known.

    A recurrent one is known by the state that ``predict`` returns. What it remembers belongs to an episode, so that it
    acts within `start` and `predict` only.
    """

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor
        self._space: gym.Space[Any] | None = getattr(predictor, "observation_space", None)
        self._takes_state = "state" in inspect.signature(predictor.predict).parameters
        self.take_observations_of(self._space)
        self.action_space = getattr(predictor, "action_space", None)

    def sample(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Ask; a network draws with torch's global stream, which `acting` determines."""
        return self._memoryless(observations, False)

    def greedy(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Ask for the deterministic actions."""
        return self._memoryless(observations, True)

    def start(self, n: int, rng: np.random.Generator, *, deterministic: bool = False) -> Actor:
        """Begin episodes in which a recurrent predictor remembers what it has seen."""
        if not self._takes_state:
            return super().start(n, rng, deterministic=deterministic)
        state: Any = None
        fresh = np.ones(n, dtype=bool)
        seen: NDArray[Any] | None = None
        remembers = True

        def act(who: IntArray, observations: NDArray[Any]) -> NDArray[Any]:
            nonlocal state, seen, remembers
            if not remembers:
                return self._ask(observations, deterministic)[0]
            # Which axis of a state is the batch is the predictor's own affair: it is always asked about all episodes,
            # those that have ended with their last observation, those not seen yet with another's.
            seen = np.repeat(observations[:1], n, axis=0) if seen is None else seen
            seen[who] = observations
            actions, state = self._ask(seen, deterministic, state, fresh.copy())
            fresh[who] = False
            remembers = state is not None
            return actions[who]

        return act

    def act(
        self,
        observations: NDArray[Any],
        rng: np.random.Generator,
        *,
        state: Any = None,
        starts: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], Any]:
        """Ask, with the state that the caller keeps."""
        with self.acting(rng):
            return self._ask(observations, deterministic, state, starts)

    def _memoryless(self, observations: NDArray[Any], deterministic: bool) -> NDArray[Any]:
        actions, state = self._ask(observations, deterministic)
        if state is not None:
            raise ValueError(
                f"{type(self.predictor).__name__} is recurrent, and what it remembers belongs to an episode: begin "
                "episodes with start(n, rng), as collecting and evaluating do, or keep the state of predict"
            )
        return actions

    def _ask(
        self, observations: NDArray[Any], deterministic: bool, state: Any = None, starts: Any = None
    ) -> tuple[NDArray[Any], Any]:
        batch = observations if self._space is None else from_array(self._space, observations)
        actions, state = self._forward(batch, state, starts, deterministic)
        return np.asarray(actions), state

    def _forward(self, observation: Any, state: Any, starts: Any, deterministic: bool) -> tuple[Any, Any]:
        if self._takes_state:
            return self.predictor.predict(observation, state, starts, deterministic)
        return self.predictor.predict(observation, deterministic=deterministic)

    @contextmanager
    def acting(self, rng: np.random.Generator) -> Iterator[None]:
        """Have a ``predict`` that draws with torch's global stream draw from one seeded by ``rng`` instead."""
        seed = int(rng.integers(2**63))
        torch: Any = sys.modules.get("torch")
        if torch is None:
            yield
            return
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """Forward what the predictor itself would take; flatten or unflatten it first otherwise."""
        if isinstance(observation, Mapping | tuple) != isinstance(self._space, gym.spaces.Dict | gym.spaces.Tuple):
            return super().predict(observation, state, episode_start, deterministic)
        with self.acting(self.rng):
            return self._forward(observation, state, episode_start, deterministic)

    def __repr__(self) -> str:
        return f"PredictorPolicy({type(self.predictor).__name__})"
