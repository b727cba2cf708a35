"""A training run: the loop around a Trainer, with its log, evaluations and checkpoints.

Three times are measured. `seconds` is the time of training from the first step on, with logs and
checkpoints but without evaluations. `evaluation_seconds` is the time of evaluations.
`startup_seconds` is the time to make the envs and the network, to plan and to compile.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import torch

from cule.errors import InvalidValue, is_others
from cule.train import annotate
from cule.train.checkpoints import checkpoint
from cule.train.checkpoints.contents import SavedRun
from cule.train.distributed.gpu_lock import GpuLock
from cule.train.distributed.process_group import ProcessGroup
from cule.train.envs.emulator import FRAMESKIP
from cule.train.evaluate.evaluator import Evaluator
from cule.train.import_path import address_of
from cule.train.layout import Layout
from cule.train.logs.log import Log
from cule.train.lowering.making import preview
from cule.train.lowering.returned import check_scores
from cule.train.lowering.settings_read import Make
from cule.train.presets import announcement
from cule.train.run.result import row_before
from cule.train.run.stopper import Stopper
from cule.train.settings import Args
from cule.train.trainer import Trainer
from cule.train.tune import kept

EVALUATION_SEED = 1_000_000
# These settings may differ from those of the run that is resumed: how long to train, where files
# are and what is shown.
FREE = {
    "folder", "resume", "overwrite", "explain", "device", "env_device", "total_frames",
    "max_seconds", "progress", "tensorboard", "plot", "json", "results", "log_every",
    "checkpoint_every", "num_threads", "cuda_graphs", "compile", "learner_chunk",
    "stop_at_score", "bf16", "channels_last", "deterministic", "multiprocessors", "tuned",
}  # fmt: skip


def as_saved(args: Args) -> dict[str, Any]:
    """Settings as plain values."""
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in dataclasses.asdict(args).items()
    }


class Run:
    """A training run.

    Args:
        make: makes the algorithm from settings and a context.
        args: the settings.
        processes: this process among the others.

    Raises:
        ValueError: settings are wrong, or the checkpoint to resume from is another run's.
    """

    def __init__(self, make: Make, args: Any, processes: ProcessGroup):
        given, args = args, args.on(processes.device)
        args.check(len(processes.having("act")))
        begun = time.perf_counter()
        self.args, self.processes, self.speaks = args, processes, processes.rank == 0
        state = self._found_state()
        self.writer = checkpoint.Writer(self.folder_of_checkpoints, processes)
        self.tuned: dict[str, Any] = {}
        if args.tuned:
            before = None if state is None else state.get("tuned", {})
            self.tuned = kept.chosen(
                given, preview(make, args, processes.device), processes, before
            )
            given = dataclasses.replace(given, **self.tuned)
            self.processes = processes = processes.with_layout(Layout.parse(given.layout))
        self.args = args = given.on(processes.device, None if state is None else state["args"])
        args.check(len(processes.having("act")))
        if self.speaks and args.progress:
            name = getattr(make, "__name__", "an algorithm")
            sys.stderr.write(announcement(given, args, processes.device, name) + "\n")
        self.trainer = Trainer(make, args, processes)
        self.algorithm = self.trainer.algorithm
        self._check_frames()
        self.light = annotate.Light(processes.device)
        self.seconds = self.evaluation_seconds = 0.0
        # When this process began to train, and when it ended, in seconds since 1970.
        self.trained: tuple[float, float] | None = None
        # Frames, updates and seconds at the last line about training in the log.
        self.logged = (0, 0, 0.0)
        self.score: float | None = None  # of the last episodes in training
        self.test: dict[str, float] = {}
        self.test_frames: int | None = None
        self.reached: dict[str, float] | None = None
        self.interrupted = False
        self.saved_steps: int | None = None
        self.evaluator: Evaluator | None = None
        self.row_before: dict[str, Any] | None = None
        self._clock = time.perf_counter()
        if state is not None:
            self.load_state_dict(state)
            if self.speaks:
                self.row_before = row_before(self)
        self.finished = processes.any(self.row_before is not None)
        if self.speaks and args.progress and args.resume:
            sys.stderr.write(self._where_it_goes_on(state is not None) + "\n")
        if self.finished:
            return
        self.trainer.warm_up()
        # An evaluation of exactly this state stays in the log, unless it will be repeated.
        evaluated = self.trainer.frames
        if state is not None and (self.reached or evaluated >= args.total_frames):
            evaluated = state["test_frames"] or 0
        if self.speaks and args.eval_episodes and not self.trainer.own_envs:
            self.evaluator = Evaluator(
                args.game, args.eval_episodes, processes.device, sticky=args.eval_sticky,
                max_frames=args.eval_max_frames, full_action_space=args.full_action_space,
                num_threads=args.num_threads,
            )  # fmt: skip
        with processes.all_or_none():
            self.log = Log(args, self.logged[0], evaluated, self.trainer.frames, self.speaks)
        processes.synchronize()
        processes.barrier()
        self.startup_seconds = time.perf_counter() - begun

    def _where_it_goes_on(self, found: bool) -> str:
        """From where a resumed run goes on, in a sentence."""
        if not found:
            return f"There is no checkpoint in {self.folder_of_checkpoints}: a new run begins."
        after = f"{self.trainer.frames:,} frames and {self.seconds:,.1f} seconds of training"
        if self.finished:
            return f"The run in {self.args.folder} ended after {after}: nothing is left to train."
        return f"Going on from the checkpoint in {self.folder_of_checkpoints}, after {after}."

    def _check_frames(self) -> None:
        """Checks that there is something to learn in, unless no frames are asked for.

        Raises:
            ValueError: all frames are played before the first update.
        """
        first, total = self.trainer.warm_up_frames, self.args.total_frames
        if 0 < total <= first:
            self.trainer.close()
            raise InvalidValue(
                f"expected total_frames to be more than the {first:,} that {self.args.num_envs:,} "
                f"envs play before the first update, got {total:,}: nothing would be learned"
            )

    @property
    def folder_of_checkpoints(self) -> Path:
        """Where checkpoints are."""
        return self.args.folder / "checkpoints"

    def _found_state(self) -> dict[str, Any] | None:
        """The checkpoint to resume from, if that is wanted and there is one."""
        folder = self.folder_of_checkpoints
        if self.args.resume:
            return checkpoint.load(folder, self.processes, self.processes.size, SavedRun)
        there = checkpoint.any_in(folder)
        if there and not self.args.overwrite:
            raise InvalidValue(
                f"expected a folder without checkpoints, got {self.args.folder}, which has another "
                "run's: "
                "--resume goes on from them, --overwrite deletes them, --folder names another "
                "folder"
            )
        # They are deleted only after all processes have looked for them.
        self.processes.barrier()
        if there and self.speaks:
            checkpoint.delete(folder)
        return None

    # The clock ------------------------------------------------------------------------------------

    def start_clock(self) -> None:
        """From here on, time counts as training."""
        self._clock = time.perf_counter()

    def stop_clock(self) -> None:
        """Waits for the device, and adds the time since the last call to the training time."""
        self.processes.synchronize()
        now = time.perf_counter()
        self.seconds += now - self._clock
        self._clock = now

    @property
    def seconds_now(self) -> float:
        """Seconds of training so far. Does not wait for the device."""
        return self.seconds + time.perf_counter() - self._clock

    # Logging and evaluating -----------------------------------------------------------------------

    @annotate.operation("logging")
    def tell(self) -> None:
        """Writes a line of the log about the time since the last one.

        All processes have to call it.

        Raises:
            ValueError: it cannot be written, or the training has diverged.
        """
        trainer = self.trainer
        sums = self.processes.sum(
            torch.cat([trainer.collector.episodes.take_scores(), trainer.learner.take_metrics()])
        )
        self.stop_clock()
        frames, updates, seconds = self.logged
        self.logged = (trainer.frames, trainer.updates, self.seconds)
        (total, episodes, rewards, running), metrics = sums[:4], sums[4:]
        passed, steps = max(self.seconds - seconds, 1e-9), (trainer.frames - frames) / FRAMESKIP
        count = (trainer.updates - updates) * len(self.processes.having("learn"))
        if episodes:
            self.score = total / episodes
        values = {
            "updates": trainer.updates,
            "seconds": self.seconds,
            "fps": (trainer.frames - frames) / passed,
            "ups": (trainer.updates - updates) / passed,
            "episodes": int(episodes),
            "score": self.score if episodes else None,
            "score_so_far": running / self.args.num_envs,
            "reward": rewards / steps if steps else None,
            **({} if trainer.autotuner is None else trainer.autotuner.way._asdict()),
            **{
                name: metric / count if count else None
                for name, metric in zip(trainer.learner.names, metrics, strict=True)
            },
            **annotate.log_values(self.light),
        }
        with self.processes.all_or_none():
            self.log.write("training", trainer.frames, values)
        norm = values.get("grad_norm")
        if norm is not None and not math.isfinite(norm):
            self._diverged(f"a gradient of norm {norm}")

    def _diverged(self, what: str) -> NoReturn:
        """Ends a training that would go on with numbers that mean nothing.

        Raises:
            ValueError: always.
        """
        raise InvalidValue(
            f"expected finite weights and gradients, got {what} after "
            f"{self.trainer.frames:,} frames: the training has diverged, a lower learning_rate or "
            "max_grad_norm may help; checkpoints from before are kept"
        )

    def policy(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """What is evaluated: observations to log-probabilities of actions."""
        nets, autocast = self.trainer.acting, self.trainer.learner.autocast

        def scores(observations: torch.Tensor) -> torch.Tensor:
            with autocast:
                found = self.algorithm.scores(nets, observations)
            return check_scores(found, len(observations), self.algorithm.num_actions)

        return scores

    @property
    def promising(self) -> bool:
        """Whether it is late enough, and the score in training high enough, for an evaluation.

        It is the same in all processes.
        """
        least = self.args.eval_from
        return self.trainer.frames >= self.args.eval_after and (
            least is None or (self.score is not None and self.score >= least)
        )

    @annotate.operation("evaluation")
    def evaluate(self, stopper: Stopper) -> None:
        """Evaluates the policy on ale-py, and notes if it is good enough to stop.

        All processes have to call it. An evaluation that a signal stops leaves no trace.
        """
        args, trainer = self.args, self.trainer
        self.stop_clock()
        begun, good, cut_off = time.perf_counter(), False, False
        with self.processes.all_or_none():
            if self.evaluator is not None:
                scores = self.evaluator.scores(
                    self.policy(), EVALUATION_SEED + trainer.updates, stop=lambda: stopper.wanted
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
        if not self.processes.any(cut_off):
            self.test_frames = trainer.frames
        if self.processes.any(good):
            self.reached = {
                "frames_to_score": trainer.frames,
                "seconds_to_score": round(self.seconds, 3),
            }
        self.evaluation_seconds += time.perf_counter() - begun
        self.start_clock()

    # Saving and resuming --------------------------------------------------------------------------

    @annotate.operation("checkpoint")
    def save(self) -> None:
        """Begins to write a checkpoint, unless it exists. All processes have to call it.

        Raises:
            ValueError: it cannot be written, or the training has diverged.
        """
        self.stop_clock()
        before, steps = self.saved_steps, self.trainer.steps
        if before == steps:
            return
        if self.processes.any(not self.trainer.learner.weights.finite):
            self._diverged("weights that are not")
        state = {
            "algorithm": self.algorithm.name,
            "program": address_of(type(self.algorithm)),
            "settings": address_of(type(self.args)),
            "num_actions": self.algorithm.num_actions,
            "args": as_saved(self.args),
            "tuned": self.tuned,
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
        self.writer.begin(steps, state, before)
        self.saved_steps = steps

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes from a checkpoint.

        Raises:
            ValueError: it is from a run with other settings, or has no more than networks.
        """
        if "plan" not in state["trainer"]:
            raise InvalidValue(
                f"expected a checkpoint from which training can go on, got {self.args.folder}, of "
                "which only the networks were kept after the training"
            )
        free = FREE - {"total_frames"} if self.args.anneals else FREE
        changed = {
            name: was for name, was in state["args"].items() if was != as_saved(self.args).get(name)
        }
        for name, was in changed.items():
            if name not in free and not name.startswith("eval_"):
                raise InvalidValue(
                    f"expected {name} as in the checkpoint ({was}), got "
                    f"{getattr(self.args, name, None)}"
                )
        try:
            self.trainer.load_state_dict(state["trainer"])
        except (AttributeError, LookupError, TypeError, RuntimeError) as problem:
            if is_others(problem):
                raise
            raise InvalidValue(
                f"expected the state of this training in {self.folder_of_checkpoints}, got "
                f"another's: {type(problem).__name__} {problem}"
            ) from problem
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

    @property
    def waiting(self) -> bool:
        """Whether more than one iteration of steps comes before the first update."""
        return self.trainer.updates == 0 and self.trainer.lowered.start >= 2 * self.trainer.period

    @annotate.operation("logging")
    def show(self, frames: int) -> None:
        """Moves the progress bar."""
        self.log.show(frames, warming_up=self.waiting)

    def enough(self, stopper: Stopper) -> bool:
        """Whether to stop. All processes have to call it at the same iteration."""
        too_long = self.args.max_seconds is not None and self.seconds_now >= self.args.max_seconds
        return self.processes.any(stopper.wanted or too_long)

    def train(self, stopper: Stopper) -> None:
        """Trains until there is a reason to stop; then saves, logs and evaluates."""
        args, trainer = self.args, self.trainer
        # Several processes would wait for each other. A sweep has none of them.
        gpu_lock = GpuLock(os.environ if self.processes.size == 1 else {})
        gpu_lock.acquire(lambda: stopper.wanted)
        begun = time.time()
        try:
            self._iterate(stopper)
        finally:
            gpu_lock.release()
        self.trained = (begun, time.time())
        # A signal may have reached only some of the processes.
        self.interrupted = self.processes.any(stopper.wanted)
        # Saved before the last line of the log. A resumed run then writes that line where it would
        # have been.
        self.save()
        self.writer.finish()
        self.start_clock()
        if trainer.updates > self.logged[1]:
            self.tell()
        if not self.interrupted and args.eval_episodes and self.test_frames != trainer.frames:
            self.evaluate(stopper)
            self.interrupted = self.processes.any(stopper.wanted)

    def _iterate(self, stopper: Stopper) -> None:
        """Trains until there is a reason to stop, and waits for the device."""
        args, trainer = self.args, self.trainer
        self.start_clock()
        for iteration in itertools.count(1):
            if trainer.frames >= args.total_frames or self.reached is not None:
                break
            frames, updates = trainer.frames, trainer.updates
            with annotate.iteration():
                trainer.iterate(self.show)
                self.show(trainer.frames)
                if trainer.updates // args.log_every > updates // args.log_every:
                    self.tell()
                    if trainer.frames < args.total_frames:
                        trainer.adapt(self.seconds)
            if self.crossed(frames, args.eval_every) and self.promising:
                self.evaluate(stopper)
            if self.crossed(frames, args.checkpoint_every):
                self.save()
            # Several processes have to agree on what to do at an iteration, and asking takes time.
            if self.processes.size == 1 or iteration % args.log_every == 0:
                self.writer.poll()
                if self.enough(stopper):
                    break
        self.stop_clock()

    def close(self) -> None:
        """Frees the envs and ends the log."""
        self.writer.close()
        if hasattr(self, "log"):
            self.log.close()
        self.trainer.close()
        if self.evaluator is not None:
            self.evaluator.close()
