"""What cannot be right in demonstrations: steps that are not known, and ends that were none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.costs.costs import hidden_rows
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.validation import IntArray

#: How many trajectories are looked at, and how often the last step of each is drawn again.
_MOST, _DRAWS = 16, 64
#: How far beyond its bounds an action may be, as a share of what lies between them: more than rounding.
_TOLERANCE = 1e-3


def check_known(name: str, demonstrations: Demonstrations) -> None:
    """Refuse steps of which it is not known what was seen, or what was done.

    Rows of NaN stand for the end of an episode, where nothing is paid: a sensor that failed would count as that.
    """
    seen, done = demonstrations.acted_on, demonstrations.actions
    if seen.dtype.kind == "f":
        advice = "a row of NaN stands for the end of an episode, so fill it in"
        _refuse_rows(f"observations of {name}", demonstrations, np.isnan(seen), advice)
    if done is not None and done.dtype.kind == "f":
        advice = "for costs of observations alone, take demonstrations.without_actions()"
        _refuse_rows(f"actions of {name}", demonstrations, ~np.isfinite(done), advice)


def _refuse_rows(what: str, demonstrations: Demonstrations, wrong: NDArray[np.bool_], advice: str) -> None:
    bad = np.flatnonzero(wrong.any(axis=tuple(range(1, wrong.ndim))))
    if bad.size:
        k = int(demonstrations.trajectory_indices[bad[0]])
        raise ValueError(
            f"{what} must be known at every step, but {bad.size} are NaN or infinite, first step "
            f"{bad[0] - demonstrations.offsets[k]} of trajectory {k}: {advice}, or cut the trajectory there"
        )


def doubts(
    demonstrations: Demonstrations, actions: gym.Space[Any], time_limit: int | None, simulator: GenerativeModel | None
) -> Iterator[str]:
    """Say what is allowed, but probably not what was meant, of demonstrations in an environment."""
    ends = doubtful_ends(demonstrations, time_limit, simulator)
    if ends.size:
        yield (
            f"trajectory {ends[0]} is marked as terminated{', as are others,' if ends.size > 1 else ','} but stops at "
            "the time limit, or where the environment goes on: whatever came after counts as free. If a time limit cut "
            "it, it is truncated"
        )
    if demonstrations.actions is None or not isinstance(actions, gym.spaces.Box):
        return
    beyond = np.maximum(actions.low - demonstrations.actions, demonstrations.actions - actions.high)
    far = beyond > _TOLERANCE * np.maximum(1.0, np.minimum(actions.high - actions.low, 1e6))
    if far.any():
        where = tuple(np.argwhere(far)[0])
        yield (
            f"actions leave the action space, {actions}: the first is {demonstrations.actions[where]:g}, and "
            f"{far.mean():.0%} of the entries do. If they are in other units, convert them; if the environment clips "
            "them, clip them as well"
        )


def doubtful_ends(
    demonstrations: Demonstrations, time_limit: int | None, simulator: GenerativeModel | None
) -> IntArray:
    """Return the trajectories marked as terminated that seem to have been cut.

    Such as ran to the time limit, and nothing says that this cut them: an episode that ends there is cut, too. With a
    simulator whose states observations tell, such as do not end when their last step is taken again; of the first few.
    """
    ended = demonstrations.terminated & (demonstrations.lengths > 0)
    suspects = np.flatnonzero(ended)
    if simulator is not None and hasattr(simulator, "states_of") and demonstrations.actions is not None:
        return _not_confirmed(demonstrations, suspects[:_MOST], simulator)
    at_limit = (demonstrations.lengths == time_limit) & ~demonstrations.truncated
    return np.asarray(suspects[at_limit[suspects]])


def _not_confirmed(demonstrations: Demonstrations, which: IntArray, simulator: GenerativeModel) -> IntArray:
    """Return those of ``which`` that end neither where they stop nor in a repetition of their last step."""
    stops = demonstrations.offsets[1:]
    last = demonstrations.observations[stops + np.arange(len(demonstrations))]
    if last.dtype.kind == "f":
        which = which[~hidden_rows(last[which])]
    if which.size == 0:
        return which
    assert demonstrations.actions is not None
    states = simulator.states_of(demonstrations.acted_on[stops[which] - 1])  # type: ignore[attr-defined]
    actions = demonstrations.actions[stops[which] - 1]
    repeated = (np.repeat(states, _DRAWS, axis=0), np.repeat(actions, _DRAWS, axis=0))
    successors = simulator.sample_next(*repeated, np.random.default_rng(0))
    ends = np.asarray(simulator.is_absorbing(successors)).reshape(which.size, _DRAWS).any(axis=1)
    ended = np.asarray(simulator.is_absorbing(simulator.states_of(last[which])))  # type: ignore[attr-defined]
    return np.asarray(which[~(ends | ended)])
