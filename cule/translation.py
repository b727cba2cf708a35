"""Translating a ROM's frequent code into C++ for one game's kernel (csrc/console/block.h).

What a game executes is found by playing it: `blocks_of` turns the counts into runs of instructions,
and `source_of` writes them down as cases of a switch, to be compiled for the device that the envs
live on.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cule import _core, nvrtc
from cule.console import Console, Group, Options, boot, rom_of
from cule.rom import Game
from cule.sealed import Kind

# How a kernel is kept: compiled, with a checksum.
_FILE = Kind("cubin", 1)
PROFILE_FRAMES = 6000
# An instruction that is executed less often, in PROFILE_FRAMES, is left to the interpreter, as
# compiling takes time.
LEAST_COUNT = 30
# And so is one that more often than this cannot be done in a block. What an instruction reaches
# more often than this, it has code for.
MOST_ODD = 0.02
# How many instructions the first kernel of a game translates, the most frequent ones: each takes
# the compiler some 14 ms.
MOST_AT_FIRST = 600
# The longest block. A frame's end is looked for between blocks only, so they must not take much of
# it.
MOST_INSTRUCTIONS = 64
# And nearly the longest: the picture's segments are kept before blocks that write in them
# (csrc/console/core.h).
MOST_CYCLES = 5 * _core.LINE_CYCLES
# What a profile has of each instruction (csrc/console/profile.h): how often it ran, could not be
# done in a block, ran in decimal mode, was entered; its program counter; which places it reached,
# a column for each set of
# PROFILED; the TIA register that it wrote to, and how often that was another than before.
COUNT, ODD, DECIMAL, ENTERED, PC, REACHED = range(6)
PLACES, PROFILED = _core.PLACES, _core.PROFILED_PLACES
REGISTER, OTHER_REGISTER = REACHED + len(PROFILED), REACHED + len(PROFILED) + 1
# Fields of a micro-operation (csrc/cpu_6507/micro_op.h).
CYCLES, LENGTH_SHIFT, READS, JUMP, INDEXED, OPCODE_SHIFT, OPERAND_SHIFT, BLOCK_CODE = (
    _core.MICRO_OP[field]
    for field in (
        "cycles", "length_shift", "reads", "jump", "indexed", "opcode_shift", "operand_shift",
        "block_code",
    )
)  # fmt: skip
WSYNC, LINE_CYCLES = _core.WSYNC, _core.LINE_CYCLES
JSR, RTS, JMP_INDIRECT = 0x20, 0x60, 0x6C
# Schemes whose window shows one bank as a whole, of so many bytes or all of a smaller image.
BANK_BYTES = 4096
WHOLE_BANKS = frozenset(("2K", "4K", "F8", "F8SC", "F6", "F6SC", "DPC"))


@dataclass(frozen=True)
class Instruction:
    """One instruction of a block, at `offset` of the image."""

    offset: int
    pc: int
    opcode: int
    operand: int
    length: int
    control: int
    places: int  # a set of PLACES
    register: int | None  # the one of the TIA's that it writes to; then it reaches nothing else

    @property
    def branches(self) -> bool:
        """Whether it is one of the eight conditional branches."""
        return self.opcode & 0x1F == 0x10

    @property
    def leaves_program(self) -> bool:
        """Whether what follows is never the next instruction."""
        return bool(self.control & JUMP) or self.opcode in (JSR, RTS, JMP_INDIRECT)

    @property
    def following(self) -> int | None:
        """The program counter after it, unless it branches; None where that is not known."""
        if self.control & JUMP or self.opcode == JSR:
            return self.operand
        return None if self.leaves_program else (self.pc + self.length) & 0xFFFF

    @property
    def branch_target(self) -> int:
        """Where a branch goes on if it is taken."""
        return (self.pc + 2 + self.operand) & 0xFFFF

    @property
    def stays_in_rom(self) -> bool:
        """Whether the program goes on in the cartridge where it does not jump, as in blocks."""
        ends = [self.pc + self.length, *([self.branch_target] if self.branches else [])]
        return all(end & 0x1000 for end in ends)

    @property
    def waits(self) -> bool:
        """Whether all that it does is to wait for the next scanline."""
        return self.register == WSYNC

    @property
    def reads_timer(self) -> bool:
        """Whether it may wait for the RIOT's timer, for nobody knows how long."""
        may_be_timer = self.control & INDEXED or self.operand & 0x1284 == 0x284
        return bool(self.control & READS and self.places & PLACES["kFromChips"] and may_be_timer)

    @property
    def most_cycles(self) -> int:
        """How long it takes at most."""
        may_wait = self.waits or (self.register is None and self.places & PLACES["kToTia"])
        return (self.control & CYCLES) + 2 + (LINE_CYCLES if may_wait else 0)

    @property
    def reach(self) -> str:
        """What it reaches, as csrc/console/plain_view.h has it."""
        if self.register is not None:
            return f"to_register({self.register:#04x})"
        return " | ".join(name for name, place in PLACES.items() if self.places & place)


Block = tuple[Instruction, ...]
Reached = tuple[np.ndarray, np.ndarray, np.ndarray]  # of _reach


@functools.cache
def profile(game: Game) -> np.ndarray:
    """(bytes of the ROM, columns) uint32: COUNT to OTHER_REGISTER of each instruction."""
    console = Console(Group(game, game.facts["default_mode"], 0), Options(), boot(game).pal)
    console.configure()
    console.load(boot(game).snapshot)
    return np.frombuffer(_core.profile(console.batch, PROFILE_FRAMES), np.uint32).reshape(
        -1, OTHER_REGISTER + 1
    )


def _instructions(game: Game, counts: np.ndarray, reached: Reached) -> dict[int, Instruction]:
    """What blocks may be made of, by offset."""
    image, scheme = rom_of(game)
    words = np.frombuffer(_core.decode_rom(image, scheme, len(image) + 1), np.uint32).reshape(-1, 2)
    places, one_register, odd = reached
    too_odd = odd > MOST_ODD * counts[:, COUNT]
    found = {}
    for offset in np.flatnonzero((counts[:, COUNT] >= LEAST_COUNT) & ~too_odd).tolist():
        control, more = words[offset].tolist()
        register = int(counts[offset, REGISTER]) if one_register[offset] else None
        instruction = Instruction(
            offset, int(counts[offset, PC]), more >> OPCODE_SHIFT & 0xFF, more >> OPERAND_SHIFT,
            control >> LENGTH_SHIFT & 3, control, int(places[offset]), register,
        )  # fmt: skip
        if instruction.stays_in_rom:
            found[offset] = instruction
    return found


def _reach(counts: np.ndarray) -> Reached:
    """By offset, what an instruction reaches in a block.

    Returns:
        Its places; whether that is one register of the TIA; how often a block with no more cannot
        do it.
    """
    most_odd = MOST_ODD * counts[:, COUNT]
    places, odd = np.zeros(len(counts), np.uint32), counts[:, ODD].copy()
    # Most programs leave decimal mode at once; some stay in it.
    stays_decimal = counts[:, DECIMAL].sum() > MOST_ODD * counts[:, COUNT].sum()
    if not stays_decimal:
        odd += counts[:, DECIMAL]
    for column, reached in enumerate(PROFILED, REACHED):
        often = counts[:, column] > most_odd
        places[often] |= reached
        odd[~often] += counts[~often, column]
    one_register = (places == PLACES["kToTia"]) & (counts[:, OTHER_REGISTER] <= most_odd)
    odd[one_register] += counts[one_register, OTHER_REGISTER]
    if stays_decimal:
        places |= PLACES["kInDecimal"]
    return places, one_register, odd


def blocks_of(game: Game) -> list[Block]:
    """The game's blocks. Each begins where the program was seen to enter it; none overlap."""
    counts = profile(game)
    reached = _reach(counts)
    instructions, odd = _instructions(game, counts, reached), reached[2]
    _, scheme = rom_of(game)
    behind_gaps = {
        offset for offset in instructions
        if counts[offset, ENTERED] or not any(
            (before := instructions.get(offset - length)) and before.length == length
            and before.pc + length == instructions[offset].pc and not odd[before.offset]
            for length in (1, 2, 3)
        )
    }  # fmt: skip
    blocks = []
    to_begin = sorted(behind_gaps, reverse=True)
    while to_begin:
        block = [instructions[to_begin.pop()]]
        while not block[-1].leaves_program:
            last = block[-1]
            following = instructions.get(last.offset + last.length)
            if (
                following is None
                or following.offset in behind_gaps
                or following.pc != last.pc + last.length
            ):
                break
            # E0 switches each KiB by itself.
            other_slice = scheme == "E0" and (following.pc ^ last.pc) & 0xFC00
            full = len(block) == MOST_INSTRUCTIONS or _most_cycles(tuple(block)) > MOST_CYCLES
            # After a wait, lanes of a warp are at the same place, and begin the next block
            # together.
            if last.waits or last.reads_timer or full or other_slice:
                behind_gaps.add(following.offset)
                to_begin.append(following.offset)
                break
            block.append(following)
        blocks.append(tuple(block))
    return blocks


def most_frequent(game: Game, blocks: list[Block]) -> list[Block]:
    """As many of the game's blocks as MOST_AT_FIRST lets pass, in their order."""
    ran = profile(game)[:, COUNT]
    by_frequency = sorted(blocks, key=lambda block: -np.mean([ran[each.offset] for each in block]))
    lengths = np.cumsum([len(block) for block in by_frequency])
    kept = set(by_frequency[: int(np.searchsorted(lengths, MOST_AT_FIRST, side="right"))])
    return [block for block in blocks if block in kept]


def _most_cycles(block: Block) -> int:
    return sum(instruction.most_cycles for instruction in block)


def longest_block(blocks: list[Block]) -> int:
    """How many cycles a block takes at most."""
    return max((_most_cycles(block) for block in blocks), default=0)


def stays_decimal(blocks: list[Block]) -> bool:
    """Whether blocks run in decimal mode, too."""
    return any(
        instruction.places & PLACES["kInDecimal"] for block in blocks for instruction in block
    )


# What follows a block where it is not known: kLookUp of csrc/console/block.h.
LOOK_UP = 0


class _Numbers:
    """The blocks' numbers, by where they begin."""

    def __init__(self, game: Game, blocks: list[Block]):
        image, self._scheme = rom_of(game)
        self._bank_bytes = min(len(image), 4096)
        self._numbers = {
            (block[0].offset, block[0].pc): number for number, block in enumerate(blocks, 1)
        }

    def at(self, pc: int | None, seen_from: Instruction) -> int:
        """The number of the block at `pc`, where an instruction of the same bank leads, or LOOK_UP.

        No block switches banks. E0 switches each KiB by itself; FE switches by the highest bits of
        `pc`.
        """
        moving = 0xFC00 if self._scheme == "E0" else 0xE000
        if pc is None or not pc & 0x1000 or (pc ^ seen_from.pc) & moving:
            return LOOK_UP
        offset = seen_from.offset + pc % self._bank_bytes - seen_from.pc % self._bank_bytes
        return self._numbers.get((offset, pc), LOOK_UP)


def source_of(game: Game, blocks: list[Block]) -> str:
    """The C++ function `run_block` of a game."""
    numbers = _Numbers(game, blocks)
    entries: set[int] = set()  # blocks in which others go on

    def follow(pc: int | None, seen_from: Instruction) -> str:
        number = numbers.at(pc, seen_from)
        if number == LOOK_UP:
            return "CULE_LOOK_UP"
        if seen_from.waits:
            return f"CULE_COME_BACK({number})"
        entries.add(number)
        return f"CULE_GO_ON({number})"

    whole_banks = rom_of(game)[1] in WHOLE_BANKS
    texts = []
    for block in blocks:
        lines = []
        for instruction in block:
            what = f"{instruction.pc:#06x}, {instruction.opcode:#04x}, {instruction.operand:#06x}"
            if instruction.branches:
                taken = follow(instruction.branch_target, instruction)
                lines.append(f"  CULE_BRANCH({what}, {taken})")
            else:
                bank = instruction.offset // BANK_BYTES * BANK_BYTES if whole_banks else -1
                lines.append(f"  CULE_DO({what}, {instruction.reach}, {bank})")
        lines.append(f"  {follow(block[-1].following, block[-1])}")
        texts.append(lines)
    for number, lines in enumerate(texts, 1):
        entry = f" CULE_ENTRY({number})" if number in entries else ""
        lines.insert(0, f"CULE_BLOCK({number}){entry}")
    return "\n".join(line for lines in texts for line in lines) + "\n"


def marked_ops(game: Game, blocks: list[Block]) -> np.ndarray:
    """The ROM's micro-operations, with marks where blocks begin (csrc/cpu_6507/micro_op.h).

    Returns:
        (bytes of the ROM + 1, 2) uint32.
    """
    image, scheme = rom_of(game)
    words = (
        np.frombuffer(_core.decode_rom(image, scheme, len(image) + 1), np.uint32)
        .reshape(-1, 2)
        .copy()
    )
    for number, block in enumerate(blocks, 1):
        words[block[0].offset] = block[0].pc, number << OPERAND_SHIFT | BLOCK_CODE << OPCODE_SHIFT
    return words


# C++'s integer types, which the run-time compiler does not bring along.
_STANDARD_HEADERS = {
    "cstdint": (
        "using int8_t = signed char; using int16_t = short; using int32_t = int; "
        "using int64_t = long long; using uint8_t = unsigned char; "
        "using uint16_t = unsigned short; using uint32_t = unsigned int; "
        "using uint64_t = unsigned long long; using uintptr_t = unsigned long;"
    ),
    "cstring": "",
    "cstddef": "#define offsetof(type, member) __INTADDR__(&(((type*)0)->member))\n",
}

_KERNEL = """#include "kernels/play.cuh"

namespace cule {{

struct RunBlock {{
  template <class M>
  CULE_INLINE uint32_t operator()(M& m, uint32_t number, int32_t end) const {{
    switch (number) {{
{cases}
      default: __builtin_unreachable();
    }}
  }}
}};

extern "C" __global__ void __launch_bounds__(kPlayMostThreads)
play_translated(const __grid_constant__ Batch batch, int lanes, int warps) {{
  constexpr CartridgeMap kMap = {map};
  using Core = TranslatedCore<RunBlock, {game}, {longest}, {decimal}>;
  play_envs<{in_step}>(batch, lanes, warps, Core{{}}, &kMap);
}}

}}  // namespace cule
"""

_MAPS = {
    "2K": "map_2k()", "4K": "map_4k()", "F8": "map_f8(false)", "F8SC": "map_f8(true)",
    "F6": "map_f6(false)", "F6SC": "map_f6(true)", "E0": "map_e0()", "FE": "map_fe()",
    "DPC": "map_dpc()",
}  # fmt: skip


def kernel_source(game: Game, blocks: list[Block], in_step: bool) -> str:
    """The translation unit of a game's kernel, whose warps are kept in step or not."""
    return _KERNEL.format(
        cases=source_of(game, blocks),
        map=_MAPS[rom_of(game)[1]],
        game=game.index,
        longest=longest_block(blocks),
        decimal=str(stays_decimal(blocks)).lower(),
        in_step=str(in_step).lower(),
    )


def headers() -> dict[str, str]:
    """What a game's kernel includes, by the names that it includes them by."""
    return {**_core.headers(), **_STANDARD_HEADERS}


def cache_folder() -> Path:
    """Where translated ROMs are kept: CULE_CACHE_DIR, or `cule` in the user's cache folder."""
    named = os.environ.get("CULE_CACHE_DIR")
    return (
        Path(named)
        if named
        else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cule"
    )


class Translation(NamedTuple):
    """A game's kernel.

    Attributes:
        cubin: compiled for one GPU architecture, and still to be linked.
        marked_ops: of its blocks, see `marked_ops`.
        whole: whether it has all of the game's blocks.
    """

    cubin: bytes
    marked_ops: np.ndarray
    whole: bool


class _Source:
    """What a kernel of a game is compiled from."""

    def __init__(self, game: Game, architecture: str, blocks: list[Block], in_step: bool):
        self._text, self._headers = kernel_source(game, blocks, in_step), headers()
        # Relocatable, as CMakeLists.txt has the rest compiled; the driver links it.
        self._options = [
            f"--gpu-architecture={architecture}", "--std=c++17", "--fmad=false", "-default-device",
            "--relocatable-device-code=true", "--maxrregcount=80",
        ]  # fmt: skip
        if int(nvrtc.version().partition(".")[0]) >= 13:
            self._options.append("--split-compile=4")  # several threads; older ones do not know it
        made_from = nvrtc.version(), self._text, sorted(self._headers.items()), self._options
        key = hashlib.sha256(repr(made_from).encode()).hexdigest()
        self._path = cache_folder() / f"{game.name}-{architecture}-{key[:16]}.cubin"

    def kept(self) -> bytes | None:
        """The cubin, if it is in cache_folder(). What is damaged there is not."""
        try:
            with _FILE.reading(self._path) as file:
                return file.read()
        except ValueError:
            return None

    def compiled(self) -> bytes:
        """The cubin, which is kept in cache_folder()."""
        cubin = nvrtc.compile_cubin(self._text, self._headers, self._options)
        _keep(self._path, cubin)
        return cubin


def translate(
    game: Game, architecture: str, in_step: bool = False, at_first: bool = False
) -> Translation:
    """A game's kernel for a GPU architecture such as "sm_90", from cache_folder() or the compiler.

    Args:
        game: which.
        architecture: of the GPU.
        in_step: whether the warps of a multiprocessor wait for each other (design/translation.md).
        at_first: whether only the game's most frequent blocks are enough, where the kernel of all
            of them is not kept yet: it is compiled in under ten seconds, the other in up to a
            minute.

    Raises:
        OSError: if there is no run-time compiler.
        RuntimeError: if it does not compile.
    """
    blocks = blocks_of(game)
    source = _Source(game, architecture, blocks, in_step)
    cubin = source.kept()
    frequent = most_frequent(game, blocks)
    whole = cubin is not None or not at_first or len(frequent) == len(blocks)
    if not whole:
        blocks = frequent
        source = _Source(game, architecture, blocks, in_step)
        cubin = source.kept()
    if cubin is None:
        cubin = source.compiled()
    return Translation(cubin, marked_ops(game, blocks), whole)


def _keep(path: Path, cubin: bytes) -> None:
    """Writes a file whole or not at all. If it cannot, the next process compiles again."""
    with contextlib.suppress(OSError, ValueError):
        path.parent.mkdir(parents=True, exist_ok=True)
        _FILE.write(path, lambda file: file.write(cubin))
