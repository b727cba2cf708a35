"""The constants that all envs of a batch read: the consoles' settings, ROMs, tables."""

from __future__ import annotations

import numpy as np

from cule import _core
from cule.console.cartridge import config_bytes, padded, predecoded, rom_of
from cule.console.options import action_ids
from cule.console.power_on import power_on_numbers
from cule.engine.layout import Layout
from cule.engine.memory import Memory
from cule.facts import palette, resample
from cule.facts.objects import object_facts


def place_constants(memory: Memory, layout: Layout, group_of_env: np.ndarray) -> None:
    """Puts settings, ROMs and tables into the batch's memory.

    Args:
        memory: the batch's memory.
        layout: the batch's layout.
        group_of_env: (num_envs,) the index of each env's group.

    Raises:
        ValueError: a game's ROM image is missing or wrong, as load_rom says.
        RuntimeError: the device has too little memory; on a GPU, torch.OutOfMemoryError.
    """
    groups, options = layout.groups, layout.options
    images = [padded(rom_of(group.game)[0]) for group in groups]
    offsets = np.cumsum([0] + [len(image) for image in images])
    configs = b"".join(
        config_bytes(group, booted.pal, int(offset))
        for group, booted, offset in zip(groups, layout.boots, offsets, strict=False)
    )
    memory.place_array("group", group_of_env.astype(np.uint32))
    memory.place_array("configs", np.frombuffer(configs, np.uint8))
    memory.place_array("roms", np.concatenate(images))
    ids = [action_ids(group, options.action_space) for group in groups]
    memory.place_array("action_ids", np.concatenate(ids))
    memory.place_array("predecoded", np.concatenate([predecoded(group.game) for group in groups]))
    memory.place_array("operations", np.frombuffer(_core.operations(), np.uint8))
    memory.place_array("power_on_numbers", power_on_numbers())
    color = palette.grey_palette if options.channels == 1 else palette.rgb_palette
    memory.place_array("palettes", np.concatenate([color(pal=False), color(pal=True)]))
    if options.objects:
        facts = np.stack([object_facts(group.game.name) for group in groups])
        memory.place_array("object_facts", facts)
    _place_resamples(memory, layout)


def _place_resamples(memory: Memory, layout: Layout) -> None:
    """Puts there the tables that resize each group's pictures to observations."""
    options = layout.options
    size = options.observation_height, options.observation_width
    rows = []
    for i, height in enumerate(layout.heights):
        tables = resample.make_tables(height, _core.LINE_PIXELS, *size)
        rows_at, columns_at, weights_at = (
            memory.keep_array(f"resample_{part}_{i}", getattr(tables, part)).data_ptr()
            for part in ("rows", "columns", "weights")
        )
        rows.append(_core.make_resample(tables.kind, rows_at, columns_at, weights_at, tables.scale))
    memory.place_array("resamples", np.frombuffer(b"".join(rows), np.uint8))
