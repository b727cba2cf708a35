"""Rows of results, as in benchmarks/results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from cule.devices.device import usable_cpus
from cule.disk.forms import are_numbers, is_score
from cule.programs import results
from cule.rom import find_cartridge
from cule.train.envs.emulator import FRAMESKIP

# Found when the program starts, as its code may change while it runs.
COMMIT = results.commit()


def row_of(
    *,
    system: str,
    mode: str,
    game: str,
    num_envs: int,
    fps: float,
    device: torch.device,
    threads: int,
    **more: Any,
) -> dict[str, Any]:
    """A row with the keys that every benchmark of the project has, and `more`.

    Args:
        system: "cule" or "ale-py".
        mode: "training", "with-policy", "emulation-only".
        game: the name of the game.
        num_envs: how many envs were played.
        fps: emulated frames per second.
        device: the device of the emulation and the networks.
        threads: CPU threads of the emulator; 0: one for each core.
        more: further keys.
    """
    cartridge, threads = find_cartridge(game), threads or usable_cpus()
    return {
        "commit": COMMIT,
        "date": results.now(),
        "system": system,
        "mode": mode,
        **results.machine(device, threads),
        "cpu_name": results.cpu_name(),
        "num_threads": threads,
        "torch": torch.__version__,
        "game": cartridge.name,
        "rom_md5": cartridge.md5,
        "num_envs": num_envs,
        "frameskip": FRAMESKIP,
        "fps": round(fps, 1),
        "steps_per_second": round(fps / FRAMESKIP, 1),
        "command": results.command_line(),
        **more,
    }


def is_result(row: dict[str, Any]) -> bool:
    """Whether a row of a file has the keys of a training's result that are shown."""
    named = isinstance(row.get("game"), str) and isinstance(row.get("algorithm"), str)
    return named and are_numbers(row, ("frames", "fps", "seconds")) and is_score(row.get("score"))


def append_row(row: dict[str, Any], *paths: Path | None, once: bool = False) -> None:
    """Appends a row, as a JSON line, to the given files; with `once`, to those that lack it.

    Raises:
        ValueError: a file cannot be written.
    """
    for path in paths:
        if path is not None:
            results.append_row(path, row, once=once)
