"""Whether an environment that is put into a state goes on from there as it did before."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from lfd_gym.envs.simulator import flat

_STEPS = 25


class Restorable(Protocol):
    """What `play` and `agrees` need of the model that holds the borrowed environment."""

    env: Any

    def _state(self) -> Any:
        """Return the state of the environment."""
        ...

    def _observation(self, state: Any) -> Any:
        """Return what the environment shows of ``state``."""
        ...

    def _step_from(self, state: Any, action: Any) -> Any:
        """Put the environment into ``state`` and step."""
        ...


@dataclass(frozen=True)
class Moment:
    """A step that an environment has made.

    Attributes
    ----------
    state, observation, action
        Before it; the observation is that of ``reset`` or of the step before.
    outcome
        The observation, the reward and whether the episode ended.
    seed
        Of the stream that the step drew from.
    """

    state: Any
    observation: Any
    action: Any
    outcome: tuple[Any, ...]
    seed: int


def play(model: Restorable) -> list[Moment]:
    """Let the borrowed environment play two short episodes by itself.

    One with random actions, one with an extreme action held, which leads to where joints end and bodies fall.
    """
    env: Any = model.env
    moments: list[Moment] = []
    space = copy.deepcopy(env.action_space)  # drawing from it would change that of the environment
    space.seed(0)
    held = space.sample()
    if isinstance(space, gym.spaces.Box) and space.is_bounded():
        held = np.where(held > (space.low + space.high) / 2, space.high, space.low)
    for chosen in (space.sample, lambda: held):
        env.np_random = np.random.default_rng(len(moments))
        observation, _ = env.reset()
        for _ in range(_STEPS):
            state, seen, action, seed = model._state(), _copy(env, observation), chosen(), len(moments)
            env.np_random = np.random.default_rng(seed)
            observation, reward, terminated, truncated, _ = env.step(action)
            outcome = (_copy(env, observation), float(reward), bool(terminated))
            moments.append(Moment(state, seen, action, outcome, seed))
            if terminated or truncated:
                break
    return moments


def agrees(model: Restorable, moments: Iterable[Moment], *, tolerance: float = 0.0) -> bool:
    """Whether the environment, put into the state of each moment, shows the same and steps as it did there.

    In between it has been reset, and the moments come last one first: what the environment keeps of an episode or of
    the step before, beside the state, is then another.
    """
    env = model.env
    env.np_random = np.random.default_rng(2**32)
    env.reset()
    for moment in reversed(list(moments)):
        env.np_random = np.random.default_rng(moment.seed)
        shown = _copy(env, model._observation(moment.state))
        observation, reward, terminated, _, _ = model._step_from(moment.state, moment.action)
        found = (shown, _copy(env, observation), float(reward), bool(terminated))
        for one, other in zip(found, (moment.observation, *moment.outcome), strict=True):
            if not np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True):
                return False
    return True


def _copy(env: Any, observation: Any) -> Any:
    return np.array(flat(env.observation_space, observation))
