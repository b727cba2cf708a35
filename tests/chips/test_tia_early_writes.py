"""The TIA's state as of the last write, before the beam is there, compared with a replay."""

from types import ModuleType

import numpy as np
from tia_screen import random_write

from tests.support.registers import GRP0, HMM0, HMOVE, NUSIZ0, RESP0, TOUCH, VBLANK

AHEAD = (0, 1, 67, 68, 75, 76, 227, 228, 229, 456, 457)  # clocks


def test_tia_beam_moves_as_it_draws(chips: ModuleType) -> None:
    """The beam moves from any place, past any number of lines, at once or in two steps."""
    rng = np.random.default_rng(1)
    for seed in range(300):
        deferred = chips.DeferredBeam(seed)
        for clock in sorted(rng.integers(0, 220 * 228, 12).tolist()):
            for ahead in (*AHEAD, *rng.integers(0, 60_000, 8).tolist()):
                between = deferred.cursor + int(rng.integers(0, ahead + 1))
                assert deferred.moves_as_it_draws(deferred.cursor + ahead, between)
            deferred.mark(clock // 3, TOUCH, 0)
            deferred.write(clock // 3, *random_write(rng))


def test_tia_writes_that_take_effect_at_once_leave_what_a_replay_leaves(chips: ModuleType) -> None:
    rng = np.random.default_rng(2)
    changed = kept = 0
    for seed in range(500):
        deferred, cycle = chips.DeferredBeam(seed), 0
        for _ in range(150):
            cycle += int(
                rng.choice([0, 3, 5, 14, 76, 230, 2000], p=[0.05, 0.45, 0.3, 0.1, 0.06, 0.03, 0.01])
            )
            if deferred.write(cycle, *random_write(rng)):
                changed += 1
            else:
                kept += 1
            assert deferred.agrees()
    assert min(changed, kept) > 5_000


def test_tia_every_value_of_a_field_takes_effect_at_once(chips: ModuleType) -> None:
    """Writes all values to all registers except strobes, on random states."""
    for register in (VBLANK, *range(NUSIZ0, RESP0), *range(GRP0, HMOVE)):
        deferred = chips.DeferredBeam(register)
        for value in range(256):
            deferred.write(100 + value, register, value & 0xF0 if register == HMM0 else value)
            assert deferred.agrees()
