"""A process that is recorded with another one ends by SIGTERM as it would without a recording."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import threading
import time
from typing import Any

from cule import scope
from cule.scope.sigterm import Sigterm

FORK = multiprocessing.get_context("fork")


def test_worker_ends_by_sigterm_as_without_a_recording(tmp_path):
    with scope.record(tmp_path) as recording:
        worker = FORK.Process(target=time.sleep, args=(600,))
        worker.start()
        deadline = time.monotonic() + 60
        while not (tmp_path / f"main.{worker.pid}.process.json").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.2)
        worker.terminate()
        worker.join(60)
    assert worker.exitcode == -signal.SIGTERM
    assert recording.problems == []
    assert len(recording.processes) == 2


def wait_in_c(begun: Any) -> None:
    """Waits for ever, in a call that no signal interrupts."""
    mutex = ctypes.create_string_buffer(64)
    lock = ctypes.CDLL(None).pthread_mutex_lock
    lock(mutex)
    begun.set()
    lock(mutex)


def test_sigterm_ends_a_worker_whose_main_thread_runs_no_python(tmp_path):
    """A Pool's worker that is about to wait for a lock when the signal comes is one, too."""
    begun = FORK.Event()
    with scope.record(tmp_path) as recording:
        worker = FORK.Process(target=wait_in_c, args=(begun,))
        worker.start()
        try:
            assert begun.wait(60)
            time.sleep(0.3)
            worker.terminate()
            worker.join(60)
            assert worker.exitcode == -signal.SIGTERM
        finally:
            worker.kill()
    assert recording.problems == []
    assert len(recording.processes) == 2


TOLD = 7


def begin_threads(begun: Any) -> None:
    """For ever; now and then a signal comes to one that Python does not know yet."""
    sigterm = Sigterm()

    def look() -> None:
        while not sigterm.wait(0.05):
            pass
        os._exit(TOLD)

    threading.Thread(target=look, daemon=True).start()
    begun.set()
    while True:
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()


def test_sigterm_is_told_while_threads_begin():
    for _ in range(100):
        begun = FORK.Event()
        worker = FORK.Process(target=begin_threads, args=(begun,))
        worker.start()
        try:
            assert begun.wait(60)
            worker.terminate()
            worker.join(30)
            assert worker.exitcode == TOLD
        finally:
            worker.kill()


def parent_of_a_short_child() -> None:
    child = FORK.Process(target=time.sleep, args=(600,))
    child.start()
    child.terminate()
    child.join(60)
    assert child.exitcode == -signal.SIGTERM


def test_sigterm_to_a_worker_of_a_worker_ends_that_one_only(tmp_path):
    with scope.record(tmp_path) as recording:
        for _ in range(10):
            worker = FORK.Process(target=parent_of_a_short_child)
            worker.start()
            worker.join(120)
            assert worker.exitcode == 0
    assert len(recording.processes) >= 1 + 10


def own_handler(number: int, _: Any) -> None:
    os._exit(9)


def set_a_handler(set_one: Any, window_closed: Any) -> None:
    signal.signal(signal.SIGTERM, own_handler)
    set_one.set()
    assert window_closed.wait(60)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(600)


def reuse_files() -> None:
    """Has another file, which can be read at once, under the number of each file."""
    other = os.open("/dev/zero", os.O_RDWR)
    for number in range(3, 256):
        os.dup2(other, number)
    time.sleep(3)
    os._exit(5)


def test_a_programs_own_handler_and_files_are_left_alone(tmp_path):
    set_one, window_closed = FORK.Event(), FORK.Event()
    with scope.record(tmp_path) as recording:
        worker = FORK.Process(target=set_a_handler, args=(set_one, window_closed))
        worker.start()
        other = FORK.Process(target=reuse_files)
        other.start()
        assert set_one.wait(60)
        other.join(60)
        assert other.exitcode == 5
    window_closed.set()
    worker.join(60)
    assert worker.exitcode == 9
    assert recording.problems == []
