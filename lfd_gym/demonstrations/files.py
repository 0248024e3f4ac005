"""The file of demonstrations: one ``.npz``, written all or nothing, that cannot run code when it is read.

Members of version 1, all plain arrays (no pickle):

- ``observations``, ``offsets``, ``terminated``, ``truncated`` and, if known, ``actions``, ``rewards`` and
  ``initial_states``: the columns of `Demonstrations`;
- for each space that is a Box, ``observation_low``, ``observation_high``, ``action_low``, ``action_high``;
- ``header``: UTF-8 JSON as bytes, with ``format``, ``version``, the spaces (see `lfd_gym.spaces.space_to_data`; null
  for actions of no known space), ``horizon``, ``provenance`` and ``checksum``, the SHA-256 of everything else.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.provenance import Provenance
from lfd_gym.files import replacing_file
from lfd_gym.spaces import space_from_data, space_to_data

FORMAT = "lfd_gym demonstrations"
VERSION = 1

_COLUMNS = ("observations", "offsets", "terminated", "truncated")
_KNOWN_COLUMNS = ("actions", "rewards", "initial_states")
#: NumPy before 2.2 wrote the argument of this name of its own function into the file, as one array more.
_STRAY = "allow_pickle"


def save(demonstrations: Demonstrations, path: str | Path, overwrite: bool = False) -> None:
    """Write ``demonstrations`` to ``path``, which must end in ``.npz``."""
    target = Path(path)
    if target.suffix != ".npz":
        raise ValueError(f"path must end in .npz, got {target}")
    columns = {name: getattr(demonstrations, name) for name in (*_COLUMNS, *_KNOWN_COLUMNS)}
    arrays = {name: column for name, column in columns.items() if column is not None}
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "horizon": demonstrations.horizon,
        "provenance": demonstrations.provenance.to_dict(),
    }
    for name in ("observation", "action"):
        space = getattr(demonstrations, f"{name}_space")
        header[f"{name}_space"], bounds = (None, {}) if space is None else space_to_data(name, space)
        arrays |= bounds
    header["checksum"] = checksum(header, arrays)
    members = arrays | {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)}
    with replacing_file(target, overwrite) as unfinished, open(unfinished, "wb") as file:
        np.savez_compressed(file, **members)


def load(path: str | Path) -> Demonstrations:
    """Read what `save` wrote, or say what is wrong with the file."""
    members = _read_members(path)
    header = _parse_header(path, members.pop("header", None))
    stated = header.pop("checksum", None)
    if stated != checksum(header, members):
        raise ValueError(f"{path} is damaged: its content does not match its checksum")
    try:
        actions = header["action_space"]
        columns: dict[str, Any] = {name: members[name] for name in _COLUMNS}
        columns |= {name: members.get(name) for name in _KNOWN_COLUMNS}
        return Demonstrations(
            **columns,
            observation_space=space_from_data("observation", header["observation_space"], members),
            action_space=None if actions is None else space_from_data("action", actions, members),
            horizon=header["horizon"],
            provenance=Provenance(**header["provenance"]),
        )
    except (KeyError, TypeError, ValueError) as error:  # a valid checksum over wrong content: made by something else
        raise ValueError(f"{path} does not hold valid demonstrations: {error}") from error


def checksum(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over the header and, in the order of their names, each array's name, dtype, shape and bytes."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"\n{name} {array.dtype.str} {arrays[name].shape}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _read_members(path: str | Path) -> dict[str, NDArray[Any]]:
    if not zipfile.is_zipfile(path):
        if not os.path.isfile(path):
            raise FileNotFoundError(f"there is no file {path}")
        raise ValueError(f"{path} is not a demonstration file, or not all of one: it is no complete .npz archive")
    members: dict[str, NDArray[Any]] = {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in set(archive.files) - {_STRAY}:
                members[name] = archive[name]
                if not isinstance(members[name], np.ndarray):
                    raise ValueError(f"the member {name!r} is no array")
    except Exception as error:  # a damaged archive can fail in any way, from zlib to an allocation
        raise ValueError(f"{path} cannot be read as a demonstration file: {error}") from error
    return members


def _parse_header(path: str | Path, header: NDArray[Any] | None) -> dict[str, Any]:
    if header is None or header.dtype != np.uint8:
        raise ValueError(f"{path} is no demonstration file: it has no header of lfd_gym")
    try:
        parsed = json.loads(header.tobytes())
    except ValueError as error:
        raise ValueError(f"{path} is no demonstration file: its header is not JSON ({error})") from error
    if not isinstance(parsed, dict) or parsed.get("format") != FORMAT:
        raise ValueError(f"{path} is no demonstration file: its header does not say {FORMAT!r}")
    if parsed.get("version") != VERSION:
        raise ValueError(
            f"{path} is in version {parsed.get('version')!r} of the format, this lfd_gym reads version {VERSION}"
        )
    return parsed
