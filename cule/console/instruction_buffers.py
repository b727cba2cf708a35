"""How many entries the logs of writes to the TIA hold (design/tia_instruction_buffer.md)."""

from __future__ import annotations

from collections.abc import Iterable

from cule.rom import Game

# Room for one frame of nothing but writes (a PAL frame's 343 scanlines of 76 cycles, 3 cycles a
# write), and for each further frame of a step about twice what games write on average. A single
# frame can need more: Robot Tank has some of over 2,560.
LONGEST_FRAME_ENTRIES, FURTHER_FRAME_ENTRIES = 8704, 2560
# On a GPU each env has a buffer for what practically all steps write; for some games it is half as
# large again. Those that envs share are of the size above.
OWN_FIRST_ENTRIES, OWN_FURTHER_ENTRIES = 1792, 768
ENVS_PER_SPARE, LEAST_SPARES = 64, 8


def buffer_entries(frameskip: int) -> int:
    """The capacity of a buffer that holds any game's step of `frameskip` frames."""
    return LONGEST_FRAME_ENTRIES + FURTHER_FRAME_ENTRIES * (frameskip - 1)


def own_buffer_entries(frameskip: int, games: Iterable[Game]) -> int:
    """The capacity of the buffer that an env on a GPU has of its own, whichever game it plays."""
    entries = OWN_FIRST_ENTRIES + OWN_FURTHER_ENTRIES * (frameskip - 1)
    return entries * 3 // 2 if any(game.facts["writes_much"] for game in games) else entries


def spare_buffers(num_envs: int) -> int:
    """How many buffers of `buffer_entries` the envs of a GPU share, for longer steps."""
    return max(-(-num_envs // ENVS_PER_SPARE), min(num_envs, LEAST_SPARES))
