"""Processes meet again where torchrun has started them again."""

from __future__ import annotations

import threading
import time

import pytest
import torch.distributed as dist

from cule.train.distributed import meeting
from cule.train.distributed.meeting import REFUSED, _new_round, _round_of_first


@pytest.fixture
def store():
    """torchrun's, in which an earlier round was refused."""
    made = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    dist.PrefixStore(_new_round(made), made).set(REFUSED, "process 1 on one: no GPU")
    return made


def test_a_refusal_of_those_before_is_none_of_these(store):
    def first_comes():
        connected = dist.TCPStore("127.0.0.1", store.port, wait_for_workers=False)
        time.sleep(0.5)
        round_ = dist.PrefixStore(_new_round(connected), connected)
        round_.set("answer to 1", round_.get("process 1"))

    thread = threading.Thread(target=first_comes)
    thread.start()
    assert _round_of_first(store, 1, time.monotonic() + 60) == "round 2"
    thread.join()


def test_a_refusal_of_this_round_ends_all(store, monkeypatch):
    monkeypatch.setattr(meeting, "NEWER_SECONDS", 0.1)
    with pytest.raises(ValueError, match="but another one failed: process 1 on one: no GPU"):
        _round_of_first(store, 1, time.monotonic() + 60)
