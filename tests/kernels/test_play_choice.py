"""Which kernel plays a translated game: what steps time, and what comes of it (play_choice.cuh)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest

OWN, INTERPRETER = True, False
# As in PlayChoice.
FIRST, TRIES, LONGEST = 64, 6, 4096


class Choice:
    """A PlayChoice, on a stream whose steps take as long as a test says."""

    def __init__(self, library: Path):
        self.library = ctypes.CDLL(str(library))
        self.library.make_choice.restype = ctypes.c_void_p
        self.library.begin_choice.restype = ctypes.c_bool
        self.choice = ctypes.c_void_p(self.library.make_choice())
        self.now = 0.0
        self.busy = self.captured = False

    def close(self) -> None:
        self.library.free_choice(self.choice)
        self.library.set_stream(ctypes.c_float(0), False, False)

    def step(self, own: float, interpreter: float) -> bool:
        """Plays a step, which takes as many milliseconds by either kernel. Which it was."""
        self._set_stream()
        taken = self.library.begin_choice(self.choice)
        self.now += own if taken is OWN else interpreter
        self._set_stream()
        self.library.end_choice(self.choice)
        return taken

    def steps(self, count: int, own: float, interpreter: float) -> list[bool]:
        return [self.step(own, interpreter) for _ in range(count)]

    def _set_stream(self) -> None:
        self.library.set_stream(ctypes.c_float(self.now), self.busy, self.captured)


@pytest.fixture
def choice(library: Path) -> Iterator[Choice]:
    made = Choice(library)
    yield made
    made.close()


def test_own_kernel_plays_until_both_are_tried_in_turn(choice: Choice) -> None:
    assert choice.steps(FIRST - 1, 1.0, 2.0) == [OWN] * (FIRST - 1)
    assert choice.steps(TRIES, 1.0, 2.0) == [OWN, INTERPRETER] * (TRIES // 2)
    assert choice.steps(50, 1.0, 2.0) == [OWN] * 50


def test_interpreter_plays_where_it_is_faster(choice: Choice) -> None:
    choice.steps(FIRST + TRIES - 1, 2.0, 1.0)
    assert choice.steps(50, 2.0, 1.0) == [INTERPRETER] * 50


@pytest.mark.parametrize(("interpreter", "taken"), [(0.98, OWN), (0.95, INTERPRETER)])
def test_small_differences_do_not_count(choice: Choice, interpreter: float, taken: bool) -> None:
    choice.steps(FIRST + TRIES - 1, 1.0, interpreter)
    assert choice.step(1.0, interpreter) is taken


def test_they_are_tried_again_as_games_go_on(choice: Choice) -> None:
    assert choice.steps(600, 1.0, 2.0)[-1] is OWN
    assert choice.steps(LONGEST, 3.0, 2.0)[-1] is INTERPRETER
    assert choice.steps(LONGEST + 2 * TRIES, 1.0, 2.0)[-1] is OWN
    rarely = choice.steps(5 * LONGEST, 1.0, 2.0).count(INTERPRETER)
    assert rarely in (4 * TRIES // 2, 5 * TRIES // 2)


def test_nothing_waits_for_steps_that_have_not_ended(choice: Choice) -> None:
    choice.steps(FIRST + TRIES - 1, 2.0, 1.0)
    choice.busy = True
    assert choice.steps(9, 2.0, 1.0) == [OWN] * 9, "it goes on as before"
    choice.busy = False
    assert choice.step(2.0, 1.0) is INTERPRETER


def test_steps_of_a_graph_are_not_timed(choice: Choice) -> None:
    choice.steps(FIRST - 1, 2.0, 1.0)
    choice.captured = True
    assert choice.steps(9, 2.0, 1.0) == [OWN] * 9
    choice.captured = False
    assert choice.steps(TRIES, 2.0, 1.0) == [OWN, INTERPRETER] * (TRIES // 2)
    choice.captured = True
    assert choice.step(2.0, 1.0) is OWN
    choice.captured = False
    choice.step(2.0, 1.0)
    choice.captured = True
    assert choice.step(2.0, 1.0) is INTERPRETER, "what was found before"
