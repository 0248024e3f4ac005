"""Reading a benchmark from a file: all that is wrong with it is said at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeAlias

from lfd_gym.benchmark.spec import BenchmarkSpec, EnvironmentSpec, LearnerSpec, check_kind
from lfd_gym.envs.named import check_named_environment, check_named_learner
from lfd_gym.files import refusing
from lfd_gym.validation import all_at_once

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: Sees whether an environment or a learner can be made, and raises what is wrong with it.
TryOut: TypeAlias = Callable[[EnvironmentSpec | LearnerSpec], None]


def _nothing(part: EnvironmentSpec | LearnerSpec) -> None:
    """Try nothing out."""


#: What stands in for a part that is missing or wrong, so that the mistakes of the rest can be told.
_STAND_INS: dict[Any, dict[str, Any]] = {
    EnvironmentSpec: {"label": "unnamed", "env_id": "none", "discount": 0.5},
    LearnerSpec: {"name": "unnamed"},
}
_STAND_INS[BenchmarkSpec] = {
    "environments": (EnvironmentSpec(**_STAND_INS[EnvironmentSpec]),),
    "learners": (LearnerSpec(**_STAND_INS[LearnerSpec]),),
    "n_demonstrations": (1,),
    "seeds": (0,),
}


def read_spec(path: str | Path, imported: Sequence[str] | None = (), try_out: TryOut = _nothing) -> BenchmarkSpec:
    """Read a spec from a TOML file (``[[environments]]``, ``[[learners]]`` and the rest) or a ``spec.json``.

    Parameters
    ----------
    path
        The file.
    imported
        Modules that the environments and learners in it may come from, beside Gymnasium and this package; others
        are refused. None if nothing is to be made of what is read.
    try_out
        As for `spec_from_dict`; only what may be made gets there.
    """
    file = Path(path)
    reader = json if file.suffix == ".json" else tomllib

    def allowed(part: EnvironmentSpec | LearnerSpec) -> None:
        if imported is not None and isinstance(part, EnvironmentSpec):
            check_named_environment(str(file), part.env_id, part.kwargs, imported)
        elif imported is not None and isinstance(part, LearnerSpec):
            check_named_learner(str(file), part.name, imported)
        try_out(part)

    if not file.exists():
        raise FileNotFoundError(f"there is no file {file}")
    with refusing(file, f"is not a {file.suffix[1:].upper()} file of a benchmark"):
        return spec_from_dict(reader.loads(file.read_text(encoding="utf-8")), allowed)


def spec_from_dict(data: Mapping[str, Any], try_out: TryOut = _nothing) -> BenchmarkSpec:
    """Build from plain data, refusing all that is wrong with it at once.

    Parameters
    ----------
    data
        As `BenchmarkSpec.to_dict` returns it; what has a default may be missing.
    try_out
        Called with each environment and learner; what it raises is said with the rest.
    """
    with all_at_once() as each:
        with each():
            _check_keys("benchmark", data, BenchmarkSpec)
        parts = {**_STAND_INS[BenchmarkSpec], **_known_keys(data, BenchmarkSpec)}
        for axis, part in (("environments", EnvironmentSpec), ("learners", LearnerSpec)):
            made = []
            for k, entry in enumerate(parts[axis] if isinstance(parts[axis], list | tuple) else ()):
                with each():
                    _check_keys(f"{axis}[{k}]", entry, part)
                with each():
                    part(**_STAND_INS[part] | _known_keys(entry, part))
                made.append(_what_can_be_read(part, entry, k))
                with each():
                    if isinstance(entry, Mapping) and not _missing(entry, part):
                        try_out(made[-1])
            parts[axis] = tuple(made) or _STAND_INS[BenchmarkSpec][axis] * (axis not in data)
        with each():
            spec = BenchmarkSpec(**parts)
    return spec


def _what_can_be_read(part: Any, entry: Any, k: int) -> Any:
    """Return the ``k``-th entry of an axis, with stand-ins for what is wrong in it."""
    sound = {name: f"entry-{k}" if isinstance(value, str) else value for name, value in _STAND_INS[part].items()}
    sound["label"] = f"entry-{k}"
    for name, value in {"label": "", **_known_keys(entry, part)}.items():
        try:
            part(**sound | {name: value})
        except (TypeError, ValueError):
            continue
        sound |= {name: value}
    return part(**sound)


def _known_keys(entry: Any, part: Any) -> dict[str, Any]:
    names = {f.name for f in fields(part)}
    return {key: value for key, value in entry.items() if key in names} if isinstance(entry, Mapping) else {}


def _missing(entry: Any, part: Any) -> list[str]:
    return [f.name for f in fields(part) if f.name not in entry and not _has_default(f)]


def _check_keys(where: str, entry: Any, part: Any) -> None:
    """Refuse an entry with settings that mean nothing, or without those that are needed."""
    check_kind(where, entry, Mapping, "a table of settings")
    known = [f.name for f in fields(part)]
    unknown = [f"{where} has no setting {key!r}; it takes {', '.join(known)}" for key in entry if key not in known]
    mistakes = unknown + [f"{where} lacks the setting {name!r}" for name in _missing(entry, part)]
    if mistakes:
        raise ValueError("; ".join(mistakes))


def _has_default(part: Any) -> bool:
    return part.default is not MISSING or part.default_factory is not MISSING
