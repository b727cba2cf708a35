"""How PlayChoice times steps, and which way of playing a translated game it then chooses."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest

# The ways to play (kernels/cuda/play_launch.cuh).
FEW, MORE = WAYS = range(2)
# As in PlayChoice.
FIRST, TRIES, LONGEST = 64, 24, 4096
# Milliseconds of each way.
FEW_FASTEST, MORE_FASTEST = (1.0, 1.5), (3.0, 2.0)


class Choice:
    """A PlayChoice, on a stream whose steps take as long as a test says."""

    def __init__(self, library: Path, fastest: int = FEW):
        self.library = ctypes.CDLL(str(library))
        self.library.make_choice.restype = ctypes.c_void_p
        self.library.begin_choice.restype = ctypes.c_int
        self.choice = ctypes.c_void_p(self.library.make_choice(fastest))
        self.now = 0.0
        self.busy = self.captured = False

    def close(self) -> None:
        self.library.free_choice(self.choice)
        self.library.set_stream(ctypes.c_float(0), False, False)

    def step(self, times: tuple[float, ...]) -> int:
        """Plays a step and returns its way; `times` are the milliseconds of each way."""
        self._set_stream()
        taken = self.library.begin_choice(self.choice)
        self.now += times[taken]
        self._set_stream()
        self.library.end_choice(self.choice)
        return taken

    def steps(self, count: int, times: tuple[float, ...]) -> list[int]:
        return [self.step(times) for _ in range(count)]

    def _set_stream(self) -> None:
        self.library.set_stream(ctypes.c_float(self.now), self.busy, self.captured)


@pytest.fixture
def choice(library: Path) -> Iterator[Choice]:
    made = Choice(library)
    yield made
    made.close()


def test_another_way_than_the_first_may_be_taken_until_all_are_tried(library: Path) -> None:
    choice = Choice(library, MORE)
    assert choice.steps(FIRST - 1, FEW_FASTEST) == [MORE] * (FIRST - 1)
    choice.steps(TRIES, FEW_FASTEST)
    assert choice.steps(50, FEW_FASTEST) == [FEW] * 50
    choice.close()


def test_first_way_is_taken_until_all_are_tried_in_turn(choice: Choice) -> None:
    assert choice.steps(FIRST - 1, FEW_FASTEST) == [FEW] * (FIRST - 1)
    assert choice.steps(TRIES, FEW_FASTEST) == [*WAYS] * (TRIES // len(WAYS))
    assert choice.steps(50, FEW_FASTEST) == [FEW] * 50


@pytest.mark.parametrize(("times", "fastest"), [(FEW_FASTEST, FEW), (MORE_FASTEST, MORE)])
def test_fastest_way_is_taken(times: tuple[float, ...], fastest: int, choice: Choice) -> None:
    choice.steps(FIRST + TRIES - 1, times)
    assert choice.steps(50, times) == [fastest] * 50


@pytest.mark.parametrize(("time", "is_taken"), [(0.985, False), (0.95, True)])
def test_small_differences_do_not_count(time: float, is_taken: bool, choice: Choice) -> None:
    times = (1.0, time)
    choice.steps(FIRST + TRIES - 1, times)
    assert choice.step(times) == (MORE if is_taken else FEW)


@pytest.mark.parametrize(
    ("odd", "times", "fastest"),
    [((1.0, 0.1), FEW_FASTEST, FEW), ((3.0, 100.0), MORE_FASTEST, MORE)],
)
def test_a_single_step_does_not_decide(
    odd: tuple[float, ...], times: tuple[float, ...], fastest: int, choice: Choice
) -> None:
    """A step in which nobody has much to do, or which waits for the host, says nothing."""
    choice.steps(FIRST - 1, times)
    assert choice.steps(2, odd) == [*WAYS]
    choice.steps(TRIES - 2, times)
    assert choice.step(times) == fastest


def test_ways_are_tried_again_as_games_go_on(choice: Choice) -> None:
    assert choice.steps(600, FEW_FASTEST)[-1] == FEW
    assert choice.steps(LONGEST, MORE_FASTEST)[-1] == MORE
    assert choice.steps(LONGEST + 2 * TRIES, FEW_FASTEST)[-1] == FEW
    rarely = choice.steps(5 * LONGEST, FEW_FASTEST).count(MORE)
    assert rarely in (4 * TRIES // len(WAYS), 5 * TRIES // len(WAYS))


def test_nothing_waits_for_steps_that_have_not_ended(choice: Choice) -> None:
    choice.steps(FIRST + TRIES - 1, MORE_FASTEST)
    choice.busy = True
    assert choice.steps(9, MORE_FASTEST) == [FEW] * 9, "it goes on as before"
    choice.busy = False
    assert choice.step(MORE_FASTEST) == MORE


def test_steps_of_a_graph_are_not_timed(choice: Choice) -> None:
    choice.steps(FIRST - 1, MORE_FASTEST)
    choice.captured = True
    assert choice.steps(9, MORE_FASTEST) == [FEW] * 9
    choice.captured = False
    assert choice.steps(TRIES, MORE_FASTEST) == [*WAYS] * (TRIES // len(WAYS))
    choice.captured = True
    assert choice.step(MORE_FASTEST) == FEW
    choice.captured = False
    choice.step(MORE_FASTEST)
    choice.captured = True
    assert choice.step(MORE_FASTEST) == MORE, "what was found before"
