"""Environments that a file names: made only if nothing is imported that the user did not ask for on this call.

`gymnasium.make` imports the module before the colon of an id, and the module of the registered entry point; some
environments make others by an id in their arguments. A file may therefore name only what Gymnasium or this package
registers, or a module that the user names (``--import`` on the command line). In a program of one's own, environments
that it has registered itself are fine too: making them imports nothing.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import gymnasium as gym

_KNOWN = ("gymnasium", "lfd_gym")
#: They make any environment of the old Gym, by an id in their arguments.
_MAKERS = re.compile(r"GymV\d+Environment")
#: What `gymnasium.make` and entry points take for a module and something in it.
_MODULE_AND_NAME = re.compile(r"\s*[\w.]+:.+", re.DOTALL)


def import_modules(names: Sequence[str]) -> None:
    """Import the modules that the user named on this call: installed ones, or of the current folder."""
    here = os.getcwd()
    if names and here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # last: a file there takes the place of no module that is installed
    for name in names:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # something that the module itself imports
            raise ModuleNotFoundError(
                f"there is no module {name}, neither installed nor in the current folder {here}", name=error.name
            ) from error


def check_named_environment(where: str, env_id: Any, kwargs: Mapping[str, Any], imported: Sequence[str] = ()) -> None:
    """Refuse an environment that ``where``, a file, names if making it would import more than is allowed.

    Parameters
    ----------
    where
        The file, for the message.
    env_id, kwargs
        What the file says; an ``env_id`` of None is the user's own, and only the arguments are looked at.
    imported
        The modules that the user named.
    """
    if env_id is not None:
        _check_id(where, env_id, imported)
    for text in _texts(kwargs):
        if _MODULE_AND_NAME.fullmatch(text):
            module = text.partition(":")[0].strip()
            if not _is_known(module, imported):
                raise ValueError(f"{where} gives its environment {text!r}, which may import a module; {_flag(module)}")


def check_named_learner(where: str, name: Any, imported: Sequence[str] = ()) -> None:
    """Refuse a learner of a module that ``where``, a file, names and the user does not."""
    if not isinstance(name, str):
        raise ValueError(f"{where} must name a learner by a text, got {name!r}")
    module, colon, _ = name.rpartition(":")
    if colon and not _imports_nothing(module, imported):
        raise ValueError(f"{where} names a module to import, {name}; {_flag(module)}")


def _check_id(where: str, env_id: Any, imported: Sequence[str]) -> None:
    if not isinstance(env_id, str):
        raise ValueError(f"{where} must name an environment by a text, got {env_id!r}")
    module, colon, name = env_id.rpartition(":")
    if colon and not _imports_nothing(module, imported):
        raise ValueError(f"{where} names a module to import, {env_id}; {_flag(module)}")
    if _MAKERS.match(name):
        raise ValueError(f"{where} names {env_id}, which makes whatever its arguments say; name it with --env")
    spec = gym.registry.get(name)
    if spec is None:
        if colon:
            return  # the user's own module registers it when it is imported
        others = other_versions(name)
        advice = (
            f"what is installed has {', '.join(others)}"
            if others
            else "if a module of yours does, name it with --import"
        )
        raise ValueError(f"{where} names the environment {env_id}, which nothing that is imported registers; {advice}")
    for entry in (spec.entry_point, getattr(spec, "vector_entry_point", None)):
        module = entry.partition(":")[0] if isinstance(entry, str) else ""
        if module and not _imports_nothing(module, imported):
            raise ValueError(f"{where} names {env_id}, which imports {entry}; {_flag(module)}")


def other_versions(env_id: str) -> list[str]:
    """Return the ids of what is registered under the same name, in other versions.

    Examples
    --------
    >>> other_versions("FrozenLake-v0")
    ['FrozenLake-v1']
    """
    stem = re.sub(r"-v\d+$", "", env_id)
    return sorted(known for known in gym.registry if re.sub(r"-v\d+$", "", known) == stem)


def _is_known(module: str, imported: Sequence[str]) -> bool:
    """Whether a module is one of ours or Gymnasium's, or one the user named or a part of it."""
    return any(module == name or module.startswith(f"{name}.") for name in (*_KNOWN, *imported))


def _imports_nothing(module: str, imported: Sequence[str]) -> bool:
    """Whether to import a module is harmless: it is known, or it is there already."""
    return module in sys.modules or _is_known(module, imported)


def _flag(module: str) -> str:
    return f"give --import {module} if you trust it"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from _texts(part)
