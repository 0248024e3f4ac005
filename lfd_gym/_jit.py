"""The one way kernels are compiled in this package."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

_F = TypeVar("_F", bound=Callable[..., object])


def jit(function: _F) -> _F:
    """Compile ``function`` with numba: nopython, cached on disk, without the GIL.

    Kernels are sequential on purpose: ``parallel=True`` measured slower on busy machines, and users run several
    solvers side by side.
    """
    return cast(_F, numba.njit(cache=True, nogil=True)(function))


def jit_inline(function: _F) -> _F:
    """Compile a small helper that other kernels call in their inner loops."""
    return cast(_F, numba.njit(inline="always")(function))
