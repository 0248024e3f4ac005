"""The file of what `PrimalDualTrainer` found: arrays and JSON, nothing that runs code when it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lfd_gym.features.occupancy_features import TilePolicy
from lfd_gym.files import replacing_file
from lfd_gym.training.trainer_solvers import LinearValues, Relaxation, Trained
from lfd_gym.validation import FloatArray

_FORMAT = "lfd_gym.PrimalDualTrainer/1"


def write_trained(path: str | Path, trained: Trained, generator: Mapping[str, Any], expert: FloatArray) -> None:
    """Write what was found for the expert's estimated costs, and the state of the generator of its policy."""
    description = {
        "format": _FORMAT,
        "oracle_calls": trained.oracle_calls,
        "facts": dict(trained.facts),
        "generator": dict(generator),
    }
    values, policy = trained.values, trained.policy
    arrays: dict[str, Any] = {
        "policy": policy.table if isinstance(policy, TilePolicy) else policy,
        "cost_weights": trained.cost_weights,
        "values": values.weights if isinstance(values, LinearValues) else values,
        "history": np.array(trained.history, dtype=np.float64).reshape(-1, 2),
        "expert": expert,
        "description": np.array(json.dumps(description)),
    }
    with replacing_file(path, overwrite=True) as unfinished, open(unfinished, "wb") as file:
        np.savez(file, **arrays)


def read_trained(path: str | Path, expert: FloatArray, relaxation: Relaxation) -> tuple[Trained, Mapping[str, Any]]:
    """Return what `write_trained` wrote, or refuse if it was found for other demonstrations."""
    with np.load(path, allow_pickle=False) as file:
        arrays: dict[str, Any] = dict(file)
    description = json.loads(str(arrays.get("description", "{}")))
    if description.get("format") != _FORMAT:
        raise ValueError(f"{path} was not saved by a PrimalDualTrainer")
    if not np.array_equal(arrays["expert"], expert):
        raise ValueError(f"{path} was trained on other demonstrations, costs or another discount")
    policy, values = arrays["policy"], arrays["values"]
    grid = getattr(relaxation.occupancy_features, "grid", None)
    if grid is not None:
        policy, values = TilePolicy(grid, policy), LinearValues(relaxation.value_features, values)
    history = tuple((int(iteration), float(residual)) for iteration, residual in arrays["history"])
    trained = Trained(
        policy, arrays["cost_weights"], values, description["oracle_calls"], description["facts"], history
    )
    return trained, description["generator"]
