"""The last checkpoint is written while the last episodes are played; the log waits for it."""

from __future__ import annotations

import errno
import threading
from types import SimpleNamespace

import pytest
from training_runs import WORLD, settings, trained

from cule.train.checkpoints import checkpoint, writer
from cule.train.evaluate.evaluator import Evaluator
from cule.train.logs.log import Log, read_log
from examples.a2c_vtrace.train import Args

STATE = {"seconds": 1.5}
LONG = 60  # seconds, in which what is waited for has happened
# All lines of the log are those of the end.
ASKED = {
    "total_frames": 1000, "log_every": 10**6, "checkpoint_every": 0, "eval_episodes": 1,
    "eval_max_frames": 80,
}  # fmt: skip


def writing(monkeypatch, before):
    """Lets the writer's thread call a function before it writes a file."""

    def write(path, content):
        before(path)
        checkpoint.FILE.write(path, content)

    monkeypatch.setattr(writer, "FILE", SimpleNamespace(write=write))


def playing(monkeypatch, then):
    """Calls a function after the episodes of each evaluation."""
    scores = Evaluator.scores

    def played(*args, **options):
        found = scores(*args, **options)
        then()
        return found

    monkeypatch.setattr(Evaluator, "scores", played)


def test_episodes_are_played_while_it_is_written(tmp_path, monkeypatch):
    played, waited, lines = threading.Event(), [], []
    playing(monkeypatch, played.set)

    def before(path):
        waited.append(played.wait(LONG))
        lines.append((tmp_path / "log.jsonl").read_text())

    writing(monkeypatch, before)
    row = trained(settings(tmp_path, **ASKED))
    assert waited == [True] and lines == [""] and row["score"] is not None
    logged = read_log(tmp_path / "log.jsonl")
    assert [line["kind"] for line in logged] == ["training", "evaluation"]
    assert [line["frames"] for line in logged] == [row["frames"]] * 2
    assert len(checkpoint.complete_sets(tmp_path / "checkpoints")) == 1


def test_one_that_cannot_be_written_leaves_no_lines(tmp_path, monkeypatch):
    def full(path):
        raise ValueError(f"expected a checkpoint file that can be written, got {path}")

    writing(monkeypatch, full)
    with pytest.raises(ValueError, match="expected a checkpoint file that can be written"):
        trained(settings(tmp_path, **ASKED))
    assert read_log(tmp_path / "log.jsonl") == []


def test_an_evaluation_that_fails_leaves_it_and_the_line_before(tmp_path, monkeypatch):
    def fail():
        raise OSError(errno.EIO, "the emulator is gone")

    playing(monkeypatch, fail)
    with pytest.raises(OSError, match="the emulator is gone"):
        trained(settings(tmp_path, **ASKED))
    assert [line["kind"] for line in read_log(tmp_path / "log.jsonl")] == ["training"]
    assert len(checkpoint.complete_sets(tmp_path / "checkpoints")) == 1


def test_a_set_of_one_process_is_complete_with_its_file(tmp_path):
    """So that a training that is killed while it evaluates has it."""
    some = writer.Writer(tmp_path, WORLD)
    some.begin(10, STATE)
    some._thread.shutdown()
    assert len(checkpoint.complete_sets(tmp_path)) == 1
    some.close()


def test_lines_are_kept_back_in_their_order(tmp_path):
    log = Log(Args(folder=tmp_path, progress=False, logger="none"), 0, 0, 0, speak=True)
    values = {"seconds": 1.0, "score": None}
    waited = []
    with log.after(lambda: waited.append(read_log(log.path))):
        log.write("training", 100, values)
        log.write("training", 200, values)
    log.write("training", 300, values)
    log.close()
    assert waited == [[]] and [line["frames"] for line in read_log(log.path)] == [100, 200, 300]
