"""Checkpoints of long runs: one ``.npz`` file of plain arrays, never pickled, written beside its name and then renamed.

A checkpoint names the problem it belongs to by a *fingerprint*, a hash of what was asked: costs, expert, features,
domains and the model. It is checked before a run continues. Tables are hashed as they are; functions, simulators and
sets by what they answer to a few questions from a fixed stream.

A checksum tells a file that an accident has changed. One that was changed on purpose can have a right checksum, so
every number that a kernel follows is looked at as well, see `restored`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym.files import FileContentError, checksum, read_arrays, refusing, write_arrays
from lfd_gym.model.generative_model import GenerativeModel, TabularModel
from lfd_gym.solvers.saddle.saddle_point import SaddlePointProblem

_FORMAT = "lfd_gym.mirror_descent/5"
_N_PROBES = 64


def save_checkpoint(path: Path, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write ``arrays`` with a JSON ``description``, in place of an older checkpoint."""
    whole = {"format": _FORMAT, **description}
    write_arrays(path, {**whole, "checksum": checksum(whole, arrays)}, arrays, overwrite=True)


def load_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a checkpoint: its description and its arrays."""
    what = "a checkpoint that this version of lfd_gym can continue; use another file"
    description, arrays = read_arrays(path, _FORMAT, what)
    stated = description.pop("checksum", None)
    with refusing(path, f"is not {what}"):
        if stated != checksum(description, arrays):
            raise FileContentError(f"checkpoint {path} is damaged: its content does not match its checksum")
    return description, arrays


def restored(name: str, stored: Any, like: NDArray[Any]) -> NDArray[Any]:
    """Return an array of a checkpoint, of the shape and dtype of that of a new run, all its floats finite."""
    array = np.asarray(stored)
    if array.shape != like.shape or array.dtype != like.dtype:
        raise ValueError(
            f"the checkpoint's {name} has shape {array.shape} and dtype {array.dtype}, "
            f"this problem's {like.shape} and {like.dtype}"
        )
    for part in [array] if array.dtype.names is None else [array[field] for field in array.dtype.names]:
        if part.dtype.kind == "f" and not np.isfinite(part).all():
            raise ValueError(f"the checkpoint's {name} must be finite")
    return array


def require(condition: Any, what: str) -> None:
    """Refuse a checkpoint of which ``what`` is not true."""
    if not np.all(condition):
        raise ValueError(f"a checkpoint's {what}")


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
    names = [
        type(part).__name__ for part in (problem.costs.weights, problem.occupancy_features, problem.value_features)
    ]
    _add_text(digest, repr((problem.discount, problem.value_set, problem.n_value_features, *names)))
    for array in (problem.expert_features, *_tables(problem, model), *_answers(problem, model)):
        _add_text(digest, f"{array.dtype.str}{array.shape}")
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _tables(problem: SaddlePointProblem, model: GenerativeModel) -> Iterator[NDArray[Any]]:
    """Yield all numbers of what is given by numbers."""
    if problem.costs.table is not None:
        yield problem.costs.table
    features: Any
    for features in (problem.occupancy_features, problem.value_features):
        if features.is_finite:
            yield from (features.matrix.indptr, features.matrix.indices, features.matrix.data)
    if isinstance(model, TabularModel):
        yield from (*model.transition_table.arrays, *model.initial_table.arrays)


def _answers(problem: SaddlePointProblem, model: GenerativeModel) -> Iterator[NDArray[Any]]:
    """Draw pairs from columns of Φ and successors; yield them and what costs, features and their sets say there."""
    rng = np.random.default_rng(0)
    yield problem.costs.weights.support(rng.standard_normal((_N_PROBES, problem.n_costs)))
    columns = rng.integers(problem.n_occupancy_features, size=_N_PROBES)
    states, actions = problem.occupancy_features.sample(columns, rng)
    costs = problem.costs.rows(model.observe(states), actions, model.is_absorbing(states))
    yield from (np.asarray(states), np.asarray(actions), costs)
    for batch in (states, model.sample_next(states, actions, rng), model.sample_initial(_N_PROBES, rng)):
        observations = model.observe(batch)
        yield from (observations, problem.value_features.row_sum(observations))


def _add_text(digest: Any, text: str) -> None:
    digest.update(f"{len(text)}:{text}".encode())
