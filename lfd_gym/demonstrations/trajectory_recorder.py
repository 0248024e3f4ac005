"""Recording trajectories that run side by side and end at different times."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.demonstrations.columns import read_only
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.validation import IntArray


class TrajectoryRecorder:
    """Keeps what was recorded, step by step, and no more than that; then lays it out trajectory by trajectory."""

    def __init__(self, n_trajectories: int) -> None:
        self._lengths = np.zeros(n_trajectories, dtype=np.int64)
        self._terminated = np.zeros(n_trajectories, dtype=bool)
        self._truncated = np.zeros(n_trajectories, dtype=bool)
        self._steps: list[tuple[IntArray, int, NDArray[Any], NDArray[Any], NDArray[Any] | None]] = []
        self._ends: list[tuple[IntArray, NDArray[Any]]] = []

    def step(
        self,
        who: IntArray,
        t: int,
        observations: NDArray[Any],
        actions: NDArray[Any],
        rewards: NDArray[Any] | None = None,
    ) -> None:
        """Record action number ``t`` of each of the trajectories ``who``, and the observation it was taken on."""
        self._steps.append((who, t, observations, actions, rewards))

    def end(
        self, who: IntArray, length: int, observations: NDArray[Any], terminated: Any = False, truncated: Any = False
    ) -> None:
        """Record that the trajectories ``who`` ended after ``length`` actions, and what was observed then."""
        if who.size:
            self._ends.append((who, observations))
            self._lengths[who] = length
            self._terminated[who] = terminated
            self._truncated[who] = truncated

    def demonstrations(
        self, observation_space: gym.Space[Any], action_space: gym.Space[Any], horizon: int
    ) -> Demonstrations:
        """Return all trajectories; each must have been ended.

        ``horizon`` is where trajectories are cut by design. If an environment has cut one elsewhere, there is none.
        """
        offsets = np.concatenate([[0], np.cumsum(self._lengths)])
        n_transitions, n_trajectories = int(offsets[-1]), self._lengths.size
        last = self._ends[0][1]
        observations = np.empty((n_transitions + n_trajectories, *last.shape[1:]), dtype=last.dtype)
        action_dtype = self._steps[0][3].dtype if self._steps else np.int64
        actions = np.empty((n_transitions, *(action_space.shape or ())), dtype=action_dtype)
        with_rewards = bool(self._steps) and self._steps[0][4] is not None
        rewards = np.empty(n_transitions) if with_rewards else None
        for who, t, seen, taken, gained in self._steps:
            rows = offsets[who] + t
            actions[rows] = taken
            observations[rows + who] = seen
            if rewards is not None:
                rewards[rows] = gained
        for who, seen in self._ends:
            observations[offsets[who + 1] + who] = seen
        cut_by_design = (self._lengths[~self._terminated] == horizon).all()
        return Demonstrations(
            observations=read_only(observations),
            actions=read_only(actions),
            offsets=offsets,
            terminated=self._terminated,
            truncated=self._truncated,
            observation_space=observation_space,
            action_space=action_space,
            rewards=None if rewards is None else read_only(rewards),
            horizon=horizon if cut_by_design else None,
        )
