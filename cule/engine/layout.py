"""Which tensors the envs of a batch have, of which shapes, and the batch's plain numbers.

Nothing is allocated here, so it is known in advance how much memory a batch takes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from cule import _core
from cule.console.instruction_buffers import buffer_entries, own_buffer_entries, spare_buffers
from cule.console.options import AUTORESET_MODES, Group, Options
from cule.console.power_on import POWER_ON_NUMBERS
from cule.console.start_states import Boot
from cule.facts.objects import MOST_OBJECTS

# The shape and dtype of each tensor.
Fields = dict[str, tuple[tuple[int, ...], torch.dtype]]
# torch's dtypes for the core's arrays: older versions of torch lack uint32.
_DTYPES = {
    "uint8": torch.uint8, "int16": torch.int16, "int32": torch.int32, "uint32": torch.int32,
    "float32": torch.float32,
}  # fmt: skip
# The tensors whose last axis are the players.
OF_PLAYERS = ("actions", "rewards", "raw_rewards", "lives")
# The options that are fields of the batch under the same names.
_OPTIONS = (
    *_core.STEP_OPTIONS,
    "autoreset", "observation_height", "observation_width", "channels", "stack",
)  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """The names, shapes and dtypes of a batch's tensors, and what determines them.

    Attributes:
        groups: the groups of envs, each with its game, mode and difficulty.
        boots: each group's console after power-on.
        options: the options of a step, such as frameskip and the shape of observations.
        num_envs: the number of envs in the batch.
        on_gpu: whether the memory has a GPU's layout, in which each thread plays an env.
        states_elsewhere: whether the envs' states and outputs are in a caller's memory, and not in
            these tensors (cule/adapters/jax). There an env's record is in one piece.
    """

    groups: Sequence[Group]
    boots: Sequence[Boot]
    options: Options
    num_envs: int
    on_gpu: bool
    states_elsewhere: bool = False

    @property
    def heights(self) -> list[int]:
        """Each group's visible scanlines."""
        return [booted.height for booted in self.boots]

    @property
    def picture_bytes(self) -> int:
        """The bytes of a picture of the tallest group; all pictures take as many."""
        return max(self.heights) * _core.LINE_PIXELS

    @property
    def keeps_pooled(self) -> bool:
        """Whether the max-pooled frame of the newest observation is stored from step to step.

        It is stored if it may be needed again when the two pictures no longer show its frames: if
        an episode can go on after its end, if the instruction limit cuts frames off, or if more
        than two frames are pooled.
        """
        options = self.options
        pools = options.maxpool and options.frameskip >= 2
        goes_on = AUTORESET_MODES[options.autoreset] == "Disabled"
        cut_off = any(group.game.facts["frames_cut_off"] for group in self.groups)
        return pools and (goes_on or cut_off or options.pooled_frames > 2)

    @property
    def bytes_per_env(self) -> int:
        """The device memory that each env takes, with its observations and share of spare buffers.

        What all envs share is not counted.
        """
        sizes = (math.prod(shape) * dtype.itemsize for shape, dtype in self.fields.values())
        return sum(sizes) // self.num_envs

    @functools.cached_property
    def fields(self) -> Fields:
        """The tensors in which each env has a part. All are zeros at first."""
        batch = _core.Batch()
        for name, number in self.numbers.items():
            setattr(batch, name, number)
        batch.pool_size = self.options.reset_pool_size
        return {
            name: (self._without_single_axis(name, shape), _DTYPES[dtype])
            for name, (dtype, life, needed, shape) in batch.arrays(True, self.on_gpu).items()
            if life != "constant" and (needed or (name == "env_random" and self._draws_for_mode))
            if not self.is_elsewhere(name, life)
        }

    def is_elsewhere(self, name: str, life: str) -> bool:
        """Whether a tensor is in a caller's memory. A pooled frame that is not kept is not."""
        kept = name != "pooled" or self.keeps_pooled
        return self.states_elsewhere and kept and life in ("state", "arranged", "output")

    @property
    def _draws_for_mode(self) -> bool:
        """Whether resets are emulated and a game then takes numbers from ale-py's generator."""
        emulated = not self.options.reset_pool_size
        return emulated and any(group.game.facts["draws_for_mode"] for group in self.groups)

    @property
    def num_players(self) -> int:
        """How many players each env has; all groups have as many."""
        return self.groups[0].game.num_players

    def _without_single_axis(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The tensor's shape; without an axis of one color, or of one player."""
        of_colors = name in ("observations", "final_observations") and self.options.channels == 1
        of_players = name in OF_PLAYERS and self.num_players == 1
        return shape[:-1] if of_colors or of_players else shape

    @functools.cached_property
    def numbers(self) -> dict[str, int | float | bool]:
        """The batch's fields that are not addresses, except the numbers of start states."""
        n = self.num_envs
        by_words = self.on_gpu and not self.states_elsewhere
        word_stride, env_stride = (n, 1) if by_words else (1, _core.RECORD_WORDS)
        return {
            "num_envs": n,
            "num_groups": len(self.groups),
            "num_players": self.num_players,
            "picture_bytes": self.picture_bytes,
            "power_on_count": POWER_ON_NUMBERS,
            "record_word_stride": word_stride,
            "record_env_stride": env_stride,
            "keeps_pooled": self.keeps_pooled,
            "envs_per_pooled": self._envs_per_pooled,
            "sound_frames": self.options.frameskip if self.options.sound else 0,
            "max_objects": MOST_OBJECTS if self.options.objects else 0,
            **self._buffer_numbers(),
            **{name: getattr(self.options, name) for name in _OPTIONS},
        }

    @property
    def _envs_per_pooled(self) -> int:
        """How many envs share a pooled frame."""
        return _core.ENVS_PER_POOLED if self.on_gpu and not self.keeps_pooled else 1

    def _buffer_numbers(self) -> dict[str, int]:
        """The sizes of the TIA instruction buffers. On a CPU each thread has one of its own."""
        frameskip = self.options.frameskip
        whole_step = buffer_entries(frameskip)
        if not self.on_gpu:
            return {"buffer_capacity": whole_step}
        return {
            "buffer_capacity": own_buffer_entries(frameskip, (group.game for group in self.groups)),
            "spare_capacity": whole_step,
            "spare_count": spare_buffers(self.num_envs),
        }
