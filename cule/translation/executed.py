"""The instructions that a game executes, how often, and what they reach, found by playing it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cule import _core
from cule.console import Console, Group, Options, boot, rom_of
from cule.console.cartridge import predecoded
from cule.console.console import Snapshot
from cule.rom import Game

PROFILE_FRAMES = 6000
# How many frames are played from each of the states that envs are in.
FRAMES_FROM_A_STATE = 60
# An instruction that ran less often than this in PROFILE_FRAMES is left to the interpreter, as
# compiling takes time.
LEAST_COUNT = 30
# An instruction is also left to the interpreter if a larger share of its executions than this could
# not be done in a block. It gets code for the regions that it reached in a larger share than this.
MAX_REFUSED = 0.02
# If a larger share than this of all executed instructions is in RAM, the game runs much code there.
MUCH_IN_RAM = 0.02
# The columns of a profile, which has a row for each instruction (csrc/execution/profile.h): how
# often it ran, could not be done in a block, ran in decimal mode, was entered; its program counter;
# how often it reached each set of regions in PROFILED, one column each; the TIA register that it
# last wrote to, and how often that was another register than before.
COUNT, REFUSED, DECIMAL, ENTERED, PC, REACHED = range(6)
REGIONS, PROFILED = _core.REGIONS, _core.PROFILED_REGIONS
REGISTER, OTHER_REGISTER = REACHED + len(PROFILED), REACHED + len(PROFILED) + 1
_WRITES = REACHED + PROFILED.index(REGIONS["kToTia"])
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
    regions: int  # a set of REGIONS
    register: int | None  # the one TIA register that it writes to; then it reaches nothing else

    @property
    def leaves_program(self) -> bool:
        """Whether the program never goes on at the next instruction."""
        return self.opcode in LEAVING

    @property
    def following(self) -> int | None:
        """The program counter after it if no branch is taken; None if that is not known."""
        if self.opcode in _core.GO_ON_AT_OPERAND:
            return self.operand
        return None if self.leaves_program else (self.pc + self.length) & 0xFFFF

    @property
    def branch_target(self) -> int:
        """The program counter after a branch that is taken."""
        return (self.pc + 2 + self.operand) & 0xFFFF

    @property
    def stays_in_rom(self) -> bool:
        """Whether the next instruction, and a branch's target, are in the cartridge too."""
        ends = [self.pc + self.length, *([self.branch_target] if self.branches else [])]
        return all(_core.is_cartridge_address(end & 0xFFFF) for end in ends)

    @property
    def waits(self) -> bool:
        """Whether it writes WSYNC, which only waits for the next scanline."""
        return self.register == WSYNC

    @property
    def reads_timer(self) -> bool:
        """Whether it may read the RIOT's timer, and so wait for any length of time."""
        may_be_timer = self.control & INDEXED or _core.is_timer_address(self.operand)
        return bool(self.control & READS and self.regions & REGIONS["kFromChips"] and may_be_timer)

    @property
    def writes_tia(self) -> bool:
        """Whether it may write to the TIA."""
        return self.register is not None or bool(self.regions & REGIONS["kToTia"])

    @property
    def most_cycles(self) -> int:
        """The most cycles that it can take."""
        may_wait = self.writes_tia if self.register is None else self.waits
        return (self.control & CYCLES) + 2 + (LINE_CYCLES if may_wait else 0)

    @property
    def reach(self) -> str:
        """What it reaches, as a C++ expression with the names of csrc/execution/fast_bus.h."""
        if self.register is not None:
            return f"to_register({self.register:#04x})"
        return " | ".join(name for name, region in REGIONS.items() if self.regions & region)


Reached = tuple[np.ndarray, np.ndarray, np.ndarray]  # what `reach` returns


@functools.cache
def profile(game: Game) -> np.ndarray:
    """Counts the instructions that random play executes.

    Returns:
        (bytes of the ROM + 1, columns) int64: the columns COUNT to OTHER_REGISTER. The last row is
        for all that was executed outside the ROM.
    """
    console = _console(Group(game, game.facts["default_mode"], 0))
    console.load(boot(game).snapshot)
    return _counts(_core.profile(console.batch, PROFILE_FRAMES))


def profile_from(game: Game, states: Sequence[tuple[Group, Snapshot]]) -> np.ndarray:
    """Counts the instructions of random play that goes on from some states, as `profile`.

    Args:
        game: what is played in all of them.
        states: each with its game, mode and difficulty.
    """
    counts = np.zeros_like(profile(game))
    for number, (group, state) in enumerate(states):
        console = _console(group)
        console.load(state)
        played = _core.profile(console.batch, FRAMES_FROM_A_STATE, from_start=False, seed=number)
        counts = both(counts, _counts(played))
    return counts


def both(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The profile of two plays together. A program counter is that of the first play."""
    counts = first + second
    seen = first[:, COUNT] > 0
    counts[:, PC] = np.where(seen, first[:, PC], second[:, PC])
    wrote, writes = first[:, _WRITES] > 0, second[:, _WRITES] > 0
    counts[:, REGISTER] = np.where(wrote, first[:, REGISTER], second[:, REGISTER])
    # Of two registers it is not known in which order they were written to.
    other = wrote & writes & (first[:, REGISTER] != second[:, REGISTER])
    counts[other, OTHER_REGISTER] += counts[other, _WRITES]
    return counts


def runs_in_ram(game: Game) -> bool:
    """Whether the game runs much code in RAM, which is never in blocks."""
    counts = profile(game)[:, COUNT]
    return bool(counts[-1] > MUCH_IN_RAM * counts.sum())


def _console(group: Group) -> Console:
    console = Console(group, Options(), boot(group.game).pal)
    console.configure()
    return console


def _counts(played: bytes) -> np.ndarray:
    return np.frombuffer(played, np.uint32).reshape(-1, OTHER_REGISTER + 1).astype(np.int64)


def predecoded_words(game: Game) -> np.ndarray:
    """(bytes of the ROM + 1, 2) uint32: predecoded instructions (csrc/cpu_6507/predecoded.h)."""
    return predecoded(game).view(np.uint32).reshape(-1, 2)[: len(rom_of(game)[0]) + 1]


def instructions_of(game: Game, counts: np.ndarray, reached: Reached) -> dict[int, Instruction]:
    """The instructions that blocks may be made of, by offset.

    An instruction that is fetched byte by byte (kFetchSlowly), because reading it may switch banks,
    is none of them.
    """
    words = predecoded_words(game)
    regions, one_register, refused = reached
    refused_often = refused > MAX_REFUSED * counts[:, COUNT]
    found = {}
    for offset in np.flatnonzero((counts[:, COUNT] >= LEAST_COUNT) & ~refused_often).tolist():
        control, more = words[offset].tolist()
        register = int(counts[offset, REGISTER]) if one_register[offset] else None
        instruction = Instruction(
            offset, int(counts[offset, PC]), more >> OPCODE_SHIFT & 0xFF, more >> OPERAND_SHIFT,
            control >> LENGTH_SHIFT & 3, control, bool(more & BRANCH), int(regions[offset]),
            register,
        )  # fmt: skip
        if instruction.length and instruction.stays_in_rom:
            found[offset] = instruction
    return found


def reach(counts: np.ndarray) -> Reached:
    """What each instruction reaches in a block, by offset.

    Returns:
        Its regions; whether they are one TIA register only; how often it ran and needed more than
        that, so that a block could not do it.
    """
    most_refused = MAX_REFUSED * counts[:, COUNT]
    regions, refused = np.zeros(len(counts), np.uint32), counts[:, REFUSED].copy()
    # Most programs are in decimal mode for a few instructions only; some stay in it.
    stays_decimal = counts[:, DECIMAL].sum() > MAX_REFUSED * counts[:, COUNT].sum()
    if not stays_decimal:
        refused += counts[:, DECIMAL]
    for column, reached in enumerate(PROFILED, REACHED):
        often = counts[:, column] > most_refused
        regions[often] |= reached
        refused[~often] += counts[~often, column]
    one_register = (regions == REGIONS["kToTia"]) & (counts[:, OTHER_REGISTER] <= most_refused)
    refused[one_register] += counts[one_register, OTHER_REGISTER]
    if stays_decimal:
        regions |= REGIONS["kInDecimal"]
    return regions, one_register, refused
