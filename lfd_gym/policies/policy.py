"""What acts: the one protocol inside the package.

A `Policy` draws actions for batches of observations with the caller's generator (``sample``), takes the best ones
(``greedy``) and, over finitely many actions, says their ``probabilities``. Policies that keep something for an episode
(mixtures, recurrent networks) refuse these three; every policy plays whole episodes (``start``). Outside it is what
Stable-Baselines3 takes, an object with ``predict``. `lfd_gym.policies.conversion.as_policy` turns whatever else can act
into one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.arguments import checked
from lfd_gym.spaces import array_space, batch_size, to_array
from lfd_gym.validation import FloatArray, IntArray, numbers

Arrays: TypeAlias = dict[str, NDArray[Any]]
#: (which of the episodes begun together, their observations) → their actions.
Actor: TypeAlias = Callable[[IntArray, NDArray[Any]], NDArray[Any]]


class Policy(ABC):
    """A way to act.

    Attributes
    ----------
    observation_space, action_space
        Of single observations and actions, which are arrays; None if the policy does not know them.
    outer_observation_space
        The `Dict` or `Tuple` space whose flattened elements the observations are, if that is so: ``predict`` takes its
        elements too. Set by `take_observations_of`.
    rng
        What ``predict`` draws with. Everything else draws with the generator it is given.
    """

    #: The name under which files keep policies of this kind; empty for kinds that cannot be kept.
    kind: ClassVar[str] = ""

    observation_space: gym.Space[Any] | None = None
    outer_observation_space: gym.Space[Any] | None = None
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

    def act(
        self,
        observations: NDArray[Any],
        rng: np.random.Generator,
        *,
        state: Any = None,
        starts: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], Any]:
        """Return actions and the next ``state``, for callers that keep it between steps as Stable-Baselines3's do.

        ``state`` is None at first, and ``starts`` says which of the observations are the first of an episode. Here
        there is nothing to keep.
        """
        return (self.greedy(observations) if deterministic else self.sample(observations, rng)), state

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

    def take_observations_of(self, space: gym.Space[Any] | None) -> None:
        """Say whose observations the policy is given: those of a `Dict` or `Tuple` space are flattened for it."""
        nested = isinstance(space, gym.spaces.Dict | gym.spaces.Tuple)
        self.outer_observation_space = space if nested else None
        self.observation_space = array_space("observation_space", space) if nested and space is not None else space

    @checked
    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """Act as Stable-Baselines3's policies do, on one observation or a batch of them."""
        batch, alone = self._batch(observation)
        starts = None if episode_start is None else np.atleast_1d(np.asarray(episode_start, dtype=bool))
        actions, state = self.act(batch, self.rng, state=state, starts=starts, deterministic=deterministic)
        return (actions[0] if alone else actions), state

    def _batch(self, observation: Any) -> tuple[NDArray[Any], bool]:
        """Return what `predict` was given as a batch of arrays, and whether it was a single observation."""
        outer = self.outer_observation_space
        if isinstance(observation, Mapping | tuple) and outer is not None:
            size = batch_size(outer, observation)
            if size is None:
                return np.asarray(gym.spaces.flatten(outer, observation))[None], True
            return to_array(outer, observation, size), False
        array = numbers("observation", observation)
        shape = (self.observation_space.shape or ()) if self.observation_space is not None else array.shape[1:]
        fits = array.ndim - len(shape) in (0, 1) and array.shape[array.ndim - len(shape) :] == shape
        if isinstance(self.observation_space, gym.spaces.Discrete):
            fits &= np.issubdtype(array.dtype, np.integer)
        if not fits:
            raise ValueError(
                f"observation must be of {self.observation_space if outer is None else outer}, or a batch of them, "
                f"got shape {array.shape} and dtype {array.dtype}"
            )
        return array.reshape(-1, *shape), array.ndim == len(shape)

    def to_data(self) -> tuple[dict[str, Any], Arrays]:
        """Return what a file keeps of the policy: JSON values and arrays."""
        raise ValueError(
            f"{self} cannot be saved: a file keeps tables, tiles, uniform policies, mixtures of these, and networks of "
            "Stable-Baselines3 (PPO, A2C, DQN, SAC, TD3, DDPG)"
        )

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
    if not hasattr(rng, "random"):
        raise TypeError(f"rng must be a numpy.random.Generator, got {rng!r:.80}")
    totals = probabilities.cumsum(axis=1)
    # The product may round up to the total itself, which no index would own.
    uniforms = np.minimum(rng.random(len(probabilities)) * totals[:, -1], np.nextafter(totals[:, -1], 0))
    return np.asarray((totals <= uniforms[:, None]).sum(axis=1))
