"""The 6507's decimal mode, against arithmetic and ale-py's flags."""

from types import ModuleType

import numpy as np
import pytest
from flat_cpu import (
    ALWAYS_SET,
    C_FLAG,
    CORES,
    CYCLES,
    D_FLAG,
    N_FLAG,
    V_FLAG,
    Z_FLAG,
    A,
    P,
    run,
    run_one,
)
from numpy.testing import assert_array_equal as assert_equal


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("subtracts", [False, True], ids=["ADC", "SBC"])
def test_cpu_decimal_mode_computes_in_decimal(
    chips: ModuleType, core: str, subtracts: bool
) -> None:
    """Compares all 100 x 100 x 2 cases with arithmetic.

    N, V and Z follow the decimal result, as in ale-py.
    """
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
    """Digits above 9 keep their value.

    If a result is below zero even with 100 borrowed, two digits of it are used.
    """
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
