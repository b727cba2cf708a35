"""How much memory a process may use: what control groups of either version say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cule.device import usable_memory

ALL = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
V2, V1 = "sys/fs/cgroup", "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/", {}, ALL),
        ("0::/", {f"{V2}/memory.max": "max"}, ALL),
        ("0::/", {f"{V2}/memory.max": "1000"}, 1000),
        ("0::/a/b", {f"{V2}/a/b/memory.max": "1000"}, 1000),
        ("0::/a/b", {f"{V2}/a/b/memory.max": "max", f"{V2}/a/memory.max": "2000"}, 2000),
        ("0::/a/b", {f"{V2}/a/b/memory.max": "3000", f"{V2}/a/memory.max": "2000"}, 2000),
        ("0::/of/the/host", {f"{V2}/memory.max": "1000"}, 1000),
        ("0::/a", {f"{V2}/b/memory.max": "1000"}, ALL),
        ("4:memory:/", {f"{V1}/memory.limit_in_bytes": "1000"}, 1000),
        ("4:memory:/", {f"{V1}/memory.limit_in_bytes": "9223372036854771712"}, ALL),
        ("4:cpu,memory:/a\n0::/", {f"{V1}/a/memory.limit_in_bytes": "1000"}, 1000),
        ("4:memory:/docker/x", {f"{V1}/memory.limit_in_bytes": "1000"}, 1000),
        ("4:cpu:/a\n3:name=systemd:/", {f"{V1}/a/memory.limit_in_bytes": "1000"}, ALL),
        (
            "4:memory:/a\n0::/a",
            {f"{V1}/a/memory.limit_in_bytes": "2000", f"{V2}/a/memory.max": "1000"},
            1000,
        ),
        (None, {f"{V1}/memory.limit_in_bytes": "1000"}, 1000),
        (None, {f"{V2}/memory.max": "1000"}, 1000),
        ("0::/", {f"{V2}/memory.max": "damaged"}, ALL),
        ("damaged", {f"{V2}/memory.max": "1000"}, ALL),
        (None, {}, ALL),
    ],
)
def test_usable_memory_is_the_least_that_the_groups_allow(
    groups: str | None, files: dict[str, str], expected: int, tmp_path: Path
) -> None:
    if groups is not None:
        files = files | {"proc/self/cgroup": groups + "\n"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert usable_memory(tmp_path) == expected


def test_usable_memory_of_this_machine_is_some() -> None:
    assert 0 < usable_memory() <= ALL
