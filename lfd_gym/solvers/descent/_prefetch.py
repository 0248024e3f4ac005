"""Tell the processor which memory a kernel is about to read, and lay it out so that few cache lines are read.

Beyond the caches a read takes some hundred nanoseconds, but many can be under way at once. Kernels that know their
addresses early ask for them early.
"""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

_CACHE_LINE = 64
_READ, _KEEP, _DATA = 0, 3, 1


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = context.make_array(signature.args[0])(context, builder, arguments[0])
        item = cgutils.get_item_pointer(context, builder, signature.args[0], values, [arguments[1]], wraparound=False)
        address = builder.bitcast(item, ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(function, [address, word(_READ), word(_KEEP), word(_DATA)])
        return context.get_dummy_value()

    return types.void(array, types.intp), code


#: ``prefetch(array, index)`` inside a kernel: start loading the item of a vector. The index is not checked.
prefetch = intrinsic(_prefetch)


def aligned_zeros(n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a vector of zeros that starts with a cache line, so that items of a line, or a half, lie in one line."""
    size = n * dtype.itemsize
    memory = np.zeros(size + _CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + size].view(dtype)
