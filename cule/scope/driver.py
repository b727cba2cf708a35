"""The few calls of CUDA's driver that torch has no names for, about graphs while they are captured.

https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html and ..group__CUDA__STREAM.html.
All of them have been in the driver since CUDA 12.3. With an older one, their results are not known.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

# CUgraphNodeType: the nodes that become work. Others do not: host functions, events, empty nodes.
WORKING = {0: "kernel", 1: "memcpy", 2: "memset"}
# Child graphs and conditional nodes hold graphs, whose work cannot be told apart.
NESTED = (4, 13)


class _KernelParameters(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = (
        ("function", c_void_p), ("grid", c_uint * 3), ("block", c_uint * 3), ("shared", c_uint),
        ("parameters", c_void_p), ("extra", c_void_p), ("kernel", c_void_p), ("context", c_void_p),
    )  # fmt: skip


class _MemsetParameters(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = (
        ("pointer", c_uint64), ("pitch", c_size_t), ("value", c_uint), ("element", c_uint),
        ("width", c_size_t), ("height", c_size_t),
    )  # fmt: skip


@dataclass
class RawNode:
    """A node as the driver has it.

    Attributes:
        kind: CUgraphNodeType.
        after: indices of the nodes that it depends on.
        grid: of a kernel, blocks and threads; () where it is not known.
        bytes: of a memset; 0 where it is not known.
        name: of a kernel, mangled; "" where it is not known.
    """

    kind: int
    after: tuple[int, ...] = ()
    grid: tuple[int, ...] = ()
    bytes: int = 0
    name: str = ""


class Driver:
    """The driver.

    Raises:
        OSError: there is none.
    """

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")

    def _call(self, name: str, *arguments: Any) -> bool:
        """Whether the call exists and succeeded."""
        function = getattr(self._library, name, None)
        return function is not None and function(*arguments) == 0

    def captured_graph(self, stream: int) -> int:
        """The handle of the graph that a stream is captured into; 0 if it is not captured."""
        status, number, graph = c_int(), c_uint64(), c_void_p()
        arguments = c_void_p(stream), byref(status), byref(number), byref(graph), None, None
        # The call of CUDA 12.3, which also gives edges; drivers before it have the older one.
        succeeded = self._call("cuStreamGetCaptureInfo_v3", *arguments, None) or self._call(
            "cuStreamGetCaptureInfo_v2", *arguments
        )
        return (graph.value or 0) if succeeded and status.value == 1 else 0

    def count(self, graph: int) -> int:
        """How many nodes a graph has."""
        count = c_size_t()
        self._call("cuGraphGetNodes", c_void_p(graph), None, byref(count))
        return count.value

    def nodes(self, graph: int) -> list[RawNode]:
        """The nodes of a graph, in the order in which they were made."""
        count = c_size_t(self.count(graph))
        handles = (c_void_p * count.value)()
        if not self._call("cuGraphGetNodes", c_void_p(graph), handles, byref(count)):
            return []
        places = {handle: place for place, handle in enumerate(handles)}
        return [self._node(handle, places) for handle in handles]

    def _node(self, handle: Any, places: dict[Any, int]) -> RawNode:
        kind = c_int(-1)
        self._call("cuGraphNodeGetType", c_void_p(handle), byref(kind))
        node = RawNode(kind.value, self._after(handle, places))
        if WORKING.get(kind.value) == "kernel":
            kernel = _KernelParameters()
            if self._call("cuGraphKernelNodeGetParams_v2", c_void_p(handle), byref(kernel)):
                node.grid = (*kernel.grid, *kernel.block)
                node.name = self._name(kernel)
        elif WORKING.get(kind.value) == "memset":
            memset = _MemsetParameters()
            if self._call("cuGraphMemsetNodeGetParams", c_void_p(handle), byref(memset)):
                node.bytes = memset.width * memset.element * max(memset.height, 1)
        return node

    def _after(self, handle: Any, places: dict[Any, int]) -> tuple[int, ...]:
        count = c_size_t()
        # The call of CUDA 12.3, which also gives what edges are made of, 8 bytes each: the older
        # one fails where an edge has a port.
        name = "cuGraphNodeGetDependencies_v2"
        if not self._call(name, c_void_p(handle), None, None, byref(count)):
            return ()
        handles = (c_void_p * count.value)()
        edges = (c_ubyte * (8 * max(count.value, 1)))()
        if not self._call(name, c_void_p(handle), handles, edges, byref(count)):
            return ()
        return tuple(places[one] for one in handles if one in places)

    def _name(self, kernel: _KernelParameters) -> str:
        name = c_char_p()
        if kernel.function and self._call("cuFuncGetName", byref(name), c_void_p(kernel.function)):
            return (name.value or b"").decode()
        if kernel.kernel and self._call("cuKernelGetName", byref(name), c_void_p(kernel.kernel)):
            return (name.value or b"").decode()
        return ""

    def memset(self, pointer: int, size: int, stream: int) -> bool:
        """Sets bytes of the GPU's memory to zero, on a stream; whether that succeeded."""
        return self._call(
            "cuMemsetD8Async", c_uint64(pointer), c_ubyte(0), c_size_t(size), c_void_p(stream)
        )


def demangled(name: str) -> str:
    """A kernel's name as Kineto has it."""
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        library.__cxa_demangle.restype = c_void_p
        status = c_int()
        pointer = library.__cxa_demangle(name.encode(), None, None, byref(status))
        if status.value != 0 or not pointer:
            return name
        text = ctypes.cast(pointer, c_char_p).value or b""
        library.free.argtypes = [c_void_p]
        library.free(pointer)
    except (OSError, AttributeError):
        return name
    return text.decode()
