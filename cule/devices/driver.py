"""NVIDIA's driver."""

from __future__ import annotations

import ctypes
import functools


@functools.cache
def version() -> str | None:
    """The newest CUDA that the driver knows, such as "13.0"; None: there is no driver."""
    number = ctypes.c_int()
    try:
        failed = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number))
    except (OSError, AttributeError):
        return None
    # 1000 times the major version plus 10 times the minor one.
    return None if failed else f"{number.value // 1000}.{number.value % 1000 // 10}"
