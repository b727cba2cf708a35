"""The CUDA backend on a simulated GPU: its kernels as C++, which the CPU runs (simulator.cpp)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cule.engine import Engine
from tests.support import build as support
from tests.support.build import CHECKED, CSRC, SHARED

HERE = Path(__file__).resolve().parent
STAND_INS = HERE / "stand_ins"
# The flags of all C++ tests, with checks of the core's assumptions, and the code for a GPU.
FLAGS = [
    *SHARED, *CHECKED, "-fno-extern-tls-init", "-U_FORTIFY_SOURCE", "-DCULE_SIMULATED_GPU",
    "-Wextra", "-Wno-unknown-pragmas", f"-I{STAND_INS}", f"-I{HERE}", "-include", "cuda_runtime.h",
]  # fmt: skip
SIMULATOR = [HERE / "simulator.cpp", HERE / "runtime.cpp"]
BACKEND = [*SIMULATOR, HERE / "backend.cpp", CSRC / "kernels/cuda/cuda_backend.cu"]


def build(
    name: str,
    sources: Sequence[Path],
    folder: Path,
    libraries: Sequence[Path] = (),
    flags: Sequence[str] = (),
) -> Path:
    """Builds a library for the simulated GPU, with additional `flags` and `libraries`."""
    return support.build(
        name,
        sources,
        folder,
        compile_flags=[*FLAGS, *flags],
        link_flags=["-shared", *map(str, libraries)],
    )


def build_text(name: str, text: str, folder: Path, library: Path) -> Path:
    """Builds a library of one source, of this text, for kernels that `library` loads."""
    source, scratch = folder / f"{name}.cu", folder / f"{os.getpid()}_{name}.cu"
    scratch.write_text(text)
    os.replace(scratch, source)  # another process may compile the same text
    return build(name, [source], folder, [library])


class SimulatedGpu:
    """A simulated GPU, and the library whose kernels it runs.

    With seed 0 threads run in their order, else in a random one. If `together`, lanes of a warp
    that call __activemask at the same place all see each other; else they are divided at random.
    """

    def __init__(
        self, library: Path, multiprocessors: int = 2, seed: int = 0, together: bool = True
    ):
        self.path = library
        self.library = ctypes.CDLL(str(library))
        self.library.make_backend.restype = ctypes.c_void_p
        self.library.error_bytes.restype = ctypes.c_size_t
        self.library.plays_in_step.restype = ctypes.c_bool
        self.library.reserve.restype = ctypes.c_bool
        self.settings = (multiprocessors, seed, together)

    def call(self, function: str, *arguments: Any) -> Any:
        """Calls a function of the library whose last argument is a buffer for an error message."""
        multiprocessors, seed, together = self.settings
        self.library.set_device(
            ctypes.c_int(multiprocessors), ctypes.c_uint64(seed), ctypes.c_bool(together)
        )
        error = ctypes.create_string_buffer(self.library.error_bytes())
        result = getattr(self.library, function)(*arguments, error)
        if error.value:
            raise RuntimeError(error.value.decode())
        return result


class SimulatedBackend:
    """What `_core.cuda_backend` gives, on a simulated GPU."""

    def __init__(self, gpu: SimulatedGpu, multiprocessors: int):
        self._gpu = gpu
        self._address = ctypes.c_void_p(gpu.call("make_backend", multiprocessors))

    def __del__(self) -> None:
        self._gpu.library.free_backend(self._address)

    def step(self, batch: Any, stream: int = 0) -> None:
        self._gpu.call("step", self._address, ctypes.c_void_p(batch.address))

    def reset(self, batch: Any, mask: int = 0, seeds: int = 0, stream: int = 0) -> None:
        addresses = (ctypes.c_void_p(address) for address in (batch.address, mask, seeds))
        self._gpu.call("reset", self._address, *addresses)

    def plays_in_step(self, num_envs: int) -> bool:
        return self._gpu.library.plays_in_step(self._address, num_envs)

    def finish(self) -> None:
        """Nothing is in flight: calls return when their work is done."""

    def reserve(self, num_envs: int, multiprocessors: int, ordered: bool | None) -> bool:
        known = -1 if ordered is None else int(ordered)
        return self._gpu.library.reserve(self._address, num_envs, multiprocessors, known)

    @property
    def lanes(self) -> int:
        """How many envs a warp had when a translated game was played last."""
        return self._gpu.library.lanes_played()

    def load_translation(self, path: bytes, marked_ops: int) -> None:
        self._gpu.call("load_translation", self._address, path, ctypes.c_void_p(marked_ops))


class SimulatedEngine(Engine):
    """An engine on a simulated GPU: memory is the host's, but is laid out as on a GPU."""

    runs_on_gpu = True

    def __init__(self, gpu: SimulatedGpu, *arguments: Any, **keywords: Any):
        self._gpu = gpu
        super().__init__(*arguments, **keywords)

    def _make_backend(self, num_threads: int, multiprocessors: int, cpus: tuple[int, ...]) -> Any:
        return SimulatedBackend(self._gpu, multiprocessors)

    def _check_multiprocessors(self, asked: int | None) -> None:
        """Allows any number."""
