"""Demonstrations in every form that `imitation` takes, turned into ours.

Discounted costs need to know *when* a step was taken, so steps must come in the order in which they were taken:
trajectories, flattened transitions, or batches of transitions in order. Shuffled steps are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np

from lfd_gym.demonstrations.demonstrations import Demonstrations


def as_demonstrations(
    source: Any, observation_space: gym.Space[Any], action_space: gym.Space[Any], horizon: int | None = None
) -> Demonstrations:
    """Return ``source`` as `Demonstrations`.

    Parameters
    ----------
    source
        `Demonstrations`; a sequence of `imitation` trajectories; its `Transitions`, in their original order; an
        iterable of batches (mappings with ``obs``, ``acts``, ``next_obs`` and ``dones``) in order, e.g. a data loader
        that does not shuffle; or a path: of a ``.npz`` file that `Demonstrations.save` wrote, or of a dataset that
        `imitation` saved.
    observation_space, action_space
        Of the environment.
    horizon
        Where a time limit cuts its episodes, if it does; see `Demonstrations.from_imitation`. `Demonstrations` know
        themselves how they ended.
    """
    spaces = observation_space, action_space
    if isinstance(source, Demonstrations):
        return source
    if isinstance(source, str | Path):
        if Path(source).suffix == ".npz":
            return Demonstrations.load(source)
        if not Path(source).is_dir():
            raise ValueError(
                f"demonstrations must be a .npz file of lfd_gym or the folder of a dataset of imitation, got {source}; "
                "for lists and arrays of your own there is lfd_gym.Demonstrations.from_episodes"
            )
        return Demonstrations.from_imitation(source, *spaces, horizon)
    if hasattr(source, "obs") and hasattr(source, "acts"):
        return _from_steps(source, *spaces, horizon)
    if not isinstance(source, Iterable) or getattr(source, "shape", None) == ():
        raise TypeError(f"demonstrations cannot be {type(source).__name__}: pass trajectories or transitions")
    items = list(source)
    if not items:
        raise ValueError("demonstrations must hold at least one trajectory")
    if isinstance(items[0], Mapping):
        return _from_steps(_joined(items), *spaces, horizon)
    return Demonstrations.from_imitation(items, *spaces, horizon)


def _joined(batches: list[Mapping[str, Any]]) -> Any:
    missing = {"obs", "acts", "next_obs", "dones"} - set(batches[0])
    if missing:
        raise ValueError(
            f"batches of demonstrations lack {sorted(missing)}: without them it is not known which step follows which"
        )
    columns = {
        name: np.concatenate([np.asarray(batch[name]) for batch in batches]) for name in batches[0] if name != "infos"
    }
    infos = [info for batch in batches for info in batch.get("infos", [{}] * len(np.asarray(batch["acts"])))]
    return SimpleNamespace(**columns, infos=infos)


def _from_steps(
    steps: Any, observation_space: gym.Space[Any], action_space: gym.Space[Any], horizon: int | None
) -> Demonstrations:
    if not hasattr(steps, "next_obs") or not hasattr(steps, "dones"):
        raise ValueError(
            "demonstrations are steps without next_obs and dones: it is not known which step follows which, so their "
            "costs cannot be discounted; pass trajectories, or Transitions in order"
        )
    demonstrations = Demonstrations.from_imitation(steps, observation_space, action_space, horizon)
    n_ended = int((demonstrations.terminated | demonstrations.truncated).sum())
    if len(demonstrations) > 10 and len(demonstrations) > 2 * n_ended + 1:
        raise ValueError(
            f"demonstrations look shuffled: {demonstrations.n_transitions} steps fall apart into {len(demonstrations)} "
            f"pieces, but only {n_ended} of them end an episode; pass trajectories, or steps in their original order"
        )
    return demonstrations


def over_states(demonstrations: Demonstrations) -> Demonstrations:
    """Return demonstrations over states instead of their one-hot vectors; others as they are."""
    space = demonstrations.observation_space
    if space.shape is None or len(space.shape) != 1:
        return demonstrations
    observations = demonstrations.observations
    if not (((observations == 0) | (observations == 1)).all() and (observations.sum(axis=1) == 1).all()):
        return demonstrations
    return replace(
        demonstrations,
        observations=observations.argmax(axis=1),
        observation_space=gym.spaces.Discrete(space.shape[0]),
    )
