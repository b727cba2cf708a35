"""The trainings of a sweep: their commands, their processes, and how far they are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from cule.disk.files import opened
from cule.disk.forms import are_numbers
from cule.disk.json_lines import DAMAGE
from cule.errors import InvalidValue, is_own_frame
from cule.programs.results import read_rows
from cule.scope.program import program_of
from cule.train.checks import at_least
from cule.train.distributed.die_with_parent import die_with_parent
from cule.train.distributed.gpu_lock import environment_with
from cule.train.distributed.slices import slices
from cule.train.logs.log import LOG, RESULT, parse_line
from cule.train.logs.rows import is_result
from cule.train.sweep.node import OUTPUT, PATIENT

TRACEBACK = "Traceback (most recent call last):"
# Options that a sweep adds to a command, which a job must not have.
ADDED = ("folder", "device", "resume", "overwrite")
# Starts a number of processes of a program on this machine; number and program follow.
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
# What torchrun writes after the output of the process that has failed.
OF_TORCHRUN = re.compile(r"[WE]\d{4} .*torch/distributed/elastic/.*")
# Bytes at the end of a log that are sure to hold a line.
TAIL = 16_384


@dataclass(frozen=True)
class Job:
    """A training.

    Attributes:
        name: names it and its folder; no two jobs of a sweep have the same.
        command: `python -m MODULE ...` or `python SCRIPT.py ...` as words, without the folder, the
            device and --resume, which are added; "python" may be left out. A training on ale-py,
            which cannot save its states, begins anew if it was stopped: it gets --overwrite.
        processes: how many processes train together, started by torchrun; each has a GPU of its
            own where there are GPUs.
    """

    name: str
    command: tuple[str, ...]
    processes: int = 1

    @property
    def identity(self) -> list[str]:
        """What is trained, as words: two jobs with the same words train the same."""
        if self.processes == 1:
            return list(self.command)
        return ["torchrun", *TORCHRUN[2:], str(self.processes), *program_of(self.command)]

    def option(self, name: str) -> str | None:
        """The value of an option of the command, such as "total-frames"; None if it has none."""
        for place in range(len(self.command) - 1, -1, -1):
            key, equals, value = self.command[place].partition("=")
            if key.replace("_", "-") == f"--{name}":
                return value if equals else next(iter(self.command[place + 1 :]), "")
        return None

    def number(self, name: str) -> float | None:
        """The value of an option as a number; None if it has none."""
        with suppress(ValueError):
            return float(self.option(name) or "")
        return None

    def check(self) -> None:
        """Checks the job.

        Raises:
            ValueError: the name cannot be a folder's, there are no processes, or the command runs
                no Python program or has options that the sweep adds.
        """
        at_least(1, self, "processes")
        path = Path(self.name)
        if path.is_absolute() or not path.parts or ".." in path.parts:
            raise InvalidValue(f"expected a job's name to name a folder, got {self.name!r}")
        program_of(self.command)
        for name in ADDED:
            if self.option(name) is not None:
                raise InvalidValue(
                    f"expected a training's options without --{name}, which the sweep chooses, got "
                    f"{' '.join(self.command)}"
                )


@dataclass
class JobState:
    """How far a job is.

    Attributes:
        job: the job.
        state: a "stopped" job goes on when the sweep is started again; one that is "queued" was
            given to a cluster, which has no place for it yet.
        device: the device on which it runs or ran; None: it was not started.
        place: where that is, as the executor calls it; None: it is the device.
        starts: how often this sweep has started it.
        losses: how many of these starts have ended with their machine.
        frames: emulated so far.
        fps: frames per second at the last line of its log.
        score: of the last episodes in training; of the evaluation at the end once there is one.
        seconds_left: until it ends, as far as that is known.
        begun: when its process was started, in seconds since the epoch; None: it goes on with a log
            that it had before.
        startup: seconds from then to the begin of its training, once its log has a line. It may
            have waited for its turn in between.
        row: the result, once it is finished.
        problem: the last lines of its output, once it has failed.
        notes: what has happened to it on machines of a cluster, in the order of time.
    """

    job: Job
    state: Literal["waiting", "queued", "running", "finished", "stopped", "failed"] = "waiting"
    device: str | None = None
    place: str | None = None
    starts: int = 0
    losses: int = 0
    frames: int = 0
    fps: float | None = None
    score: float | None = None
    seconds_left: float | None = None
    begun: float | None = None
    startup: float | None = None
    row: dict[str, Any] | None = None
    problem: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def evaluating(self) -> bool:
        """Whether all its frames or seconds are trained, so that it uses little of its device."""
        return self.trained_in(0)

    def trained_in(self, seconds: float) -> bool:
        """Whether all its frames or seconds will be trained after so many seconds."""
        left = self.seconds_left
        return self.state == "running" and left is not None and left <= seconds

    def begin(self, folder: Path, device: str) -> None:
        """Notes that its process will now be started on a device."""
        self.state, self.device, self.starts = "running", device, self.starts + 1
        self.begun = time.time() if _last_line(folder / LOG) is None else None

    def look(self, folder: Path) -> None:
        """Reads the job's log."""
        log = folder / LOG
        line = _last_line(log)
        if line is None:
            return
        if self.startup is None and self.begun is not None:
            self.startup = max(0.0, log.stat().st_mtime - self.begun - line["seconds"])
        self.frames, self.fps = line["frames"], line["fps"]
        self.score = line["score"] if line["score"] is not None else self.score
        left = []
        total, seconds = self.job.number("total-frames"), self.job.number("max-seconds")
        if total is not None and self.fps:
            left.append((total - self.frames) / self.fps)
        if seconds is not None:
            left.append(seconds - line["seconds"])
        self.seconds_left = max(0.0, min(left)) if left else None

    def finish(self, row: dict[str, Any]) -> None:
        """Notes the result."""
        self.state, self.row, self.seconds_left = "finished", row, None
        self.frames, self.fps = row["frames"], row["fps"]
        self.score = row["score"] if row["score"] is not None else self.score


def _last_line(log: Path) -> dict[str, Any] | None:
    """The newest complete line of a log about training; None if there is none."""
    with suppress(OSError), opened(log) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
        for text in reversed(file.read().split(b"\n")):
            with suppress(*DAMAGE):
                line = parse_line(json.loads(text))
                if line["kind"] == "training" and are_numbers(line, ("fps",)):
                    return line
    return None


def result_in(folder: Path) -> dict[str, Any] | None:
    """The newest row of results of a training's folder; None if it is not finished."""
    with suppress(OSError):
        for row in reversed(read_rows(folder / RESULT)):
            if is_result(row):
                return None if row.get("interrupted") else row
            warnings.warn(f"left out a row of {folder / RESULT}, which is no result", stacklevel=2)
    return None


def last_lines(folder: Path, count: int = 5) -> str:
    """The end of what a training wrote to the terminal; of a traceback the last line of its own.

    What torchrun says of the processes' ends is left out.
    """
    with suppress(OSError), opened(folder / OUTPUT) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
        text = file.read().decode(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        failures = [i for i, line in enumerate(lines) if "failed (exitcode: " in line]
        if failures and OF_TORCHRUN.fullmatch(lines[failures[-1]]):
            lines = [one for one in lines[: failures[-1]] if not OF_TORCHRUN.fullmatch(one)]
        frames = [i for i, line in enumerate(lines) if is_own_frame(line)]
        end = max(0, len(lines) - count)
        if TRACEBACK in lines and frames and lines.index(TRACEBACK) < frames[-1] < end:
            return "\n".join([*lines[frames[-1] : frames[-1] + 2], *lines[2 - count :]])
        return "\n".join(lines[end:])
    return ""


def words_of(job: Job, folder: Path, device: str) -> list[str]:
    """The words of a training's command after Python's own.

    Args:
        job: what to train.
        folder: its folder.
        device: "cpu", "cuda" or "cuda:1".
    """
    program = program_of(job.command)
    if job.processes > 1:
        program = [*TORCHRUN, str(job.processes), *program]
    again = "--overwrite" if job.option("emulator") == "ale-py" else "--resume"
    return [*program, "--folder", str(folder), "--device", device, again]


def only_gpus(numbers: str) -> dict[str, str]:
    """The environment's variable that hides all GPUs but some of those that this process sees.

    Args:
        numbers: of the GPUs as this process numbers them, such as "0,1".
    """
    here = os.environ.get("CUDA_VISIBLE_DEVICES")
    known = slices() or (here.split(",") if here else None)
    chosen = [known[int(one)] if known else one for one in numbers.split(",")]
    return {"CUDA_VISIBLE_DEVICES": ",".join(chosen)}


def start(
    job: Job, folder: Path, device: str, inherited: Sequence[int] = (), turns: Sequence[Path] = ()
) -> subprocess.Popen[bytes]:
    """Starts a training as a process, which goes on from its checkpoint if there is one.

    It has a process group of its own, so that Ctrl-C does not reach it. It ends at once if the
    thread that started it ends.

    Args:
        job: what to train.
        folder: its folder; what it writes to the terminal goes to a file there.
        device: such as "cuda:1"; "cuda:0,1" for two processes, each of which gets one of the GPUs.
        inherited: file descriptors that it inherits.
        turns: files of gpu_lock.py, for one of which it waits before it trains; empty: it does not.

    Raises:
        OSError: the folder cannot be written, or there is no memory for the process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kind, _, numbers = device.partition(":")
    several = job.processes > 1 and kind == "cuda"
    words = [sys.executable, *words_of(job, folder, kind if several else device)]
    with (folder / OUTPUT).open("ab") as output:
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=inherited,
            start_new_session=True, preexec_fn=partial(die_with_parent, os.getpid()),
            env=environment_with(turns) | PATIENT | (only_gpus(numbers) if several else {}),
        )  # fmt: skip
