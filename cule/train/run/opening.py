"""Opens a run: fills in and tunes its settings, and finds the checkpoint to resume from."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cule.errors import InvalidValue
from cule.train.algorithm import Algorithm
from cule.train.checkpoints import checkpoint
from cule.train.checkpoints.contents import SavedRun
from cule.train.dealing import Dealt
from cule.train.distributed.process_group import ProcessGroup
from cule.train.import_path import settings_from
from cule.train.layout import Layout
from cule.train.logs.loggers import check_logger
from cule.train.lowering.making import preview
from cule.train.lowering.settings_read import Make
from cule.train.presets import announcement
from cule.train.run.standing import Standing
from cule.train.settings import Args, as_saved
from cule.train.tune import cache

# Settings that may differ from those of the run that is resumed: how long to train, where files are
# and what is shown.
FREE = {
    "folder", "resume", "overwrite", "explain", "explain_picture", "device", "env_device",
    "total_frames", "max_seconds", "progress", "tensorboard", "logger", "plot", "json", "results",
    "log_every", "checkpoint_every", "num_threads", "cuda_graphs", "compile", "learner_chunk",
    "stop_at_score", "bf16", "channels_last", "deterministic", "multiprocessors", "tuned",
    "timeout", "keep_checkpoints",
}  # fmt: skip

# How often torchrun has started the processes again.
RESTARTS = "TORCHELASTIC_RESTART_COUNT"


@dataclass(frozen=True)
class Opening:
    """The settings and the checkpoint with which a run begins.

    Attributes:
        make: makes the algorithm from settings and a context.
        given: the settings as the user gave them, with those that `--tuned` has chosen.
        args: the same with this device's defaults.
        processes: this process among the others, with the layout of the settings.
        state: the checkpoint to resume from; None: the run is a new one.
        tuned: the settings that `--tuned` has chosen, by name.
        begun: when the run was opened, by time.perf_counter().
        dealt: how often envs were dealt anew to another number of processes.
        deals: whether they are now, as another number of processes has written the checkpoint.
    """

    make: Make
    given: Any
    args: Any
    processes: ProcessGroup
    state: dict[str, Any] | None
    tuned: dict[str, Any]
    begun: float
    dealt: Dealt = field(default_factory=Dealt)
    deals: bool = False

    @property
    def speaks(self) -> bool:
        """Whether this process is the one that logs, evaluates and writes to stderr."""
        return self.processes.rank == 0

    @property
    def checkpoints(self) -> Path:
        """The folder with the checkpoints."""
        return checkpoints_in(self.args)

    def announce(self, algorithm: Algorithm[Any]) -> None:
        """Writes to stderr what is trained, before any env of the settings is made."""
        if self.speaks and self.args.progress:
            line = announcement(self.given, self.args, self.processes.device, algorithm.name)
            sys.stderr.write(line + "\n")

    def changed_settings(self) -> set[str]:
        """The settings that differ from those of the checkpoint.

        Raises:
            ValueError: one of them must not differ, or the checkpoint has only networks.
        """
        if self.state is None:
            return set()
        if "plan" not in self.state["trainer"]:
            raise InvalidValue(
                f"expected a checkpoint from which training can go on, got {self.args.folder}, of "
                "which only the networks were kept after the training"
            )
        free = FREE - {"total_frames"} if self.args.anneals else FREE
        free = free - {"max_seconds"} if self.args.schedule_by == "seconds" else free
        free = free | {"layout", "max_staleness", "reduction"} if self.deals else free
        # Older checkpoints do not say how gradients were averaged: as suited the layout.
        earlier = {"reduction": None, "max_staleness": None, "schedule_by": "frames"}
        saved, now = {**earlier, **self.state["args"]}, as_saved(self.args)
        # What the checkpoint's settings mean today: a setting may have got another name.
        known = {name: was for name, was in saved.items() if name in now}
        before = saved | as_saved(settings_from(type(self.args), known))
        changed = {name: before[name] for name in saved if before[name] != now.get(name)}
        for name, was in changed.items():
            if name not in free and not name.startswith("eval_"):
                raise InvalidValue(
                    f"expected {name} as in the checkpoint ({was}), got "
                    f"{getattr(self.args, name, None)}"
                )
        return set(changed)

    def where_it_goes_on(self, standing: Standing, frames: int, *, finished: bool) -> str:
        """A sentence that says with which frames and seconds a resumed run begins."""
        folder = self.checkpoints
        if self.state is None:
            return f"There is no checkpoint in {folder}: a new run begins."
        after = f"{frames:,} frames and {standing.seconds:,.1f} seconds of training"
        if finished:
            return f"The run in {self.args.folder} ended after {after}: nothing is left to train."
        said = f"Going on from the checkpoint in {folder}, after {after}."
        return f"{said} {self.dealt.sentence()}." if self.deals else said


def checkpoints_in(args: Args) -> Path:
    """The folder with a run's checkpoints."""
    return args.folder / "checkpoints"


def open_run(make: Make, args: Any, processes: ProcessGroup) -> Opening:
    """Fills in the settings, and finds the checkpoint. All processes have to call it.

    Args:
        make: makes the algorithm from settings and a context.
        args: the settings as they were given.
        processes: this process among the others.

    Raises:
        ValueError: settings are wrong, the logger's package is not installed, or the folder has
            another run's checkpoints.
    """
    begun = time.perf_counter()
    filled = args.on(processes.device)
    tuned: dict[str, Any] = {}
    filled.check(len(processes.ranks("act")))
    with processes.all_or_none():
        if processes.rank == 0:  # which alone logs
            check_logger(filled)
    found = _found(filled, processes)
    state = None if found is None else found.state
    if filled.tuned:
        before = None if state is None else state.get("tuned", {})
        args, processes, tuned = with_tuned(make, args, processes, before)
    filled = args.on(processes.device, None if state is None else state["args"])
    filled.check(len(processes.ranks("act")))
    dealt, deals = Dealt(), False
    if found is not None:
        dealt, deals = Dealt.of(found.state["trainer"]), found.world_size != processes.size
        if deals:
            dealt = dealt.again(found.state, found.world_size, processes.size)
    return Opening(make, args, filled, processes, state, tuned, begun, dealt, deals)


def with_tuned(
    make: Make, args: Any, processes: ProcessGroup, before: Mapping[str, Any] | None = None
) -> tuple[Any, ProcessGroup, dict[str, Any]]:
    """Applies what tune has found for this algorithm, game and device.

    Args:
        make: makes the algorithm from settings and a context.
        args: the settings as they were given.
        processes: this process among the others.
        before: what was chosen for the run that is resumed, which it then keeps.

    Returns:
        The settings, the processes with their layout, and the settings that were chosen, by name.

    Raises:
        ValueError: there was no search.
    """
    seen = preview(make, args.on(processes.device), processes.device)
    tuned = cache.tuned_settings(args, seen, processes, before)
    args = dataclasses.replace(args, **tuned)
    return args, processes.with_layout(Layout.parse(args.layout)), tuned


def _found(args: Args, processes: ProcessGroup) -> checkpoint.Found | None:
    """The checkpoint to resume from; None: a new run begins."""
    folder = checkpoints_in(args)
    if args.resume:
        return checkpoint.find(folder, processes, SavedRun)
    # Those of process 0's machine, on which the run's folder is.
    there = processes.broadcast(checkpoint.any_in(folder), 0)
    if there and not args.overwrite:
        raise InvalidValue(
            f"expected a folder without checkpoints, got {args.folder}, which has another run's: "
            "--resume goes on from them, --overwrite deletes them, --folder names another folder"
        )
    if there and processes.broadcast(os.environ.get(RESTARTS, "0") != "0", 0):
        raise InvalidValue(
            "expected --resume where torchrun has started a training again (--max-restarts), got "
            "--overwrite, which would delete what it has trained before"
        )
    if there and processes.rank == 0:
        checkpoint.delete(folder)
    return None
