"""Tries the cule that is installed, from no folder of its sources: the demo, and tests.

    python release/try_wheel.py
    python release/try_wheel.py tests/chips -k cpu     # these tests, and options of pytest
    python release/try_wheel.py --python build/aarch64/python   # what another Python has installed

The tests are copied to another folder first, since in the checkout `import cule` finds the
checkout. The chips' tests compile their own module, with CXX or c++: zig's clang, as `make dist`
uses it, is CXX="python -m ziglang c++".
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What the tests read.
FOLDERS = ("tests", "csrc", "design")
TESTS = ("tests/chips", "tests/test_demo.py", "tests/differential/test_seed_for_seed.py")
DEMO = ("-m", "cule.demo", "--device", "cpu", "--quiet", "--output", "demo.png")
SAY = """
import cule, platform, sysconfig
print("Python", platform.python_version(), "on", sysconfig.get_platform())
print("cule", cule.__version__, "of", cule.__file__)
"""


def copy_tests(folder: Path) -> None:
    """The tests, and what they read, in another folder."""
    for name in FOLDERS:
        left_out = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    shutil.copy(ROOT / "pyproject.toml", folder)


def call(python: str, words: Sequence[str], folder: Path) -> None:
    """Calls a Python in a folder; ends the program where that fails."""
    variables = {name: text for name, text in os.environ.items() if name != "CULE_ROM_DIR"}
    begin = time.perf_counter()
    status = subprocess.run([python, *words], cwd=folder, env=variables, check=False).returncode
    if words[0] != "-c":
        print(f"{time.perf_counter() - begin:.1f} s: python {' '.join(words)}", flush=True)
    if status:
        sys.exit(f"try_wheel: expected that to succeed, got status {status}")


def main() -> None:
    """Runs everything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="which (default: this one)")
    arguments, words = parser.parse_known_args()
    python = str(Path(arguments.python).absolute())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_tests(folder)
        call(python, ["-c", SAY], folder)
        call(python, DEMO, folder)
        tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow")
        call(python, [*tests, *(words or TESTS)], folder)


if __name__ == "__main__":
    main()
