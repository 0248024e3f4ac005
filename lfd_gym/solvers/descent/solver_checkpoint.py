"""Checkpoints of long runs: one ``.npz`` file of plain arrays, never pickled, written beside its name and then renamed.

A checkpoint says which problem it belongs to by a *fingerprint*, a hash of what was asked: costs, expert, features,
domains and the model. Tables are hashed as they are; functions and simulators by what they answer to a few draws from a
fixed stream. It is checked before a run continues.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym.features.occupancy_features import FiniteOccupancyFeatures
from lfd_gym.features.value_features import FiniteValueFeatures
from lfd_gym.files import replacing_file
from lfd_gym.model.generative_model import GenerativeModel, TabularModel
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem

_VERSION = 3
_N_PROBES = 64
_DESCRIPTION = "description"


def save_checkpoint(path: Path, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write ``arrays`` with a JSON ``description``, in place of an older checkpoint."""
    contents: dict[str, Any] = {_DESCRIPTION: np.array(json.dumps({"version": _VERSION, **description})), **arrays}
    with replacing_file(path, overwrite=True) as unfinished, open(unfinished, "wb") as file:
        np.savez(file, **contents)


def load_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a checkpoint: its description and its arrays."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        description: dict[str, Any] = json.loads(str(arrays.pop(_DESCRIPTION)))
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError) as error:
        raise ValueError(f"checkpoint {path} is not a checkpoint of this package: {error}") from error
    if description.get("version") != _VERSION:
        raise ValueError(
            f"checkpoint {path} has version {description.get('version')}, this package reads {_VERSION}; "
            "continue it with the version of the package that wrote it, or use another file"
        )
    return description, arrays


def check_same_run(path: Path, stored: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse to continue a run that was another problem or had other settings."""
    for name, value in asked.items():
        if stored.get(name) == value:
            continue
        if name == "fingerprint":
            raise ValueError(f"checkpoint {path} belongs to another problem or model; use another file")
        if name == "horizon":
            raise ValueError(
                f"checkpoint {path} was made with n_iterations={stored.get(name)}, for which its steps were chosen, "
                f"got {value}; to extend runs, start them with anytime=True"
            )
        raise ValueError(
            f"checkpoint {path} was made with {name}={stored.get(name)!r}, got {value!r}; use another file"
        )


def fingerprint(problem: SaddlePointProblem, model: GenerativeModel) -> str:
    """Hash the problem and the model: what is a table by its numbers, what is not by a few of its answers."""
    digest = hashlib.sha256()
    numbers = (problem.discount, problem.value_radius, problem.value_domain, problem.cost_class)
    _add_text(digest, repr(numbers))
    _add_array(digest, problem.expert_features)
    if not callable(problem.cost_features):
        _add_array(digest, problem.cost_features)
    for features in (problem.occupancy_features, problem.value_features):
        _add_text(digest, f"{type(features).__name__} {features.n_features}")
        if isinstance(features, FiniteOccupancyFeatures | FiniteValueFeatures):
            for array in (features.matrix.indptr, features.matrix.indices, features.matrix.data):
                _add_array(digest, array)
    if isinstance(model, TabularModel):
        for array in (*model.transition_table.arrays, *model.initial_table.arrays):
            _add_array(digest, array)
    else:
        for array in _answers(problem, model):
            _add_array(digest, array)
    return digest.hexdigest()


def _answers(problem: SaddlePointProblem, model: GenerativeModel) -> Iterator[NDArray[Any]]:
    """Draw pairs from columns of Φ and successors; yield them and what costs and features say there."""
    rng = np.random.default_rng(0)
    columns = rng.integers(problem.n_occupancy_features, size=_N_PROBES)
    states, actions = problem.occupancy_features.sample(columns, rng)
    costs = problem.pair_costs(model.observe(states), actions, model.is_absorbing(states))
    yield from (np.asarray(states), np.asarray(actions), costs)
    for batch in (states, model.sample_next(states, actions, rng), model.sample_initial(_N_PROBES, rng)):
        observations = model.observe(batch)
        yield from (observations, problem.value_features.evaluate(observations))


def _add_text(digest: Any, text: str) -> None:
    digest.update(f"{len(text)}:{text}".encode())


def _add_array(digest: Any, array: NDArray[Any]) -> None:
    _add_text(digest, f"{array.dtype.str}{array.shape}")
    digest.update(np.ascontiguousarray(array).data)
