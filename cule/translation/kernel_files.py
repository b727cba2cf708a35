"""Kernels on disk: in the user's cache, in folders that users share, in the package cule-kernels.

A kernel's file is named after what it is made from, so that one of an older cule, or of another
ROM, is not found. Finding it takes milliseconds: the game need not be played for that.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import io
import lzma
import os
import re
import stat
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cule import _core
from cule.console import rom_of
from cule.devices import driver, nvrtc
from cule.disk import descriptors
from cule.disk.cache import cache_folder
from cule.disk.sealed import Kind
from cule.errors import InvalidValue
from cule.rom import Game
from cule.translation.executed import OTHER_REGISTER
from cule.translation.source import headers

# Folders with kernels that other users have made, as in PATH.
VARIABLE = "CULE_KERNELS"
PACKAGE = "cule_kernels"
_FILE = Kind("kernel", 2)
_SUFFIX = ".kernel"
_DAMAGE = (ValueError, LookupError, OSError, EOFError, zipfile.BadZipFile, lzma.LZMAError)


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


def stem_of(game: Game, architecture: str, in_step: bool, whole: bool, sound: bool = False) -> str:
    """The first part of a kernel's file name: what it is, and a digest of all it is made from.

    That is the ROM, the headers, and the files of this folder, which write its source. Only the
    compiler is missing, whose version ends the name.

    Args:
        game: the game.
        architecture: the GPU's, such as "sm_90".
        in_step: as of translate.
        whole: whether it has all of the game's blocks.
        sound: as of translate.
    """
    writers = [path.read_text() for path in sorted(Path(__file__).parent.glob("*.py"))]
    texts = headers()
    # What a game executes is found by playing it.
    texts |= {name: text for name, text in _core.headers().items() if "execution/" in name}
    about = hashlib.sha256(rom_of(game)[0]).hexdigest(), rom_of(game)[1], sorted(game.facts.items())
    made_from = repr((about, game.index, writers, sorted(texts.items()), in_step, whole, sound))
    key = hashlib.sha256(made_from.encode()).hexdigest()[:16]
    words = [game.name, architecture, "all" if whole else "first"]
    words += ["in-step"] * in_step + ["sound"] * sound + [key]
    return "-".join(words)


def path_in(folder: Path, stem: str, version: str) -> Path:
    """A kernel's file.

    Args:
        folder: where it is.
        stem: the result of stem_of.
        version: the compiler's.
    """
    return folder / f"{stem}-{version}{_SUFFIX}"


def is_kernel(path: Path) -> bool:
    """Whether a file is named like a kernel's."""
    return path.suffix == _SUFFIX


# Folders of others --------------------------------------------------------------------------------


def check_shared(folder: Path) -> int:
    """Checks that nobody but its owner, this user and root can change what is in a folder.

    Returns:
        The owner, whom this user trusts by naming the folder.

    Raises:
        ValueError: it is no folder, or somebody else can change it.
    """
    wanted = f"expected a folder of compiled games in {VARIABLE}"
    try:
        folder = folder.resolve(strict=True)
        owner = folder.stat().st_uid
        for one in (folder, *folder.parents):
            about = one.stat()
            shared = descriptors.is_shared(about, stat.S_IWGRP | stat.S_IWOTH)
            if one == folder and not stat.S_ISDIR(about.st_mode):
                raise InvalidValue(f"{wanted}, got {folder}, which is none")
            # In a folder such as /tmp users cannot replace each other's files.
            if (shared and not (about.st_mode & stat.S_ISVTX and one != folder)) or (
                about.st_uid not in (0, descriptors.user(), owner)
            ):
                raise InvalidValue(
                    f"{wanted} that only its owner can change, got {folder}, in which other users "
                    f"can replace files (see the owner and mode of {one}): nothing is read from it"
                )
    except OSError as problem:
        raise InvalidValue(f"{wanted}, got {folder}: {problem.strerror}") from problem
    return owner


def shared_folders() -> tuple[list[tuple[Path, int]], list[str]]:
    """The folders of CULE_KERNELS and of the package, with their owners; and what is wrong."""
    found, problems = [], []
    for name in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        try:
            found.append((Path(name), check_shared(Path(name))))
        except InvalidValue as problem:
            problems.append(str(problem))
    if (package := _package()) is not None:
        found.append((package, package.stat().st_uid))
    return found, problems


@functools.cache
def _package() -> Path | None:
    """The folder of the package cule-kernels; None: it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


# Reading and writing ------------------------------------------------------------------------------


def read(path: Path, game: Game, whole: bool, owner: int | None = None) -> Translation | None:
    """A kernel's file; None if it is missing, damaged or of a user who is not trusted.

    Args:
        path: the file.
        game: whose kernel it is.
        whole: whether it has all of the game's blocks.
        owner: whom the user trusts besides themselves and root.
    """
    size = len(rom_of(game)[0]) + 1
    try:
        with _FILE.reading(path, own=True, owner=owner) as file:
            content = np.load(io.BytesIO(lzma.decompress(file.read())), allow_pickle=False)
            cubin, marked, played = (content[name] for name in ("cubin", "marked_ops", "played"))
    except _DAMAGE:
        return None
    forms = [(one.dtype, one.shape) for one in (marked, played)]
    if forms != [(np.uint32, (size, 2)), (np.int64, (size, OTHER_REGISTER + 1))]:
        return None
    return Translation(cubin.tobytes(), marked, whole, played)


def write(path: Path, kernel: Translation) -> None:
    """Writes a kernel's file.

    Raises:
        OSError, ValueError: it cannot be written.
    """
    content = io.BytesIO()
    np.savez(
        content, cubin=np.frombuffer(kernel.cubin, np.uint8), marked_ops=kernel.marked_ops,
        played=kernel.played,
    )  # fmt: skip
    # By a third smaller than as a zip file packs them: a wheel of all kernels may have 100 MB.
    packed = lzma.compress(content.getvalue())
    path.unlink(missing_ok=True)  # else one of another user's would keep its owner
    _FILE.write(path, lambda file: file.write(packed))


def find(
    game: Game, architecture: str, in_step: bool, whole: bool, sound: bool = False
) -> Translation | None:
    """A kernel that is on disk; None: there is none that this machine can use.

    That of its own compiler comes first. One that another compiler made is taken from the folders
    of others, if the driver loads it.
    """
    stem, own = stem_of(game, architecture, in_step, whole, sound), nvrtc.version_or_none()
    if own is not None:
        kernel = read(path_in(cache_folder(), stem, own), game, whole)
        if kernel is not None:
            return kernel
    candidates = []
    for folder, owner in shared_folders()[0]:
        for path in folder.glob(f"{stem}-*{_SUFFIX}"):
            version = path.name[len(stem) + 1 : -len(_SUFFIX)]
            if not re.fullmatch(r"\d+\.\d+", version):
                continue
            if version == own or _loads(version):
                candidates.append((version == own, numbers(version), path, owner))
    for _, _, path, owner in sorted(candidates, key=lambda one: one[:2], reverse=True):
        if (kernel := read(path, game, whole, owner)) is not None:
            return kernel
    return None


def _loads(version: str) -> bool:
    """Whether the driver surely loads what this version's compiler made.

    It has to be of the same major version, and at least as new:
    https://docs.nvidia.com/deploy/cuda-compatibility.
    """
    newest, made_by = numbers(driver.version() or "0"), numbers(version)
    return made_by[0] == newest[0] and made_by <= newest


def numbers(version: str) -> tuple[int, ...]:
    """A version such as "13.0" as numbers, which can be compared."""
    return tuple(map(int, version.split(".")))
