"""The handlers of XLA's custom calls, compiled when a process first needs them.

They are compiled and not part of `cule._core`, as XLA's interface belongs to the jaxlib that is
installed: its headers are there, whatever its version is, and building cule needs no JAX. Compiling
takes seconds and a C++ compiler; what comes of it is kept in the user's cache.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.ffi
import numpy as np

from cule import _core
from cule.disk.cache import cache_folder, make_folder, making
from cule.disk.sealed import Kind
from cule.errors import Failed, InvalidValue

# The name by which programs call the handlers, that of the CPU and that of GPUs.
TARGET = "cule_call"
_SOURCE = Path(__file__).with_name("handler.cpp")
_HEADER = "bindings/calls.h"
_FILE = Kind("JAX handler", 1)
_FLAGS = ("-std=c++17", "-O1", "-w", "-fPIC", "-shared")
_MOST_SECONDS = 300
_lock = threading.Lock()


def _compiler() -> list[str]:
    """The command of the C++ compiler.

    Raises:
        RuntimeError: there is none.
    """
    if named := shlex.split(os.environ.get("CXX", "")):
        return named
    for name in ("c++", "g++", "clang++"):
        if found := shutil.which(name):
            return [found]
    raise Failed(
        "expected a C++ compiler for calls from JAX's programs (c++, g++ or clang++ on PATH, or "
        "one that CXX names), got none"
    )


def _path() -> Path:
    """The file of the compiled handlers, named after all that they are made from."""
    made_from = hashlib.sha256(repr((_FLAGS, platform.machine())).encode())
    made_from.update(_SOURCE.read_bytes() + _core.headers()[_HEADER].encode())
    for header in sorted(Path(jax.ffi.include_dir()).rglob("*.h")):
        made_from.update(header.read_bytes())
    return cache_folder() / f"jax-{made_from.hexdigest()[:16]}.handler"


def _compiled() -> bytes:
    """The handlers as a shared library.

    Raises:
        RuntimeError: there is no compiler, or it fails.
    """
    with tempfile.TemporaryDirectory(prefix="cule-") as folder:
        header, library = Path(folder, _HEADER), Path(folder, "handler.so")
        header.parent.mkdir()
        header.write_text(_core.headers()[_HEADER])
        includes = [f"-I{folder}", f"-I{jax.ffi.include_dir()}"]
        command = [*_compiler(), *_FLAGS, *includes, str(_SOURCE), "-o", str(library)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=_MOST_SECONDS,
                stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise Failed(
                f"expected {command[0]} to compile the calls from JAX's programs, got {problem}"
            ) from problem
        if done.returncode:
            raise Failed(
                f"expected {command[0]} to compile the calls from JAX's programs, got "
                f"{done.stderr.strip()[:2000] or done.returncode}"
            )
        return library.read_bytes()


def _read(path: Path) -> bytes | None:
    """What a file of the cache holds; None: it is missing, damaged or of another user."""
    with suppress(InvalidValue), _FILE.reading(path, own=True) as file:
        return file.read()
    return None


def _library(unlike: bytes | None = None) -> bytes:
    """The handlers, from the cache or the compiler.

    Args:
        unlike: what does not load here, and is made anew if it is what the cache has.

    Raises:
        RuntimeError: as _compiled.
    """
    path = _path()
    with suppress(OSError):
        make_folder(path.parent)
    if (kept := _read(path)) not in (None, unlike):
        return kept
    with making(path, "calls from JAX's programs"):
        # Another process may have made it meanwhile.
        made = _read(path)
        if made in (None, unlike):
            made = _compiled()
            # If it cannot be kept, the next process compiles again.
            with suppress(OSError, InvalidValue):
                path.unlink(missing_ok=True)  # else one of another user's would keep its owner
                _FILE.write(path, lambda file: file.write(made))
    return made


def _load(content: bytes) -> Any:
    """Loads a library from memory, so that it is the very bytes that were checked.

    The file in memory stays open with it: under the same name the system would give the library
    that it has, whatever the file holds.

    Raises:
        OSError: it does not load.
    """
    descriptor = os.memfd_create("cule-jax-handler", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        return ctypes.CDLL(f"/proc/self/fd/{descriptor}")
    except BaseException:
        os.close(descriptor)
        raise


def _loaded() -> Any:
    """The handlers, loaded.

    Raises:
        RuntimeError: as _library, or what the compiler has made does not load.
    """
    content = _library()
    try:
        return _load(content)
    except OSError:  # such as one of a machine with a newer C++ library, which shares the cache
        content = _library(unlike=content)
    try:
        return _load(content)
    except OSError as problem:
        raise Failed(
            f"expected the compiled calls from JAX's programs to load, got {problem}"
        ) from problem


@functools.cache
def _registered() -> Any:
    library = _loaded()
    library.cule_connect.argtypes, library.cule_connect.restype = [ctypes.c_void_p], None
    library.cule_connect(_core.PLAY_CALL)
    for name, where in (("cule_on_cpu", "cpu"), ("cule_on_gpu", "CUDA")):
        handler = jax.ffi.pycapsule(getattr(library, name))
        jax.ffi.register_ffi_target(TARGET, handler, platform=where)
    return library


def register() -> None:
    """Makes the handlers known to XLA. The first call on a machine compiles them.

    Raises:
        RuntimeError: there is no C++ compiler, it fails, or what it makes does not load.
    """
    with _lock:
        _registered()


def call_port(
    number: int,
    given: Sequence[jax.Array],
    shapes: Sequence[jax.ShapeDtypeStruct],
    aliases: dict[int, int],
    *,
    steps: bool = False,
    seeds: bool = False,
    masks: bool = False,
    **options: Any,
) -> list[jax.Array]:
    """Calls a port from a program.

    XLA's fusion of slices puts a call into a loop a second time if a slice is an input or an output
    becomes a part of a larger array, as in `jax.lax.scan` on a GPU: a call with side effects is
    then made twice (https://github.com/openxla/xla/pull/45799). It sees no slices beyond a barrier.

    Args:
        number: the port's.
        given: what it is given.
        shapes: what it returns.
        aliases: which output has the memory of which input.
        steps: whether it steps envs, and does not reset them.
        seeds: whether seeds are given.
        masks: whether a mask is given.
        **options: more of jax.ffi.ffi_call.

    Returns:
        Arrays of these shapes.
    """
    call = jax.ffi.ffi_call(TARGET, shapes, input_output_aliases=aliases, **options)
    flags = {"steps": np.bool_(steps), "seeds": np.bool_(seeds), "masks": np.bool_(masks)}
    inputs = jax.lax.optimization_barrier(tuple(given))
    return jax.lax.optimization_barrier(call(*inputs, port=np.int64(number), **flags))
