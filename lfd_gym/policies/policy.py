"""What acts: the one protocol inside the package.

A `Policy` draws actions for batches of observations with the caller's generator (``sample``), takes the best ones
(``greedy``) and, over finitely many actions, says their ``probabilities``. Outside it is what Stable-Baselines3 takes,
an object with ``predict``. `lfd_gym.policies.conversion.as_policy` turns whatever else can act into one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.validation import FloatArray, IntArray

Arrays: TypeAlias = dict[str, NDArray[Any]]
#: (which of the episodes begun together, their observations) → their actions.
Actor: TypeAlias = Callable[[IntArray, NDArray[Any]], NDArray[Any]]


class Policy(ABC):
    """A way to act.

    Attributes
    ----------
    observation_space, action_space
        Of single observations and actions; None if the policy does not know them.
    rng
        What ``predict`` draws with. Everything else draws with the generator it is given.
    """

    #: The name under which files keep policies of this kind; empty for kinds that cannot be kept.
    kind: ClassVar[str] = ""

    observation_space: gym.Space[Any] | None = None
    action_space: gym.Space[Any] | None = None
    _rng: np.random.Generator | None = None

    @abstractmethod
    def sample(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Draw one action for each observation."""

    @abstractmethod
    def greedy(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Return the best, or most probable, action for each observation."""

    @property
    def has_probabilities(self) -> bool:
        """Whether ``probabilities`` can be asked for."""
        return False

    def probabilities(self, observations: NDArray[Any]) -> FloatArray:
        """Return the (n, A) distributions over actions for n observations."""
        raise TypeError(f"{self} does not say the probabilities of its actions")

    def start(self, n: int, rng: np.random.Generator, *, deterministic: bool = False) -> Actor:
        """Begin ``n`` episodes side by side; return what acts in them, until their end.

        Policies that keep something for an episode (which one of a mixture plays it, what a recurrent network
        remembers) keep it in there. Here there is nothing to keep.
        """
        if deterministic:
            return lambda who, observations: self.greedy(observations)
        return lambda who, observations: self.sample(observations, rng)

    @contextmanager
    def acting(self, rng: np.random.Generator) -> Iterator[None]:
        """Surround a rollout; whatever the policy draws within is determined by ``rng``."""
        yield

    @property
    def rng(self) -> np.random.Generator:
        """What ``predict`` draws with."""
        if self._rng is None:
            self._rng = np.random.default_rng(0)
        return self._rng

    @rng.setter
    def rng(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """Act as Stable-Baselines3's policies do, on one observation or a batch of them."""
        array = np.asarray(observation)
        shape = (self.observation_space.shape or ()) if self.observation_space is not None else array.shape[1:]
        fits = array.ndim - len(shape) in (0, 1) and array.shape[array.ndim - len(shape) :] == shape
        if isinstance(self.observation_space, gym.spaces.Discrete):
            fits &= np.issubdtype(array.dtype, np.integer)
        if not fits:
            raise ValueError(
                f"observation must be of {self.observation_space}, or a batch of them, "
                f"got shape {array.shape} and dtype {array.dtype}"
            )
        batch = array.reshape(-1, *shape)
        actions = self.greedy(batch) if deterministic else self.sample(batch, self.rng)
        return (actions if array.ndim > len(shape) else actions[0]), state

    def to_data(self) -> tuple[dict[str, Any], Arrays]:
        """Return what a file keeps of the policy: JSON values and arrays."""
        raise ValueError(f"{self} cannot be saved: a file keeps tables, tiles and actor-critic networks")

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Arrays) -> Policy:
        """Return the policy that `to_data` described."""
        raise ValueError(f"policies of kind {cls.kind!r} cannot be read")


class FinitePolicy(Policy):
    """A policy over finitely many actions that says their probabilities."""

    @property
    def has_probabilities(self) -> bool:
        """True for every policy of this kind."""
        return True

    @abstractmethod
    def probabilities(self, observations: NDArray[Any]) -> FloatArray:
        """Return the (n, A) distributions over actions for n observations."""

    def sample(self, observations: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Draw one action for each observation."""
        return sample_rows(self.probabilities(observations), rng)

    def greedy(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Return the most probable action for each observation, the first on ties."""
        return np.asarray(self.probabilities(observations).argmax(axis=1))


def sample_rows(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one index from each row of a (n, A) array of distributions; an index of probability zero is never drawn."""
    totals = probabilities.cumsum(axis=1)
    # The product may round up to the total itself, which no index would own.
    uniforms = np.minimum(rng.random(len(probabilities)) * totals[:, -1], np.nextafter(totals[:, -1], 0))
    return np.asarray((totals <= uniforms[:, None]).sum(axis=1))
