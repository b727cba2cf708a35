"""The lock of a device: who has one, who waits, and what ends either."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cule.train.distributed.gpu_lock import GpuLock, environment_with, trainings_at_once
from tests.support import warm

ROOT = Path(__file__).resolve().parents[2]


def taken_in(turn, seconds):
    """Whether a turn is taken within so many seconds."""
    end = time.monotonic() + seconds
    turn.acquire(lambda: time.monotonic() > end)
    return turn._held is not None


@pytest.mark.parametrize("count", [1, 2])
def test_so_many_have_a_turn_at_the_same_time(tmp_path, count):
    environment = environment_with([tmp_path / f"turn-{number}.lock" for number in range(count)])
    assert trainings_at_once(environment) == count
    turns = [GpuLock(environment) for _ in range(count + 1)]
    assert [taken_in(turn, 0.2) for turn in turns] == [True] * count + [False]
    turns[0].release()
    turns[0].release()
    assert taken_in(turns[-1], 10) and not taken_in(turns[0], 0.2)


def test_without_files_it_is_always_a_trainings_turn():
    assert trainings_at_once({}) == 1
    turn = GpuLock({})
    turn.acquire(lambda: pytest.fail("it waits"))
    turn.release()


def test_a_process_that_is_killed_leaves_its_turn(tmp_path):
    environment = environment_with([tmp_path / "turn.lock"])
    code = (
        "import time; from cule.train.distributed.gpu_lock import GpuLock; turn = GpuLock(); "
        "turn.acquire(lambda: False); print('mine', flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as other:
        assert other.stdout.readline() == "mine\n"
        turn = GpuLock(environment)
        assert not taken_in(turn, 0.2)
        other.kill()
        assert taken_in(turn, 10)


TRAINING = (
    "-m", "examples.ppo.ppo", "--device", "cpu", "--num-envs", "4", "--num-steps", "4",
    "--minibatch-size", "16", "--width", "0.1", "--num-threads", "1", "--total-frames", "640",
    "--eval-episodes", "0", "--no-progress", "--logger", "none", "--no-plot", "--log-every", "1",
)  # fmt: skip


@pytest.mark.parametrize("stopped", [False, True])
def test_a_training_waits_for_its_turn_and_ends_it(tmp_path, stopped):
    """One that a signal stops while it waits ends, too."""
    environment = environment_with([tmp_path / "turn.lock"])
    mine = GpuLock(environment)
    assert taken_in(mine, 1)
    words = [*TRAINING, "--folder", str(tmp_path / "run")]
    with warm.start(words, env=environment) as training:
        log = tmp_path / "run" / "log.jsonl"
        while not log.exists():  # written when the training is ready
            assert training.poll() is None
            time.sleep(0.05)
        time.sleep(1)
        assert log.read_text() == "" and training.poll() is None
        if stopped:
            training.send_signal(signal.SIGTERM)
        else:
            threading.Timer(0.2, mine.release).start()
        assert training.wait(60) == 0
        assert stopped != (len(log.read_text().splitlines()) > 5)
    assert stopped or taken_in(mine, 1)
    assert os.listdir(tmp_path / "run" / "checkpoints")
