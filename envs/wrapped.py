"""Generative models of environments under wrappers whose effect is known."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import TimeLimit  # type: ignore[attr-defined]
from numpy.typing import ArrayLike, NDArray

from lfd_gym.envs.simulator import (
    SimulatorModel,
    absorbing_element,
    batch_of,
    borrowed,
    flat,
    flat_space,
    unflat,
    with_absorbing,
)
from lfd_gym.model.generative_model import GenerativeModel, TabularModel
from lfd_gym.model.wrappers import OF_ACTIONS, OF_OBSERVATIONS, shows_one_hot
from lfd_gym.validation import FloatArray

_PROBES = 4


class WrappedModel:
    """The generative model of a wrapped environment: the states of ``model``, what is seen and done of ``env``.

    Observations go through the wrappers' own ``observation``, actions through their ``action``. An absorbing state is
    shown as by any simulator, without the wrappers: a row of NaN, one more number if observations are `Discrete`, and
    no number at all, a row of zeros, where numbers are shown as one-hot vectors.

    Parameters
    ----------
    env
        The environment with its wrappers.
    model
        The generative model of the environment within.
    effective
        The wrappers that have an effect, outermost first; all of them known, see `lfd_gym.model.wrappers`.

    Attributes
    ----------
    states_of
        As of ``model``, where it has it and the observations tell those of ``model``.
    sample_rewarded
        As of ``model``, where it has it: no known wrapper changes rewards.
    """

    def __init__(self, env: Any, model: GenerativeModel, effective: list[Any]) -> None:
        self.env, self.model = env, model
        self.never_ends: bool = getattr(model, "never_ends", False)
        if hasattr(model, "current_state"):
            self.current_state = model.current_state
        self.state_space = model.state_space
        self.action_space = flat_space("action_space", env.action_space)
        self._seen_within: gym.Space[Any] = effective[-1].env.observation_space
        self._done_within: gym.Space[Any] = effective[-1].env.action_space
        never_ends = isinstance(self._seen_within, gym.spaces.Discrete) and model.observation_space == self._seen_within
        observed = flat_space("observation_space", env.observation_space)
        self.observation_space = observed if never_ends else with_absorbing(observed)
        self._of_observations = [wrapper for wrapper in reversed(effective) if type(wrapper) in OF_OBSERVATIONS]
        self._of_actions = [wrapper for wrapper in effective if type(wrapper) in OF_ACTIONS]
        self._one_hot = len(self._of_observations) == 1 and shows_one_hot(self._of_observations[0])
        if not self._of_observations:
            self.observation_space = model.observation_space
        self._check_transforms()
        tell: Callable[[ArrayLike], NDArray[Any]] | None = getattr(model, "states_of", None)
        if tell is not None and self._one_hot:
            self.states_of = lambda observations: tell(self._numbers(observations))
        elif tell is not None and not self._of_observations:
            self.states_of = tell
        if hasattr(model, "sample_rewarded"):
            self.sample_rewarded = self._sample_rewarded

    def sample_initial(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw ``n`` independent initial states."""
        return self.model.sample_initial(n, rng)

    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
        """Draw one next state for each pair."""
        return self.model.sample_next(states, self._moves(actions), rng)

    def observe(self, states: ArrayLike) -> NDArray[Any]:
        """Return what a policy sees of each state through the wrappers."""
        seen = self.model.observe(states)
        if not self._of_observations:
            return seen
        shape = (len(seen), *(self.observation_space.shape or ()))
        shown = np.empty(shape, dtype=self.observation_space.dtype)
        for k, ended in enumerate(self.model.is_absorbing(states)):
            shown[k] = self._end() if ended else self._observation(unflat(self._seen_within, seen[k]))
        return shown

    def is_absorbing(self, states: ArrayLike) -> NDArray[np.bool_]:
        """Say which states stand for "the episode has ended"."""
        return self.model.is_absorbing(states)

    def __repr__(self) -> str:
        return f"WrappedModel({self.env})"

    def _sample_rewarded(
        self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator
    ) -> tuple[NDArray[Any], FloatArray]:
        drawn: tuple[NDArray[Any], FloatArray] = self.model.sample_rewarded(states, self._moves(actions), rng)  # type: ignore[attr-defined]
        return drawn

    def _moves(self, actions: ArrayLike) -> NDArray[Any]:
        moves = batch_of("actions", actions, self.action_space)
        if not self._of_actions or not len(moves):
            return moves
        # Wrappers map one action at a time, and planners ask for few different ones many times.
        different, place = np.unique(moves, axis=0, return_inverse=True)
        return np.stack([self._action(move) for move in different])[place.ravel()]

    def _action(self, move: Any) -> Any:
        action = unflat(self.env.action_space, move)
        for wrapper in self._of_actions:
            action = wrapper.action(action)
        space = self._done_within
        if isinstance(space, gym.spaces.Box):  # rescaling may round to just outside
            action = np.clip(action, space.low, space.high)
        return flat(space, action)

    def _observation(self, element: Any) -> Any:
        for wrapper in self._of_observations:
            element = wrapper.observation(element)
        return flat(self.env.observation_space, element)

    def _end(self) -> Any:
        return 0 if self._one_hot else absorbing_element(self.observation_space)

    def _numbers(self, observations: ArrayLike) -> NDArray[Any]:
        batch = batch_of("observations", observations, self.observation_space)
        if (batch.sum(axis=1) != 1).any():
            raise ValueError("observations must be one-hot vectors")
        return np.asarray(batch.argmax(axis=1) + self._seen_within.start)  # type: ignore[attr-defined]

    def _check_transforms(self) -> None:
        """Refuse functions of observations that remember, draw or look elsewhere, or that change their argument."""
        seen = self._probes() if any(map(_transforms, self._of_observations)) else []
        for wrapper in self._of_observations:
            given = copy.deepcopy(seen)
            with self._somewhere(seed=0):
                shown = [copy.deepcopy(wrapper.observation(element)) for element in given]
            with self._somewhere(seed=1):
                again = [copy.deepcopy(wrapper.observation(element)) for element in reversed(given)][::-1]
            same = _same(wrapper.observation_space, shown, again) and _same(wrapper.env.observation_space, seen, given)
            if _transforms(wrapper) and not same:
                raise TypeError(
                    f"{self.env} is wrapped in `TransformObservation`, whose function does not give the same twice on "
                    "the same observation, looks at more than that, or changes its argument, so only episodes can be "
                    "played in it"
                )
            if any(not _fits(wrapper.observation_space, element) for element in shown):
                raise TypeError(
                    f"{self.env} is wrapped in `TransformObservation`, whose function leads out of its "
                    f"observation_space {wrapper.observation_space}: give the space that it leads to"
                )
            seen = shown

    @contextmanager
    def _somewhere(self, seed: int) -> Iterator[None]:
        """Put the environment into another state, and its time limits to another time, for as long as this lasts.

        A function that looks at them, beside the observation, then gives something else.
        """
        stream, env = np.random.default_rng(seed), self.env.unwrapped
        if not isinstance(self.model, SimulatorModel | TabularModel):  # it need not be an environment that can be reset
            yield
            return
        limits = [(wrapper, wrapper._elapsed_steps) for wrapper in _time_limits(self.env)]
        with self.model._borrow(stream) if isinstance(self.model, SimulatorModel) else borrowed(env, stream):
            try:
                env.reset()
                for wrapper, _ in limits:
                    wrapper._elapsed_steps = seed
                yield
            finally:
                for wrapper, elapsed in limits:
                    wrapper._elapsed_steps = elapsed

    def _probes(self) -> list[Any]:
        rng = np.random.default_rng(0)
        states = self.model.sample_initial(_PROBES, rng)
        space = copy.deepcopy(self.action_space)  # drawing from it would change that of the environment
        space.seed(0)
        visited = [states]
        for _ in range(_PROBES):
            states = self.sample_next(states, np.stack([np.asarray(space.sample()) for _ in states]), rng)
            visited.append(states)
        all_states = np.concatenate(visited)
        alive = all_states[~self.model.is_absorbing(all_states)]
        return [unflat(self._seen_within, seen) for seen in self.model.observe(alive)]


def _time_limits(env: Any) -> list[Any]:
    found = []
    while isinstance(env, gym.Wrapper):
        found += [env] if isinstance(env, TimeLimit) else []
        env = env.env
    return found


def _transforms(wrapper: Any) -> bool:
    return type(wrapper).__name__ == "TransformObservation"


def _fits(space: gym.Space[Any], element: Any) -> bool:
    """Whether an array for ``space`` holds ``element``; bounds may be wrong, shape and type of numbers not."""
    array = np.asarray(flat(space, element))
    wanted = flat_space("observation_space", space)
    return array.shape == (wanted.shape or ()) and np.can_cast(array.dtype, wanted.dtype, "same_kind")  # type: ignore[arg-type]


def _same(space: gym.Space[Any], left: list[Any], right: list[Any]) -> bool:
    pairs = zip(left, right, strict=True)
    return all(np.array_equal(flat(space, one), flat(space, other), equal_nan=True) for one, other in pairs)
