"""Videos of envs: files of frames, and a wrapper that records some envs of a batch."""

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
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv

from cule.arguments import env_ids as check_env_ids
from cule.arguments import integer, number
from cule.disk.files import Unfinished
from cule.env.screens import mosaic, titles_of
from cule.errors import InvalidType, InvalidValue, MissingPackage
from cule.processes.forks import leave_in_child
from cule.processes.signals import signals_wait
from cule.vector_env import AtariEnv
from cule.wrappers.base import AtariWrapper

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
    leaves what was there.

    Args:
        path: where to write; a file that is there is replaced.
        fps: frames per second, from 0.01 to 100,000. A GIF that cannot be this fast leaves frames
            out.

    Raises:
        ImportError: imageio is not installed.
        TypeError: `fps` is not a number.
        ValueError: the name ends neither in .mp4 nor in .gif, `fps` is out of range, or the file
            cannot be written.
    """

    _writer: Any = None
    _gif: io.BytesIO | None = None

    def __init__(self, path: str | Path, fps: float = 60.0):
        self.path, self.fps = Path(path), number("fps", fps, LEAST_FPS, MAX_FPS)
        kind = self.path.suffix.lower()
        if kind not in (".mp4", ".gif"):
            raise InvalidValue(
                f"expected the name of a video to end in .mp4 or .gif, got {str(path)!r}"
            )
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

    def write(self, frame: np.ndarray) -> None:
        """Appends a frame, (height, width, 3) uint8 RGB; all frames have the same shape.

        Raises:
            ValueError: it has another shape or dtype, or the file is closed, or writing fails,
                which closes the file.
        """
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
        self._shape = shape
        if self.frames % self._every == 0:
            try:
                self._writer.append_data(frame)
            except OSError as problem:
                self._abandon()
                raise self._error(problem) from problem
        self.frames += 1

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
        with signals_wait():
            try:
                self._writer.close()
                if self.frames:
                    self._check_whole()
                    self._unfinished.finish()
            except OSError as problem:
                raise self._error(problem) from problem
            except BaseException as problem:  # such as a second Ctrl-C
                name = type(problem).__name__
                sys.stderr.write(f"expected time to finish {self.path}, got {name}: it is lost\n")
                raise
            finally:
                self._abandon()

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> VideoFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _OneVideo:
    """A video of all chosen envs side by side."""

    def __init__(
        self, atari: AtariEnv, path: Path, ids: torch.Tensor, length: int | None, fps: float
    ):
        self._atari, self._ids, self._length = atari, ids, length
        filmed = ids.tolist()
        names = [atari.games[i].name for i in filmed]
        self._titles = titles_of(names, filmed) if len(names) > 1 else None
        self._video = VideoFile(path, fps)

    def film(self, _info: dict[str, Any]) -> None:
        if self._length is not None and self._video.frames >= self._length:
            return
        screens = self._atari.rgb_screens(self._ids).cpu().numpy()
        self._video.write(mosaic(screens, self._titles))
        if self._video.frames == self._length:
            self._video.close()

    def close(self) -> None:
        self._video.close()


class _EpisodeVideos:
    """A video of each episode of the chosen envs that the trigger picks."""

    def __init__(
        self, atari: AtariEnv, path: Path, ids: torch.Tensor, length: int | None, fps: float,
        trigger: Callable[[int], bool],
    ):  # fmt: skip
        if not callable(trigger):
            raise InvalidType(
                f"expected episode_trigger to be a function of an episode's number, got {trigger!r}"
            )
        self._atari, self._path, self._length, self._fps = atari, path, length, fps
        self._trigger = trigger
        # The number of each env's episode.
        self._episodes = dict.fromkeys(ids.tolist(), -1)
        self._ids = torch.tensor(list(self._episodes), device=atari.device)
        self._open: dict[int, VideoFile] = {}
        VideoFile(path, fps).close()  # what cannot be made is refused before anything is played

    def film(self, info: dict[str, Any]) -> None:
        marks = torch.stack([torch.as_tensor(info[key]) for key in ("new_game", "game_over")])
        began, over = marks[:, self._ids.to(marks.device)].tolist()
        for i, begins in zip(self._episodes, began, strict=True):
            if begins:
                self._begin(i)
        filmed = [i for i in self._episodes if i in self._open]
        if not filmed:
            return
        ids = torch.tensor(filmed, device=self._atari.device)
        screens = self._atari.rgb_screens(ids).cpu().numpy()
        ended = {
            i for i, *marks in zip(self._episodes, began, over, strict=True)
            if marks == [False, True]
        }  # fmt: skip
        for i, screen in zip(filmed, screens, strict=True):
            video = self._open[i]
            video.write(mosaic(screen[None], None))
            if i in ended or video.frames == self._length:
                self._open.pop(i).close()

    def _begin(self, env: int) -> None:
        """Begins the video of a new episode if it is wanted. One that was left ends."""
        if env in self._open:
            self._open.pop(env).close()
        self._episodes[env] += 1
        episode = self._episodes[env]
        if self._trigger(episode):
            path = self._path
            name = f"{path.stem}-env-{env}-episode-{episode}{path.suffix}"
            self._open[env] = VideoFile(path.with_name(name), self._fps)

    def close(self) -> None:
        with signals_wait():
            while self._open:
                self._open.popitem()[1].close()


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


class RecordVideo(AtariWrapper):
    """Records a video of some envs of a batch, with one frame for each reset and step.

    Several envs are side by side, each under the name of its game, with its number if other envs
    play that game, too. A single env fills the picture.

    With `episode_trigger` each env has a video of its own of each episode that the trigger picks:
    `video-env-3-episode-8.mp4` in place of `video.mp4`. It begins with the reset's frame and ends
    with the game (a lost life that `life_loss_info` reports is no end). In SAME_STEP the step that
    ends a game shows the next one already, so that its last frame is missing.

    Args:
        env: an AtariEnv, or a wrapper of one.
        path: the file, .mp4 or .gif.
        env_ids: which envs (None: all; with `episode_trigger`, env 0). Only their screens leave the
            device.
        length: how many frames to record, at least 1 (None: until close), in each video.
        fps: frames per second of the video (None: the console's speed).
        episode_trigger: as in gymnasium's RecordVideo, is given the number of an env's episode,
            from 0, and returns whether to record it. None: all is recorded, in one file.

    Raises:
        TypeError, ValueError: there are no such envs, `length` is not a count, `episode_trigger` is
            not a function, or the file cannot be made.
    """

    def __init__(
        self,
        env: VectorEnv,
        path: str | Path,
        env_ids: Sequence[int] | None = None,
        length: int | None = None,
        fps: float | None = None,
        episode_trigger: Callable[[int], bool] | None = None,
    ):
        super().__init__(env)
        atari = self.atari
        length = None if length is None else integer("length", length)
        if env_ids is None and episode_trigger is not None:
            env_ids = [0]
        ids = check_env_ids(env_ids, atari.num_envs, atari.device)
        if not ids.numel():
            raise InvalidValue("expected env_ids of the envs to record, got none")
        if fps is None:
            fps = atari.metadata["render_fps"] / atari.engine.options.frameskip
        what = (atari, Path(path), ids, length, fps)
        self._videos = (
            _OneVideo(*what) if episode_trigger is None else _EpisodeVideos(*what, episode_trigger)
        )

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets the env and records its screens."""
        result = self.env.reset(seed=seed, options=options)
        self._videos.film(result[1])
        return result

    def step(
        self, actions: Any, player_b_actions: Any = None
    ) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps the env, with the second player's actions if given, and records its screens."""
        result = super().step(actions, player_b_actions)
        self._videos.film(result[4])
        return result

    def close(self, **arguments: Any) -> None:
        """Finishes the videos and closes the env."""
        self._videos.close()
        super().close(**arguments)
