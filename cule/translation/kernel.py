"""A game's kernel, compiled for a GPU or from the disk."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cule.console.console import Snapshot
from cule.console.options import Group
from cule.devices import nvrtc
from cule.disk.cache import cache_folder, make_folder, making
from cule.rom import Game
from cule.translation.blocks import Block, blocks_of, most_frequent, share_of
from cule.translation.executed import both, profile, profile_from
from cule.translation.kernel_files import (
    Translation,
    find,
    path_in,
    read,
    stem_of,
    write,
)
from cule.translation.source import headers, kernel_source, marked_ops

# A game is compiled again if so much more of what its envs execute is then in blocks. To interpret
# an instruction takes 25 times as long, and envs of a warp wait while one of them does.
LEAST_GAIN = 0.002


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


def _compiled(
    game: Game, architecture: str, in_step: bool, blocks: list[Block], whole: bool,
    played: np.ndarray, sound: bool,
) -> Translation:  # fmt: skip
    source = kernel_source(game, blocks, in_step, sound)
    cubin = nvrtc.compile_cubin(source, headers(), compiler_options(architecture))
    return Translation(cubin, marked_ops(game, blocks), whole, played)


def translate(
    game: Game,
    architecture: str,
    in_step: bool = False,
    at_first: bool = False,
    sound: bool = False,
) -> Translation:
    """A game's kernel for a GPU architecture such as "sm_90", from the disk or the compiler.

    Args:
        game: the game.
        architecture: the GPU's.
        in_step: whether the warps of a multiprocessor wait for each other (design/translation.md).
        at_first: if the kernel of all blocks is not on the disk, make one of the game's most
            frequent blocks only. That takes under ten seconds, and all blocks up to a minute.
        sound: whether it notes what the program writes to the registers of sound.

    Raises:
        OSError: there is no run-time compiler.
        RuntimeError: the game does not compile.
    """
    for whole in (True, False) if at_first else (True,):
        if (kernel := find(game, architecture, in_step, whole, sound)) is not None:
            return kernel
    blocks = blocks_of(game)
    frequent = most_frequent(game, blocks)
    whole = not at_first or len(frequent) == len(blocks)
    stem = stem_of(game, architecture, in_step, whole, sound)
    path = path_in(cache_folder(), stem, nvrtc.version())
    with contextlib.suppress(OSError):
        make_folder(path.parent)
    with making(path, "a kernel"):
        # Another process may have made it meanwhile.
        kernel = read(path, game, whole)
        if kernel is None:
            chosen = blocks if whole else frequent
            kernel = _compiled(game, architecture, in_step, chosen, whole, profile(game), sound)
            # If it cannot be kept, the next process compiles again.
            with contextlib.suppress(OSError, ValueError):
                write(path, kernel)
    return kernel


def compile_into(
    folder: Path, game: Game, architecture: str, in_step: bool, sound: bool = False
) -> tuple[Path, bool]:
    """Compiles a game's kernel of all blocks into a folder, unless it is there.

    Args:
        folder: an existing one.
        game: the game.
        architecture: the GPU's; the machine need not have one.
        in_step: as of translate.
        sound: as of translate.

    Returns:
        The kernel's file, and whether it was there.

    Raises:
        OSError: there is no run-time compiler, or the file cannot be written.
        RuntimeError: the game does not compile.
        ValueError: the file cannot be written.
    """
    path = path_in(folder, stem_of(game, architecture, in_step, True, sound), nvrtc.version())
    with making(path, "a kernel"):
        was_there = read(path, game, True) is not None
        if not was_there:
            blocks = blocks_of(game)
            write(path, _compiled(game, architecture, in_step, blocks, True, profile(game), sound))
    return path, was_there


def translate_again(
    game: Game,
    architecture: str,
    in_step: bool,
    played: np.ndarray,
    states: Sequence[tuple[Group, Snapshot]],
    sound: bool = False,
) -> Translation | None:
    """A kernel that also has what envs execute now; None if that is little more than before.

    It is not kept on the disk, as no other process will look for just this one.

    Args:
        game: the game.
        architecture: the GPU's.
        in_step: as in translate.
        played: the profile of the kernel that is to be replaced.
        states: of some envs, each with its game, mode and difficulty.
        sound: as in translate.

    Raises:
        OSError: there is no run-time compiler.
        RuntimeError: the game does not compile.
    """
    now = profile_from(game, states)
    together = both(played, now)
    blocks = blocks_of(game, together)
    if share_of(blocks, now) - share_of(blocks_of(game, played), now) < LEAST_GAIN:
        return None
    return _compiled(game, architecture, in_step, blocks, True, together, sound)
