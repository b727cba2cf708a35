"""What a game executes, found by playing it: its instructions, how often, and what they reach."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from cule import _core
from cule.console import Console, Group, Options, boot, rom_of
from cule.console.cartridge import predecoded
from cule.rom import Game

PROFILE_FRAMES = 6000
# An instruction that is executed less often, in PROFILE_FRAMES, is left to the interpreter, as
# compiling takes time.
LEAST_COUNT = 30
# And so is one that more often than this cannot be done in a block. What an instruction reaches
# more often than this, it has code for.
MAX_REFUSED = 0.02
# What is much code in RAM, as a share of all instructions.
MUCH_IN_RAM = 0.02
# What a profile has of each instruction (csrc/execution/profile.h): how often it ran, could not be
# done in a block, ran in decimal mode, was entered; its program counter; which places it reached,
# a column for each set of PROFILED; the TIA register that it wrote to, and how often that was
# another than before.
COUNT, REFUSED, DECIMAL, ENTERED, PC, REACHED = range(6)
PLACES, PROFILED = _core.PLACES, _core.PROFILED_PLACES
REGISTER, OTHER_REGISTER = REACHED + len(PROFILED), REACHED + len(PROFILED) + 1
# Fields of a predecoded instruction (csrc/cpu_6507/predecoded.h).
CYCLES, LENGTH_SHIFT, READS, INDEXED, BRANCH, OPCODE_SHIFT, OPERAND_SHIFT = (
    _core.PREDECODED[field]
    for field in (
        "cycles", "length_shift", "reads", "indexed", "branch", "opcode_shift", "operand_shift",
    )
)  # fmt: skip
# The opcodes after which the next instruction never follows.
LEAVING = _core.GO_ON_AT_OPERAND | _core.GO_ON_ELSEWHERE
WSYNC, LINE_CYCLES = _core.WSYNC, _core.LINE_CYCLES


@dataclass(frozen=True)
class Instruction:
    """One instruction of a block, at `offset` of the image."""

    offset: int
    pc: int
    opcode: int
    operand: int
    length: int
    control: int
    branches: bool  # whether it is a conditional branch
    places: int  # a set of PLACES
    register: int | None  # the one of the TIA's that it writes to; then it reaches nothing else

    @property
    def leaves_program(self) -> bool:
        """Whether what follows is never the next instruction."""
        return self.opcode in LEAVING

    @property
    def following(self) -> int | None:
        """The program counter after it, unless it branches; None where that is not known."""
        if self.opcode in _core.GO_ON_AT_OPERAND:
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
        return all(_core.is_cartridge_address(end & 0xFFFF) for end in ends)

    @property
    def waits(self) -> bool:
        """Whether all that it does is to wait for the next scanline."""
        return self.register == WSYNC

    @property
    def reads_timer(self) -> bool:
        """Whether it may wait for the RIOT's timer, for nobody knows how long."""
        may_be_timer = self.control & INDEXED or _core.is_timer_address(self.operand)
        return bool(self.control & READS and self.places & PLACES["kFromChips"] and may_be_timer)

    @property
    def writes_tia(self) -> bool:
        """Whether it may write to the TIA."""
        return self.register is not None or bool(self.places & PLACES["kToTia"])

    @property
    def most_cycles(self) -> int:
        """How long it takes at most."""
        may_wait = self.writes_tia if self.register is None else self.waits
        return (self.control & CYCLES) + 2 + (LINE_CYCLES if may_wait else 0)

    @property
    def reach(self) -> str:
        """What it reaches, as csrc/execution/fast_bus.h has it."""
        if self.register is not None:
            return f"to_register({self.register:#04x})"
        return " | ".join(name for name, place in PLACES.items() if self.places & place)


Reached = tuple[np.ndarray, np.ndarray, np.ndarray]  # of `reach`


def profile(game: Game) -> np.ndarray:
    """(bytes of the ROM, columns) uint32: COUNT to OTHER_REGISTER of each instruction."""
    return _played(game)[:-1]


def runs_in_ram(game: Game) -> bool:
    """Whether the game executes much code outside of the ROM, which blocks never have."""
    counts = _played(game)[:, COUNT]
    return bool(counts[-1] > MUCH_IN_RAM * counts.sum())


@functools.cache
def _played(game: Game) -> np.ndarray:
    """A profile, and after it a row for what was executed outside of the ROM."""
    console = Console(Group(game, game.facts["default_mode"], 0), Options(), boot(game).pal)
    console.configure()
    console.load(boot(game).snapshot)
    return np.frombuffer(_core.profile(console.batch, PROFILE_FRAMES), np.uint32).reshape(
        -1, OTHER_REGISTER + 1
    )


def predecoded_words(game: Game) -> np.ndarray:
    """(bytes of the ROM + 1, 2) uint32: its instructions (csrc/cpu_6507/predecoded.h)."""
    return predecoded(game).view(np.uint32).reshape(-1, 2)[: len(rom_of(game)[0]) + 1]


def instructions_of(game: Game, counts: np.ndarray, reached: Reached) -> dict[int, Instruction]:
    """What blocks may be made of, by offset.

    What is fetched byte by byte (kFetchSlowly), because reading it may switch banks, is not.
    """
    words = predecoded_words(game)
    places, one_register, refused = reached
    refused_often = refused > MAX_REFUSED * counts[:, COUNT]
    found = {}
    for offset in np.flatnonzero((counts[:, COUNT] >= LEAST_COUNT) & ~refused_often).tolist():
        control, more = words[offset].tolist()
        register = int(counts[offset, REGISTER]) if one_register[offset] else None
        instruction = Instruction(
            offset, int(counts[offset, PC]), more >> OPCODE_SHIFT & 0xFF, more >> OPERAND_SHIFT,
            control >> LENGTH_SHIFT & 3, control, bool(more & BRANCH), int(places[offset]),
            register,
        )  # fmt: skip
        if instruction.length and instruction.stays_in_rom:
            found[offset] = instruction
    return found


def reach(counts: np.ndarray) -> Reached:
    """By offset, what an instruction reaches in a block.

    Returns:
        Its places; whether that is one register of the TIA; how often a block with no more cannot
        do it.
    """
    most_refused = MAX_REFUSED * counts[:, COUNT]
    places, refused = np.zeros(len(counts), np.uint32), counts[:, REFUSED].copy()
    # Most programs leave decimal mode at once; some stay in it.
    stays_decimal = counts[:, DECIMAL].sum() > MAX_REFUSED * counts[:, COUNT].sum()
    if not stays_decimal:
        refused += counts[:, DECIMAL]
    for column, reached in enumerate(PROFILED, REACHED):
        often = counts[:, column] > most_refused
        places[often] |= reached
        refused[~often] += counts[~often, column]
    one_register = (places == PLACES["kToTia"]) & (counts[:, OTHER_REGISTER] <= most_refused)
    refused[one_register] += counts[one_register, OTHER_REGISTER]
    if stays_decimal:
        places |= PLACES["kInDecimal"]
    return places, one_register, refused
