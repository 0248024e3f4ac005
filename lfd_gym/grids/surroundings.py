"""What lies around demonstrations: states that random play reaches from them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.policies.policy import Policy
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.validation import FloatArray

#: How many begin, how far they go, and for how many steps they hold an action.
_N_WALKERS, _N_STEPS, _N_HELD = 3000, 10, 3
_N_INITIAL = 200


def surroundings(
    simulator: GenerativeModel, demonstrated: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, NDArray[Any]]:
    """Play random actions from demonstrated and initial states on, for a few steps.

    Returns
    -------
    states
        (n, d): where it began, and where it led.
    actions
        (n, …) random ones, one for each.
    """
    random = UniformPolicy(simulator.action_space)
    begun = np.concatenate([demonstrated, simulator.sample_initial(_N_INITIAL, rng)])
    states = begun[rng.integers(len(begun), size=_N_WALKERS)]
    visited = [begun]
    held = random.sample(states, rng)
    for step in range(_N_STEPS):
        if step % _N_HELD == 0:
            held = random.sample(states, rng)
        states = np.asarray(simulator.sample_next(states, held, rng), dtype=np.float64)
        going = ~simulator.is_absorbing(states)
        states, held = states[going], held[going]
        visited.append(states)
        if not len(states):
            break
    found = np.concatenate(visited)
    wrong = ~np.isfinite(found).all(axis=1)
    if wrong.any():
        raise ValueError(f"simulator must lead to finite states, random play led to {found[wrong][0]}")
    return found, random.sample(found, rng)


def followed(
    simulator: GenerativeModel, policy: Policy, states: FloatArray, n_steps: int, rng: np.random.Generator
) -> FloatArray:
    """Return (n, d) states that a policy visits from ``states`` on."""
    visited = [states]
    for _ in range(n_steps):
        states = np.asarray(simulator.sample_next(states, policy.sample(simulator.observe(states), rng), rng))
        states = states[~simulator.is_absorbing(states)]
        visited.append(states)
        if not len(states):
            break
    return np.concatenate(visited)


def has_surroundings(simulator: GenerativeModel | None) -> bool:
    """Say whether demonstrations can be put into a simulator, whose states are vectors."""
    states = getattr(simulator, "state_space", None)
    return isinstance(states, gym.spaces.Box) and len(states.shape) == 1 and hasattr(simulator, "states_of")
