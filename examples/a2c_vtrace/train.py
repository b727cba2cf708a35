"""A2C with V-trace on thousands of Atari games at once, after Dalton, Frosio and Garland (2019).

    python -m examples.a2c_vtrace.train --game pong
    torchrun --nproc-per-node 4 -m examples.a2c_vtrace.train --game pong --num-envs 4800

README.md in this folder explains it; `--help` lists the settings, which are in arguments.py.

Three times are measured. `seconds` is the time of training from the first step on, with logs and
checkpoints but without evaluations. `evaluation_seconds` is the time of evaluations.
`startup_seconds` is the time to make the envs and the network, and to compile.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

from cule import scope
from examples.a2c_vtrace import checkpoint
from examples.a2c_vtrace.arguments import Args
from examples.a2c_vtrace.evaluate import Evaluator
from examples.a2c_vtrace.learner import METRICS
from examples.a2c_vtrace.log import Log
from examples.a2c_vtrace.plot import RESULT, plot
from examples.a2c_vtrace.result import result_of, row_before
from examples.a2c_vtrace.stopper import Stopper
from examples.a2c_vtrace.trainer import Trainer
from examples.a2c_vtrace.world import World
from examples.common.presets import announcement
from examples.common.program import run_program
from examples.common.results import append_row
from examples.common.timing import log_values

EVALUATION_SEED = 1_000_000


class Run:
    """A training run: the loop around a Trainer, with its log, evaluations and checkpoints.

    Args:
        args: the settings.
        world: this process among the others.

    Raises:
        ValueError: settings are wrong, or the checkpoint to resume from is another run's.
    """

    def __init__(self, args: Args, world: World):
        given, args = args, args.on(world.device)
        args.check(world.size)
        begun = time.perf_counter()
        self.args, self.world, self.speaks = args, world, world.rank == 0
        state = self._found_state()
        if state is not None:
            self.args = args = given.on(world.device, state["args"])
        if self.speaks and args.progress:
            line = announcement(given, args, world.device, args.algorithm)
            print(line, file=sys.stderr, flush=True)
        self.trainer = Trainer(args, world)
        self.light = scope.Light(world.device)
        self.seconds = self.evaluation_seconds = 0.0
        # Frames, updates and seconds at the last line about training in the log.
        self.logged = (0, 0, 0.0)
        self.score: float | None = None  # of the last episodes in training
        self.test: dict[str, float] = {}
        self.test_frames: int | None = None
        self.reached: dict[str, float] | None = None
        self.interrupted = False
        self.saved_steps: int | None = None
        self.evaluator = self.log = self.row_before = None
        if state is not None:
            self.load_state_dict(state)
            if self.speaks:
                self.row_before = row_before(self)
        self.finished = world.any(self.row_before is not None)
        if self.finished:
            return
        # An evaluation of exactly this state stays in the log, unless it will be repeated.
        evaluated = self.trainer.frames
        if state is not None and (self.reached or evaluated >= args.total_frames):
            evaluated = state["test_frames"] or 0
        if self.speaks and args.eval_episodes:
            self.evaluator = Evaluator(
                args.game, args.eval_episodes, world.device, sticky=args.eval_sticky,
                max_frames=args.eval_max_frames, num_threads=args.num_threads,
            )  # fmt: skip
        with world.together():
            self.log = Log(args, self.logged[0], evaluated, self.trainer.frames, self.speaks)
        world.synchronize()
        world.barrier()
        self.startup_seconds = time.perf_counter() - begun

    def _found_state(self) -> dict[str, Any] | None:
        """The checkpoint to resume from, if that is wanted and there is one."""
        folder = self.args.folder / "checkpoints"
        if self.args.resume:
            return checkpoint.load(folder, self.world, self.world.size)
        there = checkpoint.any_in(folder)
        if there and not self.args.overwrite:
            raise ValueError(
                f"expected a folder without checkpoints, got {self.args.folder}, which has another "
                "run's: "
                "--resume goes on from them, --overwrite deletes them, --folder names another "
                "folder"
            )
        # They are deleted only after all processes have looked for them.
        self.world.barrier()
        if there and self.speaks:
            checkpoint.delete(folder)
        return None

    # The clock ------------------------------------------------------------------------------------

    def start_clock(self) -> None:
        """From here on, time counts as training."""
        self._clock = time.perf_counter()

    def stop_clock(self) -> None:
        """Waits for the device, and adds the time since the last call to the training time."""
        self.world.synchronize()
        now = time.perf_counter()
        self.seconds += now - self._clock
        self._clock = now

    @property
    def seconds_now(self) -> float:
        """Seconds of training so far. Does not wait for the device."""
        return self.seconds + time.perf_counter() - self._clock

    # Logging and evaluating -----------------------------------------------------------------------

    def tell(self) -> None:
        """Writes a line of the log about the time since the last one. All processes have to call
        it."""
        trainer = self.trainer
        sums = self.world.sum(
            torch.cat([trainer.player.episodes.take_scores(), trainer.learner.take_metrics()])
        )
        self.stop_clock()
        frames, updates, seconds = self.logged
        self.logged = (trainer.frames, trainer.updates, self.seconds)
        episodes, passed = sums[1], max(self.seconds - seconds, 1e-9)
        count = (trainer.updates - updates) * self.world.size
        if episodes:
            self.score = sums[0] / episodes
        values = {
            "updates": trainer.updates,
            "seconds": self.seconds,
            "fps": (trainer.frames - frames) / passed,
            "ups": (trainer.updates - updates) / passed,
            "episodes": int(episodes),
            "score": self.score if episodes else None,
            **{
                name: total / count if count else None
                for name, total in zip(METRICS, sums[2:], strict=True)
            },
            **log_values(self.light),
        }
        with self.world.together():
            self.log.write("training", trainer.frames, values)

    @property
    def promising(self) -> bool:
        """Whether the score in training is high enough for an evaluation; the same in all
        processes."""
        return self.args.eval_from is None or (
            self.score is not None and self.score >= self.args.eval_from
        )

    @scope.operation("evaluation")
    def evaluate(self, stopper: Stopper) -> None:
        """Evaluates the policy on ale-py, and notes if it is good enough to stop.

        All processes have to call it. An evaluation that a signal stops leaves no trace.
        """
        args, trainer = self.args, self.trainer
        self.stop_clock()
        begun, good, cut_off = time.perf_counter(), False, False
        with self.world.together():
            if self.evaluator is not None:
                scores = self.evaluator.scores(
                    trainer.policy, EVALUATION_SEED + trainer.updates, stop=lambda: stopper.wanted
                )
                cut_off = scores is None
                if scores is not None:
                    self.test = {
                        "test_score": float(scores.mean()),
                        "test_deviation": float(scores.std()),
                    }
                    values = {"updates": trainer.updates, "seconds": self.seconds, **self.test}
                    self.log.write("evaluation", trainer.frames, values)
                    good = (
                        args.stop_at_score is not None
                        and self.test["test_score"] >= args.stop_at_score
                    )
        if not self.world.any(cut_off):
            self.test_frames = trainer.frames
        if self.world.any(good):
            self.reached = {
                "frames_to_score": trainer.frames,
                "seconds_to_score": round(self.seconds, 3),
            }
        self.evaluation_seconds += time.perf_counter() - begun
        self.start_clock()

    # Saving and resuming --------------------------------------------------------------------------

    @scope.operation("checkpoint")
    def save(self) -> None:
        """Writes a checkpoint, unless it exists. All processes have to call it."""
        self.stop_clock()
        before, steps = self.saved_steps, self.trainer.steps
        if before == steps:
            return
        args = {
            name: str(v) if isinstance(v, Path) else v
            for name, v in dataclasses.asdict(self.args).items()
        }
        state = {
            "algorithm": self.args.algorithm,
            "args": args,
            "frames": self.trainer.frames,
            "seconds": self.seconds,
            "evaluation_seconds": self.evaluation_seconds,
            "logged": self.logged,
            "score": self.score,
            "test": self.test,
            "test_frames": self.test_frames,
            "reached": self.reached,
            "trainer": self.trainer.state_dict(),
        }
        checkpoint.save(self.args.folder / "checkpoints", steps, state, self.world, before)
        self.saved_steps = steps

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes from a checkpoint.

        Raises:
            ValueError: it is from a run with other settings.
        """
        # These settings may differ: how long to train, where files are and what is shown.
        free = {
            "folder", "resume", "overwrite", "device", "total_frames", "max_seconds", "progress",
            "tensorboard", "plot",
            "results", "log_every", "checkpoint_every", "num_threads", "cuda_graphs", "compile",
            "learner_chunk",
            "stop_at_score", "bf16", "channels_last", "multiprocessors",
        }  # fmt: skip
        if self.args.anneal:
            free.remove("total_frames")
        changed = {
            name: was for name, was in state["args"].items() if was != getattr(self.args, name)
        }
        for name, was in changed.items():
            if name not in free and not name.startswith("eval_"):
                raise ValueError(
                    f"expected {name} as in the checkpoint ({was}), got {getattr(self.args, name)}"
                )
        self.trainer.load_state_dict(state["trainer"])
        self.saved_steps = self.trainer.steps
        self.seconds, self.evaluation_seconds = state["seconds"], state["evaluation_seconds"]
        self.logged, self.score = tuple(state["logged"]), state["score"]
        # Earlier evaluations count if later ones have the same settings.
        if "stop_at_score" not in changed and not any(name.startswith("eval_") for name in changed):
            self.test, self.test_frames, self.reached = (
                state["test"],
                state["test_frames"],
                state["reached"],
            )

    # The loop -------------------------------------------------------------------------------------

    def crossed(self, before: int, every: int) -> bool:
        """Whether the run has passed a multiple of `every` frames since `before`; never for 0."""
        return every > 0 and self.trainer.frames // every > before // every

    def enough(self, stopper: Stopper) -> bool:
        """Whether to stop. All processes have to call it at the same iteration."""
        too_long = self.args.max_seconds is not None and self.seconds_now >= self.args.max_seconds
        return self.world.any(stopper.wanted or too_long)

    def train(self, stopper: Stopper) -> None:
        """Trains until there is a reason to stop; then saves, logs and evaluates."""
        args, trainer = self.args, self.trainer
        self.start_clock()
        for iteration in itertools.count(1):
            if trainer.frames >= args.total_frames or self.reached is not None:
                break
            frames, updates = trainer.frames, trainer.updates
            with scope.iteration():
                trainer.iterate()
                with scope.operation("logging"):
                    self.log.show(trainer.frames, warming_up=trainer.updates == 0)
                    if trainer.updates // args.log_every > updates // args.log_every:
                        self.tell()
            if self.crossed(frames, args.eval_every) and self.promising:
                self.evaluate(stopper)
            if self.crossed(frames, args.checkpoint_every):
                self.save()
            # Several processes have to agree to stop at the same iteration, and asking takes time.
            if (self.world.size == 1 or iteration % args.log_every == 0) and self.enough(stopper):
                break
        self.stop_clock()
        # A signal may have reached only some of the processes.
        self.interrupted = self.world.any(stopper.wanted)
        # Saved before the last line of the log. A resumed run then writes that line where it would
        # have been.
        self.save()
        self.start_clock()
        if trainer.updates > self.logged[1]:
            self.tell()
        if not self.interrupted and args.eval_episodes and self.test_frames != trainer.frames:
            self.evaluate(stopper)
            self.interrupted = self.world.any(stopper.wanted)

    def close(self) -> None:
        """Frees the envs and ends the log."""
        if self.log is not None:
            self.log.close()
        self.trainer.close()
        if self.evaluator is not None:
            self.evaluator.close()


def train(args: Args) -> dict[str, Any]:
    """Trains as the settings say; returns the result's row.

    Raises:
        ValueError: settings are wrong, or the checkpoint to resume from is another run's.
    """
    args.use_threads()
    world = World.join(args.device)
    try:
        run = Run(args, world)
        try:
            if run.finished:
                row = run.row_before or {}
            else:
                with Stopper() as stopper, run.light, scope.phase("training"):
                    run.train(stopper)
                row = result_of(run)
        finally:
            run.close()
        if run.speaks:
            append_row(
                row, args.folder / RESULT, None if run.interrupted else args.results, once=True
            )
            if args.plot:
                picture = args.folder / "scores.png"
                if not plot([args.folder], picture):
                    picture.unlink(missing_ok=True)  # an older run's
                    print("No episode has ended: there is no scores.png.", file=sys.stderr)
            if run.interrupted:
                print(
                    "Stopped by a signal; the checkpoint is written, --resume goes on from it.",
                    file=sys.stderr,
                )
    finally:
        world.leave()
    return row


def run(args: Args) -> None:
    """Trains, and prints the result's row."""
    row = train(args)
    if int(os.environ.get("RANK", "0")) == 0:
        print(json.dumps(row))


def main() -> int:
    """Runs the training; returns the exit status."""
    return run_program("examples.a2c_vtrace.train", Args, run)


if __name__ == "__main__":
    sys.exit(main())
