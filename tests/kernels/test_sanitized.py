"""The kernels under AddressSanitizer and UndefinedBehaviorSanitizer, as C++ on the simulated GPU.

The sanitizers check the bounds of all tensors and of variables on a thread's stack. They do not
check the bounds of variables in shared memory, except those of the dynamic part.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from simulated import BACKEND, HERE, build

from tests.support.build import SANITIZED, compiler

ROOT = HERE.parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sanitized(folder: Path) -> Path:
    return build("sanitized", BACKEND, folder, flags=SANITIZED)


def run(library: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the program with the sanitizers loaded first: Python was built without them."""
    found = [
        subprocess.run(
            [*compiler(), f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    if not all(Path(path).is_absolute() for path in found):
        pytest.skip("the compiler has no sanitizers that can be loaded before a program")
    environment = os.environ | {
        "LD_PRELOAD": " ".join(found),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, str(HERE / "sanitized_steps.py"), str(library), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_sanitizers_notice_a_planted_fault(sanitized: Path) -> None:
    result = run(sanitized, "planted")
    assert result.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in result.stderr and "csrc/" in result.stderr


def test_sanitizers_are_silent(sanitized: Path) -> None:
    result = run(sanitized)
    assert result.returncode == 0, result.stderr[-8_000:]
    assert result.stdout == "done\n"
