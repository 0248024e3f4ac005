"""Letting a policy play episodes in any environment: the one loop."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.demonstrations.rollouts import Listener, check_actions, progress_bar
from lfd_gym.demonstrations.side_by_side import SideBySide, side_by_side
from lfd_gym.policies.policy import Policy
from lfd_gym.validation import IntArray


def play_episodes(
    source: Any,
    policy: Policy,
    n_episodes: int,
    horizon: int | None,
    rng: np.random.Generator,
    listener: Listener,
    *,
    n_envs: int | None = None,
    on_reset: Callable[[], None] | None = None,
) -> None:
    """Let ``policy`` play episodes, each to its end or to ``horizon``, and tell ``listener``.

    They are played in rounds, one episode in each environment, all begun by a seeded reset. What an environment does
    after its episode has ended, such as starting anew by itself, is not heard of. So episodes are independent, and none
    is preferred for being short. ``t`` starts at 0 in every round.

    Parameters
    ----------
    source
        An environment, wrapped or not; a vector environment of Gymnasium; or a `VecEnv` of Stable-Baselines3, with its
        wrappers as they are: one that normalises is heard of as it normalises.
    policy
        Acts on arrays: observations and actions of Dict and Tuple spaces are flattened, see `lfd_gym.spaces`.
    n_episodes
        How many.
    horizon
        The largest number of actions in each. None: every episode runs to its own end. Where there is neither a time
        limit nor any other end, that is for ever.
    rng
        Drives everything: the seeds of the environments, the policy's actions.
    listener
        Hears of every step, with rewards, and every end. Time limits truncate, and so does the horizon.
    n_envs
        For a single environment: how many copies (made with ``gymnasium.make(env.spec)``) run side by side. By default
        it runs alone; the finite environments of this package run all episodes side by side.
    on_reset
        Called whenever the environments have been reset.
    """
    with (
        side_by_side(source, n_envs, n_episodes) as envs,
        policy.acting(rng),
        progress_bar(n_episodes, " trajectories") as bar,
    ):
        for first in range(0, n_episodes, envs.num_envs):
            n_begun = min(envs.num_envs, n_episodes - first)
            observations = envs.reset(int(rng.integers(2**31 - envs.num_envs)))
            if on_reset is not None:
                on_reset()
            _play_round(envs, observations, policy, first, n_begun, horizon, rng, listener, bar)


def _play_round(
    envs: SideBySide,
    observations: NDArray[Any],
    policy: Policy,
    first: int,
    n_episodes: int,
    horizon: int | None,
    rng: np.random.Generator,
    listener: Listener,
    bar: Any,
) -> None:
    running = np.arange(n_episodes)
    act = policy.start(n_episodes, rng)
    for t in count() if horizon is None else range(horizon):
        seen = observations[running]
        actions = _in_space(check_actions(act(running, seen), len(seen), envs.action_space), envs.action_space)
        step = envs.step(_for_all(envs.num_envs, running, actions))
        observations = step.observations
        listener.step(running + first, t, seen, actions, step.rewards[running])
        over = step.terminated[running] | step.truncated[running]
        if over.any():
            ended = running[over]
            listener.end(ended + first, t + 1, step.last(ended), step.terminated[ended], step.truncated[ended])
            bar.update(ended.size)
            running = running[~over]
            if running.size == 0:
                return
    assert horizon is not None
    listener.end(running + first, horizon, observations[running], truncated=True)
    bar.update(running.size)


def _in_space(actions: NDArray[Any], space: gym.Space[Any]) -> NDArray[Any]:
    """Return a policy's actions in the dtype of the space."""
    if not np.can_cast(actions.dtype, space.dtype, "same_kind"):  # type: ignore[arg-type]
        raise ValueError(f"policy must return actions of a type that fits {space}, got {actions.dtype}")
    return actions.astype(space.dtype, copy=False)


def _for_all(num_envs: int, running: IntArray, actions: NDArray[Any]) -> NDArray[Any]:
    """Fill up ``actions`` with any action for the environments whose episode has ended."""
    if running.size == num_envs:
        return actions
    filled = np.broadcast_to(actions[0], (num_envs, *actions.shape[1:])).copy()
    filled[running] = actions
    return filled
