"""A game's basic blocks as C++, the cases of a switch, and the kernel around them."""

from __future__ import annotations

import re

import numpy as np

from cule import _core
from cule.console import rom_of
from cule.rom import Game
from cule.translation.blocks import Block, is_quiet, longest_block, stays_decimal
from cule.translation.executed import (
    OPCODE_SHIFT,
    OPERAND_SHIFT,
    Instruction,
    predecoded_words,
    runs_in_ram,
)

BLOCK_CODE, QUIET_BLOCK = _core.PREDECODED["block_code"], _core.PREDECODED["quiet_block"]
# What the cartridge's window shows: a bank, or all of a smaller image.
BANK_BYTES = _core.WINDOW_BYTES


class _Numbers:
    """The blocks' numbers, by where they begin."""

    def __init__(self, game: Game, blocks: list[Block]):
        image, scheme = rom_of(game)
        self._same_bank = _core.SCHEMES[scheme]["same_bank"]
        self._bank_bytes = min(len(image), BANK_BYTES)
        self._numbers = {
            (block[0].offset, block[0].pc): number for number, block in enumerate(blocks, 1)
        }
        self.quiet = {number for number, block in enumerate(blocks, 1) if is_quiet(block)}

    def at(self, pc: int | None, seen_from: Instruction) -> int | None:
        """The number of the block that begins at `pc`, as `seen_from` jumps there; None if unknown.

        No block switches banks, so a target in the same bank is at a known place of the image. In
        E0 each KiB is a bank of its own; FE switches by the highest bits of `pc`.
        """
        if pc is None or not _core.is_cartridge_address(pc):
            return None
        if (pc ^ seen_from.pc) & self._same_bank:
            return None
        offset = seen_from.offset + pc % self._bank_bytes - seen_from.pc % self._bank_bytes
        return self._numbers.get((offset, pc))


def source_of(game: Game, blocks: list[Block]) -> str:
    """The game's blocks as C++: the cases of a switch, in the macros of csrc/execution/block.h."""
    numbers = _Numbers(game, blocks)
    entries: set[int] = set()  # blocks that other blocks go on in

    def follow(here: int, pc: int | None, seen_from: Instruction) -> str:
        number = numbers.at(pc, seen_from)
        if number is None:
            return f"CULE_LOOK_UP({here})"
        entries.add(number)
        quietly = "_QUIETLY" if number in numbers.quiet else ""
        return f"CULE_GO_ON{quietly}({number})"

    whole_bank = _core.SCHEMES[rom_of(game)[1]]["whole_bank"]
    texts = []
    for number, block in enumerate(blocks, 1):
        lines = []
        for instruction in block:
            what = f"{instruction.pc:#06x}, {instruction.opcode:#04x}, {instruction.operand:#06x}"
            if instruction.branches:
                taken = follow(number, instruction.branch_target, instruction)
                lines.append(f"  CULE_BRANCH({what}, {taken})")
            else:
                bank = instruction.offset // BANK_BYTES * BANK_BYTES if whole_bank else -1
                lines.append(f"  CULE_DO({number}, {what}, {instruction.reach}, {bank})")
        lines.append(f"  {follow(number, block[-1].following, block[-1])}")
        texts.append(lines)
    for number, lines in enumerate(texts, 1):
        entry = f" CULE_ENTRY({number})" if number in entries else ""
        lines.insert(0, f"CULE_BLOCK({number}){entry}")
    return "\n".join(line for lines in texts for line in lines) + "\n"


def marked_ops(game: Game, blocks: list[Block]) -> np.ndarray:
    """The ROM's instructions, with marks where blocks begin (csrc/cpu_6507/predecoded.h).

    Returns:
        (bytes of the ROM + 1, 2) uint32.
    """
    words = predecoded_words(game).copy()
    for number, block in enumerate(blocks, 1):
        words[block[0].offset] = (
            block[0].pc | QUIET_BLOCK * is_quiet(block),
            number << OPERAND_SHIFT | BLOCK_CODE << OPCODE_SHIFT,
        )
    return words


# What the kernel needs of the standard headers, which the run-time compiler does not have.
_STANDARD_HEADERS = {
    "cstdint": (
        "using int8_t = signed char; using int16_t = short; using int32_t = int; "
        "using int64_t = long long; using uint8_t = unsigned char; "
        "using uint16_t = unsigned short; using uint32_t = unsigned int; "
        "using uint64_t = unsigned long long; using uintptr_t = unsigned long;"
    ),
    "cstring": "",
    "pthread.h": "",
    "sched.h": "",
    "cstddef": "#define offsetof(type, member) __INTADDR__(&(((type*)0)->member))\n",
}

_INCLUDE = re.compile(r'^#include ["<](.+)[">]', re.MULTILINE)
_KERNEL = """#include "cartridge/schemes.h"
#include "kernels/cuda/play.cuh"

namespace cule {{

struct RunBlock {{
  template <class M, class Group>
  CULE_INLINE uint32_t operator()(M& m, uint32_t number, const TurnEnds& ends,
                                  const Group& group) const {{
    switch (number) {{
{cases}
      default: __builtin_unreachable();
    }}
  }}
}};

extern "C" __global__ void __launch_bounds__(kPlayMaxThreads)
play_translated(const __grid_constant__ Batch batch, int lanes, int warps) {{
  constexpr CartridgeMap kMap = kSchemes[{scheme}].map;
  using Core = TranslatedCore<RunBlock, {game}, {longest}, {decimal}, {in_ram}>;
  play_envs<{in_step}, {sound}>(batch, lanes, warps, Core{{}}, &kMap);
}}

}}  // namespace cule
"""


def kernel_source(game: Game, blocks: list[Block], in_step: bool, sound: bool = False) -> str:
    """The translation unit of a game's kernel.

    Args:
        game: the game.
        blocks: its blocks.
        in_step: whether its warps wait for each other.
        sound: whether it notes what the program writes to the registers of sound.
    """
    return _KERNEL.format(
        cases=source_of(game, blocks),
        scheme=_core.SCHEMES[rom_of(game)[1]]["index"],
        game=game.index,
        longest=longest_block(blocks),
        decimal=str(stays_decimal(blocks)).lower(),
        in_ram=str(runs_in_ram(game)).lower(),
        in_step=str(in_step).lower(),
        sound=str(sound).lower(),
    )


def headers() -> dict[str, str]:
    """The headers that a game's kernel includes, directly or not, by the names in its #includes.

    There are no others, so that a kernel in the cache is valid until one of its own files changes.
    """
    texts, included = {**_core.headers(), **_STANDARD_HEADERS}, {}
    to_read = _INCLUDE.findall(_KERNEL)
    while to_read:
        name = to_read.pop()
        if name not in included:
            included[name] = texts[name]
            to_read += _INCLUDE.findall(texts[name])
    return included
