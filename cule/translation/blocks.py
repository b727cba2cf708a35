"""A game's basic blocks: runs of instructions that the program enters only at the first."""

from __future__ import annotations

import numpy as np

from cule import _core
from cule.console import rom_of
from cule.rom import Game
from cule.translation.executed import (
    COUNT,
    ENTERED,
    LINE_CYCLES,
    REGIONS,
    Instruction,
    instructions_of,
    profile,
    reach,
)  # fmt: skip

# How many instructions a game's first kernel has: the most frequent ones. The compiler takes about
# 10 ms for each, and about 3 s for the rest of the kernel.
MAX_AT_FIRST = 150
# A block has at most this many instructions. Only between blocks is it checked whether the frame
# ends, so a block must take little of it.
MAX_INSTRUCTIONS = 64
# A block that takes more cycles than this gets no further instruction. The starts of the picture's
# segments are saved this far ahead, as a block writes without saving them (csrc/execution/pace.h).
MAX_CYCLES = 5 * LINE_CYCLES

Block = tuple[Instruction, ...]


def blocks_of(game: Game, played: np.ndarray | None = None) -> list[Block]:
    """The game's blocks. Each begins where the program was seen to enter it; none overlap.

    Args:
        game: the game.
        played: a profile of it; None: that of random play.
    """
    counts = (profile(game) if played is None else played)[:-1]
    reached = reach(counts)
    instructions, refused = instructions_of(game, counts, reached), reached[2]
    same_bank = _core.SCHEMES[rom_of(game)[1]]["same_bank"]
    entries = {
        offset for offset in instructions
        if counts[offset, ENTERED] or not any(
            (before := instructions.get(offset - length)) and before.length == length
            and before.pc + length == instructions[offset].pc and not refused[before.offset]
            for length in (1, 2, 3)
        )
    }  # fmt: skip
    blocks = []
    to_begin = sorted(entries, reverse=True)
    while to_begin:
        block = [instructions[to_begin.pop()]]
        while not block[-1].leaves_program:
            last = block[-1]
            following = instructions.get(last.offset + last.length)
            if (
                following is None
                or following.offset in entries
                or following.pc != last.pc + last.length
            ):
                break
            # In E0 each KiB is switched on its own.
            other_slice = (following.pc ^ last.pc) & same_bank
            full = len(block) == MAX_INSTRUCTIONS or _most_cycles(tuple(block)) > MAX_CYCLES
            # After a wait, the lanes of a warp are at the same place of the program. So a block
            # ends there, and they begin the next one together.
            if last.waits or last.reads_timer or full or other_slice:
                entries.add(following.offset)
                to_begin.append(following.offset)
                break
            block.append(following)
        blocks.append(tuple(block))
    return blocks


def share_of(blocks: list[Block], played: np.ndarray) -> float:
    """The share of a profile's instructions that are in these blocks."""
    counts = played[:, COUNT]
    within = sum(counts[instruction.offset] for block in blocks for instruction in block)
    return float(within / max(1, counts.sum()))


def most_frequent(game: Game, blocks: list[Block]) -> list[Block]:
    """The most frequent blocks, with at most MAX_AT_FIRST instructions, in their old order."""
    ran = profile(game)[:, COUNT]
    by_frequency = sorted(blocks, key=lambda block: -np.mean([ran[each.offset] for each in block]))
    lengths = np.cumsum([len(block) for block in by_frequency])
    kept = set(by_frequency[: int(np.searchsorted(lengths, MAX_AT_FIRST, side="right"))])
    return [block for block in blocks if block in kept]


def _most_cycles(block: Block) -> int:
    return sum(instruction.most_cycles for instruction in block)


def longest_block(blocks: list[Block]) -> int:
    """The most cycles that any of the blocks can take."""
    return max((_most_cycles(block) for block in blocks), default=0)


def is_quiet(block: Block) -> bool:
    """Whether a block writes nothing to the TIA."""
    return not any(instruction.writes_tia for instruction in block)


def stays_decimal(blocks: list[Block]) -> bool:
    """Whether blocks run in decimal mode, too."""
    return any(
        instruction.regions & REGIONS["kInDecimal"] for block in blocks for instruction in block
    )
