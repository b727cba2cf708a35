"""The 6507, one instruction at a time, on 64 KiB of flat memory.

Sources: py65 (an independent 6502, in lockstep, for the documented opcodes); MOS MCS6500
Programming Manual (addressing modes, cycles); 64doc (undocumented opcodes). What follows ale-py and
not the chip says so.
"""

from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal as assert_equal
from py65.devices.mpu6502 import MPU

PC, A, X, Y, S, P, CYCLES, JAMMED = range(8)
N_FLAG, V_FLAG, D_FLAG, I_FLAG, Z_FLAG, C_FLAG = 0x80, 0x40, 0x08, 0x04, 0x02, 0x01
ALWAYS_SET = 0x30  # B and the unused bit, as pushed
READ, WRITE = 1, 2
CORES = ["static", "dynamic"]
VECTORS = 1000

DOCUMENTED = [opcode for opcode in range(256) if MPU.disassemble[opcode][0] != "???"]
IND_X = [0x01, 0x21, 0x41, 0x61, 0x81, 0xA1, 0xC1, 0xE1]
IND_Y = [0x11, 0x31, 0x51, 0x71, 0x91, 0xB1, 0xD1, 0xF1]
PY65_WRONG_CYCLES = {0xCE: 6}  # DEC abs: py65 1.2.0 counts 3, the manual 6
ADC = [0x61, 0x65, 0x69, 0x6D, 0x71, 0x75, 0x79, 0x7D]
SBC = [0xE1, 0xE5, 0xE9, 0xED, 0xF1, 0xF5, 0xF9, 0xFD]


def random_memory(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, 65536, dtype=np.uint8)


def random_bytes(rng: np.random.Generator, n: int) -> np.ndarray:
    """Bytes, a third of them at the edges where flags and carries change."""
    edges = rng.choice(np.array([0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF]), n)
    return np.where(rng.random(n) < 1 / 3, edges, rng.integers(0, 256, n)).astype(np.uint32)


def random_vectors(opcode: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Registers (n, 6) and code (n, 3) for `opcode`, with the program counter outside of pages 0
    and 1."""
    rng = np.random.default_rng([seed, opcode])
    registers = np.stack(
        [
            rng.integers(0x200, 0xFFF0, n),
            *(random_bytes(rng, n) for _ in range(4)),
            rng.integers(0, 256, n),
        ],
        1,
    )
    code = np.stack([np.full(n, opcode), random_bytes(rng, n), random_bytes(rng, n)], 1)
    return registers.astype(np.uint32), code.astype(np.uint8)


def run(
    chips: ModuleType, core: str, memory: np.ndarray, registers: Any, code: Any, steps: int = 1
) -> tuple[np.ndarray, list]:
    """The registers afterwards and, per row, the accesses (kind, address, value)."""
    after, accesses = chips.run_cpu(
        core, memory, np.atleast_2d(registers), np.atleast_2d(code), steps
    )
    return after, [[tuple(a[:3]) for a in row if a[0]] for row in accesses.tolist()]


def run_one(
    chips: ModuleType,
    code: list[int],
    memory: dict[int, int] | None = None,
    core: str = "static",
    steps: int = 1,
    **registers: int,
) -> tuple[dict[str, int], list]:
    """One hand-written case: registers by name (default 0, pc $E000, s $FF), memory by address
    (default 0)."""
    flat = np.zeros(65536, np.uint8)
    for address, value in (memory or {}).items():
        flat[address] = value
    names = ["pc", "a", "x", "y", "s", "p"]
    start = {"pc": 0xE000, "s": 0xFF} | registers
    after, accesses = run(chips, core, flat, [start.get(name, 0) for name in names], code, steps)
    return dict(zip([*names, "cycles", "jammed"], after[0].tolist(), strict=True)), accesses[0]


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
    """What was run, what came out and what should have, for the first case that differs."""
    for i, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        if result != wanted:
            return registers[i].tolist(), code[i].tolist(), result, wanted
    return None


@pytest.fixture(scope="module")
def memory() -> np.ndarray:
    return random_memory(6507)


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
    registers, code = random_vectors(opcode, VECTORS)
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
    """The run-time decoding against the compile-time one: registers, cycles, and every access in
    order."""
    for opcode in range(256):
        registers, code = random_vectors(opcode, VECTORS, seed=1)
        (static_after, static_accesses), (after, accesses) = (
            chips.run_cpu(core, memory, registers, code, 1) for core in CORES
        )
        same = (after == static_after).all(1) & (accesses == static_accesses).all((1, 2))
        assert same.all(), (f"${opcode:02X}", registers[~same][0].tolist(), code[~same][0].tolist())


def test_cpu_micro_ops_have_length_cycles_and_operand(chips: ModuleType) -> None:
    """The operand's high byte is the instruction's last one; a branch's is its distance,
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
            assert chips.micro_op(opcode, low, high) == [opcode, length, cycles, operand], (
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
    """As in ale-py; a chip would take it from $00."""
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


# ---- Decimal mode


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("subtracts", [False, True], ids=["ADC", "SBC"])
def test_cpu_decimal_mode_computes_in_decimal(
    chips: ModuleType, core: str, subtracts: bool
) -> None:
    """All 100 x 100 x 2 cases against arithmetic; N, V and Z of the decimal result, as in
    ale-py."""
    a, m, c = (
        grid.ravel()
        for grid in np.meshgrid(np.arange(100), np.arange(100), np.arange(2), indexing="ij")
    )
    packed_a, packed_m = (n // 10 * 16 + n % 10 for n in (a, m))
    zero = np.zeros_like(a)
    registers = np.stack([zero + 0xE000, packed_a, zero, zero, zero + 0xFF, D_FLAG | c], 1)
    code = np.stack([zero + (0xE9 if subtracts else 0x69), packed_m], 1)
    after, _ = run(chips, core, np.zeros(65536, np.uint8), registers, code)
    exact = a - m - (1 - c) if subtracts else a + m + c
    carry = exact >= 0 if subtracts else exact > 99
    value = exact % 100
    packed = value // 10 * 16 + value % 10
    negative = packed >= 0x80
    # Overflow: the result's sign is neither A's nor the operand's.
    overflow = (negative != (packed_a >= 0x80)) & (negative != (packed_m >= 0x80))
    flags = (
        ALWAYS_SET
        | D_FLAG
        | negative * N_FLAG
        | overflow * V_FLAG
        | (packed == 0) * Z_FLAG
        | carry * C_FLAG
    )
    assert after[:, A].tolist() == packed.tolist()
    assert after[:, P].tolist() == flags.tolist()
    assert set(after[:, CYCLES].tolist()) == {2}


@pytest.mark.parametrize(
    ("opcode", "a", "m", "carry", "result"),
    [
        (0xE9, 0x04, 0xCE, 0, 0x8D),  # 4 - 134 - 1 + 100 = -31
        (0xE9, 0x21, 0xFF, 0, 0x85),
        (0xE9, 0x32, 0xD7, 1, 0xA1),
        (0xEB, 0x15, 0xE8, 0, 0x90),
        (0xE9, 0xFF, 0x00, 1, 0x65),  # 165
        (0x69, 0xFF, 0xFF, 1, 0x75),  # 331 - 256
    ],
)
def test_cpu_decimal_mode_without_decimal_digits_as_measured_on_ale_py(
    chips: ModuleType, opcode: int, a: int, m: int, carry: int, result: int
) -> None:
    after, _ = run_one(chips, [opcode, m], a=a, p=D_FLAG | carry)
    assert after["a"] == result


@pytest.mark.parametrize("subtracts", [False, True], ids=["ADC", "SBC"])
def test_cpu_decimal_mode_of_all_bytes_follows_ale_py(chips: ModuleType, subtracts: bool) -> None:
    """Digits above 9 count as they are. A result below zero even with 100 borrowed is used as two
    digits."""
    a, m, c = (
        grid.ravel()
        for grid in np.meshgrid(np.arange(256), np.arange(256), np.arange(2), indexing="ij")
    )
    zero = np.zeros_like(a)
    registers = np.stack([zero + 0xE000, a, zero, zero, zero + 0xFF, D_FLAG | c], 1)
    code = np.stack([zero + (0xE9 if subtracts else 0x69), m], 1)
    after, _ = chips.run_cpu("static", np.zeros(65536, np.uint8), registers, code, 1)
    number_a, number_m = (n // 16 * 10 + n % 16 for n in (a, m))
    if subtracts:
        value = number_a - number_m - (1 - c)
        value = np.where(value < 0, value + 100, value)
        carry = a >= m + (1 - c)
    else:
        value = number_a + number_m + c
        carry = value > 99
        value %= 256
    digits = value % 100 // 10 * 16 + value % 10
    wrapped = value + 256
    want_a = np.where(value < 0, wrapped // 16 * 10 + wrapped % 16, digits)
    negative = want_a >= 0x80
    overflow = (negative != (a >= 0x80)) & (negative != (m >= 0x80))
    flags = (
        ALWAYS_SET
        | D_FLAG
        | negative * N_FLAG
        | overflow * V_FLAG
        | (want_a == 0) * Z_FLAG
        | carry * C_FLAG
    )
    assert_equal(after[:, A], want_a)
    assert_equal(after[:, P], flags)


# ---- Undocumented opcodes: on the static core, as the dynamic one agrees with it (above)

#                zp    zp,X  (zp,X) (zp),Y abs   abs,X abs,Y
MODIFY_MODES = ["zp", "zpx", "indx", "indy", "abs", "absx", "absy"]
MODIFY_CYCLES = {"zp": 5, "zpx": 6, "indx": 8, "indy": 8, "abs": 6, "absx": 7, "absy": 7}
MODIFY = {
    # name: (opcodes by mode, what it does first, then; both as their absolute forms)
    "SLO": ([0x07, 0x17, 0x03, 0x13, 0x0F, 0x1F, 0x1B], 0x0E, 0x0D),  # ASL, ORA
    "RLA": ([0x27, 0x37, 0x23, 0x33, 0x2F, 0x3F, 0x3B], 0x2E, 0x2D),  # ROL, AND
    "SRE": ([0x47, 0x57, 0x43, 0x53, 0x4F, 0x5F, 0x5B], 0x4E, 0x4D),  # LSR, EOR
    "RRA": ([0x67, 0x77, 0x63, 0x73, 0x6F, 0x7F, 0x7B], 0x6E, 0x6D),  # ROR, ADC
    "DCP": ([0xC7, 0xD7, 0xC3, 0xD3, 0xCF, 0xDF, 0xDB], 0xCE, 0xCD),  # DEC, CMP
    "ISB": ([0xE7, 0xF7, 0xE3, 0xF3, 0xEF, 0xFF, 0xFB], 0xEE, 0xED),  # INC, SBC
}
OPERAND_BYTES = {
    "imm": 1,
    "zp": 1,
    "zpx": 1,
    "zpy": 1,
    "indx": 1,
    "indy": 1,
    "abs": 2,
    "absx": 2,
    "absy": 2,
    "imp": 0,
}


def addresses_of(
    mode: str, memory: np.ndarray, registers: np.ndarray, code: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The effective addresses, and whether indexing crosses a page."""
    low, high, x, y = (
        column.astype(np.int64)
        for column in (code[:, 1], code[:, 2], registers[:, X], registers[:, Y])
    )
    base, index = low, np.zeros_like(low)
    if mode in ("zpx", "zpy"):
        base = (low + (x if mode == "zpx" else y)) & 0xFF
    elif mode.startswith("abs"):
        base = low + 256 * high
        index = {"abs": index, "absx": x, "absy": y}[mode]
    elif mode.startswith("ind"):
        pointer = (low + x) & 0xFF if mode == "indx" else low
        base = memory[pointer] + 256 * memory[pointer + 1].astype(np.int64)
        index = y if mode == "indy" else index
    return (base + index) & 0xFFFF, (base & 0xFF) + index > 0xFF


def with_nz(p: int | np.ndarray, value: np.ndarray) -> np.ndarray:
    return p & ~(N_FLAG | Z_FLAG) | ALWAYS_SET | (value >= 0x80) * N_FLAG | (value == 0) * Z_FLAG


def vectors_away_from_code(
    opcode: int, mode: str, memory: np.ndarray, n: int = 1000
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Random vectors that do not touch the bytes at the program counter; with their addresses and
    page crossings."""
    registers, code = random_vectors(opcode, n, seed=2)
    addresses, crosses = addresses_of(mode, memory, registers, code)
    keep = (addresses - registers[:, PC]) & 0xFFFF >= 8
    return registers[keep], code[keep], addresses[keep], crosses[keep]


@pytest.mark.parametrize("mode", MODIFY_MODES)
@pytest.mark.parametrize("name", MODIFY)
def test_cpu_undocumented_modify_is_two_documented_ones(
    chips: ModuleType, memory: np.ndarray, name: str, mode: str
) -> None:
    opcodes, first, second = MODIFY[name]
    opcode = opcodes[MODIFY_MODES.index(mode)]
    registers, code, addresses, _ = vectors_away_from_code(opcode, mode, memory)
    after, accesses = run(chips, "static", memory, registers, code)
    low, high = addresses & 0xFF, addresses >> 8
    pair = np.stack([np.full_like(low, first), low, high, np.full_like(low, second), low, high], 1)
    pair_after, pair_accesses = run(chips, "static", memory, registers, pair, steps=2)
    assert_equal(after[:, A : P + 1], pair_after[:, A : P + 1])
    assert [row[-2:] for row in accesses] == [row[:2] for row in pair_accesses]
    assert_equal(after[:, PC], ((registers[:, PC] + 1 + OPERAND_BYTES[mode]) & 0xFFFF))
    assert set(after[:, CYCLES].tolist()) == {MODIFY_CYCLES[mode]}


@pytest.mark.parametrize(
    ("opcode", "mode", "cycles"),
    [
        (0xA7, "zp", 4),  # 4 as in ale-py; a chip takes 3
        (0xB7, "zpy", 4),
        (0xA3, "indx", 6),
        (0xB3, "indy", 5),
        (0xAF, "abs", 4),
        (0xBF, "absy", 4),
    ],
)
def test_cpu_lax_loads_a_and_x(
    chips: ModuleType, memory: np.ndarray, opcode: int, mode: str, cycles: int
) -> None:
    registers, code, addresses, crosses = vectors_away_from_code(opcode, mode, memory)
    after, _ = run(chips, "static", memory, registers, code)
    value = memory[addresses].astype(int)
    assert_equal(after[:, A], value)
    assert_equal(after[:, X], value)
    assert_equal(after[:, P], with_nz(registers[:, P].astype(int), value))
    assert_equal(
        after[:, CYCLES], (cycles + (crosses if mode in ("indy", "absy") else 0 * crosses))
    )


@pytest.mark.parametrize(
    ("opcode", "mode", "cycles"),
    [(0x87, "zp", 3), (0x97, "zpy", 4), (0x83, "indx", 6), (0x8F, "abs", 4)],
)
def test_cpu_sax_stores_a_and_x(
    chips: ModuleType, memory: np.ndarray, opcode: int, mode: str, cycles: int
) -> None:
    registers, code, addresses, _ = vectors_away_from_code(opcode, mode, memory)
    after, accesses = run(chips, "static", memory, registers, code)
    stored = registers[:, A] & registers[:, X]
    expected = [
        (WRITE, address, value)
        for address, value in zip(addresses.tolist(), stored.tolist(), strict=True)
    ]
    assert [row[-1] for row in accesses] == expected
    assert_equal(after[:, A : S + 1], registers[:, A : S + 1])
    assert_equal(after[:, P], (registers[:, P] | ALWAYS_SET))
    assert set(after[:, CYCLES].tolist()) == {cycles}


def all_pairs(p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every (A, operand) with flags `p`: registers with a random X, A, and the operand."""
    a, m = (grid.ravel() for grid in np.meshgrid(np.arange(256), np.arange(256), indexing="ij"))
    zero = np.zeros_like(a)
    x = np.random.default_rng(p).integers(0, 256, a.size)
    return np.stack([zero + 0xE000, a, x, zero + 0x55, zero + 0xF0, zero + p], 1), a, m


@pytest.mark.parametrize("p", [0, C_FLAG | V_FLAG])
@pytest.mark.parametrize(
    "opcode", [0x0B, 0x2B, 0x4B, 0x8B, 0xAB, 0xCB, 0xEB], ids=lambda opcode: f"{opcode:02X}"
)
def test_cpu_undocumented_immediate_formulas(chips: ModuleType, opcode: int, p: int) -> None:
    """ANC, ALR, ANE, LXA, SBX and the second SBC for every A and operand; ANE's and LXA's constant
    is 64doc's $EE."""
    registers, a, m = all_pairs(p)
    x = registers[:, X]
    flat, code = np.zeros(65536, np.uint8), np.stack([np.full_like(m, opcode), m], 1)
    after, accesses = chips.run_cpu("static", flat, registers, code, 1)
    want_a, want_x, flags = a, x, np.full_like(a, p)
    if opcode in (0x0B, 0x2B):  # ANC: AND, and bit 7 into C
        want_a = a & m
        flags = with_nz(p & ~C_FLAG, want_a) | want_a >> 7
    elif opcode == 0x4B:  # ALR: AND, then LSR
        want_a = (a & m) >> 1
        flags = with_nz(p & ~C_FLAG, want_a) | a & m & 1
    elif opcode == 0x8B:  # ANE
        want_a = (a | 0xEE) & x & m
        flags = with_nz(p, want_a)
    elif opcode == 0xAB:  # LXA
        want_a = want_x = (a | 0xEE) & m
        flags = with_nz(p, want_a)
    elif opcode == 0xCB:  # SBX: X = (A & X) - operand, without borrow, flags as CMP
        want_x = ((a & x) - m) % 256
        flags = with_nz(p & ~C_FLAG, want_x) | (a & x >= m)
    else:  # SBC
        difference = a - m - (1 - (p & C_FLAG))
        want_a = difference % 256
        signed = np.where(a > 127, a - 256, a) - np.where(m > 127, m - 256, m) - (1 - (p & C_FLAG))
        overflow = (signed < -128) | (signed > 127)
        flags = (
            with_nz(p & ~(C_FLAG | V_FLAG), want_a) | (difference >= 0) * C_FLAG | overflow * V_FLAG
        )
    assert_equal(after[:, A], want_a)
    assert_equal(after[:, X], want_x)
    assert_equal(after[:, Y : S + 1], registers[:, Y : S + 1])
    assert_equal(after[:, P], flags)
    assert set(after[:, CYCLES].tolist()) == {2}
    assert not accesses.any()


@pytest.mark.parametrize("decimal", [False, True])
@pytest.mark.parametrize("carry", [0, 1])
def test_cpu_arr_formula(chips: ModuleType, decimal: bool, carry: int) -> None:
    """ARR for every A and operand, binary and decimal, after 64doc's description."""
    p = carry | (D_FLAG if decimal else 0)
    registers, a, m = all_pairs(p)
    flat, code = np.zeros(65536, np.uint8), np.stack([np.full_like(m, 0x6B), m], 1)
    after, _ = chips.run_cpu("static", flat, registers, code, 1)
    anded = a & m
    rotated = anded // 2 + 128 * carry
    bit6, bit5 = rotated // 64 % 2, rotated // 32 % 2
    if decimal:
        low_digit, high_digit = anded % 16, anded // 16
        overflow = (anded // 64 % 2) != bit6
        low = np.where(low_digit + low_digit % 2 > 5, (rotated % 16 + 6) % 16, rotated % 16)
        fix = high_digit + high_digit % 2 > 5
        high = np.where(fix, (rotated // 16 + 6) % 16, rotated // 16)
        want_a, carry_out = high * 16 + low, fix
    else:
        want_a, carry_out, overflow = rotated, bit6 == 1, bit6 != bit5
    flags = with_nz(p & ~C_FLAG, rotated) | carry_out * C_FLAG | overflow * V_FLAG
    assert_equal(after[:, A], want_a)
    assert_equal(after[:, P], flags)


def test_cpu_las_ands_memory_with_the_stack_pointer(chips: ModuleType, memory: np.ndarray) -> None:
    registers, code, addresses, crosses = vectors_away_from_code(0xBB, "absy", memory)
    after, _ = run(chips, "static", memory, registers, code)
    value = memory[addresses] & registers[:, S]
    assert after[:, [A, X, S]].tolist() == np.stack([value] * 3, 1).tolist()
    assert_equal(after[:, P], with_nz(registers[:, P].astype(int), value))
    assert_equal(after[:, CYCLES], (4 + crosses))


@pytest.mark.parametrize(
    ("opcode", "mode", "cycles"),
    [(0x93, "indy", 6), (0x9F, "absy", 5), (0x9B, "absy", 5), (0x9E, "absy", 5), (0x9C, "absx", 5)],
    ids=["SHA-93", "SHA-9F", "SHS", "SHX", "SHY"],
)
def test_cpu_unstable_stores_and_with_the_high_byte_plus_one(
    chips: ModuleType, memory: np.ndarray, opcode: int, mode: str, cycles: int
) -> None:
    """The high byte is the written address's, as in ale-py; on a chip, crossing a page also spoils
    the address."""
    registers, code, addresses, _ = vectors_away_from_code(opcode, mode, memory)
    after, accesses = run(chips, "static", memory, registers, code)
    a, x, y = (registers[:, column].astype(int) for column in (A, X, Y))
    source = {0x93: a & x, 0x9F: a & x, 0x9B: a & x, 0x9E: x, 0x9C: y}[opcode]
    stored = source & (addresses // 256 + 1) % 256
    expected = [
        (WRITE, address, value)
        for address, value in zip(addresses.tolist(), stored.tolist(), strict=True)
    ]
    assert [row[-1] for row in accesses] == expected
    assert_equal(after[:, S], (a & x if opcode == 0x9B else registers[:, S]))
    assert_equal(after[:, A : Y + 1], registers[:, A : Y + 1])
    assert_equal(after[:, P], (registers[:, P] | ALWAYS_SET))
    assert set(after[:, CYCLES].tolist()) == {cycles}


NOPS = {
    "imp": ([0x1A, 0x3A, 0x5A, 0x7A, 0xDA, 0xFA], 2),
    "imm": ([0x80, 0x82, 0x89, 0xC2, 0xE2], 2),
    "zp": ([0x04, 0x44, 0x64], 3),
    "zpx": ([0x14, 0x34, 0x54, 0x74, 0xD4, 0xF4], 4),
    "abs": ([0x0C], 4),
    "absx": ([0x1C, 0x3C, 0x5C, 0x7C, 0xDC, 0xFC], 4),
}


@pytest.mark.parametrize("mode", NOPS)
def test_cpu_undocumented_nops_only_read(chips: ModuleType, memory: np.ndarray, mode: str) -> None:
    opcodes, cycles = NOPS[mode]
    for opcode in opcodes:
        registers, code, addresses, crosses = vectors_away_from_code(opcode, mode, memory, n=300)
        after, accesses = run(chips, "static", memory, registers, code)
        assert_equal(after[:, PC], ((registers[:, PC] + 1 + OPERAND_BYTES[mode]) & 0xFFFF))
        assert_equal(after[:, A : S + 1], registers[:, A : S + 1])
        assert_equal(after[:, P], (registers[:, P] | ALWAYS_SET))
        assert_equal(after[:, CYCLES], (cycles + (crosses if mode == "absx" else 0 * crosses)))
        reads = [(READ, address, int(memory[address])) for address in addresses.tolist()]
        assert accesses == (
            [[] for _ in reads] if mode in ("imp", "imm") else [[read] for read in reads]
        )


@pytest.mark.parametrize("core", CORES)
def test_cpu_jam_halts(chips: ModuleType, core: str) -> None:
    jams = [0x02, 0x12, 0x22, 0x32, 0x42, 0x52, 0x62, 0x72, 0x92, 0xB2, 0xD2, 0xF2]
    flat = np.zeros(65536, np.uint8)
    start = [0xE000, 1, 2, 3, 4, 5]
    jammed = [
        int(run(chips, core, flat, start, [opcode, 0, 0])[0][0, JAMMED]) for opcode in range(256)
    ]
    assert [opcode for opcode in range(256) if jammed[opcode]] == jams


def test_cpu_tests_cover_every_opcode() -> None:
    undocumented = [opcode for opcodes, _, _ in MODIFY.values() for opcode in opcodes]
    undocumented += [opcode for opcodes, _ in NOPS.values() for opcode in opcodes]
    undocumented += [0xA7, 0xB7, 0xA3, 0xB3, 0xAF, 0xBF, 0x87, 0x97, 0x83, 0x8F]  # LAX, SAX
    undocumented += [0x0B, 0x2B, 0x4B, 0x6B, 0x8B, 0xAB, 0xCB, 0xEB, 0xBB]  # immediate ones and LAS
    undocumented += [0x93, 0x9F, 0x9B, 0x9E, 0x9C]  # unstable stores
    undocumented += [0x02, 0x12, 0x22, 0x32, 0x42, 0x52, 0x62, 0x72, 0x92, 0xB2, 0xD2, 0xF2]  # JAM
    assert sorted(undocumented + DOCUMENTED) == list(range(256))
