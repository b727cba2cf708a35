"""One console on the CPU, and its state."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cule import _core
from cule.console.cartridge import config_bytes, padded, picture_height, predecoded, rom_of
from cule.console.instruction_buffers import buffer_entries
from cule.console.options import Group, Options, action_ids
from cule.console.power_on import POWER_ON_NUMBERS, power_on_numbers
from cule.facts.objects import MOST_OBJECTS, object_facts


def _zeros(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """A flat array of zeros with as many elements as `shape` has, aligned to 8 bytes."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return np.zeros(-(-size // 8), np.uint64).view(np.uint8)[:size].view(dtype)


@dataclass(frozen=True)
class Snapshot:
    """One console's state, as numpy arrays: its record's words, RAM, cartridge, both pictures.

    And its sound, with the samples of the last frame; None: as after power-on. And the boxes of its
    objects in the last two frames; None: there are none.
    """

    record: np.ndarray
    ram: np.ndarray
    cartridge_bytes: np.ndarray
    pictures: np.ndarray
    sound: np.ndarray | None = None
    sounds: np.ndarray | None = None
    boxes: np.ndarray | None = None


class Console:
    """A console that makes start states and profiles (cule/translation/).

    Args:
        group: what it plays.
        options: how an episode starts.
        pal: whether the cartridge is for PAL televisions.

    Attributes:
        arrays: its memory, by the names of the batch's fields.
        batch: the addresses of that memory, for the core's functions.
    """

    def __init__(self, group: Group, options: Options, pal: bool):
        self.group, self.pal = group, pal
        height = picture_height(group.game, True)
        self.picture_bytes = height * _core.LINE_PIXELS
        self.arrays: dict[str, np.ndarray] = {
            "group": np.zeros(1, np.uint32),
            "configs": np.zeros(_core.CONFIG_BYTES, np.uint8),
            "action_ids": action_ids(group, options.action_space),
            "roms": padded(rom_of(group.game)[0]),
            "predecoded": predecoded(group.game),
            "operations": np.frombuffer(_core.operations(), np.uint8),
            "power_on_numbers": power_on_numbers(),
            # Here each scanline has its own row.
            "row_of": np.tile(np.arange(_core.PICTURE_ROWS, dtype=np.uint8), 2),
        }
        self.batch = _core.Batch()
        self.batch.num_envs = self.batch.num_groups = self.batch.num_players = 1
        self.batch.picture_bytes = self.picture_bytes
        self.batch.buffer_capacity = buffer_entries(1)
        self.batch.power_on_count = POWER_ON_NUMBERS
        self.batch.record_word_stride, self.batch.record_env_stride = 1, _core.RECORD_WORDS
        for name in _core.STEP_OPTIONS:
            setattr(self.batch, name, getattr(options, name))
        self.batch.channels = 1
        self.batch.sound_frames = 1
        if options.objects:
            self.batch.max_objects = MOST_OBJECTS
            self.arrays["object_facts"] = object_facts(group.game.name)
        rows = self.batch.arrays(envs=False, on_gpu=False)
        self.arrays |= {
            name: _zeros(shape, dtype)
            for name, (dtype, life, needed, shape) in rows.items()
            if needed and life == "state"
        }
        for name, array in self.arrays.items():
            setattr(self.batch, name, (array.ctypes.data, array.nbytes))

    def configure(self, difficulty: int | None = None) -> None:
        """Plugs the cartridge in. `difficulty`, if given, replaces the group's."""
        config = config_bytes(self.group, self.pal, 0, difficulty)
        self.arrays["configs"][:] = np.frombuffer(config, np.uint8)

    def load(self, snapshot: Snapshot) -> None:
        """Puts the console into the state of a snapshot."""
        for name in ("ram", "cartridge_bytes", "pictures"):
            self.arrays[name][:] = getattr(snapshot, name)
        self.arrays["records"][:] = snapshot.record
        for name in ("sound", "sounds", "boxes"):
            given = getattr(snapshot, name)
            if name in self.arrays:
                self.arrays[name][:] = 0 if given is None else given

    def snapshot(self) -> Snapshot:
        """The console's state now."""
        parts = ["records", "ram", "cartridge_bytes", "pictures", "sound", "sounds"]
        parts += ["boxes"] * ("boxes" in self.arrays)
        return Snapshot(*(self.arrays[name].copy() for name in parts))
