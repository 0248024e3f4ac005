"""Files and folders of which a reader sees the old content or the new, never a part of the new.

The content goes to a hidden name beside the target, is flushed to disk, and takes the target's name in one step. What
a killed writer leaves behind is the hidden name, which ends in ``.unfinished``.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DESCRIPTION = "description"


@contextmanager
def replacing_file(target: str | Path, overwrite: bool = False) -> Iterator[Path]:
    """Yield the path of an empty file to write to; on success it becomes ``target``.

    Parameters
    ----------
    target
        The file to write; its folder must exist.
    overwrite
        Whether ``target`` may exist already.
    """
    path = Path(target)
    _check_target(path, overwrite)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".unfinished", dir=path.parent)
    os.close(descriptor)
    unfinished = Path(name)
    try:
        yield unfinished
        _flush(unfinished)
        umask = os.umask(0)
        os.umask(umask)
        unfinished.chmod(0o666 & ~umask)  # what open() would have given; mkstemp makes the file private
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def replacing_folder(target: str | Path, overwrite: bool = False) -> Iterator[Path]:
    """Yield the path of a folder that does not exist yet; on success what was made there becomes ``target``.

    A writer killed just between moving an old folder away and the new one into its place leaves both under the hidden
    name, and no ``target``.
    """
    path = Path(target)
    _check_target(path, overwrite)
    holder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".unfinished", dir=path.parent))
    try:
        yield holder / "new"
        for file in (holder / "new").rglob("*"):
            if file.is_file():
                _flush(file)
        if path.is_dir():  # a folder cannot take the name of a filled one: move the old one out of the way first
            os.replace(path, holder / "old")
        try:
            os.replace(holder / "new", path)
        except OSError:
            if (holder / "old").exists():
                os.replace(holder / "old", path)
            raise
    finally:
        shutil.rmtree(holder, ignore_errors=True)


def write_arrays(
    path: str | Path, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], overwrite: bool = False
) -> None:
    """Write arrays and a JSON description to one ``.npz`` archive without pickled objects."""
    members: dict[str, Any] = {**arrays, _DESCRIPTION: np.array(json.dumps(description))}
    with replacing_file(path, overwrite) as unfinished, open(unfinished, "wb") as file:
        np.savez(file, **members)


def read_arrays(path: str | Path, kind: str, what: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the description and the arrays of a file whose description has the format ``kind``.

    Anything else is refused as not being ``what``; nothing in the file can run code.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        description = json.loads(str(arrays.pop(_DESCRIPTION)))
    except Exception as error:  # a damaged archive can fail in any way, from zlib to an allocation
        raise ValueError(f"{path} is not {what}: {error}") from error
    if not isinstance(description, dict) or description.get("format") != kind:
        found = description.get("format") if isinstance(description, dict) else None
        raise ValueError(f"{path} is not {what}: its format is {found!r}, not {kind!r}")
    return description, arrays


def _check_target(path: Path, overwrite: bool) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already; overwriting it has to be asked for")


def _flush(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
