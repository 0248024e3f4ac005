"""Files and folders of which a reader sees the old content or the new, never a part of the new.

The content goes to a hidden name beside the target, is flushed to disk, and takes the target's name in one step. What
a killed writer leaves behind is the hidden name, which ends in ``.unfinished`` and says whose it was: the next writer
of the same target on the same machine removes it.

Files are read with suspicion: nothing in them can run, what they would take in memory is known before it is taken, and
whatever is wrong with one becomes a `FileContentError` that names it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import platform
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

_DESCRIPTION = "description"
_SUFFIX = ".unfinished"
#: What the arrays of a file may take, unless the file itself is so large that this is no surprise. Zeros shrink to a
#: thousandth of their size, real data hardly ever to a hundredth.
MAX_BYTES = 2**30
_LARGEST_EXPANSION = 100


class FileContentError(ValueError):
    """A file does not hold what it should: the message names the file and says what is wrong with it."""


def most_bytes(path: str | Path) -> int:
    """Return how much the arrays of a file may take."""
    return max(MAX_BYTES, _LARGEST_EXPANSION * os.path.getsize(path))


@contextmanager
def refusing(path: str | Path, problem: str) -> Iterator[None]:
    """Turn whatever a damaged or crafted file makes fail into one error: ``path``, ``problem`` and the reason.

    A module that is not installed is no fault of the file, and stays what it is.
    """
    try:
        yield
    except (FileContentError, ImportError):
        raise
    except RecursionError as error:
        raise FileContentError(f"{path} {problem}: it is nested too deeply") from error
    except KeyError as error:
        raise FileContentError(f"{path} {problem}: {error.args[0]!r} is missing") from error
    except Exception as error:  # it can be wrong in any way, from zlib to an allocation
        raise FileContentError(f"{path} {problem}: {error or type(error).__name__}") from error


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
    _remove_leftovers(path)
    descriptor, name = tempfile.mkstemp(prefix=_prefix(path), suffix=_SUFFIX, dir=path.parent)
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
    _remove_leftovers(path)
    holder = Path(tempfile.mkdtemp(prefix=_prefix(path), suffix=_SUFFIX, dir=path.parent))
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


def check_own_folder(folder: str | Path, pattern: str, whose: str) -> None:
    """Refuse to replace a folder, if there is one, that holds anything but files whose paths fit ``pattern``.

    Parameters
    ----------
    folder
        What would be replaced.
    pattern
        Of the paths of its files, from the folder on, with slashes.
    whose
        For the message, for example ``"dataset of imitation"``.
    """
    path = Path(folder)
    if not path.is_symlink() and not path.exists():
        return
    if path.is_symlink() or not path.is_dir():
        raise FileExistsError(f"{path} is not the folder of a {whose}, and is not replaced")
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if file.is_symlink() or (not file.is_dir() and not re.fullmatch(pattern, name)):
            raise FileExistsError(f"{path} holds {name}, which is no part of a {whose}, and is not replaced")


def check_writable(target: str | Path) -> None:
    """Refuse a place where nothing can be written beside ``target``, by trying."""
    path = Path(target)
    try:
        Path(tempfile.mkdtemp(prefix=_prefix(path), suffix=_SUFFIX, dir=path.parent)).rmdir()
    except OSError as error:
        raise OSError(error.errno, f"cannot write {path}: {error.strerror}") from error


def append_line(path: str | Path, line: str) -> None:
    """Append a line to a file, all of it or nothing, and flush it to disk."""
    content = line.encode() + b"\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        before = os.fstat(descriptor).st_size
        try:
            written = os.write(descriptor, content)
        except OSError as error:
            raise OSError(error.errno, f"cannot write to {path}: {error.strerror}") from error
        if written != len(content):  # the disk is full: what was written would join the next line
            os.ftruncate(descriptor, before)
            raise OSError(errno.ENOSPC, f"cannot write to {path}: only {written} of {len(content)} bytes found room")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_arrays(
    path: str | Path, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], overwrite: bool = False
) -> None:
    """Write arrays and a JSON description to one ``.npz`` archive without pickled objects."""
    members: dict[str, Any] = {**arrays, _DESCRIPTION: np.array(json.dumps(description))}
    with replacing_file(path, overwrite) as unfinished, open(unfinished, "wb") as file:
        np.savez(file, **members)


def read_arrays(
    path: str | Path, kind: str, what: str, max_bytes: int | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the description and the arrays of a file whose description has the format ``kind``.

    Anything else is refused as not being ``what``; nothing in the file can run code. ``max_bytes`` as for
    `read_members`.
    """
    arrays = read_members(path, f"is not {what}", max_bytes)
    with refusing(path, f"is not {what}"):
        description = json.loads(str(arrays.pop(_DESCRIPTION)))
    if not isinstance(description, dict) or description.get("format") != kind:
        found = description.get("format") if isinstance(description, dict) else None
        raise FileContentError(f"{path} is not {what}: its format is {found!r}, not {kind!r}")
    return description, arrays


def read_array(path: str | Path, problem: str) -> NDArray[Any]:
    """Return the array of an ``.npy`` file, which is not pickled; ``problem`` begins what is said of a bad one."""
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file {path}")
    with refusing(path, problem):
        found = np.load(path, mmap_mode="r", allow_pickle=False)  # a map is no longer than the file, whatever it says
        if not isinstance(found, np.ndarray):
            raise TypeError("it is an archive")
        return np.array(found)


def read_members(path: str | Path, problem: str, max_bytes: int | None = None) -> dict[str, NDArray[Any]]:
    """Return the arrays of an ``.npz`` archive, none of them pickled; ``problem`` begins what is said of a bad one.

    Parameters
    ----------
    path
        The file.
    problem
        For the message, for example ``"is not a policy"``.
    max_bytes
        What all arrays together may take in memory; by default 1 GiB, or a hundred times the size of the file if that
        is more.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file {path}")
    if max_bytes is None:
        max_bytes = most_bytes(path)
    with refusing(path, problem), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        needed = sum(member.file_size for member in members)
        if needed > max_bytes:
            raise ValueError(f"its arrays take {needed} bytes, more than max_bytes = {max_bytes}, which can be raised")
        arrays = {}
        for member in members:
            with archive.open(member) as file:
                arrays[member.filename.removesuffix(".npy")] = _read_array(member, file)
    return arrays


def _read_array(member: zipfile.ZipInfo, file: IO[bytes]) -> NDArray[Any]:
    """Read one array, after comparing what its header announces with what is there."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"the member {member.filename!r} is in version {version} of NumPy's format")
    one, two = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
    shape, _, dtype = (one if version == (1, 0) else two)(file)
    held = member.file_size - file.tell()
    if not dtype.hasobject and (min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != held):
        raise ValueError(f"the member {member.filename!r} should hold {shape} of {dtype}, but has {held} bytes")
    file.seek(0)
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def checksum(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over the header and, in the order of their names, each array's name, dtype, shape and bytes."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"\n{name} {array.dtype.str} {arrays[name].shape}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _check_target(path: Path, overwrite: bool) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already; overwriting it has to be asked for")


def _prefix(path: Path) -> str:
    """Name the target, the machine and the process."""
    return f".{path.name}.{platform.node()}-{os.getpid()}."


def _remove_leftovers(path: Path) -> None:
    """Remove what dead processes of this machine left when they were writing ``path``."""
    pattern = re.compile(re.escape(f".{path.name}.{platform.node()}-") + r"(\d+)\.[^.]*" + re.escape(_SUFFIX))
    for leftover in path.parent.iterdir():
        found = pattern.fullmatch(leftover.name)
        if found is None or _is_alive(int(found[1])):
            continue
        if leftover.is_dir():
            if path.exists() or not (leftover / "old").exists():  # else that is the only copy of what was there
                shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    if sys.platform == "win32":  # there, asking by a signal would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _flush(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
