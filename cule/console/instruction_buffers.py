"""How many entries the logs of writes to the TIA hold (design/tia_instruction_buffer.md)."""

from __future__ import annotations

from collections.abc import Iterable

from cule.rom import Game

# The first frame has room for nothing but writes: a PAL frame has 343 scanlines of 76 cycles, and a
# write takes 3 cycles. Each further frame of a step has room for about twice what games write on
# average. A single frame can need more than that: some of Robot Tank's need over 2,560 entries.
LONGEST_FRAME_ENTRIES, FURTHER_FRAME_ENTRIES = 8704, 2560
# On a GPU each env has a buffer that holds almost every step; for games that write much, it is 1.5
# times as large. Longer steps take a spare buffer of the size above, which the envs share.
OWN_FIRST_ENTRIES, OWN_FURTHER_ENTRIES = 1792, 768
ENVS_PER_SPARE, LEAST_SPARES = 64, 8


def buffer_entries(frameskip: int) -> int:
    """The capacity of a buffer that holds any game's step of `frameskip` frames."""
    return LONGEST_FRAME_ENTRIES + FURTHER_FRAME_ENTRIES * (frameskip - 1)


def own_buffer_entries(frameskip: int, games: Iterable[Game]) -> int:
    """The capacity of each env's own buffer on a GPU: the same for all, whatever it plays."""
    entries = OWN_FIRST_ENTRIES + OWN_FURTHER_ENTRIES * (frameskip - 1)
    return entries * 3 // 2 if any(game.facts["writes_much"] for game in games) else entries


def spare_buffers(num_envs: int) -> int:
    """How many buffers of `buffer_entries` the envs of a GPU share, for longer steps."""
    return max(-(-num_envs // ENVS_PER_SPARE), min(num_envs, LEAST_SPARES))
