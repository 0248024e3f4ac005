"""The generic costs of a task without costs of its own: chosen from the demonstrations and from random play."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from lfd_gym.costs.fourier import FourierCosts
from lfd_gym.demonstrations.collection import collect
from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.environments import is_environment
from lfd_gym.grids.surroundings import has_surroundings, surroundings
from lfd_gym.model.generative_model import GenerativeModel
from lfd_gym.model.wrappers import OF_OBSERVATIONS, peel
from lfd_gym.policies.tables import UniformPolicy

#: Of the costs that are chosen with a simulator, whose tables on a grid take memory.
_N_FREQUENCIES = 64
#: Episodes of random play, and how long they are at most; samples of these and of the demonstrations.
_N_RANDOM, _RANDOM_STEPS, _N_SAMPLES = 5, 200, 500


def generic_costs(
    env: Any,
    demonstrations: Demonstrations,
    simulator: GenerativeModel | None,
    observations: gym.Space[Any],
    actions: gym.Space[Any],
) -> FourierCosts:
    """Return costs whose scales come from the demonstrations and from random play, as far as anything can be played.

    A demonstration alone, one that balances say, is narrow: by its scales everything else would be far away.
    """
    with_actions, angles = demonstrations.actions is not None, _angles(env)
    if simulator is None or not has_surroundings(simulator):
        return _with_random_play(env, demonstrations, observations, actions, angles)
    states = np.asarray(simulator.states_of(demonstrations.acted_on), dtype=np.float64)  # type: ignore[attr-defined]
    visited, done = surroundings(simulator, states, np.random.default_rng(0))
    return FourierCosts.from_samples(
        simulator.observe(visited),
        done if with_actions else None,
        observations,
        actions,
        chosen_from_demonstrations=True,
        chosen_from=f"{len(demonstrations)} demonstrations and random play around them",
        n_frequencies=_N_FREQUENCIES,
        angles=angles,
    )


def _with_random_play(
    env: Any,
    demonstrations: Demonstrations,
    observations: gym.Space[Any],
    actions: gym.Space[Any],
    angles: Sequence[int],
) -> FourierCosts:
    """Choose as much from a little random play, where there is an environment, as from the expert."""
    with_actions, rng = demonstrations.actions is not None, np.random.default_rng(0)
    unbounded = isinstance(actions, gym.spaces.Box) and not actions.is_bounded()
    if not is_environment(env) or unbounded or not demonstrations.n_transitions:
        return FourierCosts.from_demonstrations(demonstrations, actions=with_actions, angles=angles)
    played = collect(env, UniformPolicy(actions), _N_RANDOM, _RANDOM_STEPS, rng)
    chosen = [(source, rng.integers(source.n_transitions, size=_N_SAMPLES)) for source in (demonstrations, played)]
    return FourierCosts.from_samples(
        np.concatenate([source.acted_on[which] for source, which in chosen]),
        np.concatenate([np.asarray(source.actions)[which] for source, which in chosen]) if with_actions else None,
        observations,
        actions,
        chosen_from_demonstrations=True,
        chosen_from=f"{len(demonstrations)} demonstrations and random play",
        angles=angles,
    )


def _angles(env: Any) -> Sequence[int]:
    """Return which entries of the observations are angles, where the environment says so and no wrapper changes it."""
    effective, within = peel(env)
    if any(type(wrapper) in OF_OBSERVATIONS for wrapper in effective) or isinstance(within, gym.Wrapper):
        return ()
    found: Sequence[int] = getattr(within, "observation_angles", ())
    return found
