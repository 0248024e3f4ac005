"""The one way kernels are compiled in this package."""

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_F = TypeVar("_F", bound=Callable[..., object])


def jit(function: _F) -> _F:
    """Compile ``function`` with numba: nopython, cached on disk, without the GIL.

    Kernels are sequential on purpose: ``parallel=True`` measured slower on busy machines, and users run several
    solvers side by side.
    """
    kernel = _with_source_stamps(numba.njit(cache=True, nogil=True)(function))
    # By itself, numba compiles anew when the file of a kernel changes, but not when the file of a kernel it calls does.
    # There is no public way to tell it; should the private one vanish, an uncached kernel is slower to start but right.
    cache_file: Any = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if not hasattr(cache_file, "_source_stamp"):
        return cast(_F, _with_source_stamps(numba.njit(nogil=True)(function)))
    cache_file._source_stamp = kernel.source_stamps
    return cast(_F, kernel)


def jit_inline(function: _F) -> _F:
    """Compile a small helper that other kernels call in their inner loops."""
    return cast(_F, _with_source_stamps(numba.njit(inline="always")(function)))


def _with_source_stamps(kernel: Any) -> Any:
    """Note on ``kernel`` the state of its own file and, in turn, of the files of the kernels it calls."""
    function = kernel.py_func
    file = os.stat(function.__code__.co_filename)
    stamps = {(function.__code__.co_filename, file.st_mtime_ns, file.st_size)}
    for name in function.__code__.co_names:
        stamps.update(getattr(function.__globals__.get(name), "source_stamps", ()))
    kernel.source_stamps = tuple(sorted(stamps))
    return kernel
