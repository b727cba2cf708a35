"""NVIDIA's run-time compiler (NVRTC), which comes with torch's CUDA builds and with CUDA itself."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from cule.errors import Failed


def _candidates() -> list[str]:
    """Paths and names of the library: next to torch, in a CUDA folder, or for the loader."""
    folders = [Path(torch.__file__).parents[1] / "nvidia"]
    folders += [
        Path(p)
        for p in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
        if p
    ]
    found: list[Path] = []
    for folder in folders:
        for pattern in (
            "*/lib/libnvrtc.so.*",
            "lib64/libnvrtc.so.*",
            "targets/*/lib/libnvrtc.so.*",
        ):
            found += sorted(folder.glob(pattern), reverse=True)
    # The version that torch was built with comes first: others may be installed next to it.
    major = f".so.{(torch.version.cuda or '').partition('.')[0]}"
    found.sort(key=lambda path: not path.name.endswith(major))
    named = [
        str(path)
        for path in found
        if not path.name.startswith("libnvrtc-builtins") and ".alt." not in path.name
    ]
    return [*named, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]


@functools.cache
def _library() -> Any:
    for name in _candidates():
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        return library
    raise OSError(
        "expected NVIDIA's run-time compiler, libnvrtc.so, next to torch, in CUDA_HOME or on the "
        "loader's path, "
        "and found none"
    )


def _check(code: int, what: str) -> None:
    if code:
        raise Failed(f"{what} failed: {_library().nvrtcGetErrorString(code).decode()}")


def version() -> str:
    """The compiler's version, such as "13.0". Raises OSError if there is no compiler."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "nvrtcVersion")
    return f"{major.value}.{minor.value}"


def version_or_none() -> str | None:
    """The compiler's version; None: there is no compiler."""
    try:
        return version()
    except OSError:
        return None


def architectures() -> list[str]:
    """The architectures that the compiler knows, such as "sm_90".

    Raises:
        OSError: there is no compiler.
    """
    count = ctypes.c_int()
    _check(_library().nvrtcGetNumSupportedArchs(ctypes.byref(count)), "nvrtcGetNumSupportedArchs")
    numbers = (ctypes.c_int * count.value)()
    _check(_library().nvrtcGetSupportedArchs(numbers), "nvrtcGetSupportedArchs")
    return [f"sm_{number}" for number in numbers]


def compile_cubin(source: str, headers: Mapping[str, str], options: Sequence[str]) -> bytes:
    """Compiles CUDA C++ to a cubin.

    Args:
        source: one translation unit.
        headers: the text of each header, by the name in its `#include`.
        options: the compiler's options, with a real architecture (`--gpu-architecture=sm_90`).

    Raises:
        OSError: if there is no such compiler.
        RuntimeError: with the compiler's log, if it does not compile.
    """
    library = _library()
    program = ctypes.c_void_p()
    strings = ctypes.c_char_p * len(headers)
    texts = strings(*(text.encode() for text in headers.values()))
    names = strings(*(name.encode() for name in headers))
    created = library.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), b"translated.cu", len(headers), texts, names
    )
    _check(created, "nvrtcCreateProgram")
    try:
        arguments = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        code = library.nvrtcCompileProgram(program, len(options), arguments)
        if code:
            log = _read(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            raise Failed(
                f"nvrtcCompileProgram failed: {library.nvrtcGetErrorString(code).decode()}\n{log}"
            )
        return _read(program, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _read(program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(
        getattr(_library(), f"nvrtcGet{what}Size")(program, ctypes.byref(size)),
        f"nvrtcGet{what}Size",
    )
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(_library(), f"nvrtcGet{what}")(program, buffer), f"nvrtcGet{what}")
    return buffer.raw
