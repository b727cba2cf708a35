"""How much memory and how many CPUs a process may use, by its control groups; what envs take."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

from cule.console import Group, Options, boot
from cule.devices.device import usable_cpus, usable_memory
from cule.engine.layout import Layout
from cule.rom import find_game

ALL = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
V2, V1 = "sys/fs/cgroup", "sys/fs/cgroup/memory"
CPU_V1 = "sys/fs/cgroup/cpu/a/cpu.cfs"


def write_groups(root: Path, groups: str | None, files: dict[str, str]) -> None:
    """Writes the system's files that say in which groups a process is, and their limits."""
    if groups is not None:
        files = files | {"proc/self/cgroup": groups + "\n"}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")


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
    write_groups(tmp_path, groups, files)
    assert usable_memory(tmp_path) == expected


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/", {}, 16),
        ("0::/", {f"{V2}/cpu.max": "max 100000"}, 16),
        ("0::/", {f"{V2}/cpu.max": "200000 100000"}, 2),
        ("0::/", {f"{V2}/cpu.max": "150000 100000"}, 2),
        ("0::/", {f"{V2}/cpu.max": "10000 100000"}, 1),
        ("0::/", {f"{V2}/cpu.max": "9900000 100000"}, 16),
        ("0::/a/b", {f"{V2}/a/b/cpu.max": "max 100000", f"{V2}/a/cpu.max": "300000 100000"}, 3),
        ("4:cpu,cpuacct:/a", {f"{CPU_V1}_quota_us": "400000", f"{CPU_V1}_period_us": "100000"}, 4),
        ("4:cpu,cpuacct:/a", {f"{CPU_V1}_quota_us": "-1", f"{CPU_V1}_period_us": "100000"}, 16),
        ("4:cpu,cpuacct:/a", {f"{CPU_V1}_quota_us": "400000"}, 16),
        ("4:memory:/a", {f"{CPU_V1}_quota_us": "1", f"{CPU_V1}_period_us": "1"}, 16),
        (None, {f"{V2}/cpu.max": "200000 100000"}, 2),
        ("0::/", {f"{V2}/cpu.max": "damaged"}, 16),
    ],
)
def test_usable_cpus_are_the_fewest_that_the_groups_allow(
    groups: str | None, files: dict[str, str], expected: int, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(16)))
    write_groups(tmp_path, groups, files)
    assert usable_cpus(tmp_path) == expected


def test_usable_memory_of_this_machine_is_some() -> None:
    assert 0 < usable_memory() <= ALL


def layout_on_a_gpu(game: str, num_envs: int, **options: Any) -> Layout:
    found = find_game(game)
    return Layout([Group(found, 0, 0)], [boot(found)], Options(**options), num_envs, on_gpu=True)


def bytes_of(layout: Layout) -> int:
    return sum(math.prod(shape) * dtype.itemsize for shape, dtype in layout.fields.values())


def test_a_million_envs_fit_on_a_gpu() -> None:
    """An H200 has 141 GB. Constants and start states are small, and not counted."""
    envs = layout_on_a_gpu("pong", 2**20)
    assert 100e9 < bytes_of(envs) < 126e9
    assert envs.numbers["num_envs"] == 2**20 and envs.numbers["spare_count"] == 2**14


@pytest.mark.parametrize(
    ("game", "options", "most"),
    [
        ("pong", {}, 119_000),
        ("tetris", {}, 127_000),
        ("pong", {"autoreset": 2}, 153_000),  # which go on after their end
        ("tic_tac_toe_3d", {}, 153_000),
        ("pong", {"channels": 3, "autoreset": 1}, 261_000),
    ],
    ids=str,
)
def test_bytes_per_env_on_a_gpu(game: str, options: dict[str, Any], most: int) -> None:
    envs = layout_on_a_gpu(game, 4096, **options)
    assert 0.95 * most < envs.bytes_per_env <= most
    assert envs.bytes_per_env == bytes_of(envs) // 4096
