"""Makes a Python of another processor, emulated by QEMU, with what cule needs, on Debian 12.

    apt-get install qemu-user-static
    python release/emulated.py build/aarch64
    build/aarch64/python -c 'import platform; print(platform.machine())'

It unpacks Debian's Python into a folder, with wheels of PyPI beside it; nothing else of the system
changes. So wheels that `make dist` has made for that processor can be tried without one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from debian import keep_own_headers, unpack

PROCESSOR, DEBIAN = "aarch64", "arm64"
PYTHON = "3.11"  # Debian 12's
PACKAGES = (
    f"python{PYTHON}-minimal", f"libpython{PYTHON}-minimal", f"libpython{PYTHON}-stdlib",
    f"libpython{PYTHON}-dev", "libc6", "libgcc-s1", "libstdc++6", "libgomp1", "zlib1g", "libexpat1",
    "libssl3", "libffi8", "libbz2-1.0", "liblzma5", "libsqlite3-0", "libuuid1", "libcrypt1",
)  # fmt: skip
# What cule imports, and its tests. Later torch of PyPI has CUDA on this processor.
WHEELS = (
    "torch==2.6.0", "numpy", "gymnasium", "ale-py", "opencv-python-headless", "cloudpickle",
    "typing-extensions", "farama-notifications", "sympy<1.14", "mpmath<1.4", "networkx", "jinja2",
    "markupsafe", "fsspec", "filelock", "tqdm", "pytest", "pluggy", "iniconfig", "packaging",
    "pygments", "hypothesis", "sortedcontainers", "py65", "pybind11", "typeguard",
)  # fmt: skip
GLIBCS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_26", "manylinux_2_17", "manylinux2014")


def install_wheels(folder: Path, wheels: list[Path]) -> None:
    """Wheels of PyPI, and given ones, in a folder that Python looks for modules in."""
    platforms = [word for glibc in GLIBCS for word in ("--platform", f"{glibc}_{PROCESSOR}")]
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "-q", "--upgrade", "--target", folder / "site",
            "--no-deps", "--only-binary=:all:", "--implementation", "cp",
            "--python-version", PYTHON, *platforms, *WHEELS, *wheels,
        ],
        check=True,
    )  # fmt: skip


def write_command(folder: Path) -> Path:
    """The script that starts Python; other programs that it starts see the same."""
    root, site, path = folder / "root", folder / "site", folder / "python"
    path.write_text(
        "#!/bin/sh\n"
        f'export PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}{site}"\n'
        f'exec qemu-{PROCESSOR}-static -L "{root}" "{root}/usr/bin/python{PYTHON}" "$@"\n'
    )
    path.chmod(0o755)
    return path


def main() -> None:
    """Makes it, and lets it say what it is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where it goes")
    parser.add_argument("wheels", type=Path, nargs="*", help="wheels that it gets besides: cule's")
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    keep_own_headers(unpack(folder, PACKAGES, processor=DEBIAN), PROCESSOR, PYTHON)
    install_wheels(folder, [wheel.absolute() for wheel in arguments.wheels])
    command = write_command(folder)
    program = "import platform; print(platform.machine(), platform.python_version())"
    subprocess.run([command, "-c", program], check=True, env=os.environ)


if __name__ == "__main__":
    main()
