"""Tries the cule that is installed, from no folder of its sources: the demo, and tests.

    python release/try_wheel.py
    python release/try_wheel.py tests/chips -k cpu     # these tests, and options of pytest

The tests are copied to another folder first, since in the checkout `import cule` finds the
checkout. The chips' tests compile their own module, with CXX or c++: zig's clang, as `make dist`
uses it, is CXX="python -m ziglang c++".
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What the tests read.
FOLDERS = ("tests", "csrc", "design")
TESTS = ("tests/chips", "tests/test_demo.py", "tests/differential/test_seed_for_seed.py")
DEMO = ("-m", "cule.demo", "--device", "cpu", "--quiet", "--output", "demo.png")
SAY = "import cule; print(cule.__version__, 'of', cule.__file__)"


def copy_tests(folder: Path) -> None:
    """The tests, and what they read, in another folder."""
    for name in FOLDERS:
        left_out = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    shutil.copy(ROOT / "pyproject.toml", folder)


def call(words: Sequence[str], folder: Path) -> None:
    """Calls this Python in a folder; ends the program where that fails."""
    variables = {name: text for name, text in os.environ.items() if name != "CULE_ROM_DIR"}
    begin = time.perf_counter()
    status = subprocess.run(
        [sys.executable, *words], cwd=folder, env=variables, check=False
    ).returncode
    print(f"{time.perf_counter() - begin:.1f} s: python {' '.join(words)}", flush=True)
    if status:
        sys.exit(f"try_wheel: expected that to succeed, got status {status}")


def main() -> None:
    """Runs everything."""
    print(f"Python {platform.python_version()} on {sysconfig.get_platform()}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_tests(folder)
        call(["-c", SAY], folder)
        call(DEMO, folder)
        words = sys.argv[1:] or TESTS
        call(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *words], folder)


if __name__ == "__main__":
    main()
