"""Signals and other threads interrupt an env's steps at any moment, and the steps go on."""

from __future__ import annotations

import ctypes
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import torch
from interrupts import RIGHT, STILL, contents, started


class Tally:
    """An env whose steps are interrupted, and a twin that plays the same without interrupts."""

    def __init__(self) -> None:
        self.env, self.twin = started(), started()
        self.interrupts = self.played = 0

    def check(self) -> None:
        """Checks after an interrupt that the step was played or not, and that the next step
        works."""
        self.interrupts += 1
        now = contents(self.env.clone_state())
        if now != contents(self.twin.clone_state()):
            self.played += 1
            self.twin.step(RIGHT)
            assert now == contents(self.twin.clone_state())
        self.step()

    def step(self) -> None:
        for got, expected in zip(self.env.step(STILL)[:4], self.twin.step(STILL)[:4], strict=True):
            assert torch.equal(got, expected)


@pytest.mark.parametrize("count", [200, pytest.param(20_000, marks=pytest.mark.slow)])
def test_steps_that_a_signal_interrupts_go_on(count: int) -> None:
    tally, delays = Tally(), random.Random(0)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        begin = time.perf_counter()
        for _ in range(20):
            tally.step()
        length = (time.perf_counter() - begin) / 20
        while tally.interrupts < count:
            try:
                signal.setitimer(signal.ITIMER_REAL, max(1e-6, delays.uniform(0, length)))
                tally.env.step(RIGHT)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
                tally.check()
            else:
                tally.twin.step(RIGHT)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert 0 < tally.played <= count


@pytest.fixture
def quick_turns() -> Iterator[None]:
    """Makes Python's threads take turns fifty times as often as by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("quick_turns")
@pytest.mark.parametrize("count", [200, pytest.param(20_000, marks=pytest.mark.slow)])
def test_steps_that_another_thread_interrupts_go_on(count: int) -> None:
    tally, delays, problems, attempt = Tally(), random.Random(0), [], 0

    def play() -> None:
        nonlocal attempt
        try:
            for number in range(1, count + 1):
                try:
                    attempt = number  # from now on the interrupt comes
                    tally.env.step(RIGHT)
                    while True:
                        pass
                except KeyboardInterrupt:
                    tally.check()
        except Exception as problem:
            problems.append(problem)

    thread = threading.Thread(target=play)
    thread.start()
    for number in range(1, count + 1):
        while attempt < number and thread.is_alive():
            time.sleep(0)
        time.sleep(delays.uniform(0, 5e-4))
        interrupt = ctypes.py_object(KeyboardInterrupt)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), interrupt)
    thread.join()
    assert not problems
    assert 0 < tally.played <= tally.interrupts == count
