"""A game's kernel, compiled for a GPU or from the cache."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cule.console.console import Snapshot
from cule.console.options import Group
from cule.devices import nvrtc
from cule.disk.cache import cache_folder, make_folder
from cule.disk.sealed import Kind
from cule.rom import Game
from cule.translation.blocks import Block, blocks_of, most_frequent, share_of
from cule.translation.executed import both, profile, profile_from
from cule.translation.source import headers, kernel_source, marked_ops

# A game is compiled again if so much more of what its envs execute is then in blocks. To interpret
# an instruction takes 25 times as long, and envs of a warp wait while one of them does.
LEAST_GAIN = 0.002
# A kernel's file: a cubin with a checksum.
_FILE = Kind("cubin", 1)


class Translation(NamedTuple):
    """A game's kernel.

    Attributes:
        cubin: the kernel, compiled for one GPU architecture; the driver links it.
        marked_ops: what `marked_ops` returns for its blocks.
        whole: whether it has all of the game's blocks.
        played: the profile that they were chosen by.
    """

    cubin: bytes
    marked_ops: np.ndarray
    whole: bool
    played: np.ndarray


def compiler_options(architecture: str) -> list[str]:
    """The run-time compiler's options for a kernel."""
    options = [
        # Relocatable code, as everything else is in CMakeLists.txt; the driver links it.
        f"--gpu-architecture={architecture}", "--std=c++17", "--fmad=false", "-default-device",
        "--relocatable-device-code=true", "--maxrregcount=80",
    ]  # fmt: skip
    if int(nvrtc.version().partition(".")[0]) >= 13:  # older ones do not know these
        # Compiles in several threads. A table of jumps leads to the blocks, not a tree of
        # comparisons.
        options += ["--split-compile=4", "--jump-table-density=1"]
    return options


class _Source:
    """The sources of a game's kernel, and its place in the cache."""

    def __init__(self, game: Game, architecture: str, blocks: list[Block], in_step: bool):
        self._text, self._headers = kernel_source(game, blocks, in_step), headers()
        self._options = compiler_options(architecture)
        made_from = nvrtc.version(), self._text, sorted(self._headers.items()), self._options
        key = hashlib.sha256(repr(made_from).encode()).hexdigest()
        self._path = cache_folder() / f"{game.name}-{architecture}-{key[:16]}.cubin"

    def from_cache(self) -> bytes | None:
        """The cubin in cache_folder(); None if it is missing, damaged or another user's."""
        try:
            with _FILE.reading(self._path, own=True) as file:
                return file.read()
        except ValueError:
            return None

    def compiled(self, keep: bool = True) -> bytes:
        """Compiles the cubin; keeps it in cache_folder()."""
        cubin = nvrtc.compile_cubin(self._text, self._headers, self._options)
        if keep:
            _keep(self._path, cubin)
        return cubin


def translate(
    game: Game, architecture: str, in_step: bool = False, at_first: bool = False
) -> Translation:
    """A game's kernel for a GPU architecture such as "sm_90", from cache_folder() or the compiler.

    Args:
        game: the game.
        architecture: the GPU's.
        in_step: whether the warps of a multiprocessor wait for each other (design/translation.md).
        at_first: if the kernel of all blocks is not in the cache, make one of the game's most
            frequent blocks only. That takes under ten seconds, and all blocks up to a minute.

    Raises:
        OSError: there is no run-time compiler.
        RuntimeError: the game does not compile.
    """
    blocks = blocks_of(game)
    source = _Source(game, architecture, blocks, in_step)
    cubin = source.from_cache()
    frequent = most_frequent(game, blocks)
    whole = cubin is not None or not at_first or len(frequent) == len(blocks)
    if not whole:
        blocks = frequent
        source = _Source(game, architecture, blocks, in_step)
        cubin = source.from_cache()
    if cubin is None:
        cubin = source.compiled()
    return Translation(cubin, marked_ops(game, blocks), whole, profile(game))


def translate_again(
    game: Game,
    architecture: str,
    in_step: bool,
    played: np.ndarray,
    states: Sequence[tuple[Group, Snapshot]],
) -> Translation | None:
    """A kernel that also has what envs execute now; None if that is little more than before.

    It is not kept in cache_folder(), as no other process will look for just this one.

    Args:
        game: the game.
        architecture: the GPU's.
        in_step: as in translate.
        played: the profile of the kernel that is to be replaced.
        states: of some envs, each with its game, mode and difficulty.

    Raises:
        OSError: there is no run-time compiler.
        RuntimeError: the game does not compile.
    """
    now = profile_from(game, states)
    together = both(played, now)
    blocks = blocks_of(game, together)
    if share_of(blocks, now) - share_of(blocks_of(game, played), now) < LEAST_GAIN:
        return None
    cubin = _Source(game, architecture, blocks, in_step).compiled(keep=False)
    return Translation(cubin, marked_ops(game, blocks), True, together)


def _keep(path: Path, cubin: bytes) -> None:
    """Writes a kernel's file. If that fails, there is none, and the next process compiles again."""
    with contextlib.suppress(OSError, ValueError):
        make_folder(path.parent)
        path.unlink(missing_ok=True)  # else one of another user's would keep its owner
        _FILE.write(path, lambda file: file.write(cubin))
