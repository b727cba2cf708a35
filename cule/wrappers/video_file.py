"""Files of frames: .mp4 and .gif."""

from __future__ import annotations

import atexit
import errno
import inspect
import io
import math
import os
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from cule.arguments import number
from cule.disk.files import Unfinished
from cule.errors import InvalidValue, MissingPackage
from cule.processes.forks import leave_in_child
from cule.processes.signals import signals_wait
from cule.wrappers.soundtrack import Soundtrack

# A GIF counts time in hundredths of a second, and players show less than two of them as ten.
SHORTEST_GIF_FRAME_MS = 20
# The limits of both kinds of file.
LEAST_FPS, MAX_FPS = 0.01, 100_000
FFMPEG_ENDED = "ffmpeg ended too early: the disk may be full"


def video_library() -> Any:
    """imageio, which writes videos.

    Raises:
        ImportError: it is not installed, or without ffmpeg.
    """
    try:
        import imageio
        import imageio_ffmpeg  # noqa: F401 (what imageio writes .mp4 with)
    except ImportError as problem:
        raise MissingPackage(
            "videos need imageio with ffmpeg: pip install 'imageio[ffmpeg]' pillow"
        ) from problem
    return imageio


class VideoFile:
    """A file of frames, written by imageio: .mp4 (H.264) or .gif (exact colors, larger).

    Use it as a context manager, or call `close`. Until then, and if there are no frames, a file
    that was there is as before. It belongs to the process that made it: in a forked child it is
    closed, without an effect on the file. A program that ends finishes it, one that is killed
    leaves what was there. Several threads may use it.

    Args:
        path: where to write; a file that is there is replaced.
        fps: frames per second, from 0.01 to 100,000. A GIF that cannot be this fast leaves frames
            out.
        sample_rate: samples per second of its sound; 0: it has none. Each frame is written with its
            samples.

    Raises:
        ImportError: imageio is not installed.
        TypeError: `fps` is not a number.
        ValueError: the name ends neither in .mp4 nor in .gif, `fps` is out of range, a .gif shall
            have sound, or the file cannot be written.
    """

    _writer: Any = None
    _gif: io.BytesIO | None = None

    def __init__(self, path: str | Path, fps: float = 60.0, sample_rate: int = 0):
        self._lock = threading.RLock()
        self.path, self.fps = Path(path), number("fps", fps, LEAST_FPS, MAX_FPS)
        kind = self.path.suffix.lower()
        if kind not in (".mp4", ".gif"):
            raise InvalidValue(
                f"expected the name of a video to end in .mp4 or .gif, got {str(path)!r}"
            )
        if sample_rate and kind == ".gif":
            raise InvalidValue(
                f"expected the name of a video with sound to end in .mp4, got {str(path)!r}"
            )
        self._sound = Soundtrack(sample_rate) if sample_rate else None
        imageio = video_library()
        try:
            self._unfinished = Unfinished(self.path, kind)
        except OSError as problem:
            raise self._error(problem) from problem
        self.frames, self._process = 0, os.getpid()
        self._shape: tuple[int, ...] | None = None
        self._every = (
            max(1, math.ceil(SHORTEST_GIF_FRAME_MS * self.fps / 1000)) if kind == ".gif" else 1
        )
        try:
            if kind == ".gif":
                milliseconds = round(1000 * self._every / self.fps)
                # imageio writes all of a GIF at the end in any case.
                self._gif = io.BytesIO()
                self._writer = imageio.get_writer(
                    self._gif, "GIF", mode="I", duration=milliseconds, loop=0
                )
            else:
                # Sides only have to be even, as the console's pictures are.
                self._writer = imageio.get_writer(
                    self._unfinished.path, fps=self.fps, macro_block_size=2
                )
        except BaseException:
            self._unfinished.abandon()
            raise
        leave_in_child(self)
        _open_files.add(self)

    @contextmanager
    def _unharmed(self) -> Iterator[None]:
        """Lets signals wait, as what is half written is lost.

        Raises:
            ValueError: the file cannot be written. It is closed.
        """
        with signals_wait():
            try:
                yield
            except OSError as problem:
                self._abandon()
                raise self._error(problem) from problem
            except BaseException as problem:  # such as a second Ctrl-C
                self._abandon()
                name = type(problem).__name__
                sys.stderr.write(f"expected time to write {self.path}, got {name}: it is lost\n")
                raise

    def write(self, frame: np.ndarray, samples: np.ndarray | None = None) -> None:
        """Appends a frame, (height, width, 3) uint8 RGB; all frames have the same shape.

        Args:
            frame: the frame.
            samples: its sound, (any number,) uint8, of which 128 is silence.

        Raises:
            ValueError: it has another shape or dtype, or the file is closed, or writing fails,
                which closes the file.
        """
        with self._lock:
            self._check(frame)
            self._shape = frame.shape
            with self._unharmed():
                if self.frames % self._every == 0:
                    self._writer.append_data(frame)
                if self._sound is not None and samples is not None:
                    self._sound.add(samples)
                self.frames += 1

    def _check(self, frame: np.ndarray) -> None:
        if self._writer is None:
            why = "after its end" if os.getpid() == self._process else "in a forked process"
            raise InvalidValue(f"expected a video file that is open, got {self.path} {why}")
        shape = self._shape or frame.shape
        if (
            frame.dtype != np.uint8
            or frame.shape != shape
            or frame.ndim != 3
            or frame.shape[2] != 3
        ):
            wanted = self._shape or "(height, width, 3)"
            raise InvalidValue(
                f"expected a frame of shape {wanted} and uint8, got {frame.shape} and {frame.dtype}"
            )

    def _error(self, problem: OSError) -> ValueError:
        # imageio's errors have no strerror. They repeat what ffmpeg has printed already.
        reason = problem.strerror or FFMPEG_ENDED
        return InvalidValue(f"expected a video file that can be written, got {self.path}: {reason}")

    def _check_whole(self) -> None:
        """Checks that all frames are in the file: imageio does not look at ffmpeg's exit status.

        Raises:
            OSError: they are not.
        """
        if self._gif is not None:
            with self._unfinished.open() as file:
                file.write(self._gif.getbuffer())
            return
        from imageio_ffmpeg import get_ffmpeg_exe

        # A line of this format is a frame. ffmpeg 7 does not count frames that it only copies.
        command = [
            get_ffmpeg_exe(), "-v", "quiet", "-i", self._unfinished.path,
            "-map", "0:v", "-c", "copy", "-f", "framecrc", "-",
        ]  # fmt: skip
        told = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False
        ).stdout
        if len(re.findall(rb"^\d", told, re.MULTILINE)) != self.frames:
            raise OSError(errno.EIO, FFMPEG_ENDED)

    def leave(self) -> None:
        """In a forked child: the file is the parent's, and so is ffmpeg."""
        writer, self._writer = self._writer, None
        self._lock = threading.RLock()  # another thread of the parent may have it
        frames = getattr(writer, "_write_gen", None)
        if frames is None:
            return
        ffmpeg = inspect.getgeneratorlocals(frames).get("p")
        if ffmpeg is None:  # not started yet, or this very child is going to be ffmpeg
            return
        # While the child holds the pipe's end, ffmpeg waits for more. It is not closed but leads
        # nowhere, as what Python has not written yet would be written when it is closed.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, ffmpeg.stdin.fileno(), inheritable=False)
        os.close(nowhere)

    def _abandon(self) -> None:
        writer, self._writer = self._writer, None
        with suppress(Exception):
            writer.close()
        self._unfinished.abandon()

    def close(self) -> None:
        """Finishes the file. Can be called again.

        Signals such as Ctrl-C are handled once this is done, as half a video would be lost.

        Raises:
            ValueError: it cannot be written.
        """
        if self._writer is None:
            return
        with self._lock, self._unharmed():
            if self._writer is not None:
                self._writer.close()
                if self.frames:
                    if self._sound is not None:
                        self._sound.add_to(self._unfinished)
                    self._check_whole()
                    self._unfinished.finish()
                self._abandon()

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> VideoFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# Those that nobody has closed. Python may delete one that is part of a cycle only after it has
# taken away the modules that writing needs.
_open_files: weakref.WeakSet[VideoFile] = weakref.WeakSet()


def _close_at_end(file: VideoFile) -> None:
    try:
        file.close()
    except InvalidValue as problem:
        sys.stderr.write(f"{problem}\n")


@atexit.register
def _finish_open_files() -> None:
    with signals_wait(), ExitStack() as files:  # which closes the others after any error, too
        for file in list(_open_files):
            files.callback(_close_at_end, file)
