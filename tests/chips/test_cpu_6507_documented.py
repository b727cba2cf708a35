"""The 6507, one instruction at a time, on 64 KiB of flat memory.

Sources: py65 (an independent 6502, in lockstep, for the documented opcodes); MOS MCS6500
Programming Manual (addressing modes, cycles); 64doc (undocumented opcodes). What follows ale-py and
not the chip says so.
"""

from collections.abc import Iterable
from types import ModuleType

import numpy as np
import pytest
from flat_cpu import (
    ADC,
    ALWAYS_SET,
    C_FLAG,
    CORES,
    CYCLES,
    D_FLAG,
    DOCUMENTED,
    PC,
    READ,
    SBC,
    WRITE,
    Z_FLAG,
    P,
    X,
    random_vectors,
    run,
    run_one,
)
from py65.devices.mpu6502 import MPU

VECTORS = 1000
VECTORS_OF_PY65 = 400  # which is slow
IND_X = [0x01, 0x21, 0x41, 0x61, 0x81, 0xA1, 0xC1, 0xE1]
IND_Y = [0x11, 0x31, 0x51, 0x71, 0x91, 0xB1, 0xD1, 0xF1]
PY65_WRONG_CYCLES = {0xCE: 6}  # DEC abs: py65 1.2.0 counts 3, the manual 6


class LoggedMemory(list):
    """py65's memory, which records writes so that they can be undone."""

    def __init__(self, values: list[int]) -> None:
        super().__init__(values)
        self.log: list[tuple[int, int]] = []

    def __setitem__(self, address: int, value: int) -> None:
        self.log.append((address, list.__getitem__(self, address)))
        list.__setitem__(self, address, value)

    def take_back(self) -> None:
        for address, value in reversed(self.log):
            list.__setitem__(self, address, value)
        self.log.clear()


def first_difference(
    results: Iterable, expected: list, registers: np.ndarray, code: np.ndarray
) -> tuple | None:
    """Says what was run, what was expected and what came, for the first case that differs."""
    for i, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        if result != wanted:
            return registers[i].tolist(), code[i].tolist(), result, wanted
    return None


@pytest.fixture(scope="module")
def oracle(memory: np.ndarray) -> MPU:
    return MPU(memory=LoggedMemory(memory.tolist()))


# ---- Documented opcodes


def test_cpu_oracle_covers_the_151_documented_opcodes() -> None:
    assert len(DOCUMENTED) == 151


@pytest.mark.parametrize("opcode", DOCUMENTED, ids=lambda opcode: f"{opcode:02X}")
def test_cpu_documented_opcode_matches_py65(
    chips: ModuleType, memory: np.ndarray, oracle: MPU, opcode: int
) -> None:
    registers, code = random_vectors(opcode, VECTORS_OF_PY65)
    if opcode in ADC + SBC:
        registers[:, P] &= ~np.uint32(D_FLAG)  # decimal flags follow ale-py and have their own test
    # A pointer at $FF takes its high byte from $100, as in ale-py, and has its own test.
    if opcode in IND_X:
        code[(code[:, 1] + registers[:, X]) & 0xFF == 0xFF, 1] ^= 1
    if opcode in IND_Y:
        code[code[:, 1] == 0xFF, 1] = 0xFE
    log, expected = oracle.memory.log, []
    for start, instruction in zip(registers.tolist(), code.tolist(), strict=True):
        for offset, byte in enumerate(instruction):
            oracle.memory[start[PC] + offset] = byte
        oracle.pc, oracle.a, oracle.x, oracle.y, oracle.sp = start[:5]
        oracle.p = start[P] | ALWAYS_SET
        oracle.processorCycles = 0
        oracle.step()
        cycles = PY65_WRONG_CYCLES.get(opcode, oracle.processorCycles)
        written = [(WRITE, address, oracle.memory[address]) for address, _ in log[3:]]
        expected.append(
            (
                [
                    oracle.pc,
                    oracle.a,
                    oracle.x,
                    oracle.y,
                    oracle.sp,
                    oracle.p | ALWAYS_SET,
                    cycles,
                    0,
                ],
                written,
            )
        )
        oracle.memory.take_back()
    for core in CORES:
        after, accesses = run(chips, core, memory, registers, code)
        written = [[access for access in row if access[0] == WRITE] for row in accesses]
        results = zip(after.tolist(), written, strict=True)
        assert first_difference(results, expected, registers, code) is None, core


def test_cpu_vectors_cross_pages(chips: ModuleType, memory: np.ndarray) -> None:
    registers, code = random_vectors(0xBD, VECTORS)  # LDA abs,X: 4 cycles, 5 when crossing
    crosses = (code[:, 1] + registers[:, X]) > 0xFF
    after, _ = run(chips, "static", memory, registers, code)
    assert after[:, CYCLES].tolist() == np.where(crosses, 5, 4).tolist()
    assert 0.2 < crosses.mean() < 0.8


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    ("pc", "offset", "taken_pc", "cycles"),
    [
        (0xE000, 0x10, 0xE012, 3),  # forward, same page
        (0xE010, 0xFE, 0xE010, 3),  # to itself
        (0xE0F0, 0x7F, 0xE171, 4),  # forward into the next page
        (0xE010, 0x80, 0xDF92, 4),  # back into the page before
        (0xE0FD, 0x00, 0xE0FF, 3),  # to the next instruction, same page
        (0xE0FE, 0x00, 0xE100, 3),  # the page is that of the next instruction, not of the branch
    ],
)
def test_cpu_branch_cycles(
    chips: ModuleType, core: str, pc: int, offset: int, taken_pc: int, cycles: int
) -> None:
    after, accesses = run_one(chips, [0xD0, offset], core=core, pc=pc, p=0)  # BNE
    assert (after["pc"], after["cycles"], accesses) == (taken_pc, cycles, [])
    after, _ = run_one(chips, [0xD0, offset], core=core, pc=pc, p=Z_FLAG)
    assert (after["pc"], after["cycles"]) == (pc + 2, 2)


@pytest.mark.parametrize("core", CORES)
def test_cpu_program_counter_wraps(chips: ModuleType, core: str) -> None:
    after, _ = run_one(chips, [0xAD, 0x34, 0x12], {0x1234: 0x5A}, core=core, pc=0xFFFE)
    assert (after["pc"], after["a"]) == (0x0001, 0x5A)


def test_cpu_both_cores_agree_on_all_opcodes(chips: ModuleType, memory: np.ndarray) -> None:
    """Decoding at run time and at compile time give the same registers, cycles, and accesses, in
    order."""
    for opcode in range(256):
        registers, code = random_vectors(opcode, VECTORS, seed=1)
        (static_after, static_accesses), (after, accesses) = (
            chips.run_cpu(core, memory, registers, code, 1) for core in CORES
        )
        same = (after == static_after).all(1) & (accesses == static_accesses).all((1, 2))
        assert same.all(), (f"${opcode:02X}", registers[~same][0].tolist(), code[~same][0].tolist())


def test_cpu_predecoded_instructions_have_length_cycles_and_operand(chips: ModuleType) -> None:
    """An operand's high byte is the instruction's last byte; a branch's operand is its distance,
    sign-extended."""
    lengths = {"imp": 1, "acc": 1, "abs": 3, "abx": 3, "aby": 3, "ind": 3}
    for opcode in DOCUMENTED:
        mode = MPU.disassemble[opcode][1]
        length = lengths.get(mode, 2)
        cycles = PY65_WRONG_CYCLES.get(opcode, MPU.cycletime[opcode])
        for low, high in [(0x00, 0x5A), (0x7F, 0xA5), (0x80, 0x00), (0xFE, 0xFF)]:
            operand = {1: opcode << 8, 2: low << 8 | low, 3: high << 8 | low}[length]
            if mode == "rel":
                operand = (low - 256 if low & 0x80 else low) & 0xFFFF
            assert chips.predecode(opcode, low, high) == [opcode, length, cycles, operand], (
                f"{opcode:02X}"
            )


def test_cpu_reset_registers(chips: ModuleType) -> None:
    assert chips.reset_registers() == [0, 0, 0, 0xFF, ALWAYS_SET, 0]


# ---- Accesses, with ale-py's departures from the chip


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    ("code", "registers", "expected"),
    [
        ([0xBD, 0xFF, 0x20], {"x": 1}, [(READ, 0x2100, 0)]),  # LDA abs,X: no dummy read at $2000
        ([0x9D, 0xFF, 0x20], {"x": 1, "a": 7}, [(WRITE, 0x2100, 7)]),  # STA abs,X: nor here
        (
            [0xFE, 0x00, 0x20],
            {"x": 1},
            [(READ, 0x2001, 0), (WRITE, 0x2001, 1)],
        ),  # INC abs,X: written once
        ([0xB5, 0x80], {"x": 1}, [(READ, 0x81, 0)]),  # LDA zp,X
        ([0xE8], {}, []),  # INX: no dummy fetch
        ([0x48], {"a": 9, "s": 0x40}, [(WRITE, 0x140, 9)]),  # PHA
        ([0x08], {"p": 0, "s": 0x40}, [(WRITE, 0x140, 0x30)]),  # PHP pushes B, always
        (
            [0x68],
            {"s": 0x40},
            [(READ, 0x140, 0), (READ, 0x141, 0)],
        ),  # PLA reads the stack's top first
        ([0x28], {"s": 0x40}, [(READ, 0x140, 0), (READ, 0x141, 0)]),  # PLP
        (
            [0x60],
            {"s": 0x40},
            [(READ, 0x141, 0), (READ, 0x142, 0)],
        ),  # RTS: at plain addresses, nothing else
        ([0x40], {"s": 0x40}, [(READ, 0x141, 0), (READ, 0x142, 0), (READ, 0x143, 0)]),  # RTI
        ([0x20, 0x34, 0x12], {"s": 0x40}, [(WRITE, 0x140, 0xE0), (WRITE, 0x13F, 0x02)]),  # JSR
        (
            [0x00],  # BRK
            {"s": 0x01, "p": C_FLAG},
            [
                (WRITE, 0x101, 0xE0),
                (WRITE, 0x100, 0x02),
                (WRITE, 0x1FF, 0x31),
                (READ, 0xFFFE, 0),
                (READ, 0xFFFF, 0),
            ],
        ),
        (
            [0x6C, 0xFF, 0x20],
            {},
            [(READ, 0x20FF, 0), (READ, 0x2000, 0)],
        ),  # JMP (ind) stays in the page
        ([0xB1, 0x80], {"y": 3}, [(READ, 0x80, 0), (READ, 0x81, 0), (READ, 0x03, 0)]),  # LDA (zp),Y
    ],
)
def test_cpu_accesses_only_what_the_instruction_needs(
    chips: ModuleType, core: str, code: list[int], registers: dict[str, int], expected: list
) -> None:
    _, accesses = run_one(chips, code, core=core, **registers)
    # BRK's vector may be read before or after it pushes: on the console's bus there is no
    # difference.
    assert sorted(accesses, key=lambda access: access[0]) == sorted(
        expected, key=lambda access: access[0]
    )


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    ("code", "registers"), [([0xA1, 0xF0], {"x": 0x0F}), ([0xB1, 0xFF], {"y": 0})]
)
def test_cpu_pointer_at_ff_takes_its_high_byte_from_100(
    chips: ModuleType, core: str, code: list[int], registers: dict
) -> None:
    """This is as in ale-py; a chip would take it from $00."""
    after, _ = run_one(
        chips,
        code,
        {0xFF: 0x34, 0x100: 0x12, 0x00: 0x56, 0x1234: 0xAB, 0x5634: 0xCD},
        core=core,
        **registers,
    )
    assert after["a"] == 0xAB


@pytest.mark.parametrize("core", CORES)
def test_cpu_writes_that_follow_a_write_say_so(chips: ModuleType, core: str) -> None:
    registers = np.array([[0xE000, 0, 0, 0, 0x40, 0]], np.uint32)
    flags = {}
    for opcode in (0x00, 0x20, 0x48, 0x08, 0x85, 0xE6):
        _, accesses = chips.run_cpu(
            core, np.zeros(65536, np.uint8), registers, np.array([[opcode, 0x80, 0]], np.uint8), 1
        )
        flags[opcode] = [
            after_write for kind, _, _, after_write in accesses[0].tolist() if kind == WRITE
        ]
    assert flags == {0x00: [0, 1, 1], 0x20: [0, 1], 0x48: [0], 0x08: [0], 0x85: [0], 0xE6: [0]}
