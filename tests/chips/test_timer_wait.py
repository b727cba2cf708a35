"""Waiting for the timer: `LDA INTIM; BNE` and similar loops skip many rounds at once, without a
visible difference.

Each program runs twice: with an absolute load, whose loop is recognised, and with an indexed load
at index 0, whose loop is not. Both take the same bytes and cycles and set the same flags, so
everything must be the same.
"""

import itertools
from types import ModuleType
from typing import Any

import pytest

from tests.support.registers import INTIM, T1024T, TIM1T, TIM8T, TIM64T, TIMINT

CORES = ["static", "dynamic"]
INTIM_MIRROR = 0xFFE
LDA, LDX, LDY = 0xAD, 0xAE, 0xAC
BPL, BNE = 0x10, 0xD0
JAM = 0x02
INDEXED = 0x10  # turns these absolute loads into indexed ones
FRAME_INSTRUCTIONS = 25_000
TIMERS = [0, 1, 2, 0x80, 0x81, 0xFF]
# Where the loop begins, and whether its branch, which is at its fourth byte, crosses a page.
LOOPS = {0xF0FA: False, 0xF0FB: True, 0xF0FD: True}
# How to spend some cycles.
NOP, STORE = [0xEA], [0x85, 0x80]
DELAYS = {0: [], 2: NOP, 3: STORE, 4: NOP * 2, 5: NOP + STORE, 6: NOP * 3, 7: NOP * 2 + STORE}
# Three lines of VSYNC.
NEW_FRAME = [0xA9, 0x02, 0x85, 0x00, 0x85, 0x02, 0x85, 0x02, 0x85, 0x02, 0xA9, 0x00, 0x85, 0x00]
SEEN = [
    "cycle",
    "pc",
    "a",
    "x",
    "y",
    "s",
    "p",
    "bus",
    "instructions_left",
    "jammed",
    "faults",
    "frame_ended",
    "ram",
]


def cartridge(loop: list[int], at: int, timer: int, register: int, before: list[int]) -> bytes:
    """A cartridge that sets the timer, executes `before`, runs `loop` at `at`, and halts."""
    image = bytearray([0xEA] * 4096)
    start = [0xA9, timer, 0x8D, register & 0xFF, register >> 8, *before, 0x4C, at & 0xFF, at >> 8]
    image[: len(start)] = bytes(start)
    image[at & 0xFFF : (at & 0xFFF) + len(loop) + 1] = bytes([*loop, JAM])
    image[0xFFC:0xFFE] = [0x00, 0xF0]
    return bytes(image)


def wait(load: int, branch: int, address: int = INTIM) -> list[int]:
    return [load, address & 0xFF, address >> 8, branch, 0xFB]


def run(chips: ModuleType, core: str, image: bytes, frames: int) -> tuple[list[Any], int]:
    """What is visible after each of some frames, the timer at the end, and how many instructions
    were really executed."""
    console = chips.Console("4K", image)
    shown: list[Any] = []
    for _ in range(frames):
        console.run_frame(core)
        shown.append({name: getattr(console, name) for name in SEEN})
        if console.jammed:
            break
    console.pc = 0xF000  # where no loop is
    shown.append([console.read(TIMINT), console.read(INTIM), console.read(TIMINT)])
    return shown, console.executed


def compare(
    chips: ModuleType, core: str, load: int, loop: list[int], *setting: Any, frames: int = 4
) -> tuple[int, int]:
    """Asserts that both ways to `load` in `loop` give the same.

    Returns how many instructions each executed.
    """
    plain_loop = [byte | INDEXED if byte == load else byte for byte in loop]
    assert plain_loop != loop
    skipping, executed = run(chips, core, cartridge(loop, *setting), frames)
    plain, all_executed = run(chips, core, cartridge(plain_loop, *setting), frames)
    assert skipping == plain, [f"{byte:02X}" for byte in loop]
    return executed, all_executed


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("register", [TIM1T, TIM8T, TIM64T, T1024T])
@pytest.mark.parametrize("branch", [BNE, BPL], ids=["BNE", "BPL"])
def test_timer_wait_shows_nothing_of_what_it_skips(
    chips: ModuleType, core: str, branch: int, register: int
) -> None:
    # The longer the interval, the less a place within it is worth the time.
    delays = DELAYS if register != T1024T else [0, 5]
    for at, timer, delay in itertools.product(LOOPS, TIMERS, delays):
        frames = 4 if timer > 1 else 2
        compare(
            chips, core, LDA, wait(LDA, branch), at, timer, register, DELAYS[delay], frames=frames
        )


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("load", [LDA, LDX, LDY], ids=["LDA", "LDX", "LDY"])
@pytest.mark.parametrize("address", [INTIM, INTIM_MIRROR])
@pytest.mark.parametrize(("branch", "timer"), [(BNE, 0xFF), (BPL, 0x80)], ids=["BNE", "BPL"])
@pytest.mark.parametrize("at", LOOPS)
def test_timer_wait_skips_nearly_all_rounds(
    chips: ModuleType, core: str, load: int, address: int, branch: int, timer: int, at: int
) -> None:
    executed, all_executed = compare(
        chips, core, load, wait(load, branch, address), at, timer, TIM64T, []
    )
    rounds = (64 * (timer - (branch == BNE)) - 3) // (7 + LOOPS[at])
    assert all_executed > 2 * rounds
    assert executed < 20


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("delay", DELAYS)
def test_timer_wait_is_cut_off_with_the_frame(chips: ModuleType, core: str, delay: int) -> None:
    """A frame ends after 25,000 instructions, including skipped ones.

    The loop continues in the next call.
    """
    loop, pause = wait(LDA, BNE), DELAYS[delay]
    console = chips.Console("4K", cartridge(loop, 0xF0FA, 0xFF, T1024T, pause))
    before = 3 + pause.count(0xEA) + pause.count(0x85)
    for call in (1, 2):
        console.run_frame(core)
        assert (console.instructions_left, console.jammed) == (0, 0)
        rounds, loads = divmod(call * FRAME_INSTRUCTIONS - before, 2)
        assert console.cycle == 2 + 4 + delay + 3 + 7 * rounds + 4 * loads
    assert console.executed < 40
    compare(chips, core, LDA, loop, 0xF0FA, 0xFF, T1024T, pause)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("register", [TIM8T, TIM64T])
@pytest.mark.parametrize("branch", [BNE, BPL], ids=["BNE", "BPL"])
def test_timer_wait_for_a_timer_of_the_frame_before(
    chips: ModuleType, core: str, branch: int, register: int
) -> None:
    for timer in TIMERS:
        compare(chips, core, LDA, wait(LDA, branch), 0xF0FA, timer, register, NEW_FRAME)
    executed, all_executed = compare(
        chips, core, LDA, wait(LDA, branch), 0xF0FA, 0x80, register, NEW_FRAME
    )
    assert 2 * executed < all_executed


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    "loop",
    [
        [0xC8, LDA, 0x84, 0x02, BNE, 0xFA],  # INY before the load, and a branch back to that
        [LDA, 0x84, 0x02, 0xC8, BNE, 0xFA],  # between the load and the branch
        [LDA, 0x84, 0x02, 0xF0, 0xFB],  # BEQ
        [LDA, 0x84, 0x02, 0x30, 0xFB],  # BMI
        [LDA, 0x85, 0x02, BPL, 0xFB],  # TIMINT
        [LDA, 0x82, 0x02, BNE, 0x01, 0xC8],  # the console's switches; over the INY
        [LDA, 0x84, 0x02, BNE, 0x01, 0xC8],
    ],
)
def test_timer_wait_leaves_other_loops_alone(chips: ModuleType, core: str, loop: list[int]) -> None:
    executed, all_executed = compare(chips, core, LDA, loop, 0xF0F0, 0x80, TIM8T, [], frames=1)
    assert executed == all_executed
