"""Letting a policy play in a generative model: the one loop, and the compiled one for finite models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from lfd_gym._splitmix import draw_seeds
from lfd_gym.demonstrations.trajectory_kernel import simulate
from lfd_gym.model.generative_model import GenerativeModel, TabularModel
from lfd_gym.policies.policy import GreedyPolicy, Policy, policy_table
from lfd_gym.validation import FloatArray, IntArray

#: Entries of the buffer that the compiled loop fills at a time.
_BLOCK = 2_000_000


class Listener(Protocol):
    """What hears of every step of rollouts that run side by side."""

    def step(self, who: IntArray, t: int, observations: NDArray[Any], actions: NDArray[Any]) -> None:
        """Take action number ``t`` of each of the rollouts ``who``, and the observation it was taken on."""
        ...

    def end(
        self, who: IntArray, length: int, observations: NDArray[Any], terminated: Any = False, truncated: Any = False
    ) -> None:
        """Hear that the rollouts ``who`` ended after ``length`` actions; what was observed then."""
        ...


def play(
    model: GenerativeModel, policy: Policy, n_rollouts: int, horizon: int, rng: np.random.Generator, listener: Listener
) -> None:
    """Let ``policy`` play rollouts side by side, each to its end or to ``horizon``, and tell ``listener``."""
    states = model.sample_initial(n_rollouts, rng)
    observations = model.observe(states)
    running = np.arange(n_rollouts)
    with policy.acting(rng), progress_bar(horizon, " steps") as bar:
        for t in range(horizon + 1):
            ended = model.is_absorbing(states)
            if ended.any():
                listener.end(running[ended], t, observations[ended], terminated=True)
                running, states, observations = running[~ended], states[~ended], observations[~ended]
            if t == horizon or running.size == 0:
                break
            actions = draw_actions(policy, observations, model.action_space, rng)
            listener.step(running, t, observations, actions)
            states = model.sample_next(states, actions, rng)
            observations = model.observe(states)
            bar.update()
    listener.end(running, horizon, observations, truncated=True)


def draw_actions(
    policy: Policy, observations: NDArray[Any], action_space: gym.Space[Any], rng: np.random.Generator
) -> NDArray[Any]:
    """Return one action for each observation, or refuse a policy that acts in another space."""
    actions = policy.sample(observations, rng)
    wanted = (len(observations), *(action_space.shape or ()))
    if actions.shape != wanted:
        raise ValueError(f"policy must return actions of shape {wanted}, got {actions.shape}")
    return actions


def tabulated(policy: Policy, model: GenerativeModel, n_draws: int) -> FloatArray | None:
    """Return ``policy`` as an (S, A) array if the compiled loop can use it and asking for it pays off."""
    greedy = isinstance(policy, GreedyPolicy)
    if not (isinstance(model, TabularModel) and (policy.has_probabilities or greedy)):
        return None
    if not hasattr(policy, "table") and model.n_states > 10 * n_draws:
        return None
    return policy_table(policy, model.dynamics, deterministic=greedy)


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
