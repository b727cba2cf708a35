"""The 6507's undocumented opcodes, after 64doc."""

from types import ModuleType

import numpy as np
import pytest
from flat_cpu import (
    ALWAYS_SET,
    C_FLAG,
    CORES,
    CYCLES,
    D_FLAG,
    DOCUMENTED,
    JAMMED,
    N_FLAG,
    PC,
    READ,
    V_FLAG,
    WRITE,
    Z_FLAG,
    A,
    P,
    S,
    X,
    Y,
    random_vectors,
    run,
)
from numpy.testing import assert_array_equal as assert_equal

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
    """Random vectors that do not access the bytes at the program counter, with their addresses
    and page crossings."""
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
    """Registers and operand for every pair of A and operand, with flags `p` and a random X."""
    a, m = (grid.ravel() for grid in np.meshgrid(np.arange(256), np.arange(256), indexing="ij"))
    zero = np.zeros_like(a)
    x = np.random.default_rng(p).integers(0, 256, a.size)
    return np.stack([zero + 0xE000, a, x, zero + 0x55, zero + 0xF0, zero + p], 1), a, m


@pytest.mark.parametrize("p", [0, C_FLAG | V_FLAG])
@pytest.mark.parametrize(
    "opcode", [0x0B, 0x2B, 0x4B, 0x8B, 0xAB, 0xCB, 0xEB], ids=lambda opcode: f"{opcode:02X}"
)
def test_cpu_undocumented_immediate_formulas(chips: ModuleType, opcode: int, p: int) -> None:
    """Tries ANC, ALR, ANE, LXA, SBX and the second SBC with every A and operand.

    The constant of ANE and LXA is 64doc's $EE.
    """
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
    """Tries ARR with every A and operand, binary and decimal, against 64doc's description."""
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
    """The high byte is the written address's, as in ale-py.

    On a chip, crossing a page also changes the address.
    """
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
