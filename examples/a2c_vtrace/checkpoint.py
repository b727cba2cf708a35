"""Checkpoints: a file for each process, and one that names the newest complete set.

Each file is written beside its place and renamed, and the set is named only when all its files are there: whenever a
program is killed, what `latest.json` names can be read, and is all of one moment.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from cule.files import replacing
from examples.a2c_vtrace.world import World

LATEST = "latest.json"


def part_of(name: str, rank: int) -> str:
    """The name of a process's file in a set."""
    return f"{name}-rank{rank}.pt"


def save(folder: Path, name: str, state: dict[str, Any], world: World) -> None:
    """Writes this process's state; all processes have to call it. Older sets are deleted.

    Args:
        folder: where checkpoints go; made if it is not there.
        name: of the set, another one than the last set's unless this is the same state.
        state: what torch.save takes.
        world: the processes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / part_of(name, world.rank)) as file:
        torch.save(state, file)
    world.barrier()
    if world.rank == 0:
        latest = json.dumps({"name": name, "world_size": world.size}).encode()
        with replacing(folder / LATEST) as file:
            file.write(latest)
        delete_sets(folder, but=name)
    world.barrier()


def delete_sets(folder: Path, but: str | None = None) -> None:
    """Deletes all sets but the one of this name."""
    for part in folder.glob("*-rank*.pt"):
        if part.name.rpartition("-rank")[0] != but:
            part.unlink()


def delete(folder: Path) -> None:
    """Deletes all sets, the name of the newest first."""
    (folder / LATEST).unlink(missing_ok=True)
    delete_sets(folder)


def newest(folder: Path) -> dict[str, Any] | None:
    """The name of the newest set and the number of its processes; None if there is none."""
    path = folder / LATEST
    return json.loads(path.read_text()) if path.exists() else None


def load(folder: Path, device: torch.device, rank: int = 0, world_size: int | None = None) -> dict[str, Any] | None:
    """A process's state from the newest set; None if there is none.

    Raises:
        ValueError: the set is of another number of processes than `world_size` (None: any).
    """
    latest = newest(folder)
    if latest is None:
        return None
    if world_size is not None and latest["world_size"] != world_size:
        raise ValueError(
            f"expected as many processes as wrote the checkpoint in {folder} ({latest['world_size']}), got {world_size}"
        )
    return torch.load(folder / part_of(latest["name"], rank), map_location=device, weights_only=True)
