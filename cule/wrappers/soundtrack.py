"""The sound of a film, which ffmpeg puts beside its pictures."""

from __future__ import annotations

import errno
import shutil
import subprocess
import tempfile
import wave
from pathlib import Path

import numpy as np

from cule import _core
from cule.disk.files import Unfinished
from cule.env.rendering import FRAMES_PER_SECOND

# At the console's speed: as many samples as frames have in a second.
SAMPLE_RATE = _core.FRAME_SAMPLES * FRAMES_PER_SECOND
PATIENCE = 600  # seconds that ffmpeg may take; an hour of sound takes some


def audible(samples: np.ndarray) -> bytes:
    """Samples, uint8, as programs play them: below silence, as before a first frame, is silent."""
    return np.maximum(samples, _core.SILENCE).astype(np.uint8).tobytes()


class Soundtrack:
    """Samples that are kept until the film ends: 30,720 bytes a second.

    Args:
        sample_rate: samples per second.
    """

    def __init__(self, sample_rate: int):
        self._rate = sample_rate
        self._samples = bytearray()

    def add(self, samples: np.ndarray) -> None:
        """Adds samples, (any number,) uint8."""
        self._samples += audible(samples)

    def add_to(self, film: Unfinished) -> None:
        """Puts the sound into an .mp4 that is written; its pictures stay as they are.

        Raises:
            OSError: ffmpeg cannot do it, or the disk is full.
        """
        from imageio_ffmpeg import get_ffmpeg_exe

        with tempfile.TemporaryDirectory(prefix="cule-sound-") as folder:
            track, whole = Path(folder, "sound.wav"), Path(folder, "film.mp4")
            with wave.open(str(track), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(1)
                file.setframerate(self._rate)
                file.writeframes(self._samples)
            command = [
                get_ffmpeg_exe(), "-v", "error", "-i", str(film.path), "-i", str(track),
                "-map", "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", "aac", str(whole),
            ]  # fmt: skip
            try:
                done = subprocess.run(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE, check=False, timeout=PATIENCE,
                )  # fmt: skip
            except subprocess.TimeoutExpired as late:
                raise OSError(errno.ETIMEDOUT, f"ffmpeg took more than {PATIENCE} s") from late
            if done.returncode:
                said = done.stderr.decode(errors="replace").strip()
                raise OSError(errno.EIO, f"ffmpeg could not add the sound: {said[-200:]}")
            with whole.open("rb") as made, film.open() as file:
                shutil.copyfileobj(made, file)
                file.truncate()
