"""The M6532's timer and ports.

Sources: Stella Programmer's Guide, "PIA 6532"; the values at and after expiry as in ale-py.
Expectations are computed by hand: the timer counts down right after its write and then once an
interval, so that a timer of N shows N - 1 during the first interval. It expires after N intervals,
shows $FF and counts once a cycle until INTIM is read; from then on it counts once an interval
again.
"""

from types import ModuleType

import pytest

from tests.support.registers import (  # isort: skip
    SWCHA, SWACNT, SWCHB, SWBCNT, INTIM, TIMINT, TIM1T, TIM8T, TIM64T, T1024T,
)  # fmt: skip

INTERVALS = {TIM1T: 1, TIM8T: 8, TIM64T: 64, T1024T: 1024}
START = 1000  # the cycle of the write


def timer(chips: ModuleType, register: int, value: int) -> object:
    riot = chips.Riot(0)
    riot.write(register, value, START)
    return riot


@pytest.mark.parametrize("register", INTERVALS)
def test_m6532_timer_counts_down_once_an_interval(chips: ModuleType, register: int) -> None:
    interval = INTERVALS[register]
    riot = timer(chips, register, 5)
    shown = [riot.read(INTIM, START + cycle) for cycle in range(1, 5 * interval + 1)]
    assert shown == [value for value in (4, 3, 2, 1, 0) for _ in range(interval)]


@pytest.mark.parametrize("register", INTERVALS)
@pytest.mark.parametrize("value", [0, 1, 255])
def test_m6532_timer_shows_ff_in_the_cycle_after_its_last_interval(
    chips: ModuleType, register: int, value: int
) -> None:
    expiry = START + value * INTERVALS[register] + 1
    riot = timer(chips, register, value)
    if value:
        assert riot.read(INTIM, expiry - 1) == 0
    assert riot.read(INTIM, expiry) == 0xFF


@pytest.mark.parametrize("register", INTERVALS)
@pytest.mark.parametrize("late", [1, 2, 3, 100, 254, 255, 256, 300])
def test_m6532_timer_counts_cycles_after_expiry(
    chips: ModuleType, register: int, late: int
) -> None:
    """INTIM has not been read since it expired: `late` cycles after the one with $FF it is lower
    by `late`."""
    riot = timer(chips, register, 3)
    expiry = START + 3 * INTERVALS[register] + 1
    # The read itself switches back to intervals, which shows where more than one has passed since.
    assert riot.read(INTIM, expiry + late) == (0xFF - late - late // INTERVALS[register]) % 256


@pytest.mark.parametrize("register", [TIM8T, TIM64T, T1024T])
def test_m6532_timer_counts_intervals_again_once_read_after_expiry(
    chips: ModuleType, register: int
) -> None:
    interval = INTERVALS[register]
    riot = timer(chips, register, 3)
    expiry = START + 3 * interval + 1
    assert riot.read(INTIM, expiry + 4) == 0xFB
    shown = [riot.read(INTIM, expiry + cycle) for cycle in range(5, 4 * interval)]
    assert shown == [0xFB - cycle // interval for cycle in range(5, 4 * interval)]


def test_m6532_timer_read_in_the_expiry_cycle_does_not_count_as_read(chips: ModuleType) -> None:
    riot = timer(chips, TIM64T, 3)
    expiry = START + 3 * 64 + 1
    assert riot.read(INTIM, expiry) == 0xFF
    assert riot.read(TIMINT, expiry) == 0x80
    assert riot.read(INTIM, expiry + 10) == 0xF5
    assert riot.read(TIMINT, expiry + 10) == 0x00


@pytest.mark.parametrize("register", INTERVALS)
def test_m6532_timint_is_set_from_expiry_until_intim_is_read(
    chips: ModuleType, register: int
) -> None:
    riot = timer(chips, register, 2)
    expiry = START + 2 * INTERVALS[register] + 1
    assert [riot.read(TIMINT, START + 1), riot.read(TIMINT, expiry - 1)] == [0x00, 0x00]
    assert [riot.read(TIMINT, expiry), riot.read(TIMINT, expiry + 50)] == [0x80, 0x80]
    riot.read(INTIM, expiry + 51)
    assert riot.read(TIMINT, expiry + 52) == 0x00
    riot.write(register, 1, expiry + 60)  # a new start arms it again
    assert riot.read(TIMINT, expiry + 60 + INTERVALS[register]) == 0x00
    assert riot.read(TIMINT, expiry + 60 + INTERVALS[register] + 1) == 0x80


def test_m6532_timer_write_restarts_with_the_new_interval(chips: ModuleType) -> None:
    riot = timer(chips, T1024T, 9)
    riot.write(TIM8T, 4, START + 100)
    assert [riot.read(INTIM, START + 100 + cycle) for cycle in (1, 8, 9, 32, 33)] == [
        3,
        3,
        2,
        0,
        0xFF,
    ]


def test_m6532_reset_starts_the_timer_in_intervals_of_64(chips: ModuleType) -> None:
    riot = chips.Riot(25)
    assert [riot.read(INTIM, cycle) for cycle in (1, 64, 65, 25 * 64, 25 * 64 + 1)] == [
        24,
        24,
        23,
        0,
        0xFF,
    ]
    assert riot.read(SWACNT, 0) == 0


def test_m6532_rebase_keeps_the_timer_running(chips: ModuleType) -> None:
    riot = timer(chips, TIM64T, 10)
    riot.rebase(760)
    assert [riot.read(INTIM, START - 760 + cycle) for cycle in (64, 65, 640, 641)] == [
        9,
        8,
        0,
        0xFF,
    ]
    assert riot.read(INTIM, START - 760 + 641 + 7) == 0xF8
    riot.rebase(76)  # the moment of the read moves with the counter
    assert riot.read(INTIM, START - 836 + 641 + 8) == 0xF8
    assert riot.read(INTIM, START - 836 + 641 + 64) == 0xF7


def test_m6532_ports_show_the_pins(chips: ModuleType) -> None:
    riot = chips.Riot(0)
    riot.swcha, riot.swchb = 0xA5, 0x0B
    assert [riot.read(SWCHA, 1), riot.read(SWCHB, 1), riot.read(SWBCNT, 1)] == [0xA5, 0x0B, 0x00]
    riot.write(SWACNT, 0xF0, 1)
    riot.write(SWCHA, 0x00, 1)  # outputs have nothing to drive: the pins stay
    assert [riot.read(SWCHA, 1), riot.read(SWACNT, 1)] == [0xA5, 0xF0]


@pytest.mark.parametrize("register", [SWCHA, SWCHB, SWBCNT, 0x284, 0x285, 0x286, 0x287, *INTERVALS])
def test_m6532_only_swacnt_sets_the_direction(chips: ModuleType, register: int) -> None:
    riot = chips.Riot(0)
    riot.write(SWACNT, 0x5A, 1)
    riot.write(register, 0xFF, 2)
    assert riot.read(SWACNT, 3) == 0x5A


@pytest.mark.parametrize(
    "register", [0x280, 0x281, 0x282, 0x283, 0x284, 0x285, 0x286, 0x287, 0x290, 0x293]
)
def test_m6532_only_the_four_timer_addresses_start_it(chips: ModuleType, register: int) -> None:
    riot = timer(chips, TIM64T, 100)
    riot.write(register, 7, START + 10)
    assert riot.read(INTIM, START + 65) == 98


def test_m6532_registers_repeat(chips: ModuleType) -> None:
    """A0 and A2 distinguish INTIM and TIMINT, and A3 does not matter; writes to the timer need
    A4 and A2."""
    riot = chips.Riot(0)
    riot.write(0x29C, 9, START)  # TIM1T with A3 high
    assert [riot.read(address, START + 2) for address in (0x284, 0x286, 0x28C, 0x294, 0x29E)] == [
        7
    ] * 5
    assert [riot.read(address, START + 20) for address in (0x285, 0x287, 0x28D, 0x295)] == [
        0x80
    ] * 4
