"""The 6507 on 64 KiB of flat memory: states, and programs of one instruction."""

from types import ModuleType
from typing import Any

import numpy as np
from py65.devices.mpu6502 import MPU

PC, A, X, Y, S, P, CYCLES, JAMMED = range(8)
N_FLAG, V_FLAG, D_FLAG, I_FLAG, Z_FLAG, C_FLAG = 0x80, 0x40, 0x08, 0x04, 0x02, 0x01
ALWAYS_SET = 0x30  # B and the unused bit, as pushed
READ, WRITE = 1, 2
CORES = ["static", "dynamic"]
DOCUMENTED = [opcode for opcode in range(256) if MPU.disassemble[opcode][0] != "???"]
ADC = [0x61, 0x65, 0x69, 0x6D, 0x71, 0x75, 0x79, 0x7D]
SBC = [0xE1, 0xE5, 0xE9, 0xED, 0xF1, 0xF5, 0xF9, 0xFD]


def random_memory(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, 65536, dtype=np.uint8)


def random_bytes(rng: np.random.Generator, n: int) -> np.ndarray:
    """Random bytes. A third of them are near the values at which flags and carries change."""
    edges = rng.choice(np.array([0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF]), n)
    return np.where(rng.random(n) < 1 / 3, edges, rng.integers(0, 256, n)).astype(np.uint32)


def random_vectors(opcode: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Registers (n, 6) and code (n, 3) for `opcode`.

    The program counter is never in pages 0 and 1.
    """
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
    """Runs one hand-written case.

    Registers are by name (default 0, pc $E000, s $FF), memory by address (default 0).
    """
    flat = np.zeros(65536, np.uint8)
    for address, value in (memory or {}).items():
        flat[address] = value
    names = ["pc", "a", "x", "y", "s", "p"]
    start = {"pc": 0xE000, "s": 0xFF} | registers
    after, accesses = run(chips, core, flat, [start.get(name, 0) for name in names], code, steps)
    return dict(zip([*names, "cycles", "jammed"], after[0].tolist(), strict=True)), accesses[0]
