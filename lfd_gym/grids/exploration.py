"""Where random play leads: states to lay a grid over before anything is known of good ones."""

from __future__ import annotations

import numpy as np

from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.policies.tables import UniformPolicy
from lfd_gym.validation import FloatArray

_N_WALKERS, _N_STEPS = 500, 300
#: Actions are held for 1, 2, 4, … steps in the mean, each walker in its own way: short ones stay, long ones go far. It
#: takes the right length to swing a pendulum up, or a car out of its valley.
_N_LENGTHS = 7


def explored(simulator: GenerativeModel, rng: np.random.Generator) -> FloatArray:
    """Return (n, d) states that random play meets from initial states on, with actions that are held for a while."""
    random = UniformPolicy(simulator.action_space)
    states = np.asarray(simulator.sample_initial(_N_WALKERS, rng), dtype=np.float64)
    change = 0.5 ** rng.integers(_N_LENGTHS, size=len(states))
    held = random.sample(states, rng)
    visited = [states]
    for _ in range(_N_STEPS):
        fresh = rng.random(len(states)) < change
        held[fresh] = random.sample(states[fresh], rng)
        states = np.asarray(simulator.sample_next(states, held, rng), dtype=np.float64)
        going = ~simulator.is_absorbing(states)
        states, held, change = states[going], held[going], change[going]
        visited.append(states)
        if not len(states):
            break
    found = np.concatenate(visited)
    wrong = ~np.isfinite(found).all(axis=1)
    if wrong.any():
        raise ValueError(f"env must lead to finite states, random play led to {found[wrong][0]}")
    return found
