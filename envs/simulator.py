"""Generative models that borrow an environment: put it into a state, step, read the state back, return it as it was."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from lfd_gym.model.generative_model import batch_size, check_generator
from lfd_gym.spaces import array_space
from lfd_gym.validation import FloatArray


class SimulatorModel(ABC):
    """A generative model on top of one environment without wrappers, one step of it for each pair of a batch.

    During a call the environment draws from the caller's ``rng`` and does not render; after it, its state, its stream
    and its attributes are as they were. One model serves one thread at a time.

    A transition that ends the episode leads to the absorbing state: a row of NaN, or one more state if the environment
    has a `Discrete` space of states. What a policy sees there is a row of NaN, or one more observation if observations
    are `Discrete`. `Dict` and `Tuple` observations and actions are flat arrays, see `lfd_gym.spaces`.

    Parameters
    ----------
    env
        The environment, unwrapped.
    state_space
        Its states.
    ends
        Whether episodes can end. This adds the absorbing state to a `Discrete` space of states.
    """

    def __init__(self, env: Any, state_space: gym.Space[Any], ends: bool) -> None:
        self.env = env
        self.state_space = with_absorbing(state_space) if ends else state_space
        self.action_space = flat_space("action_space", env.action_space)
        observed = flat_space("observation_space", env.observation_space)
        self.observation_space = with_absorbing(observed) if ends else observed
        self._ends = ends
        #: Whether it is known that no episode ever ends by itself.
        self.never_ends = not ends
        for role in ("state_space", "action_space", "observation_space"):
            _bounds(role, getattr(self, role))

    @abstractmethod
    def _initial_state(self) -> Any:
        """Draw an initial state from the borrowed environment."""

    @abstractmethod
    def _next_state(self, state: Any, action: Any) -> Any | None:
        """Draw a next state from the borrowed environment; None says that the episode has ended."""

    @abstractmethod
    def _rewarded_next_state(self, state: Any, action: Any) -> tuple[Any | None, float]:
        """Draw what `_next_state` draws, and return the reward of the step beside it."""

    @abstractmethod
    def _observation(self, state: Any) -> Any:
        """Return what the borrowed environment shows of ``state``."""

    def _absorbing_state(self) -> Any:
        if not self._ends:
            raise RuntimeError(f"an episode of {self.env} has ended, although none of its states is terminal")
        return absorbing_element(self.state_space)

    def _borrow(self, stream: Any) -> AbstractContextManager[None]:
        return borrowed(self.env, stream)

    def sample_initial(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw ``n`` independent initial states."""
        batch = np.empty((batch_size("n", n), *_shape(self.state_space)), dtype=self.state_space.dtype)
        with self._borrow(check_generator("rng", rng)):
            for k in range(len(batch)):
                batch[k] = self._initial_state()
        return batch

    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """Draw one next state for each pair."""
        batch, moves = self._pairs(states, actions)
        with self._borrow(check_generator("rng", rng)):
            for k in np.flatnonzero(~_absorbing(batch, self.state_space, self._ends)):
                successor = self._next_state(batch[k], unflat(self.env.action_space, moves[k]))
                batch[k] = self._absorbing_state() if successor is None else successor
        return batch

    def sample_rewarded(
        self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator
    ) -> tuple[NDArray[Any], FloatArray]:
        """Draw one next state for each pair, as `sample_next` does, and return the rewards of these steps too."""
        batch, moves = self._pairs(states, actions)
        rewards = np.zeros(len(batch))
        with self._borrow(check_generator("rng", rng)):
            for k in np.flatnonzero(~_absorbing(batch, self.state_space, self._ends)):
                successor, rewards[k] = self._rewarded_next_state(batch[k], unflat(self.env.action_space, moves[k]))
                batch[k] = self._absorbing_state() if successor is None else successor
        return batch, rewards

    def _pairs(self, states: ArrayLike, actions: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        batch = batch_of("states", states, self.state_space, nan_rows=self._ends)
        moves = batch_of("actions", actions, self.action_space)
        if len(batch) != len(moves):
            raise ValueError(f"states and actions must have the same length, got {len(batch)} and {len(moves)}")
        return batch, moves

    def observe(self, states: ArrayLike) -> NDArray[Any]:
        """Return what a policy sees of each state."""
        batch = batch_of("states", states, self.state_space, nan_rows=self._ends)
        absorbing = _absorbing(batch, self.state_space, self._ends)
        shape = (len(batch), *_shape(self.observation_space))
        observations = np.empty(shape, dtype=self.observation_space.dtype)
        with self._borrow(_NoStream(self.env)):
            for k in range(len(batch)):
                observations[k] = (
                    absorbing_element(self.observation_space)
                    if absorbing[k]
                    else flat(self.env.observation_space, self._observation(batch[k]))
                )
        return observations

    def is_absorbing(self, states: ArrayLike) -> NDArray[np.bool_]:
        """Say which states stand for "the episode has ended"."""
        batch = batch_of("states", states, self.state_space, nan_rows=self._ends)
        return _absorbing(batch, self.state_space, self._ends)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.env})"


@contextmanager
def borrowed(env: Any, stream: Any) -> Iterator[None]:
    """Let the caller use ``env`` freely, with ``stream`` for its random numbers; then put its attributes back.

    Arrays get their contents back too: some environments change them in place. Other containers do not.
    """
    attributes = vars(env)
    before = dict(attributes)
    arrays = [(a, a.copy()) for a in before.values() if isinstance(a, np.ndarray) and a.flags.writeable]
    try:
        env.np_random = stream
        env.render_mode = None
        yield
    finally:
        attributes.clear()
        attributes.update(before)
        for array, content in arrays:
            array[...] = content


class _NoStream:
    """Stands in for the stream of an environment while nothing may be drawn from it."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        raise TypeError(
            f"the observations of {self.env} are random, so observe(states) cannot return them; "
            "its sample_initial and sample_next can be used on states"
        )


def batch_of(name: str, values: ArrayLike, space: gym.Space[Any], nan_rows: bool = False) -> NDArray[Any]:
    """Return ``values`` as a new array of elements of ``space`` along the first axis, or say what is wrong with them.

    With ``nan_rows``, rows that are NaN throughout pass as well.
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise ValueError(f"{name} must be a batch of elements of {space}, got {values!r:.80}") from None
    shape = _shape(space)
    if array.size == 0 and 0 not in shape:
        return np.empty((0, *shape), dtype=space.dtype)
    if array.ndim == 0 or array.shape[1:] != shape:
        raise ValueError(f"{name} must have shape {('n', *shape)}, got {array.shape}".replace("'", ""))
    if not np.can_cast(array.dtype, space.dtype, "same_kind"):  # type: ignore[arg-type]
        raise ValueError(f"{name} must be of a type that fits {space.dtype}, got {array.dtype}")
    array = array.astype(space.dtype)
    low, high = _bounds(name, space)
    outside = ~((array >= low) & (array <= high))
    if nan_rows and array.dtype.kind == "f":
        outside &= ~_nan_rows(array).reshape(-1, *(1 for _ in shape))
    if outside.any():
        where = tuple(int(i) for i in np.argwhere(outside)[0])
        raise ValueError(f"{name} must lie in {space}, got {array[where]} at index {where}")
    return array


def flat_space(name: str, space: gym.Space[Any]) -> gym.Space[Any]:
    """Return the space of the arrays that `flat` makes of the elements of ``space``."""
    return array_space(name, space) if isinstance(space, spaces.Dict | spaces.Tuple) else space


def flat(space: gym.Space[Any], element: Any) -> Any:
    """Return an element of ``space`` as one array."""
    return spaces.flatten(space, element) if isinstance(space, spaces.Dict | spaces.Tuple) else element


def unflat(space: gym.Space[Any], array: Any) -> Any:
    """Return the element of ``space`` that `flat` made ``array`` from."""
    return spaces.unflatten(space, array) if isinstance(space, spaces.Dict | spaces.Tuple) else array


def _shape(space: gym.Space[Any]) -> tuple[int, ...]:
    return space.shape or ()


def _bounds(name: str, space: gym.Space[Any]) -> tuple[Any, Any]:
    if isinstance(space, spaces.Box):
        return space.low, space.high
    if isinstance(space, spaces.Discrete):
        return space.start, space.start + space.n - 1
    if isinstance(space, spaces.MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    if isinstance(space, spaces.MultiBinary):
        return 0, 1
    raise TypeError(
        f"{name} must be Box, Discrete, MultiDiscrete or MultiBinary to hold batches as arrays, got {space}"
    )


def with_absorbing(space: gym.Space[Any]) -> gym.Space[Any]:
    """Add one element to a `Discrete` space; other spaces use NaN."""
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n) + 1, start=int(space.start))
    return space


def absorbing_element(space: gym.Space[Any]) -> Any:
    """Return the absorbing element of a space made by `with_absorbing`."""
    if isinstance(space, spaces.Discrete):
        return space.start + space.n - 1
    if np.issubdtype(space.dtype, np.floating):
        return np.nan
    raise TypeError(f"an episode has ended, and {space} has no element to stand for that: it holds integers, no NaN")


def _absorbing(batch: NDArray[Any], space: gym.Space[Any], ends: bool) -> NDArray[np.bool_]:
    if not ends:
        return np.zeros(len(batch), dtype=np.bool_)
    if isinstance(space, spaces.Discrete):
        return np.asarray(batch == absorbing_element(space))
    return _nan_rows(batch)


def _nan_rows(batch: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(np.isnan(batch).all(axis=tuple(range(1, batch.ndim))))
