"""What was learned, in one file of arrays and JSON: nothing that runs code when it is read."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from lfd_gym.baselines.learner import LearningResult
from lfd_gym.features.value_features import LinearValues, ValueFeatures
from lfd_gym.files import FileContentError, read_arrays, refusing, write_arrays
from lfd_gym.policies.files import policy_from_data, policy_to_data
from lfd_gym.resources import Resources
from lfd_gym.validation import FloatArray, finite_array

_FORMAT = "lfd_gym.result/1"
_POLICY = "policy:"


def save_result(result: LearningResult, path: str | Path, expert: FloatArray) -> None:
    """Write ``result``, found for the expert's estimated costs ``expert``, in place of an older file."""
    policy, policy_arrays = policy_to_data(result.policy)
    description = {
        "format": _FORMAT,
        "policy": policy,
        "resources": asdict(result.resources),
        "facts": dict(result.facts),
        "learner": result.learner,
        "reason": result.reason,
    }
    arrays: dict[str, Any] = {_POLICY + name: array for name, array in policy_arrays.items()}
    arrays |= {"history": np.array(result.history, dtype=np.float64).reshape(-1, 2), "expert": expert}
    if result.cost_weights is not None:
        arrays["cost_weights"] = result.cost_weights
    if isinstance(result.values, LinearValues):
        arrays["value_weights"] = result.values.weights
    elif result.values is not None:
        arrays["values"] = result.values
    write_arrays(path, description, arrays, overwrite=True)


def load_result(path: str | Path, expert: FloatArray, value_features: ValueFeatures | None = None) -> LearningResult:
    """Return what `save_result` wrote, or refuse if it was found for other demonstrations.

    ``value_features`` are those of a value function over observations, which is kept by its weights alone.
    """
    data, arrays = read_arrays(path, _FORMAT, "a result saved by lfd_gym")
    with refusing(path, "does not hold the result that it describes"):
        if not np.array_equal(arrays["expert"], expert):
            raise FileContentError(f"{path} was trained on other demonstrations, costs or another discount")
        own = {name.removeprefix(_POLICY): array for name, array in arrays.items() if name.startswith(_POLICY)}
        history = finite_array("history", arrays["history"], (None, 2))
        return LearningResult(
            policy_from_data(data["policy"], own),
            _finite(arrays, "cost_weights", expert.size),
            _values(arrays, value_features),
            _resources(data["resources"]),
            dict(data["facts"]),
            tuple((int(iteration), float(residual)) for iteration, residual in history),
            str(data["learner"]),
            str(data["reason"]),
        )


def _finite(arrays: dict[str, Any], name: str, size: int | None) -> FloatArray | None:
    return finite_array(name, arrays[name], (size,)) if name in arrays else None


def _values(arrays: dict[str, Any], features: ValueFeatures | None) -> Any:
    if "value_weights" in arrays and features is not None:
        return features.function(finite_array("value_weights", arrays["value_weights"], (features.n_features,)))
    return _finite(arrays, "values", None)


def _resources(data: dict[str, Any]) -> Resources:
    for name, value in data.items():
        if value is not None and not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a number that is not negative, got {value!r}")
    return Resources(**data)
