"""The core under AddressSanitizer and UndefinedBehaviorSanitizer: every game, random bytes as ROMs,
frames without end.

sweep.cpp is a program of its own, compiled once per state of the sources with the system's C++
compiler (`CXX`, else `c++`), in about a minute; all tests together take about ten on two cores, so
that they are marked slow.

Covered is the whole CPU backend as it ships: its threads, resets, drawing and observations, the
rules of all games, and the handlers of all instructions. Not covered: the bindings, and what only a
GPU runs (block.h).
"""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cule.console.instruction_buffers import buffer_entries
from cule.facts.resample import make_tables
from cule.rom import detect_scheme, games, load_rom, rom_path
from tests.support.build import CSRC, SANITIZED, build

HERE = Path(__file__).resolve().parent
SOURCES = [
    HERE / "sweep.cpp",
    CSRC / "kernels/cpu/cpu_backend.cpp",
    CSRC / "kernels/cpu/draw_env.cpp",
    CSRC / "kernels/cuda/no_cuda.cpp",
]
ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=0:strict_string_checks=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
FRAMES, SETTINGS = 1_000, 2  # each game plays this many frames in this many settings
MIXED_FRAMES = 120
RANDOM_ROMS = 200
OTHER_ROMS, OTHER_KINDS = 40, 3  # random programs, of each of so many kinds
SHARDS = 2  # that run at once
LINE_PIXELS = 160
HEIGHTS = (210, 214, 220, 230, 250)
SHAPES = ((84, 84), (105, 80), (50, 37))

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def sweep(build_folder: Path) -> Path:
    """The compiled program."""
    flags = ["-pthread", *SANITIZED]
    return build("sweep", SOURCES, build_folder, compile_flags=flags, link_flags=(), suffix="")


def _spans(spans: list[list[int]]) -> str:
    return " ".join([str(len(spans)), *(str(number) for span in spans for number in span)])


@pytest.fixture(scope="session")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All ROMs, and the tables of all resizes that the program asks for."""
    lines = [f"entries {buffer_entries(1)} {buffer_entries(2) - buffer_entries(1)}"]
    lines += [
        f"rom {game.name} {detect_scheme(load_rom(game))} {rom_path(game)}" for game in games()
    ]
    for source in HEIGHTS:
        for height, width in (*SHAPES, (source, LINE_PIXELS)):
            tables = make_tables(source, LINE_PIXELS, height, width)
            weights = " ".join(
                [str(len(tables.weights)), *(repr(float(weight)) for weight in tables.weights)]
            )
            shape = f"{source} {height} {width} {tables.kind} {tables.scale!r}"
            lines.append(
                f"table {shape} {_spans(tables.rows.tolist())} {_spans(tables.columns.tolist())} "
                f"{weights}"
            )
    path = tmp_path_factory.mktemp("sanitizer") / "manifest"
    path.write_text("\n".join(lines) + "\n")
    return path


def _start(sweep: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(sweep), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | ENVIRONMENT,
    )


def _run(sweep: Path, *words: object) -> dict[str, int]:
    """One run of the program, without a complaint; its counts."""
    result = _start(sweep, *words)
    assert result.returncode == 0, result.stderr[-8_000:]
    assert "runtime error" not in result.stderr and "Sanitizer" not in result.stderr, result.stderr[
        -8_000:
    ]
    return {
        name: int(count)
        for name, count in re.findall(r"(\w+) (\d+)", result.stdout.splitlines()[-1])
    }


def _run_shards(sweep: Path, *words: object) -> dict[str, int]:
    with ThreadPoolExecutor(SHARDS) as pool:
        parts = list(pool.map(lambda shard: _run(sweep, *words, shard, SHARDS), range(SHARDS)))
    return {name: sum(part[name] for part in parts) for name in parts[0]}


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("overrun", "AddressSanitizer: heap-buffer-overflow"),
        ("overflow", "signed integer overflow"),
    ],
)
def test_sanitizers_notice_a_planted_fault(
    sweep: Path, manifest: Path, fault: str, complaint: str
) -> None:
    result = _start(sweep, "planted", manifest, fault)
    assert result.returncode != 0
    assert complaint in result.stderr and "csrc/" in result.stderr


def test_sanitizers_are_silent_over_all_games(sweep: Path, manifest: Path) -> None:
    counts = _run_shards(sweep, "games", manifest, FRAMES)
    assert counts["roms"] == SETTINGS * len(games())
    assert counts["frames"] >= SETTINGS * len(games()) * FRAMES
    assert counts["faults"] == 0


def test_sanitizers_are_silent_over_a_mixed_batch(sweep: Path, manifest: Path) -> None:
    counts = _run(sweep, "mixed", manifest, MIXED_FRAMES)
    assert (counts["frames"], counts["faults"]) == (len(games()) * MIXED_FRAMES, 0)


def test_sanitizers_are_silent_over_random_roms(sweep: Path, manifest: Path) -> None:
    counts = _run_shards(sweep, "random", manifest, RANDOM_ROMS, OTHER_ROMS)
    assert counts["roms"] == RANDOM_ROMS + OTHER_ROMS * OTHER_KINDS
    assert 0 < counts["jams"] < counts["roms"]


def test_sanitizers_are_silent_over_frames_that_never_end(sweep: Path, manifest: Path) -> None:
    assert _run(sweep, "endless", manifest)["faults"] == 0


def test_sanitizers_are_silent_over_states_that_no_playing_leaves(
    sweep: Path, manifest: Path
) -> None:
    """The states that State.put refuses would do damage; those that it accepts are harmless."""
    counts = _run_shards(sweep, "states", manifest)
    assert counts["roms"] >= 9
    assert counts["refused"] > 1000 and counts["frames"] > 1000
