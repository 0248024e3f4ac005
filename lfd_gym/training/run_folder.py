"""The folder of a training run: everything needed to judge it, and to use and check its policy later.

- ``config.json``: what was asked for, and the versions of what did it;
- ``policy.npz``: the policy (`lfd_gym.policies.files`);
- ``weights.json``: the cost weights that explain the expert, if the learner finds any;
- ``certificate.json``: bounds on the distance to the expert, where the cost features are known;
- ``metrics.json``: what learning took, what the learner says, and the evaluation, where the model is known;
- ``log.txt``: what happened, and when.

The folder appears in one step, complete.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lfd_gym.files import FileContentError, check_writable, refusing, replacing_folder
from lfd_gym.policies.files import load_policy, save_policy
from lfd_gym.policies.policy import Policy
from lfd_gym.resources import Resources, machine, versions
from lfd_gym.validation import FloatArray

_FILES = frozenset({"config.json", "policy.npz", "weights.json", "certificate.json", "metrics.json", "log.txt"})
#: What is read of ``config.json``, and of which kinds it is if it is there.
_KINDS: dict[str, Any] = {
    "env": str,
    "env_kwargs": (list, dict),
    "demonstrations": str,
    "discount": (int, float),
    "horizon": int,
    "cost_features": str,
    "allow_mismatch": bool,
}


@dataclass
class RunLog:
    """Lines with the time since the start."""

    lines: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    def write(self, line: str) -> None:
        """Keep a line, and print it."""
        self.lines.append(f"{time.perf_counter() - self.started:9.2f} s  {line}")
        print(line)


def check_run_target(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that cannot be written, or that holds anything but an earlier run.

    Parameters
    ----------
    folder
        Where a run is to be written.
    overwrite
        Whether it may take the place of an earlier run.
    """
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"cannot write {folder}: the folder {folder.parent} does not exist")
    if folder.is_symlink() or folder.exists():
        if not overwrite:
            raise FileExistsError(f"{folder} exists already; --force replaces it")
        _check_own(folder)
    check_writable(folder)


def _check_own(folder: Path) -> None:
    """Refuse to replace what `write_run` did not write."""
    if folder.is_symlink() or not folder.is_dir():
        raise FileExistsError(f"{folder} is not the folder of a training run, and is not replaced")
    strange = sorted(path.name for path in folder.iterdir() if path.name not in _FILES or not path.is_file())
    if strange:
        raise FileExistsError(f"{folder} holds {strange[0]}, which no training run wrote, and is not replaced")
    if any(folder.iterdir()) and not {"machine", "versions"} <= set(read_config(folder)):
        raise FileExistsError(f"{folder / 'config.json'} is not that of a training run, and is not replaced")


def write_run(
    folder: Path,
    *,
    config: Mapping[str, Any],
    policy: Policy,
    cost_weights: FloatArray | None,
    certificate: Mapping[str, Any] | None,
    metrics: Mapping[str, Any],
    log: RunLog,
    overwrite: bool,
) -> None:
    """Write the folder of a run."""
    check_run_target(folder, overwrite)
    with replacing_folder(folder, overwrite) as unfinished:
        unfinished.mkdir()
        save_policy(policy, unfinished / "policy.npz")
        _write_json(unfinished / "config.json", {**config, "machine": machine(), "versions": versions()})
        _write_json(unfinished / "metrics.json", metrics)
        if cost_weights is not None:
            _write_json(unfinished / "weights.json", {"cost_weights": cost_weights.tolist()})
        if certificate is not None:
            _write_json(unfinished / "certificate.json", certificate)
        (unfinished / "log.txt").write_text("\n".join(log.lines) + "\n", encoding="utf-8")


def read_config(folder: Path) -> dict[str, Any]:
    """Return what a run was asked for."""
    path = folder / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is not the folder of a training run: it has no config.json")
    config = _read_json(path)
    for name, kinds in _KINDS.items():
        value = config.get(name)
        if value is not None and (not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool)):
            raise FileContentError(f"{path} is not that of a training run: {name} is {value!r:.80}")
    return config


def read_resources(folder: Path) -> Resources:
    """Return what learning the policy of a run took."""
    metrics = _read_json(folder / "metrics.json")
    with refusing(folder / "metrics.json", "does not say what learning took"):
        return Resources(**metrics["resources"])


def read_policy(folder: Path) -> Policy:
    """Return the policy of a run."""
    return load_policy(folder / "policy.npz")


def _read_json(path: Path) -> dict[str, Any]:
    with refusing(path, "is not a file of a training run"):
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise TypeError(f"it holds {type(content).__name__}, not an object")
        return content


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
