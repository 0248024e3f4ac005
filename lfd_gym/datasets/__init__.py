"""Expert demonstrations that come with the package: 25 whole episodes for each of some Gymnasium environments.

``names()`` lists them, ``load(name)`` returns `Demonstrations`, ``info(name)`` says whose they are, what the expert and
the random policy get, and under what licence they may be used. `to_minari` makes a Minari dataset of one, with the
reference scores that Minari normalises by. ``benchmarks/make_datasets.py`` makes all of them again.

Environments are called as in the newest Gymnasium. Where the installed one only has the version before, the
demonstrations are given out as of that: what happens in it is the same. Files of runners hold single precision, which
halves their size.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from lfd_gym.arguments import checked
from lfd_gym.demonstrations.demonstrations import Demonstrations

if TYPE_CHECKING:
    from minari import MinariDataset

#: Name in the newest Gymnasium → the one before.
OLDER = {
    "InvertedPendulum-v5": "InvertedPendulum-v4",
    "InvertedDoublePendulum-v5": "InvertedDoublePendulum-v4",
    "HalfCheetah-v5": "HalfCheetah-v4",
    "Hopper-v5": "Hopper-v4",
    "LunarLander-v3": "LunarLander-v2",
}
#: What the older version observes beside, at the end: forces that are always zero.
_ZEROS_BESIDE = {"InvertedDoublePendulum-v5": 2}


__all__ = ["DatasetInfo", "info", "installed_id", "load", "names", "to_minari"]


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a dataset.

    Attributes
    ----------
    name
        What `load` takes.
    env_id
        The environment, as it is called in the newest Gymnasium.
    expert
        Who demonstrates.
    expert_return, expert_deviation, random_return, random_deviation
        Mean and standard deviation of the returns of the expert's and of the random policy's episodes, other ones
        than the demonstrated: the ends of the scale of scores.
    n_reference_episodes
        How many these were, of each.
    n_trajectories, n_transitions
        What the dataset holds.
    licence
        Under which it may be used.
    made_with
        Versions of what made it.
    """

    name: str
    env_id: str
    expert: str
    expert_return: float
    expert_deviation: float
    random_return: float
    random_deviation: float
    n_reference_episodes: int
    n_trajectories: int
    n_transitions: int
    licence: str
    made_with: str


def names() -> list[str]:
    """Return the names of all datasets, sorted.

    Examples
    --------
    >>> import lfd_gym as lfd
    >>> lfd.datasets.names()[:2]
    ['acrobot-expert', 'cartpole-expert']
    """
    return sorted(_index())


@checked
def info(name: str) -> DatasetInfo:
    """Return what is known of a dataset.

    Examples
    --------
    >>> import lfd_gym as lfd
    >>> found = lfd.datasets.info("cartpole-expert")
    >>> found.env_id, found.expert_return, found.licence
    ('CartPole-v1', 500.0, 'MIT')
    """
    if name not in _index():
        raise ValueError(f"name must be that of a dataset, got {name!r}; there are {', '.join(names())}")
    return DatasetInfo(**_index()[name])


@checked
def load(name: str) -> Demonstrations:
    """Return the demonstrations of that name, of the version of the environment that the installed Gymnasium has.

    Examples
    --------
    >>> import lfd_gym as lfd
    >>> lfd.datasets.load("mountaincar-expert").provenance.env_id
    'MountainCar-v0'
    """
    known = info(name)
    with resources.as_file(_folder() / f"{name}.npz") as file:
        demonstrations = _as_observed(Demonstrations.load(file))
    env_id = installed_id(known.env_id)
    if env_id == known.env_id:
        return demonstrations
    return _as_before(demonstrations, _ZEROS_BESIDE.get(known.env_id, 0)).with_provenance(env_id=env_id)


def to_minari(name: str, dataset_id: str, *, overwrite: bool = False, **metadata: Any) -> MinariDataset:
    """Write a local Minari dataset with reference scores, by which `minari.get_normalized_score` goes.

    Parameters
    ----------
    name
        Of the dataset.
    dataset_id
        Of Minari's: ``(namespace/)name-v(version)``.
    overwrite
        Whether a dataset of that name may be replaced.
    **metadata
        ``author``, ``author_email`` and ``code_permalink``, which Minari asks of those who publish.
    """
    known = info(name)
    return load(name).to_minari(
        dataset_id,
        overwrite=overwrite,
        description=f"Expert demonstrations of {known.env_id}: {known.expert}. Licence: {known.licence}.",
        ref_min_score=known.random_return,
        ref_max_score=known.expert_return,
        num_episodes_average_score=known.n_reference_episodes,
        **metadata,
    )


def installed_id(env_id: str) -> str:
    """Return the id of the same environment in the installed Gymnasium.

    Those of MuJoCo that are v5 came with Gymnasium 1.0. They move as v4 do, and differ by the reward of the last step.
    """
    return env_id if env_id in gym.registry else OLDER.get(env_id, env_id)


def _as_observed(demonstrations: Demonstrations) -> Demonstrations:
    """Return demonstrations whose file is in single precision in that of the environment."""
    seen, rewards = demonstrations.observations, demonstrations.rewards
    wanted = demonstrations.observation_space.dtype
    if seen.dtype == wanted or rewards is None:
        return demonstrations
    return replace(demonstrations, observations=seen.astype(wanted), rewards=rewards.astype(np.float64))


def _as_before(demonstrations: Demonstrations, n_zeros: int) -> Demonstrations:
    seen = demonstrations.observations
    if not n_zeros:
        return demonstrations
    wider = gym.spaces.Box(-np.inf, np.inf, (seen.shape[1] + n_zeros,), np.float64)
    zeros = np.zeros((len(seen), n_zeros), seen.dtype)
    return replace(demonstrations, observations=np.hstack([seen, zeros]), observation_space=wider)


@cache
def _index() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((_folder() / "index.json").read_text(encoding="utf-8"))
    return found


def _folder() -> Path:
    return Path(str(resources.files("lfd_gym.datasets")))
