"""The file of demonstrations: one ``.npz``, written all or nothing, that cannot run code when it is read.

Members of version 1, all plain arrays (no pickle):

- ``observations``, ``offsets``, ``terminated``, ``truncated`` and, if known, ``actions``, ``rewards`` and
  ``initial_states``: the columns of `Demonstrations`;
- for each space that is a Box, ``observation_low``, ``observation_high``, ``action_low``, ``action_high``;
- ``header``: UTF-8 JSON as bytes, with ``format``, ``version``, the spaces (see `lfd_gym.spaces.space_to_data`; null
  for actions of no known space), ``horizon``, ``provenance`` and ``checksum``, the SHA-256 of everything else.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lfd_gym.demonstrations.demonstrations import Demonstrations
from lfd_gym.demonstrations.provenance import Provenance
from lfd_gym.files import FileContentError, checksum, read_members, refusing, replacing_file
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


def load(path: str | Path, max_bytes: int | None = None) -> Demonstrations:
    """Read what `save` wrote, or say in a `FileContentError` what is wrong with the file.

    ``max_bytes`` as for `lfd_gym.files.read_members`.
    """
    problem = "is not a demonstration file, or not all of one"
    if Path(path).suffix != ".npz":
        problem += " (tables of your own become demonstrations by lfd_gym.Demonstrations.from_episodes)"
    members = read_members(path, problem, max_bytes)
    members.pop(_STRAY, None)
    header = _parse_header(path, members.pop("header", None))
    stated = header.pop("checksum", None)
    with refusing(path, "does not hold valid demonstrations"):
        if stated != checksum(header, members):
            raise FileContentError(f"{path} is damaged: its content does not match its checksum")
        actions = header["action_space"]
        columns: dict[str, Any] = {name: members[name] for name in _COLUMNS}
        columns |= {name: members.get(name) for name in _KNOWN_COLUMNS}
        return Demonstrations(  # a valid checksum over wrong content was made by something else
            **columns,
            observation_space=space_from_data("observation", header["observation_space"], members),
            action_space=None if actions is None else space_from_data("action", actions, members),
            horizon=header["horizon"],
            provenance=Provenance(**header["provenance"]),
        )


def _parse_header(path: str | Path, header: NDArray[Any] | None) -> dict[str, Any]:
    if header is None or header.dtype != np.uint8:
        raise FileContentError(f"{path} is no demonstration file: it has no header of lfd_gym")
    with refusing(path, "is no demonstration file: its header is not JSON"):
        parsed = json.loads(header.tobytes())
    if not isinstance(parsed, dict) or parsed.get("format") != FORMAT:
        raise FileContentError(f"{path} is no demonstration file: its header does not say {FORMAT!r}")
    if parsed.get("version") != VERSION:
        raise FileContentError(
            f"{path} is in version {parsed.get('version')!r} of the format, this lfd_gym reads version {VERSION}"
        )
    return parsed
