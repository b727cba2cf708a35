"""Which tensors the envs of a batch have, of which shapes, and the batch's plain numbers.

Nothing is allocated here, so that what a batch takes is known before.
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

# The shape and dtype of each tensor.
Fields = dict[str, tuple[tuple[int, ...], torch.dtype]]
# What the core's arrays are made of, as torch has it: older versions lack uint32.
_DTYPES = {
    "uint8": torch.uint8, "int32": torch.int32, "uint32": torch.int32, "float32": torch.float32,
}  # fmt: skip
# The options that the batch has under the same names.
_OPTIONS = (
    *_core.STEP_OPTIONS,
    "autoreset", "observation_height", "observation_width", "channels", "stack",
)  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """What a batch's memory is laid out by.

    Attributes:
        groups: what is played.
        boots: each group's console after power-on.
        options: what a step does.
        num_envs: in the batch.
        on_gpu: whether memory is laid out for a GPU, where each thread plays an env.
    """

    groups: Sequence[Group]
    boots: Sequence[Boot]
    options: Options
    num_envs: int
    on_gpu: bool

    @property
    def heights(self) -> list[int]:
        """Each group's visible scanlines."""
        return [booted.height for booted in self.boots]

    @property
    def picture_bytes(self) -> int:
        """The bytes of one picture: of the tallest group's."""
        return max(self.heights) * _core.LINE_PIXELS

    @property
    def keeps_pooled(self) -> bool:
        """Whether the frame that an observation is made of is kept from step to step.

        It is where the pictures may no longer show it when it is needed again: an episode can go
        on after its end, or the instruction limit cuts frames off.
        """
        options = self.options
        pools = options.maxpool and options.frameskip >= 2
        goes_on = AUTORESET_MODES[options.autoreset] == "Disabled"
        cut_off = any(group.game.facts["frames_cut_off"] for group in self.groups)
        return pools and (goes_on or cut_off)

    @property
    def bytes_per_env(self) -> int:
        """The device memory that each env takes, with observations and its part of spare buffers.

        What all envs read is not counted.
        """
        sizes = (math.prod(shape) * dtype.itemsize for shape, dtype in self.fields.values())
        return sum(sizes) // self.num_envs

    @functools.cached_property
    def fields(self) -> Fields:
        """The tensors that envs have a part of. All are zeros at first."""
        batch = _core.Batch()
        for name, number in self.numbers.items():
            setattr(batch, name, number)
        batch.pool_size = self.options.reset_pool_size
        return {
            name: (self._without_gray_axis(name, shape), _DTYPES[dtype])
            for name, (dtype, life, needed, shape) in batch.arrays(True, self.on_gpu).items()
            if life != "constant" and (needed or (name == "env_random" and self._draws_for_mode))
        }

    @property
    def _draws_for_mode(self) -> bool:
        """Whether a game takes numbers from ale-py's generator where its resets are emulated."""
        emulated = not self.options.reset_pool_size
        return emulated and any(group.game.facts["draws_for_mode"] for group in self.groups)

    def _without_gray_axis(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape, without the axis of colors if observations have none."""
        has_axis = name in ("observations", "final_observations")
        return shape[:-1] if has_axis and self.options.channels == 1 else shape

    @functools.cached_property
    def numbers(self) -> dict[str, int | float | bool]:
        """The batch's fields that are no addresses, except how many start states there are."""
        n = self.num_envs
        word_stride, env_stride = (n, 1) if self.on_gpu else (1, _core.RECORD_WORDS)
        return {
            "num_envs": n,
            "num_groups": len(self.groups),
            "picture_bytes": self.picture_bytes,
            "power_on_count": POWER_ON_NUMBERS,
            "record_word_stride": word_stride,
            "record_env_stride": env_stride,
            "keeps_pooled": self.keeps_pooled,
            "envs_per_pooled": self._envs_per_pooled,
            **self._buffer_numbers(),
            **{name: getattr(self.options, name) for name in _OPTIONS},
        }

    @property
    def _envs_per_pooled(self) -> int:
        """How many envs share a pooled frame."""
        return _core.ENVS_PER_POOLED if self.on_gpu and not self.keeps_pooled else 1

    def _buffer_numbers(self) -> dict[str, int]:
        """Of the TIA instruction buffers. On a CPU each thread has one of its own."""
        frameskip = self.options.frameskip
        whole_step = buffer_entries(frameskip)
        if not self.on_gpu:
            return {"buffer_capacity": whole_step}
        return {
            "buffer_capacity": own_buffer_entries(frameskip, (group.game for group in self.groups)),
            "spare_capacity": whole_step,
            "spare_count": spare_buffers(self.num_envs),
        }
