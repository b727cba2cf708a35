"""The threads of the CPU backend under ThreadSanitizer, and under the other sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.build import SANITIZED, build

SOURCE = Path(__file__).resolve().parent / "pool.cpp"
KINDS = {
    "thread": ("-fsanitize=thread", "-fno-omit-frame-pointer", "-g"),
    "address": SANITIZED,
}


@pytest.mark.parametrize("kind", KINDS)
def test_threads_work_on_each_index_once_and_tell_failures(kind: str, build_folder: Path) -> None:
    program = build(
        f"pool_{kind}", [SOURCE], build_folder, compile_flags=["-pthread", *KINDS[kind]],
        link_flags=(), suffix="",
    )  # fmt: skip
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "all well\n"), done.stderr[-8_000:]
    assert "Sanitizer" not in done.stderr
