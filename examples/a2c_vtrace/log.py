"""What a run tells: a JSONL log, TensorBoard events, a progress bar. Only process 0 tells anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cule.files import replacing
from examples.a2c_vtrace.arguments import Args
from examples.common.emulator import FRAMESKIP
from examples.common.progress import Progress

LOG = "log.jsonl"
# What the progress bar shows, beside the frames per second.
SHOWN = ("ups", "score", "test_score")


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def cut_log(path: Path, told: int, frames: int) -> None:
    """Takes away what a run that goes on from a checkpoint will log again.

    Args:
        path: the log; there may be none.
        told: frames at the last line about training before the checkpoint.
        frames: frames at the checkpoint.
    """
    if not path.exists():
        return
    whole = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    limits = {"training": told, "evaluation": frames}
    kept = [line for line in whole if (known := json.loads(line))["frames"] <= limits[known["kind"]]]
    with replacing(path) as file:
        file.write("".join(kept).encode())


class Log:
    """Writes a run's log.

    Args:
        args: the settings.
        told: frames at the last line that is to stay; 0 for a new run.
        frames: where the run starts, or goes on.
        speak: whether this process is the one that tells.
    """

    def __init__(self, args: Args, told: int, frames: int, speak: bool):
        self.file = self.board = None
        self.shown: dict[str, float] = {}
        shown = speak and args.progress
        self.bar = Progress(args.game, args.total_frames, shown=shown, done=frames)
        if not speak:
            return
        args.folder.mkdir(parents=True, exist_ok=True)
        path = args.folder / LOG
        if frames:
            cut_log(path, told, frames)
        self.file = path.open("a" if frames else "w")
        if args.tensorboard:
            # Takes seconds to import.
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(str(args.folder / "tensorboard"), purge_step=frames or None)

    def show(self, frames: int, *, warming_up: bool) -> None:
        """Moves the progress bar on: so many frames are played; warming up, nothing is learned."""
        self.bar.reach(frames, "warming up" if warming_up else "")

    def write(self, kind: str, frames: int, values: dict[str, Any]) -> None:
        """Writes a line.

        Args:
            kind: "training" or "evaluation".
            frames: emulated frames so far.
            values: numbers, or None where there is none yet.
        """
        self.bar.reach(frames)
        self.shown |= {name: values[name] for name in SHOWN if values.get(name) is not None}
        self.bar.tell(self.shown)
        if self.file is None:
            return
        line = {"kind": kind, "frames": frames, "training_frames": frames // FRAMESKIP, **values}
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()
        if self.board is not None:
            for name, value in values.items():
                if value is not None:
                    self.board.add_scalar(f"{kind}/{name}", value, frames)

    def close(self) -> None:
        """Closes the files."""
        self.bar.close()
        for output in (self.file, self.board):
            if output is not None:
                output.close()
