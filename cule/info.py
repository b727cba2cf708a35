"""`python -m cule.info`: what is installed, built and found, and how to fix what is missing."""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import torch

from cule import _core
from cule.devices import nvrtc
from cule.devices.architecture import missing_code
from cule.disk.cache import cache_folder, nearest
from cule.disk.files import is_own
from cule.programs.command_line import Parser, run_main
from cule.rom import ROM_DIR_VARIABLE, Game, games, load_rom, rom_path
from cule.translation.kernel_files import is_kernel, shared_folders
from cule.vector_env import AtariEnv

REQUIRED = ("torch", "gymnasium", "ale-py", "numpy", "opencv-python-headless", "tqdm", "typeguard")
OPTIONAL = ("imageio", "pygame", "matplotlib", "stable-baselines3", "torchrl", "jax", "moviepy")


@dataclass
class Section:
    """The findings about one subject.

    Attributes:
        title: its name.
        lines: the facts.
        problems: what is wrong, each with what to do about it.
    """

    title: str
    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def _output_of(*command: str) -> str | None:
    """The output of a command; None: there is no such command, or it fails."""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
        return done.stdout.strip()
    return None


def _version(package: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None


# Versions ---------------------------------------------------------------------------------------


def _numbers(version: str) -> tuple[int, ...]:
    """A version's leading numbers: (2, 13, 0) of "2.13.0+cpu"."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, match.group().split("."))) if match else ()


def _least_versions() -> dict[str, str]:
    """The lowest versions that the installed package requires, by package."""
    with suppress(metadata.PackageNotFoundError):
        lines = [line for line in metadata.requires("cule") or [] if "extra ==" not in line]
        return dict(re.findall(r"^([\w-]+)>=([\d.]+)$", "\n".join(lines), re.MULTILINE))
    return {}


def versions() -> Section:
    """The versions of cule, of Python and of the packages that cule needs or can use."""
    from cule import __version__

    section = Section("Versions")
    least = _least_versions()
    section.lines.append(f"cule {__version__} in {Path(__file__).parent}")
    section.lines.append(f"Python {platform.python_version()} in {sys.prefix}")
    for package in REQUIRED:
        version = _version(package)
        asked = least.get(package, "0")
        if version is None:
            section.problems.append(f"{package} is not installed: pip install {package}")
            continue
        if _numbers(version) < _numbers(asked):
            section.problems.append(
                f"cule needs {package} {asked} or newer, and {version} is installed: "
                f"pip install --upgrade {package}"
            )
        section.lines.append(f"{package} {version}")
    section.lines.append(
        f"torch is built for {f'CUDA {cuda}' if (cuda := torch.version.cuda) else 'the CPU'}"
    )
    there = [f"{package} {version}" for package in OPTIONAL if (version := _version(package))]
    lacking = [package for package in OPTIONAL if not _version(package)]
    if there:
        section.lines.append(f"optional: {', '.join(there)}")
    if lacking:
        section.lines.append(f"optional, not installed: {', '.join(lacking)}")
    return section


# The build and GPUs -----------------------------------------------------------------------------


def backends() -> Section:
    """The backends that the compiled module has."""
    section = Section("Backends of this build", ["CPU"])
    if _core.has_cuda():
        built = ", ".join(f"sm_{architecture}" for architecture in _core.CUDA_ARCHITECTURES)
        section.lines.append(f"CUDA, with code for {built}")
    else:
        section.lines.append("no CUDA")
    return section


def _driver_gpus() -> list[str]:
    """The GPUs that the NVIDIA driver lists, such as "Tesla T4, 580.95.05, 7.5"."""
    query = "--query-gpu=name,driver_version,compute_cap"
    return (_output_of("nvidia-smi", query, "--format=csv,noheader") or "").splitlines()


def gpus() -> Section:
    """The GPUs that the driver and torch see, and whether this build serves them."""
    section = Section("GPUs")
    listed = _driver_gpus()
    usable = torch.cuda.is_available()
    if not listed and not usable:
        section.lines.append("none: nvidia-smi and torch find no GPU")
        return section
    section.lines += [f"the driver lists {line}" for line in listed]
    if not _core.has_cuda():
        section.problems.append(
            "this cule was built without CUDA, so envs run on the CPU: install the CUDA "
            "toolkit (nvcc), then build cule again with CULE_CUDA=ON (docs/install.md)"
        )
    if torch.version.cuda is None:
        section.problems.append(
            "this torch is a build for the CPU: install one for CUDA "
            "(https://pytorch.org/get-started/locally)"
        )
    elif not usable:
        section.problems.append(
            "torch finds no usable GPU though the driver lists some: its CUDA "
            f"({torch.version.cuda}) may be newer than the driver, or CUDA_VISIBLE_DEVICES "
            f"({os.environ.get('CUDA_VISIBLE_DEVICES', 'not set')}) may hide them"
        )
    for index in range(torch.cuda.device_count() if usable else 0):
        major, minor = torch.cuda.get_device_capability(index)
        memory = torch.cuda.get_device_properties(index).total_memory / 2**30
        lacking = missing_code(index) if _core.has_cuda() else None
        served = "" if not _core.has_cuda() else ", not served" if lacking else ", served"
        name = torch.cuda.get_device_name(index)
        section.lines.append(f"cuda:{index} is {name}, sm_{major}{minor}, {memory:.0f} GiB{served}")
        if lacking:
            section.problems.append(lacking)
    return section


def compilers() -> Section:
    """The compilers that build cule, and the one that compiles games for a GPU at run time."""
    section = Section("Compilers")
    for name, purpose in (("c++", "builds cule"), ("nvcc", "builds it with CUDA")):
        path = shutil.which(name)
        text = (_output_of(path, "--version") or "").splitlines() if path else []
        version = next((line for line in text if "release" in line), text[0] if text else "")
        section.lines.append(
            f"{name} ({purpose}): {f'{version}, {path}' if path else 'not section'}"
        )
    try:
        section.lines.append(f"NVRTC (compiles games at run time): {nvrtc.version()}")
    except (OSError, RuntimeError) as problem:
        section.lines.append("NVRTC (compiles games at run time): not found")
        if _core.has_cuda() and torch.cuda.is_available():
            package = (
                f"nvidia-cuda-nvrtc{'-cu12' if (torch.version.cuda or '').startswith('12') else ''}"
            )
            section.problems.append(
                f"envs on a GPU run several times slower than they could: {problem}: "
                f"pip install {package}"
            )
    return section


# ROMs and caches --------------------------------------------------------------------------------


def _rom_problem(game: Game) -> str | None:
    try:
        load_rom(game)
    except (OSError, ValueError) as problem:
        return str(problem)
    return None


def roms() -> Section:
    """How many of the games' ROMs are found, and where."""
    section = Section("ROMs")
    problems = {game.name: problem for game in games() if (problem := _rom_problem(game))}
    with suppress(FileNotFoundError):
        folder = rom_path(games()[0]).parent
        source = f"named by {ROM_DIR_VARIABLE}" if os.environ.get(ROM_DIR_VARIABLE) else "of ale-py"
        section.lines.append(
            f"{len(games()) - len(problems)} of {len(games())} in {folder}, {source}"
        )
    if problems:
        name, problem = next(iter(problems.items()))
        section.problems.append(
            f"{len(problems)} of {len(games())} games cannot be played. The first, {name}: "
            f"{problem}. Install ale-py, whose wheel carries the ROMs, and unset "
            f"{ROM_DIR_VARIABLE}, or put the missing ROMs into the folder that it names "
            "(roms/README.md)"
        )
    return section


def caches() -> Section:
    """The folder that keeps games compiled for a GPU."""
    folder = cache_folder().absolute()
    section = Section("Caches")
    files = [path for path in folder.glob("*") if path.is_file()] if folder.is_dir() else []
    size = sum(path.stat().st_size for path in files) / 2**20
    count = sum(map(is_kernel, files))
    section.lines.append(
        f"{count} compiled games, {size:.1f} MiB, in {folder}, which can be deleted"
    )
    if not os.access(nearest(folder), os.W_OK) or (folder.exists() and not folder.is_dir()):
        section.problems.append(
            f"{folder} cannot be written, so each process compiles its game again: "
            "name another folder in CULE_CACHE_DIR"
        )
    elif folder.is_dir() and not is_own(folder.stat()):
        section.problems.append(
            f"{folder} belongs to another user, so nothing is read from it and each process "
            "compiles its game again: name another folder in CULE_CACHE_DIR"
        )
    shared, problems = shared_folders()
    for folder, _ in shared:
        count = sum(map(is_kernel, folder.glob("*")))
        section.lines.append(f"{count} compiled games in {folder}, which is only read")
    section.problems += problems
    return section


def envs() -> Section:
    """Makes an env on the default device and plays a step in it."""
    section = Section("Envs")
    game = next((game.name for game in games() if not _rom_problem(game)), None)
    if game is None:
        section.problems.append("no env can be made without a ROM")
        return section
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the section on GPUs has these problems already
            env = AtariEnv(game, 1, num_threads=1, reset_pool_size=1)
        with closing(env):
            env.reset(seed=0)
            env.step([0])
            section.lines.append(f"made one of {game} on {env.device}, and played a step")
    except (ValueError, RuntimeError, OSError, MemoryError) as problem:
        section.problems.append(f"an env of {game} cannot be made: {problem}")
    return section


# The program ------------------------------------------------------------------------------------

SECTIONS: tuple[Callable[[], Section], ...] = (
    versions, backends, gpus, compilers, roms, caches, envs,
)  # fmt: skip


def report(sections: Sequence[Section]) -> Iterator[str]:
    """The sections as lines of text, the problems at the end."""
    for section in sections:
        yield f"{section.title}:"
        yield from (f"  {line}" for line in section.lines)
    problems = [problem for section in sections for problem in section.problems]
    yield "Problems:" if problems else "No problems."
    yield from (f"  - {problem}" for problem in problems)


def make_parser() -> Parser:
    """The command line."""
    return Parser(
        prog="python -m cule.info",
        description="Says what is installed, built and found, and how to fix what is missing. "
        "The exit status is 0 if an env can be made, else 1.",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the report; returns 0 if an env can be made, else 1."""
    sections = [section() for section in SECTIONS]
    for line in report(sections):
        print(line)
    return int(bool(sections[-1].problems))


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the report; returns the exit status."""
    return run_main(make_parser(), run, argv)


if __name__ == "__main__":
    sys.exit(main())
