"""Letting a policy play in a generative model: the one loop, the compiled one for finite models, and recording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from lfd_gym._splitmix import draw_seeds
from lfd_gym.demonstrations.columns import read_only
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.trajectory_kernel import simulate
from lfd_gym.model.generative_model import GenerativeModel, TabularModel
from lfd_gym.policies.conversion import policy_table
from lfd_gym.policies.policy import Policy
from lfd_gym.validation import FloatArray, IntArray

#: Entries of the buffer that the compiled loop fills at a time.
_BLOCK = 2_000_000


class Listener(Protocol):
    """What hears of every step of rollouts that run side by side."""

    def step(
        self,
        who: IntArray,
        t: int,
        observations: NDArray[Any],
        actions: NDArray[Any],
        rewards: NDArray[Any] | None = None,
    ) -> None:
        """Take action number ``t`` of each of the rollouts ``who``, the observation it was taken on, and its reward."""
        ...

    def end(
        self, who: IntArray, length: int, observations: NDArray[Any], terminated: Any = False, truncated: Any = False
    ) -> None:
        """Hear that the rollouts ``who`` ended after ``length`` actions; what was observed then."""
        ...


def play(
    model: GenerativeModel,
    policy: Policy,
    n_rollouts: int,
    horizon: int,
    rng: np.random.Generator,
    listener: Listener,
    initial_states: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Let ``policy`` play rollouts side by side, each to its end or to ``horizon``, and tell ``listener``.

    They begin in ``initial_states``, if given. Returns the states that they began in.
    """
    if initial_states is None:
        initial_states = model.sample_initial(n_rollouts, rng)
    states = initial_states
    observations = model.observe(states)
    running = np.arange(n_rollouts)
    with policy.acting(rng), progress_bar(horizon, " steps") as bar:
        act = policy.start(n_rollouts, rng)
        for t in range(horizon + 1):
            ended = model.is_absorbing(states)
            if ended.any():
                listener.end(running[ended], t, observations[ended], terminated=True)
                running, states, observations = running[~ended], states[~ended], observations[~ended]
            if t == horizon or running.size == 0:
                break
            actions = check_actions(act(running, observations), len(observations), model.action_space)
            listener.step(running, t, observations, actions)
            states = model.sample_next(states, actions, rng)
            observations = model.observe(states)
            bar.update()
    listener.end(running, horizon, observations, truncated=True)
    return initial_states


def check_actions(actions: NDArray[Any], n: int, action_space: gym.Space[Any]) -> NDArray[Any]:
    """Return what a policy gave for ``n`` observations, or refuse one that acts in another space."""
    wanted = (n, *(action_space.shape or ()))
    if actions.shape != wanted:
        raise ValueError(
            f"policy must return actions of shape {wanted}, got {actions.shape}: one for each of the {n} observations "
            "that it is given at once"
        )
    return actions


def tabulated(policy: Policy, model: GenerativeModel, n_draws: int) -> FloatArray | None:
    """Return ``policy`` as an (S, A) array if the compiled loop can use it and asking for it pays off."""
    if not (isinstance(model, TabularModel) and policy.has_probabilities):  # others may remember
        return None
    if not hasattr(policy, "table") and model.n_states > 10 * n_draws:
        return None
    return policy_table(policy, model.dynamics)


def table_blocks(
    model: TabularModel, table: FloatArray, n_rollouts: int, horizon: int, rng: np.random.Generator
) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Play an (S, A) policy in compiled code; yield blocks of observations, actions and lengths, flat.

    Rollout k does not depend on how many there are. The arrays are overwritten by the next block.
    """
    seeds = draw_seeds(n_rollouts, rng)
    absorbing = -1 if model.absorbing_state is None else model.absorbing_state
    room = horizon * max(1, min(n_rollouts, _BLOCK // horizon))
    observations = np.empty(2 * room, dtype=np.int64)  # at most as many observations again as actions
    actions = np.empty(room, dtype=np.int64)
    lengths = np.empty(n_rollouts, dtype=np.int64)
    tables = model.initial_table.arrays, model.transition_table.arrays
    done = 0
    with progress_bar(n_rollouts, " trajectories") as bar:
        while done < n_rollouts:
            n_new, written = simulate(
                table, *tables, absorbing, seeds[done:], horizon, observations, actions, lengths[done:]
            )
            yield observations[: written + n_new], actions[:written], lengths[done : done + n_new]
            done += n_new
            bar.update(n_new)


def progress_bar(total: int, unit: str) -> Any:
    """Return a bar that shows after a second, on a terminal."""
    return tqdm(total=total, unit=unit, delay=1, disable=None, leave=False, desc="collecting")


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
        self, observation_space: gym.Space[Any], action_space: gym.Space[Any], cuts: Iterable[int]
    ) -> Demonstrations:
        """Return all trajectories; each must have been ended.

        ``cuts`` are where trajectories may have been cut by design: if all were cut at one of them, it is the horizon.
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
        cut, longest = self._lengths[~self._terminated], self._lengths.max(initial=0)
        horizon = next((h for h in sorted(cuts) if longest <= h and (cut == h).all()), None)
        return Demonstrations(
            observations=read_only(observations),
            actions=read_only(actions),
            offsets=offsets,
            terminated=self._terminated,
            truncated=self._truncated,
            observation_space=observation_space,
            action_space=action_space,
            rewards=None if rewards is None or not np.isfinite(rewards).all() else read_only(rewards),
            horizon=horizon,
        )
