"""A training run: the loop around a Trainer, with its log, evaluations and checkpoints."""

from __future__ import annotations

import itertools
import math
import os
import sys
import time
from typing import Any, NoReturn

import torch

from cule.errors import InvalidValue, is_others
from cule.train.checkpoints.writer import Writer
from cule.train.distributed.gpu_lock import GpuLock
from cule.train.envs.emulator import FRAMESKIP
from cule.train.evaluate.evaluator import Evaluator
from cule.train.evaluate.policy import Policy, policy_from
from cule.train.import_path import address_of
from cule.train.logs.log import Log
from cule.train.lowering.learner import check_all_priorities
from cule.train.plan import annotate
from cule.train.run.opening import Opening
from cule.train.run.result import row_before
from cule.train.run.standing import Standing
from cule.train.run.stopper import Stopper
from cule.train.settings import as_saved
from cule.train.trainer import Trainer

EVALUATION_SEED = 1_000_000
# A game's kernel that is on the disk was read long before; with a slow disk it takes this long.
SECONDS_TO_READ_A_KERNEL = 1.0


class Run:
    """A training run. All processes have to make it, and close it.

    Args:
        opening: the settings, and the checkpoint to resume from.

    Attributes:
        standing: times, scores and frames so far.
        row_before: the row of this run if it was finished before; None: it has to train.

    Raises:
        ValueError: settings are wrong, or the checkpoint to resume from is another run's.
    """

    def __init__(self, opening: Opening):
        self.opening, self.args, self.processes = opening, opening.args, opening.processes
        self.speaks, self.standing = opening.speaks, Standing()
        self.writer = Writer(opening.checkpoints, self.processes, keep=self.args.keep_checkpoints)
        self.trainer = Trainer(
            opening.make, self.args, self.processes, on_algorithm=opening.announce,
            translated=False, dealt=opening.dealt,
        )  # fmt: skip
        self.algorithm = self.trainer.algorithm
        self._check_frames()
        self.light = annotate.Light(self.processes.device)
        self.saved_steps: int | None = None
        self.evaluator: Evaluator | None = None
        self._log: Log | None = None
        self.row_before: dict[str, Any] | None = None
        self._clock = time.perf_counter()
        if opening.state is not None:
            self._resume(opening.state)
            if self.speaks:
                self.row_before = row_before(self.args, self.trainer, self.standing)
        self.finished = self.processes.any(self.row_before is not None)
        if self.speaks and self.args.resume and (self.args.progress or opening.deals):
            frames, finished = self.trainer.frames, self.finished
            told = opening.where_it_goes_on(self.standing, frames, finished=finished)
            sys.stderr.write(f"{told}\n")
        if not self.finished:
            self._get_ready()
        self.standing.startup_seconds = time.perf_counter() - opening.begun

    def _get_ready(self) -> None:
        """Compiles and loads what training needs, and opens the log."""
        args, standing, frames = self.args, self.standing, self.trainer.frames
        self.trainer.warm_up()
        # An evaluation of exactly this state stays in the log, unless it will be repeated.
        evaluated, state = frames, self.opening.state
        if state is not None and (standing.reached or evaluated >= args.total_frames):
            evaluated = state["test_frames"] or 0
        if self.speaks and args.eval_episodes and not self.trainer.own_envs:
            with annotate.operation("make envs for evaluations"):
                self.evaluator = Evaluator(
                    args.game, args.eval_episodes, self.processes.device,
                    emulator=args.eval_emulator, sticky=args.eval_sticky,
                    max_frames=args.eval_max_frames, full_action_space=args.full_action_space,
                    num_threads=args.num_threads, graphs=args.cuda_graphs,
                )  # fmt: skip
        # What has to be compiled is loaded later, by Trainer.adapt.
        self.trainer.collector.wait_until_translated(SECONDS_TO_READ_A_KERNEL)
        with self.processes.all_or_none(), self.processes.while_first_works():
            self._log = Log(args, standing.logged[0], evaluated, frames, self.speaks)
        self.processes.synchronize()
        self.processes.barrier()

    def _check_frames(self) -> None:
        """Checks that there is something to learn in, unless no frames are asked for.

        Raises:
            ValueError: all frames are played before the first update.
        """
        first, total = self.trainer.warm_up_frames, self.args.total_frames
        if 0 < total <= first and not self.opening.deals:
            self.trainer.close()
            raise InvalidValue(
                f"expected total_frames to be more than the {first:,} that {self.args.num_envs:,} "
                f"envs play before the first update, got {total:,}: nothing would be learned"
            )

    @property
    def log(self) -> Log:
        """The log of a run that is not finished."""
        assert self._log is not None, "a finished run writes nothing"
        return self._log

    # The clock ------------------------------------------------------------------------------------

    def start_clock(self) -> None:
        """From here on, time counts as training."""
        self._clock = time.perf_counter()

    def stop_clock(self) -> None:
        """Waits for the device, and adds the time since the last call to the training time."""
        self.processes.synchronize()
        self.standing.seconds = self.seconds_now
        self.start_clock()

    @property
    def seconds_now(self) -> float:
        """Seconds of training so far. Does not wait for the device."""
        return self.standing.seconds + time.perf_counter() - self._clock

    # Logging and evaluating -----------------------------------------------------------------------

    @annotate.operation("logging")
    def log_training(self) -> None:
        """Writes a line to the log about training since the last such line.

        All processes have to call it.

        Raises:
            ValueError: it cannot be written, or the training has diverged.
        """
        trainer, standing = self.trainer, self.standing
        parts = [trainer.collector.episodes.take_scores()]
        parts += [learner.take_metrics() for learner in trainer.learners]
        with trainer.staleness.waiting():
            sums = self.processes.sum(torch.cat(parts))
        self.stop_clock()
        frames, updates, seconds = standing.logged
        standing.logged = (trainer.frames, trainer.updates, standing.seconds)
        split = torch.tensor(sums, dtype=torch.float64).split([len(part) for part in parts])
        (total, episodes, rewards, running), metrics = split[0].tolist(), split[1:]
        passed = max(standing.seconds - seconds, 1e-9)
        steps = (trainer.frames - frames) / FRAMESKIP
        count = (trainer.updates - updates) * len(self.processes.ranks("learn"))
        # Further learnings count their own.
        count -= sum(int(some[-1]) for some in metrics[1:])
        if episodes:
            standing.score = total / episodes
        values = {
            "updates": trainer.updates,
            "seconds": standing.seconds,
            "fps": (trainer.frames - frames) / passed,
            "ups": (trainer.updates - updates) / passed,
            "pps": steps / passed,
            "ttop": trainer.transitions_since(frames) / passed,
            **trainer.staleness.take(self.processes, passed),
            "episodes": int(episodes),
            "score": standing.score if episodes else None,
            "score_so_far": running / self.args.num_envs,
            "reward": rewards / steps if steps else None,
            **({} if trainer.autotuner is None else trainer.autotuner.way._asdict()),
            **{
                name: mean
                for learner, some in zip(trainer.learners, metrics, strict=True)
                for name, mean in learner.means(some, count).items()
            },
            **annotate.log_values(self.light),
        }
        check_all_priorities(trainer.learners, self.processes)
        with self.processes.all_or_none():
            self.log.write("training", trainer.frames, values)
        norm = values.get("grad_norm")
        if norm is not None and not math.isfinite(norm):
            self._diverged(f"a gradient of norm {norm}")

    def _diverged(self, what: str) -> NoReturn:
        """Ends a training whose weights or gradients are not finite.

        Raises:
            ValueError: always.
        """
        raise InvalidValue(
            f"expected finite weights and gradients, got {what} after "
            f"{self.trainer.frames:,} frames: the training has diverged, a lower learning_rate or "
            "max_grad_norm may help; checkpoints from before are kept"
        )

    def policy(self) -> Policy:
        """The policy that is evaluated."""
        return policy_from(self.algorithm, self.trainer.acting, self.trainer.learner.autocast)

    @property
    def promising(self) -> bool:
        """Whether it is late enough, and the score in training high enough, for an evaluation.

        It is the same in all processes.
        """
        least = self.args.eval_from
        return self.trainer.frames >= self.args.eval_after and (
            least is None or (self.standing.score is not None and self.standing.score >= least)
        )

    @annotate.operation("evaluation")
    def evaluate(self, stopper: Stopper) -> None:
        """Evaluates the policy, and notes if it is good enough to stop.

        All processes have to call it. An evaluation that a signal stops leaves no trace.
        """
        args, trainer, standing = self.args, self.trainer, self.standing
        self.stop_clock()
        begun, good, cut_off = time.perf_counter(), False, False
        with self.processes.all_or_none(), self.processes.while_first_works():
            if self.evaluator is not None:
                scores = self.evaluator.scores(
                    self.policy(), EVALUATION_SEED + trainer.updates, stop=lambda: stopper.wanted
                )
                cut_off = scores is None
                if scores is not None:
                    mean, deviation = float(scores.mean()), float(scores.std())
                    standing.test = {"test_score": mean, "test_deviation": deviation}
                    values = {"updates": trainer.updates, "seconds": standing.seconds}
                    self.log.write("evaluation", trainer.frames, values | standing.test)
                    good = (
                        args.stop_at_score is not None
                        and standing.test["test_score"] >= args.stop_at_score
                    )
        if not self.processes.any(cut_off):
            standing.test_frames = trainer.frames
        if self.processes.any(good):
            standing.reached = {
                "frames_to_score": trainer.frames,
                "seconds_to_score": round(standing.seconds, 3),
            }
        standing.evaluation_seconds += time.perf_counter() - begun
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
            "tuned": self.opening.tuned,
            "frames": self.trainer.frames,
            **self.standing.state_dict(),
            "trainer": self.trainer.state_dict(),
        }
        self.writer.begin(steps, state, before)
        self.saved_steps = steps

    def _resume(self, state: dict[str, Any]) -> None:
        """Goes on from a checkpoint.

        Raises:
            ValueError: it is from a run with other settings, or has only networks.
        """
        changed = self.opening.changed_settings()
        restore = self.trainer.take_over if self.opening.deals else self.trainer.load_state_dict
        try:
            restore(state["trainer"])
        except (AttributeError, LookupError, TypeError, RuntimeError) as problem:
            if is_others(problem):
                raise
            raise InvalidValue(
                f"expected the state of this training in {self.opening.checkpoints}, got "
                f"another's: {type(problem).__name__} {problem}"
            ) from problem
        self.saved_steps = self.trainer.steps
        same = "stop_at_score" not in changed and not any(n.startswith("eval_") for n in changed)
        self.standing.load_state_dict(state, evaluations=same)
        if self.opening.deals:  # sums since the last line in the log are not dealt
            self.standing.logged = self.trainer.frames, self.trainer.updates, self.standing.seconds

    # The loop -------------------------------------------------------------------------------------

    def crossed(self, before: int, every: int) -> bool:
        """Whether the run has passed a multiple of `every` frames since `before`; never for 0."""
        return every > 0 and self.trainer.frames // every > before // every

    @property
    def waiting(self) -> bool:
        """Whether more than one iteration of steps comes before the first update."""
        trainer = self.trainer
        nothing = trainer.updates == trainer.dealt.updates
        return nothing and trainer.lowered.start >= 2 * trainer.period

    @annotate.operation("logging")
    def show(self, frames: int) -> None:
        """Moves the progress bar."""
        self.log.show(frames, warming_up=self.waiting)

    def enough(self, stopper: Stopper) -> bool:
        """Whether to stop. All processes have to call it at the same iteration."""
        seconds = self.agreed_seconds = self.processes.max(self.seconds_now)
        too_long = self.args.max_seconds is not None and seconds >= self.args.max_seconds
        return self.processes.any(stopper.wanted or too_long)

    def train(self, stopper: Stopper) -> None:
        """Trains until there is a reason to stop; then saves, logs and evaluates."""
        standing = self.standing
        # Several processes would wait for each other. A sweep has none of them.
        gpu_lock = GpuLock(os.environ if self.processes.size == 1 else {})
        gpu_lock.acquire(lambda: stopper.wanted)
        begun = time.time()
        try:
            self._iterate(stopper)
        finally:
            gpu_lock.release()
        standing.trained = (begun, time.time())
        # A signal may have reached only some of the processes.
        standing.interrupted = self.processes.any(stopper.wanted)
        # Saved before the last lines of the log. A resumed run then writes them where they would
        # have been.
        self.save()
        if self.processes.size > 1:  # which complete a set together
            self.writer.finish()
            self._end(stopper)
        else:  # the file is written while episodes are played
            with self.log.after(self.writer.finish):
                self._end(stopper)

    def _end(self, stopper: Stopper) -> None:
        """Logs and evaluates what is trained."""
        args, trainer, standing = self.args, self.trainer, self.standing
        self.start_clock()
        if trainer.updates > standing.logged[1]:
            self.log_training()
        untested = args.eval_episodes and standing.test_frames != trainer.frames
        if untested and not standing.interrupted:
            self.evaluate(stopper)
            standing.interrupted = self.processes.any(stopper.wanted)

    def _iterate(self, stopper: Stopper) -> None:
        """Trains until there is a reason to stop, and waits for the device."""
        args, trainer = self.args, self.trainer
        self.start_clock()
        self.agreed_seconds = self.processes.max(self.standing.seconds)
        for iteration in itertools.count(1):
            if trainer.frames >= args.total_frames or self.standing.reached is not None:
                break
            frames, updates = trainer.frames, trainer.updates
            with annotate.iteration():
                trainer.iterate(self.show, args.frames_after(self.agreed_seconds))
                self.show(trainer.frames)
                if trainer.updates // args.log_every > updates // args.log_every:
                    self.log_training()
                    if trainer.frames < args.total_frames:
                        trainer.adapt(self.standing.seconds)
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
        if self._log is not None:
            self._log.close()
        self.trainer.close()
        if self.evaluator is not None:
            self.evaluator.close()
