"""Training runs on a full disk: a sentence says so, and what was written before stays intact."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import shutil
import subprocess
import sys
import warnings

import pytest
from training_runs import WORLD, options

from cule.train.checkpoints import checkpoint
from cule.train.logs.log import read_log
from examples.a2c_vtrace import train


def run_main(monkeypatch, capsys, folder, **changes):
    """Runs the program; returns its stderr and exit status."""
    monkeypatch.setattr(sys, "argv", ["train", *options(folder, **changes)])
    capsys.readouterr()
    status = train.main()
    return status, capsys.readouterr().err


def events_in(folder):
    """How many numbers TensorBoard reads from each file."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    counts = []
    for path in sorted(folder.glob("events*")):
        events = EventAccumulator(str(path))
        events.Reload()
        counts.append(sum(len(events.Scalars(tag)) for tag in events.Tags()["scalars"]))
    return counts


def assert_whole(folder):
    """Asserts that all files of a run can be read; returns the frames of the newest checkpoint."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_log(folder / "log.jsonl")
        state = checkpoint.load(folder / "checkpoints", WORLD)
    for path in folder.glob("res*.jsonl"):
        assert path.read_bytes()[-1:] in (b"", b"\n")
        assert all(json.loads(line)["mode"] == "training" for line in path.read_text().splitlines())
    assert not list(folder.rglob(".cule-*"))
    return state["frames"]


def assert_one_sentence(told):
    assert told.startswith("train: expected a ") and told.count("\n") == 1, told
    assert "No space left on device" in told or "File too large" in told


@pytest.mark.parametrize("what", ["log.jsonl", "tensorboard", "result.jsonl", "results.jsonl"])
def test_train_on_a_full_disk_ends_with_a_sentence(what, tmp_path, monkeypatch, capsys):
    """After the first run, the disk has room for 30 more bytes in `what`."""
    asked = {"logger": "tensorboard", "results": tmp_path / "results.jsonl"}
    assert run_main(monkeypatch, capsys, tmp_path, total_frames=1000, **asked)[0] == 0
    before = assert_whole(tmp_path)
    write, left = os.write, [30]

    def write_some(descriptor, content):
        if what in os.readlink(f"/proc/self/fd/{descriptor}"):
            if not left[0]:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            content, left[0] = content[: left[0]], 0
        return write(descriptor, content)

    monkeypatch.setattr(os, "write", write_some)
    status, told = run_main(monkeypatch, capsys, tmp_path, total_frames=2000, resume=True, **asked)
    assert status == 2
    assert_one_sentence(told)
    assert what in told
    assert assert_whole(tmp_path) >= before
    monkeypatch.setattr(os, "write", write)
    counts = events_in(tmp_path / "tensorboard")
    assert counts[0] > 0, "what the first run told is there"
    assert run_main(monkeypatch, capsys, tmp_path, total_frames=2000, resume=True, **asked)[0] == 0
    assert assert_whole(tmp_path) >= 2000
    assert [
        len((tmp_path / name).read_text().splitlines())
        for name in ("result.jsonl", "results.jsonl")
    ] == [2, 2]


def test_train_whose_checkpoint_does_not_fit_ends_with_a_sentence(tmp_path, monkeypatch, capsys):
    """The process cannot write files as large as the checkpoint, which is like a full disk."""
    assert run_main(monkeypatch, capsys, tmp_path, total_frames=1000)[0] == 0
    before = assert_whole(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for size in (100_000, 1000, 0):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        try:
            monkeypatch.setattr(
                sys, "argv", ["train", *options(tmp_path, total_frames=2000, resume=True)]
            )
            with capsys.disabled(), contextlib.redirect_stderr(Told()) as told:
                status = train.main()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert status == 2
        assert_one_sentence("".join(told.lines))
        assert assert_whole(tmp_path) == before


class Told:
    """A stderr that is not a file."""

    def __init__(self):
        self.lines = []

    def write(self, text):
        self.lines.append(text)

    def flush(self):
        pass


@pytest.mark.slow
def test_train_on_a_real_full_disk_leaves_nothing_torn(tmp_path, monkeypatch, capsys):
    """Other files take up more and more of a file system of 8 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], capture_output=True
    ).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        run = disk / "run"
        asked = {
            "logger": "tensorboard",
            "plot": True,
            "checkpoint_every": 300,
            "results": run / "results.jsonl",
        }
        assert run_main(monkeypatch, capsys, run, total_frames=1000, **asked)[0] == 0
        failures, frames, goal = 0, assert_whole(run), 1000
        free = shutil.disk_usage(disk).free
        for room in (0, 4096, 8192, 16384, 65536, 200_000, 400_000, 800_000, 1_200_000):
            (disk / "others").write_bytes(bytes(max(0, free - room)))
            goal = frames + 700
            status, told = run_main(
                monkeypatch, capsys, run, total_frames=goal, resume=True, **asked
            )
            if status:
                failures += 1
                assert status == 2
                assert_one_sentence(told)
            (disk / "others").unlink()
            frames = assert_whole(run)
        assert failures >= 4
        assert run_main(monkeypatch, capsys, run, total_frames=goal, resume=True, **asked)[0] == 0
        assert assert_whole(run) >= goal
    finally:
        subprocess.run(["umount", disk], check=True)
