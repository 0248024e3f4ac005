"""Episodes of any environment side by side, behind one interface.

Whatever the source is, a round is: `reset` with a seed, then `step` with one action for each environment. Observations
and actions are arrays, see `lfd_gym.spaces`. Sources differ in what happens when an episode ends:

- one environment waits to be reset;
- Gymnasium's vector environments start anew in the same step (0.29, and ``SAME_STEP`` of 1.x), on the next step, which
  is then no transition (``NEXT_STEP``), or not at all (``DISABLED``);
- Stable-Baselines3's start anew in the same step.

Here that does not show: `Step.last` is what was observed at the end of an episode, and what comes after it, until the
next round, is to be ignored.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from lfd_gym.demonstrations.environments import (
    is_gymnasium_vector,
    is_stable_baselines_vector,
    time_limit,
    vector_attribute,
)
from lfd_gym.envs.tabular import FiniteEnv
from lfd_gym.envs.vector import RESETS_IN_SAME_STEP, FiniteVectorEnv
from lfd_gym.model.dynamics import FiniteDynamics
from lfd_gym.spaces import array_space, from_array, to_array
from lfd_gym.validation import IntArray

_MOST_FINITE_COPIES = 4096


class Step(NamedTuple):
    """What came of one action in each environment."""

    observations: NDArray[Any]
    rewards: NDArray[Any]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    #: Which environments, whose episode has just ended → what was observed last.
    last: Callable[[IntArray], NDArray[Any]]


class SideBySide(ABC):
    """Environments that are stepped together."""

    def __init__(self, num_envs: int, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
        self.num_envs = num_envs
        self._seen, self._done = observation_space, action_space
        #: As the package sees them.
        self.observation_space = array_space("observation_space", observation_space)
        self.action_space = array_space("action_space", action_space)

    @abstractmethod
    def reset(self, seed: int) -> NDArray[Any]:
        """Begin an episode in each environment."""

    @abstractmethod
    def step(self, actions: NDArray[Any]) -> Step:
        """Play one action in each environment."""

    def _array(self, batch: Any) -> NDArray[Any]:
        return to_array(self._seen, batch, self.num_envs)

    def _array_of(self, elements: Sequence[Any]) -> NDArray[Any]:
        """Return single observations as one array."""
        batch = concatenate(self._seen, elements, create_empty_array(self._seen, len(elements)))
        return to_array(self._seen, batch, len(elements))


class OneEnv(SideBySide):
    """One environment, wrapped or not."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(1, env.observation_space, env.action_space)
        self.env = env
        self._one_action = batch_space(env.action_space, 1)

    def reset(self, seed: int) -> NDArray[Any]:
        """Begin an episode."""
        return self._array_of([self.env.reset(seed=seed)[0]])

    def step(self, actions: NDArray[Any]) -> Step:
        """Play one action."""
        (action,) = iterate(self._one_action, from_array(self._done, actions))
        observation, reward, terminated, truncated, info = self.env.step(action)
        seen = self._array_of([observation])
        # Gymnasium 0.29 can wrap an environment so that it starts anew by itself.
        final = self._array_of([info["final_observation"]]) if "final_observation" in info else seen
        ends = np.array([[terminated], [truncated]], dtype=bool)
        return Step(seen, np.array([reward], dtype=np.float64), ends[0], ends[1], lambda who: final)


class GymnasiumVector(SideBySide):
    """A vector environment of Gymnasium, of either line."""

    def __init__(self, envs: Any) -> None:
        super().__init__(
            vector_attribute(envs, "num_envs"),
            vector_attribute(envs, "single_observation_space"),
            vector_attribute(envs, "single_action_space"),
        )
        self.envs = envs
        mode = getattr(envs.metadata.get("autoreset_mode"), "name", "NEXT_STEP")
        self._mode = "SAME_STEP" if RESETS_IN_SAME_STEP else mode

    def reset(self, seed: int) -> NDArray[Any]:
        """Begin an episode in each environment."""
        return self._array(self.envs.reset(seed=seed)[0])

    def step(self, actions: NDArray[Any]) -> Step:
        """Play one action in each environment."""
        batch, rewards, *flags, infos = self.envs.step(from_array(self._done, actions))
        seen, ends = self._array(batch), np.array(flags, dtype=bool)
        if self._mode == "DISABLED" and ends.any():
            self.envs.reset(options={"reset_mask": ends.any(axis=0)})  # an episode that is over must not be stepped
        last = (lambda who: self._final(infos, who)) if self._mode == "SAME_STEP" else (lambda who: seen[who])
        return Step(seen, np.asarray(rewards), ends[0], ends[1], last)

    def _final(self, infos: dict[str, Any], who: IntArray) -> NDArray[Any]:
        for key in ("final_obs", "final_observation"):
            if key in infos:
                return self._array_of([infos[key][k] for k in who])
        raise ValueError(
            f"{self.envs} starts ended episodes anew in the same step, but does not say what was observed last: "
            "make the vector environment from single ones, e.g. gymnasium.vector.SyncVectorEnv"
        )


class StableBaselinesVector(SideBySide):
    """A `VecEnv` of Stable-Baselines3, with its wrappers as they are."""

    def __init__(self, envs: Any) -> None:
        super().__init__(envs.num_envs, envs.observation_space, envs.action_space)
        self.envs = envs

    def reset(self, seed: int) -> NDArray[Any]:
        """Begin an episode in each environment."""
        self.envs.seed(seed)
        return self._array(self.envs.reset())

    def step(self, actions: NDArray[Any]) -> Step:
        """Play one action in each environment."""
        batch, rewards, dones, infos = self.envs.step(from_array(self._done, actions))
        cut = np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos])
        over = np.asarray(dones, dtype=bool)
        return Step(
            self._array(batch),
            np.asarray(rewards, dtype=np.float64),
            over & ~cut,
            over & cut,
            lambda who: self._array_of([infos[k]["terminal_observation"] for k in who]),
        )


@contextmanager
def side_by_side(source: Any, n_envs: int | None, n_episodes: int) -> Iterator[SideBySide]:
    """Yield ``source`` behind the one interface: itself, or ``n_envs`` copies, which are closed afterwards.

    Running statistics, by which wrappers normalise, are held meanwhile: else every episode would be one of another
    environment, and the same seed would not give the same episodes.
    """
    with _held_statistics(source):
        yield from _side_by_side(source, n_envs, n_episodes)


def _side_by_side(source: Any, n_envs: int | None, n_episodes: int) -> Iterator[SideBySide]:
    if is_gymnasium_vector(source) or is_stable_baselines_vector(source):
        if n_envs is not None:
            raise ValueError(f"n_envs is for single environments; {source} has {source.num_envs} already")
        yield GymnasiumVector(source) if is_gymnasium_vector(source) else StableBaselinesVector(source)
        return
    if not isinstance(source, gym.Env):
        raise TypeError(
            "source must be a Gymnasium environment, a vector environment of Gymnasium or a VecEnv of "
            f"Stable-Baselines3, got {type(source).__name__}"
        )
    if isinstance(source.unwrapped, FiniteEnv) and _is_plain(source):
        n_copies = min(n_episodes, _MOST_FINITE_COPIES) if n_envs is None else n_envs
        yield GymnasiumVector(FiniteVectorEnv(source.unwrapped, n_copies, time_limit(source)))
    elif n_envs in (None, 1):
        yield OneEnv(source)
    else:
        envs = _copies(source, int(n_envs or 1))
        try:
            yield GymnasiumVector(envs)
        finally:
            envs.close()


@contextmanager
def _held_statistics(source: Any) -> Iterator[None]:
    """Have the running statistics of wrappers not run on, as far as they are in this process."""
    held = []
    for layer in _layers(source):
        for name in ("obs_rms", "return_rms", "ret_rms"):  # as Gymnasium and Stable-Baselines3 call them
            running = vars(layer).get(name)
            if running is not None:
                fixed = copy.deepcopy(running)
                for part in fixed.values() if isinstance(fixed, dict) else (fixed,):  # one for each key, or one
                    part.update = lambda *args: None
                setattr(layer, name, fixed)
                held.append((layer, name, running))
    try:
        yield
    finally:
        for layer, name, running in held:
            setattr(layer, name, running)


def _layers(source: Any) -> Iterator[Any]:
    """Yield an environment, all that its wrappers wrap, and the members of a vector environment."""
    while hasattr(source, "__dict__"):
        yield source
        inner = vars(source)
        for member in inner.get("envs", ()):
            yield from _layers(member)
        source = inner.get("env", inner.get("venv"))


def _is_plain(env: gym.Env[Any, Any]) -> bool:
    """Whether a finite ``env`` steps by its table, wrapped by nothing but `gymnasium.make`, and nobody watches.

    The spec alone does not tell: subclasses of the wrappers of `gymnasium.make` are not listed in it.
    """
    spec = env.spec
    listed = spec is None or spec.additional_wrappers
    return not listed and env.render_mode != "human" and FiniteDynamics.known_of(env)


def _copies(env: gym.Env[Any, Any], n_envs: int) -> Any:
    if env.spec is None:
        raise ValueError(f"n_envs must be 1 for {env}: without a spec it cannot be copied")
    for wrapper in env.spec.additional_wrappers:
        if wrapper.kwargs is None:
            raise ValueError(
                f"n_envs must be 1 for {env}: its wrapper {wrapper.name} does not say how it was made "
                "(gymnasium.utils.RecordConstructorArgs), so it cannot be copied"
            )
    spec = copy.deepcopy(env.spec)
    spec.kwargs.pop("render_mode", None)
    return gym.vector.SyncVectorEnv([lambda: gym.make(spec)] * n_envs)
