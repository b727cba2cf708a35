"""Videos are whole or not there, however they end: by threads, signals, forks, full disks."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any

import imageio
import numpy as np
import pytest
from gymnasium import error

import cule
from cule.wrappers.video_file import VideoFile
from tests.support import warm


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_video_takes_its_place_when_it_is_whole(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"video{suffix}"
    path.write_bytes(b"an older video")
    for wrong in (float("inf"), float("nan"), 1e300, -1, "60"):
        with pytest.raises((TypeError, ValueError), match="expected fps to be "):
            VideoFile(path, fps=wrong)
    VideoFile(path).close()  # without frames
    video = VideoFile(path, fps=15)
    video.write(np.zeros((20, 20, 3), np.uint8))
    video.write(np.full((20, 20, 3), 200, np.uint8))
    assert path.read_bytes() == b"an older video"
    video.close()
    assert len(imageio.mimread(path)) == 2
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_video_that_nobody_closes_is_finished(tmp_path: Path) -> None:
    video = VideoFile(tmp_path / "video.gif")
    video.write(np.zeros((20, 20, 3), np.uint8))
    del video
    assert [file.name for file in tmp_path.iterdir()] == ["video.gif"]


def test_videos_that_are_open_at_the_programs_end_are_finished(tmp_path: Path) -> None:
    """Also those that something refers to until the interpreter has taken modules away."""
    program = (
        "import sys, numpy, cule; from cule.wrappers.video_file import VideoFile\n"
        "env = cule.AtariEnv('pong', 1, 'cpu', reset_pool_size=1, num_threads=1)\n"
        "env = cule.RecordVideo(env, sys.argv[1] + '/env.gif'); env.reset(seed=0); env.step([0])\n"
        "file = VideoFile(sys.argv[1] + '/file.mp4'); file.itself = file\n"
        "for i in range(3): file.write(numpy.full((16, 16, 3), 9 * i, numpy.uint8))\n"
    )
    done = warm.run(["-c", program, tmp_path])
    assert (done.returncode, done.stderr) == (0, "")
    assert [len(imageio.mimread(tmp_path / name)) for name in ("env.gif", "file.mp4")] == [2, 3]


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_video_may_be_closed_by_any_thread(suffix: str, tmp_path: Path) -> None:
    """Also while another one films, which then gets a sentence."""
    wrong: list[Exception] = []
    for number in range(4):
        path = tmp_path / f"{number}{suffix}"
        video = cule.RecordVideo(
            cule.AtariEnv("pong", 1, device="cpu", num_threads=1, reset_pool_size=2),
            path,
            episode_trigger=None if number % 2 else lambda _: True,
        )
        video.reset()

        def film(video: cule.RecordVideo = video) -> None:
            try:
                while True:
                    video.step([0])
            except (ValueError, RuntimeError, error.ClosedEnvironmentError) as problem:
                if not str(problem).startswith("expected "):
                    wrong.append(problem)

        filming = threading.Thread(target=film)
        filming.start()
        time.sleep(0.02 * number)
        closing = [threading.Thread(target=video._videos.close) for _ in range(3)]
        for one in closing:
            one.start()
        for one in closing:
            one.join()
        while not video.atari.closed:
            with contextlib.suppress(RuntimeError):
                video.close()
        filming.join()
    assert wrong == []
    assert len(names := sorted(path.name for path in tmp_path.iterdir())) == 4, names
    for path in tmp_path.iterdir():
        assert len(imageio.mimread(path)) >= 1


INTERRUPTED = """
import signal, sys
from pathlib import Path
import numpy
from cule.wrappers import video_file
from cule.wrappers.video_file import VideoFile

folder, signals, suffix, when = Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
finish, left = video_file.Unfinished.finish, [signals]

def interrupted(self):
    while left[0]:
        left[0] -= 1
        signal.raise_signal(signal.SIGTERM)
    finish(self)

video_file.Unfinished.finish = interrupted
files = [VideoFile(folder / f"{i}{suffix}", fps=30) for i in range(2)]
for file in files:
    for i in range(3):
        file.write(numpy.full((16, 16, 3), 9 * i, numpy.uint8))
if when == "close":
    files.pop().close()
    print("not reached")
"""


@pytest.mark.parametrize(
    ("signals", "when", "suffix"),
    [
        (1, "close", ".mp4"), (2, "close", ".gif"), (1, "the program's end", ".gif"),
        (3, "the program's end", ".mp4"),
    ],
)  # fmt: skip
def test_signal_while_videos_are_finished_loses_none_in_silence(
    signals: int, when: str, suffix: str, tmp_path: Path
) -> None:
    """Where the handler calls sys.exit, it does so when they are finished."""
    done = warm.run(["-c", INTERRUPTED, tmp_path, str(signals), suffix, when])
    assert done.stdout == ""
    # At a program's end the files are finished in one block, which lets the signal wait, too.
    lost = signals > (1 if when == "close" else 2)
    whole = sorted(path.name for path in tmp_path.iterdir())
    assert len(whole) == 2 - lost
    for name in whole:
        assert len(imageio.mimread(tmp_path / name)) == 3
    told = [line for line in done.stderr.splitlines() if line.startswith("expected time to write")]
    assert len(told) == lost
    if lost:
        (name,) = {f"0{suffix}", f"1{suffix}"} - set(whole)
        assert told == [f"expected time to write {tmp_path / name}, got SystemExit: it is lost"]
    if when == "close":
        assert done.returncode == 1 and "stopped" in done.stderr


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_forked_children_neither_end_nor_hold_up_a_video(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"video{suffix}"
    video = VideoFile(path, fps=15)
    video.write(np.zeros((20, 20, 3), np.uint8))
    read, written = os.pipe()
    ends = os.fork()
    if not ends:
        try:
            with pytest.raises(ValueError, match=r"expected a video file that is open, .* forked"):
                video.write(np.zeros((20, 20, 3), np.uint8))
            video.close()
            del video
            gc.collect()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(ends, 0)[1] == 0
    assert not path.exists()
    video.write(np.full((20, 20, 3), 200, np.uint8))
    lives = os.fork()
    if not lives:
        os.close(written)
        os.read(read, 1)  # until the parent has closed the video
        os._exit(0)
    video.close()
    assert [frame[0, 0, 0] > 100 for frame in imageio.mimread(path)] == [False, True]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert os.waitpid(lives, os.WNOHANG) == (0, 0)
    os.close(written)
    os.waitpid(lives, 0)
    os.close(read)


def test_child_that_becomes_ffmpeg_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    """imageio forks to start ffmpeg; in that child there is no pipe yet that leads to ffmpeg."""
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)  # pytest's keeps it
    with VideoFile(tmp_path / "video.mp4") as video:
        video.write(np.zeros((20, 20, 3), np.uint8))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("where", ["write", "close"])
def test_video_that_fails_leaves_what_was_there(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FullDisk:
        """A writer whose file does not fit on the disk."""

        def __init__(self, path: Path, **_: Any):
            path.write_bytes(b"a beginning")

        def append_data(self, _: np.ndarray) -> None:
            if where == "write":
                raise OSError(28, "No space left on device")

        def close(self) -> None:
            raise OSError(28, "No space left on device")

    path = tmp_path / "video.mp4"
    path.write_bytes(b"an older video")
    monkeypatch.setattr(imageio, "get_writer", FullDisk)
    video = VideoFile(path)
    frame = np.zeros((20, 20, 3), np.uint8)
    if where == "close":
        video.write(frame)
    with pytest.raises(
        ValueError, match=f"a video file that can be written, got {path}: No space left on device"
    ):
        video.write(frame) if where == "write" else video.close()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"an older video"
    with pytest.raises(
        ValueError, match=r"expected a video file that is open, got .*video.mp4 after its end"
    ):
        video.write(frame)
    video.close()


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
@pytest.mark.parametrize("size", [100, 30_000])
def test_video_that_does_not_fit_leaves_what_was_there(
    suffix: str, size: int, tmp_path: Path
) -> None:
    """The process and ffmpeg cannot write larger files than this.

    The error may come as late as in close().
    """
    path = tmp_path / f"video{suffix}"
    path.write_bytes(b"an older video")
    noise = np.random.default_rng(0).integers(0, 256, (20, 200, 160, 3), np.uint8)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        video = VideoFile(path, fps=30)
        with pytest.raises(
            ValueError, match=f"expected a video file that can be written, got {path}: [^\n]+$"
        ):
            for frame in noise:
                video.write(frame)
            video.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"an older video"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
