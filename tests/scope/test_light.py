"""The light mode."""

from __future__ import annotations

import time

import pytest
import torch

from cule import scope


def iterate(count: int) -> None:
    for _ in range(count):
        with scope.iteration():
            with scope.operation("play"):
                time.sleep(0.002)
                with scope.operation("inside"):
                    time.sleep(0.001)
            for _ in range(2):
                with scope.operation("learn"):
                    time.sleep(0.001)


def test_light_times_outer_operations_of_some_iterations():
    with scope.Light(torch.device("cpu"), every=2) as light:
        iterate(1)
        assert light.milliseconds() == {}
        iterate(3)
        found = light.milliseconds()
        assert found.keys() == {"play", "learn"}
        assert found["play"] >= 3
        assert found["learn"] >= 2
        assert light.milliseconds() == {}
    iterate(2)
    assert light.milliseconds() == {}


class Event:
    """A CUDA event of a GPU that is behind."""

    made = 0
    done = 0

    def __init__(self, enable_timing):
        assert enable_timing
        Event.made += 1

    def record(self):
        self.number = Event.made

    def query(self):
        return self.number <= Event.done

    def elapsed_time(self, end):
        return 1.5


def test_light_never_waits_for_the_gpu_and_uses_events_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "Event", Event)
    capturing = []
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: bool(capturing))
    with scope.Light(torch.device("cuda"), every=1) as light:
        iterate(2)
        assert Event.made == 12
        assert light.milliseconds() == {}
        Event.done = 6
        assert light.milliseconds() == {"play": 1.5, "learn": 3.0}
        Event.done = 12
        assert light.milliseconds() == {"play": 1.5, "learn": 3.0}
        iterate(2)
        assert Event.made == 12
        capturing.append(True)
        iterate(1)
        assert Event.made == 12
        Event.done = 24
        assert light.milliseconds() == {"play": 1.5, "learn": 3.0}


def test_light_leaves_other_threads_out():
    import threading

    with scope.Light(torch.device("cpu"), every=1) as light:
        thread = threading.Thread(target=iterate, args=(1,))
        thread.start()
        thread.join()
        assert light.milliseconds() == {}
