"""What wheels are made for, and what zig and CMake are told to compile for it on any system."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

RELEASE = Path(__file__).resolve().parent
GLIBC = (2, 28)
MACOS = (11, 0)


@dataclass(frozen=True)
class Target:
    """A system and processor.

    Attributes:
        zig: zig's name.
        system: CMake's name of the system.
        processor: the system's name of the processor.
        platform: what sysconfig.get_platform() is there.
        module: the end of a module's file name, with the Python's version, such as 311.
        tag: the end of a wheel's name, before ".whl".
    """

    zig: str
    system: str
    processor: str
    platform: str
    module: str
    tag: str


def linux(processor: str) -> Target:
    """Linux with glibc."""
    glibc = ".".join(map(str, GLIBC))
    return Target(
        f"{processor}-linux-gnu.{glibc}", "Linux", processor, f"linux-{processor}",
        f".cpython-{{}}-{processor}-linux-gnu.so", f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{processor}",
    )  # fmt: skip


TARGETS = {
    "linux-x86_64": linux("x86_64"),
    "linux-aarch64": linux("aarch64"),
    "macos-arm64": Target(
        f"aarch64-macos.{MACOS[0]}.{MACOS[1]}", "Darwin", "arm64",
        f"macosx-{MACOS[0]}.{MACOS[1]}-arm64", ".cpython-{}-darwin.so",
        f"macosx_{MACOS[0]}_{MACOS[1]}_arm64",
    ),
    "windows-x86_64": Target(
        "x86_64-windows-gnu", "Windows", "AMD64", "win-amd64", ".cp{}-win_amd64.pyd", "win_amd64"
    ),
}  # fmt: skip
LINUX = [name for name, target in TARGETS.items() if target.system == "Linux"]
# zig makes no Mach-O bundles. Python loads dynamic libraries as well.
MACOS_RULES = 'set(CMAKE_SHARED_MODULE_CREATE_CXX_FLAGS "-dynamiclib")\n'
# The interpreter's headers, and a file with the names that it exports.
ASK = """
import sys, sysconfig
from pathlib import Path
library = Path(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LDLIBRARY"))
shared = library.suffix != ".a" and library.exists()
print(sysconfig.get_paths()["include"])
print((library if shared else Path(sys.executable)).resolve())
"""


def zig_compiler(folder: Path, target: Target) -> str:
    """A command that is zig's C++ compiler for a target."""
    path = folder / f"zig-c++-{target.zig}"
    path.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m ziglang c++ -target {target.zig} "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def cmake_variables(
    target: Target, interpreter: Path, version: str, folder: Path
) -> dict[str, object]:
    """What CMake is told to compile a module for a target.

    Headers of a Python of this machine serve for all: they have 64 bits, little end first. Those
    for Windows have another pyconfig.h.

    Args:
        target: the target.
        interpreter: a Python of this machine, of the version that the module is for.
        version: that, such as "311".
        folder: for files that CMake needs.
    """
    variables: dict[str, object] = {
        "CMAKE_SYSTEM_NAME": target.system, "CMAKE_SYSTEM_PROCESSOR": target.processor,
        "PYTHON_MODULE_EXTENSION": target.module.format(version),
        "CMAKE_MODULE_LINKER_FLAGS": "-s",
    }  # fmt: skip
    if target.system == "Darwin":
        rules = folder / "macos.cmake"
        rules.write_text(MACOS_RULES)
        variables["CMAKE_USER_MAKE_RULES_OVERRIDE"] = rules
    elif target.system == "Windows":
        words = [interpreter, "-c", ASK]
        asked = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
        headers, exporting = map(Path, asked.splitlines())
        own = folder / "include"
        shutil.copytree(headers, own)
        shutil.copy(RELEASE / "pyconfig_windows.h", own / "pyconfig.h")
        variables["Python_INCLUDE_DIR"] = own
        variables["Python_LIBRARY"] = import_library(exporting, version, folder)
    return variables


def import_library(exporting: Path, version: str, folder: Path) -> Path:
    """What a module links with, so that it finds Python's functions in pythonXY.dll.

    Args:
        exporting: an interpreter of this machine, or its library: it has the same functions.
        version: the interpreter's, such as "311".
        folder: where it goes.
    """
    from elftools.elf.elffile import ELFFile  # comes with auditwheel

    with open(exporting, "rb") as file:
        symbols = list(ELFFile(file).get_section_by_name(".dynsym").iter_symbols())
    names = sorted(
        symbol.name for symbol in symbols
        if symbol.name.startswith(("Py", "_Py")) and symbol["st_shndx"] != "SHN_UNDEF"
    )  # fmt: skip
    definitions, library = folder / "python.def", folder / f"python{version}.lib"
    definitions.write_text(f"LIBRARY python{version}.dll\nEXPORTS\n" + "\n".join(names) + "\n")
    zig = (sys.executable, "-m", "ziglang", "dlltool")
    subprocess.run([*zig, "-d", definitions, "-l", library, "-m", "i386:x86-64"], check=True)
    return library
