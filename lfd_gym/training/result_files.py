"""What was learned, in one file of arrays and JSON: nothing that runs code when it is read."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from lfd_gym.baselines.learner import LearningResult
from lfd_gym.features.value_features import LinearValues, ValueFeatures
from lfd_gym.files import read_arrays, write_arrays
from lfd_gym.policies.files import policy_from_data, policy_to_data
from lfd_gym.resources import Resources
from lfd_gym.validation import FloatArray

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
    if not np.array_equal(arrays["expert"], expert):
        raise ValueError(f"{path} was trained on other demonstrations, costs or another discount")
    values: Any = arrays.get("values")
    if "value_weights" in arrays and value_features is not None:
        values = value_features.function(arrays["value_weights"])
    own = {name.removeprefix(_POLICY): array for name, array in arrays.items() if name.startswith(_POLICY)}
    return LearningResult(
        policy_from_data(data["policy"], own),
        arrays.get("cost_weights"),
        values,
        Resources(**data["resources"]),
        data["facts"],
        tuple((int(iteration), float(residual)) for iteration, residual in arrays["history"]),
        data["learner"],
        data["reason"],
    )
