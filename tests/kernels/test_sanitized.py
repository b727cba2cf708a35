"""The kernels under AddressSanitizer and UndefinedBehaviorSanitizer, as C++ on the simulated GPU.

Covered are all tensors, each with its bounds, and what is on a thread's stack. Not covered are
bounds of variables in shared memory, but for those of the dynamic part.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from simulated import BACKEND, HERE, build

FLAGS = [
    "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g",
    "-DCULE_SANITIZED",
]  # fmt: skip

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sanitized(folder: Path) -> Path:
    return build("sanitized", BACKEND, folder, flags=FLAGS)


def run(library: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python does not know the sanitizers, so they are loaded before it."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    found = [
        subprocess.run(
            [*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    if not all(Path(path).is_absolute() for path in found):
        pytest.skip("the compiler has no sanitizers that can be loaded before a program")
    environment = os.environ | {"LD_PRELOAD": " ".join(found), "ASAN_OPTIONS": "detect_leaks=0"}
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
