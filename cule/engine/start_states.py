"""Puts the states that episodes start from into the batch's memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tqdm import tqdm

from cule import _core
from cule.console.console import Snapshot
from cule.console.options import Group
from cule.console.start_states import Boot, boot, reset_pool
from cule.engine.layout import Layout
from cule.engine.memory import Memory
from cule.facts.objects import MOST_OBJECTS


def _bar(groups: Sequence[Group], what: str, progress: bool) -> tqdm:
    """The groups, with a progress bar if they take seconds and stderr is a terminal."""
    # To tqdm, None means no bar unless stderr is a terminal.
    hidden = None if progress else True
    return tqdm(groups, desc=what, unit="game", delay=2, leave=False, disable=hidden)


def boots_of(groups: Sequence[Group], progress: bool) -> list[Boot]:
    """Each group's console after power-on; `progress` allows a bar if that takes seconds.

    Raises:
        ValueError: a game's ROM image is missing or wrong, as load_rom says.
    """
    return [boot(group.game) for group in _bar(groups, "power-on", progress)]


def place_start_states(memory: Memory, layout: Layout, progress: bool) -> None:
    """Puts the consoles after power-on into the memory, and the reset pool if there is one.

    Raises:
        RuntimeError: the device has too little memory; on a GPU, torch.OutOfMemoryError.
    """
    options = layout.options
    _place(memory, layout, "boot", [[booted.snapshot] for booted in layout.boots])
    if options.reset_pool_size:
        pools = [
            reset_pool(group, options) for group in _bar(layout.groups, "start states", progress)
        ]
        _place(memory, layout, "pool", pools)


def _place(
    memory: Memory, layout: Layout, prefix: str, groups: Sequence[Sequence[Snapshot]]
) -> None:
    """Puts snapshots, equally many of each group, into the fields whose names begin so."""
    snapshots = [snapshot for states in groups for snapshot in states]
    memory.set_numbers({f"{prefix}_size": len(groups[0])})
    memory.place_array(f"{prefix}_records", np.stack([s.record for s in snapshots]))
    memory.place_array(f"{prefix}_ram", np.stack([s.ram for s in snapshots]))
    cartridge_bytes = np.stack([s.cartridge_bytes for s in snapshots])
    memory.place_array(f"{prefix}_cartridge_bytes", cartridge_bytes)
    if layout.options.sound:
        for name in ("sound", "sounds"):
            memory.place_array(f"{prefix}_{name}", np.stack([getattr(s, name) for s in snapshots]))
    if layout.options.objects:
        boxes = np.zeros((len(snapshots), 2, MOST_OBJECTS + 1, _core.OBJECT_FIELDS), np.int16)
        for of_state, snapshot in zip(boxes, snapshots, strict=True):
            if snapshot.boxes is not None:
                of_state[:] = snapshot.boxes.reshape(of_state.shape)
        memory.place_array(f"{prefix}_boxes", boxes)
    pictures = np.zeros((len(snapshots), 2, layout.picture_bytes), np.uint8)
    for picture, snapshot in zip(pictures, snapshots, strict=True):
        both = snapshot.pictures.reshape(2, -1)
        width = min(both.shape[1], layout.picture_bytes)
        picture[:, :width] = both[:, :width]
    memory.place_array(f"{prefix}_pictures", pictures)
