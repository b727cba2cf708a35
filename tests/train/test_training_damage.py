"""Training runs with damaged files: a sentence says so, and they go on from what is intact."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import threading

import pytest
import torch
from training_runs import (
    ROOT,
    TWO_PROCESSES,
    WORLD,
    assert_same,
    one_thread_each,
    options,
    save,
    saved,
    settings,
    trained,
    without_times,
)  # fmt: skip

from cule import train
from cule.train.checkpoints import checkpoint
from cule.train.checkpoints.writer import Writer
from cule.train.evaluate import policies
from cule.train.logs.log import read_log
from examples.a2c_vtrace.train import A2C

STATE = {"weights": torch.arange(3000.0), "seconds": 1.5, "args": {"game": "pong"}}


def two_sets(folder):
    """Writes two sets of checkpoints; returns the newer one's file."""
    save(folder, 10, STATE | {"seconds": 0.5})
    save(folder, 20, STATE, before=10)
    return folder / checkpoint.part_of(20, 0)


def flipped(content, bit):
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def test_checkpoint_with_any_bit_flipped_is_not_loaded(tmp_path):
    """Flips 300 bits, the first of them in the file's head."""
    path = two_sets(tmp_path)
    whole = path.read_bytes()
    bits = random.Random(0).sample(range(8 * 60), 40) + random.Random(1).sample(
        range(8 * len(whole)), 260
    )
    for bit in bits:
        path.write_bytes(flipped(whole, bit))
        with pytest.warns(
            UserWarning, match=r"^left out the checkpoint of step 20: .*step-20-rank0\.pt"
        ):
            assert checkpoint.load(tmp_path, WORLD)["seconds"] == 0.5
    path.write_bytes(whole)
    assert_same(checkpoint.load(tmp_path, WORLD), STATE)


@pytest.mark.parametrize("damage", ["cut", "empty", "missing", "of torch.save", "folder", "fifo"])
def test_checkpoint_that_is_damaged_gives_the_one_before(damage, tmp_path):
    path = two_sets(tmp_path)
    whole = path.read_bytes()
    path.unlink()
    if damage in ("cut", "empty"):
        path.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b"")
    elif damage == "of torch.save":
        torch.save(STATE, path)
    elif damage == "folder":
        path.mkdir()
    elif damage == "fifo":
        os.mkfifo(path)
    with pytest.warns(
        UserWarning, match=r"^left out the checkpoint of step 20: .*step-20-rank0\.pt"
    ):
        assert checkpoint.load(tmp_path, WORLD)["seconds"] == 0.5
    (tmp_path / checkpoint.part_of(10, 0)).write_bytes(b"")
    expected = rf"^expected a whole checkpoint in {tmp_path}, got 2, all of them damaged$"
    with pytest.warns(UserWarning), pytest.raises(ValueError, match=expected):
        checkpoint.load(tmp_path, WORLD)


def test_checkpoints_without_checksums_are_told_from_others(tmp_path):
    torch.save(STATE, tmp_path / "step-20-rank0.pt")
    (tmp_path / "latest.json").write_text('{"name": "step-20", "world_size": 1}')
    assert checkpoint.any_in(tmp_path)
    with pytest.raises(
        ValueError,
        match=r"^expected checkpoints with checksums, got those of an earlier version in",
    ):
        checkpoint.load(tmp_path, WORLD)
    checkpoint.delete(tmp_path)
    assert not checkpoint.any_in(tmp_path) and os.listdir(tmp_path) == []


def test_checkpoint_cut_short_leaves_the_one_before(tmp_path, monkeypatch):
    save(tmp_path, 1, {"number": torch.ones(3)})
    written = torch.save

    def break_off(state, file):
        written(state, file)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch, "save", break_off)
    with pytest.raises(
        ValueError, match=r"expected a checkpoint file that can be written, got .*: No space left"
    ):
        save(tmp_path, 2, {"number": torch.zeros(3)}, before=1)
    assert torch.equal(checkpoint.load(tmp_path, WORLD)["number"], torch.ones(3))
    assert len(os.listdir(tmp_path)) == 2


def test_checkpoint_is_of_its_moment_while_training_goes_on(tmp_path, monkeypatch):
    """Until all is written the set before is the newest; what changes meanwhile is not in it."""
    save(tmp_path, 1, {"number": torch.ones(3)})
    may_write, written = threading.Event(), torch.save
    monkeypatch.setattr(
        torch, "save", lambda state, file: may_write.wait(60) and written(state, file)
    )
    writer = Writer(tmp_path, WORLD)
    state = {"number": torch.full((3,), 2.0), "nets": {"a": [torch.zeros(2)], "b": (1, "x")}}
    writer.begin(2, state, before=1)
    state["number"] += 1
    state["nets"]["a"][0] += 1
    writer.poll()
    assert torch.equal(checkpoint.load(tmp_path, WORLD)["number"], torch.ones(3))
    may_write.set()
    while [found.steps for found in checkpoint.complete_sets(tmp_path)] != [2, 1]:
        writer.poll()
    writer.close()
    expected = {"number": torch.full((3,), 2.0), "nets": {"a": [torch.zeros(2)], "b": (1, "x")}}
    assert_same(checkpoint.load(tmp_path, WORLD), expected)


def test_checkpoint_that_cannot_be_written_is_told_at_the_next_look(tmp_path):
    writer = Writer(tmp_path, WORLD)
    writer.begin(1, {"number": lambda: "torch.save cannot write this"})
    with pytest.raises(AttributeError, match="lambda"):
        while True:
            writer.poll()
    writer.begin(2, {"number": 2})
    writer.close()  # completes what was begun
    assert checkpoint.load(tmp_path, WORLD) == {"number": 2}


def test_checkpoints_of_two_moments_are_kept(tmp_path):
    stale = tmp_path / ".cule-0123456789abcdef-0123456789abcdef.part"
    for number in range(1, 5):
        stale.write_bytes(b"what a killed process left")
        save(tmp_path, number, {"number": number}, before=number - 1 or None)
        assert [found.steps for found in checkpoint.complete_sets(tmp_path)] == [
            number,
            number - 1,
        ][: min(number, 2)]
        assert len(os.listdir(tmp_path)) == 2 * min(number, 2), "nothing else is left"
    # A set that is written again is not complete until it is finished, and is then the newest
    # again.
    save(tmp_path, 3, {"number": 33}, before=2)
    assert checkpoint.load(tmp_path, WORLD)["number"] == 33
    assert [found.steps for found in checkpoint.complete_sets(tmp_path)] == [3]


def test_train_resumes_from_the_checkpoint_before_a_damaged_one(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    trained(settings(whole, total_frames=3000))
    trained(settings(parts, total_frames=2000, checkpoint_every=600))
    newest, before = checkpoint.complete_sets(parts / "checkpoints")
    path = parts / "checkpoints" / checkpoint.part_of(newest.steps, 0)
    path.write_bytes(flipped(path.read_bytes(), 4001))
    with pytest.warns(
        UserWarning,
        match=f"left out the checkpoint of step {newest.steps}: expected {path} to be as",
    ):
        tried = policies.load_policy(parts, torch.device("cpu"))[1]
    assert tried["frames"] == before.steps * 8 * 4
    with pytest.warns(
        UserWarning,
        match=f"left out the checkpoint of step {newest.steps}: expected {path} to be as",
    ):
        trained(settings(parts, total_frames=3000, resume=True))
    assert_same(saved(parts), saved(whole))
    assert without_times(parts) == without_times(whole)
    assert [found.steps for found in checkpoint.complete_sets(parts / "checkpoints")][
        1
    ] == before.steps


def test_set_is_incomplete_while_its_files_are_replaced(tmp_path, monkeypatch):
    """As by a run that is resumed, and saves at the same step again."""
    save(tmp_path, 100, {"number": 1})
    seen, write = [], torch.save

    def watched(*args):
        seen.append(checkpoint.complete_sets(tmp_path))
        write(*args)

    monkeypatch.setattr(torch, "save", watched)
    save(tmp_path, 100, {"number": 2})
    assert seen == [[]] and len(checkpoint.complete_sets(tmp_path)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [0, 1])
def test_train_two_processes_resume_from_the_same_checkpoint(damaged, tmp_path):
    """One of them finds its file damaged."""
    run, whole = tmp_path / "run", tmp_path / "whole"

    def launch(folder, **changes):
        done = subprocess.run(
            [*TWO_PROCESSES, *options(folder, **changes)], cwd=ROOT, env=one_thread_each(),
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        return done.returncode, done.stderr

    assert launch(run, total_frames=2000, checkpoint_every=600)[0] == 0
    newest = checkpoint.complete_sets(run / "checkpoints")[0]
    path = run / "checkpoints" / checkpoint.part_of(newest.steps, damaged)
    path.write_bytes(flipped(path.read_bytes(), 4001))
    status, told = launch(run, total_frames=3000, resume=True)
    assert status == 0 and f"left out the checkpoint of step {newest.steps}" in told
    assert launch(whole, total_frames=3000)[0] == 0
    for rank in range(2):
        assert_same(saved(run, rank), saved(whole, rank))
    for part in (run / "checkpoints").glob("*.pt"):
        part.write_bytes(b"")
    status, told = launch(run, total_frames=4000, resume=True)
    assert status != 0
    assert told.count("train: expected a whole checkpoint in") == 2
    assert 'examples/a2c_vtrace/train.py", line' not in told, "no traceback of ours"


def test_train_resumes_where_the_log_is_damaged(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    trained(settings(whole, total_frames=3000))
    trained(settings(parts, total_frames=2000))
    path = parts / "log.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    garbage = [
        b"\xff\xfe garbage\n",
        b'{"kind": "training", "fra\n',
        b'{"kind": 3, "frames": 1}\n',
        b"[]\n",
        b"7",
    ]
    path.write_bytes(b"".join([garbage[0], lines[0], *garbage[1:4], *lines[1:], garbage[4]]))
    numbers = [1, 3, 4, 5, len(lines) + 5]
    with pytest.warns(UserWarning) as warned:
        trained(settings(parts, total_frames=3000, resume=True))
    told = [str(warning.message) for warning in warned]
    expected = [
        f"left out line {number} of {path}, which is no line of a log: " for number in numbers
    ]
    assert all(text.startswith(begin) for text, begin in zip(told, expected, strict=True))
    assert without_times(parts) == without_times(whole)


@pytest.mark.parametrize("name", ["log.jsonl", "result.jsonl"])
@pytest.mark.parametrize("resume", [False, True])
def test_train_with_a_fifo_in_place_of_a_file_ends_with_a_sentence(name, resume, tmp_path):
    if resume:
        trained(settings(tmp_path, total_frames=500))
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match=rf"{name}: Is a FIFO, not a regular file$"):
        trained(settings(tmp_path, total_frames=1000, resume=resume))


@pytest.mark.parametrize("resume", [False, True])
def test_train_without_the_checkpoints_of_a_log_keeps_its_lines(resume, tmp_path):
    trained(settings(tmp_path, total_frames=2000))
    lines = (tmp_path / "log.jsonl").read_bytes()
    for number in (1, 2):
        shutil.rmtree(tmp_path / "checkpoints")
        with pytest.warns(UserWarning, match=f"they are in log-{number}.jsonl now, and a new"):
            trained(settings(tmp_path, total_frames=600, resume=resume))
    assert (tmp_path / "log-1.jsonl").read_bytes() == lines != b""
    assert read_log(tmp_path / "log.jsonl")[-1]["frames"] < 1000
    trained(settings(tmp_path, total_frames=600, overwrite=True))
    assert not (tmp_path / "log-3.jsonl").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seconds", "12"), ("seconds", None), ("seconds", float("inf")), ("score", []),
        ("score", 10**400), ("frames", "9"), ("frames", True), ("frames", None),
    ],
    ids=lambda value: str(value)[:9],
)  # fmt: skip
def test_line_of_a_log_with_another_type_is_damaged(name, value, tmp_path):
    good = {"kind": "training", "frames": 1, "seconds": 2.0, "score": None, "fps": 3.0}
    path = tmp_path / "log.jsonl"
    path.write_text(f"{json.dumps(good)}\n{json.dumps({**good, name: value})}\n")
    with pytest.warns(UserWarning, match="left out line 2 of"):
        assert read_log(path) == [good]


def test_train_that_was_finished_adds_nothing_when_resumed(tmp_path):
    results = tmp_path / "results.jsonl"
    asked = {"total_frames": 1000, "eval_episodes": 1, "eval_max_frames": 80, "results": results}
    first = trained(settings(tmp_path, **asked))
    before = {
        path: path.read_bytes()
        for path in (results, tmp_path / "result.jsonl", tmp_path / "log.jsonl")
    }
    for _ in range(2):
        assert trained(settings(tmp_path, resume=True, **asked)) == first
        assert {path: path.read_bytes() for path in before} == before
    # A file that lacks the row, as where the program was killed before, gets it.
    results.unlink()
    trained(settings(tmp_path, resume=True, **asked))
    assert results.read_bytes() == before[results]
    # Evaluated otherwise it is another row, and trained on, too.
    assert trained(settings(tmp_path, resume=True, **asked | {"eval_max_frames": 90})) != first
    assert (
        trained(settings(tmp_path, resume=True, **asked | {"total_frames": 1200}))["frames"] >= 1200
    )
    assert len(results.read_text().splitlines()) == 3


def test_train_that_lost_its_row_evaluates_again_and_logs_it_once(tmp_path):
    asked = {"total_frames": 1000, "eval_episodes": 1, "eval_max_frames": 80}
    trained(settings(tmp_path, **asked))
    before = without_times(tmp_path)
    (tmp_path / "result.jsonl").unlink()
    trained(settings(tmp_path, resume=True, **asked))
    assert without_times(tmp_path) == before
    assert len((tmp_path / "result.jsonl").read_text().splitlines()) == 1


def test_train_events_are_what_tensorboard_reads(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    asked = {"logger": "tensorboard", "eval_episodes": 1, "eval_max_frames": 80}
    trained(settings(tmp_path, total_frames=1000, **asked))
    trained(settings(tmp_path, total_frames=2000, resume=True, **asked))
    events = EventAccumulator(str(tmp_path / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    for line in read_log(tmp_path / "log.jsonl"):
        for name in set(line) - {"kind", "frames", "training_frames"}:
            if line[name] is not None:
                told = {
                    event.step: event.value for event in events.Scalars(f"{line['kind']}/{name}")
                }
                assert told[line["frames"]] == pytest.approx(line[name], rel=1e-6)


LOSSES = [0]  # computed so far


class Diverging(A2C):
    """From some update on its loss is no number."""

    def loss(self, nets, batch):
        values = super().loss(nets, batch)
        LOSSES[0] += 1
        return values | {"loss": values["loss"] * (torch.nan if LOSSES[0] > 42 else 1.0)}


@pytest.mark.parametrize("log_every", [5, 10**6], ids=["at a line of the log", "at a checkpoint"])
def test_a_training_that_diverges_ends_with_a_sentence(tmp_path, log_every):
    """Before it is saved; the checkpoint from before is one from which a training goes on."""
    LOSSES[0] = 0
    args = {"log_every": log_every, "checkpoint_every": 1000}
    with pytest.raises(ValueError, match=r"expected finite weights .* has diverged"):
        train.train(Diverging, settings(tmp_path, total_frames=4000, **args))
    kept = saved(tmp_path)
    assert 20 < kept["updates"] <= 42
    assert all(torch.isfinite(p).all() for p in kept["networks"]["net"].values())
    LOSSES[0] = -(10**6)
    train.train(Diverging, settings(tmp_path, total_frames=4000, resume=True, **args))
    assert saved(tmp_path)["updates"] > kept["updates"] + 30
    assert all(line["grad_norm"] < 1e6 for line in without_times(tmp_path))
