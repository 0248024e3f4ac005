"""The one way kernels are compiled in this package."""

import os
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
from numba.core.event import Listener, register, unregister
from tqdm import tqdm

_F = TypeVar("_F", bound=Callable[..., object])

#: Inside a kernel: an element of a structured array, whose fields are attributes.
Record: TypeAlias = Any


def jit(function: _F) -> _F:
    """Compile ``function`` with numba: nopython, cached on disk, without the GIL.

    Kernels are sequential on purpose: ``parallel=True`` measured slower on busy machines, and users run several
    solvers side by side.
    """
    return _compile(function)


def jit_inline(function: _F) -> _F:
    """Compile a small helper that other kernels call in their inner loops."""
    return cast(_F, _with_source_stamps(numba.njit(inline="always")(function)))


def jit_raw(function: _F) -> _F:
    """Compile a kernel that only reads and writes arrays it is given, for inner loops of many small helpers.

    It may not create arrays, and numba then leaves out the counting of references to them, which cost more than the
    work itself when helpers take arrays. Division by zero gives infinity instead of an exception.
    """
    return _compile(function, error_model="numpy", _nrt=False)


def jit_melted(function: _F) -> _F:
    """Compile a helper of `jit_raw` kernels that LLVM must inline: no trace of the call is left."""
    options = {"nogil": True, "forceinline": True, "error_model": "numpy", "_nrt": False}
    return cast(_F, _with_source_stamps(numba.njit(**options)(function)))


def _compile(function: _F, **options: Any) -> _F:
    try:
        kernel = _with_source_stamps(numba.njit(cache=True, nogil=True, **options)(function))
    except RuntimeError:  # neither the folder of the package nor the user's can be written to: compile every time
        return cast(_F, _with_source_stamps(numba.njit(nogil=True, **options)(function)))
    # By itself, numba compiles anew when the file of a kernel changes, but not when the file of a kernel it calls does.
    # There is no public way to tell it; should the private one vanish, an uncached kernel is slower to start but right.
    cache_file: Any = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if not hasattr(cache_file, "_source_stamp"):
        return cast(_F, _with_source_stamps(numba.njit(nogil=True, **options)(function)))
    cache_file._source_stamp = kernel.source_stamps
    return cast(_F, kernel)


def _with_source_stamps(kernel: Any) -> Any:
    """Note on ``kernel`` the state of its own file and, in turn, of the files of the kernels it calls."""
    function = getattr(kernel, "py_func", None)
    if function is None:  # NUMBA_DISABLE_JIT: it is the function itself, for debuggers and for coverage
        return kernel
    file = os.stat(function.__code__.co_filename)
    stamps = {(function.__code__.co_filename, file.st_mtime_ns, file.st_size)}
    for name in function.__code__.co_names:
        stamps.update(getattr(function.__globals__.get(name), "source_stamps", ()))
    kernel.source_stamps = tuple(sorted(stamps))
    return kernel


class _CompilingAnnounced(Listener):  # type: ignore[misc]
    """Says once that kernels are being compiled, and does not let bars count that time."""

    def __init__(self, say: Callable[[], None]) -> None:
        self._say, self._said, self._depth = say, False, 0

    def on_start(self, event: Any) -> None:
        """Say it, unless it was said."""
        self._depth += 1
        if not self._said:
            self._said = True
            self._say()

    def on_end(self, event: Any) -> None:
        """Have the bars that are shown go on as if no time had passed."""
        self._depth -= 1
        if self._depth == 0:
            for bar in list(getattr(tqdm, "_instances", ())):
                bar.unpause()


def announce_compiling(say: Callable[[], None]) -> Callable[[], None]:
    """Call ``say`` when a kernel is first compiled, not found in numba's cache; return what ends that.

    Bars of `tqdm` leave out the time that compiling takes: else what is left would be told in thousands of hours.
    """
    listener = _CompilingAnnounced(say)
    register("numba:compile", listener)
    return lambda: unregister("numba:compile", listener)
