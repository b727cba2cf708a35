"""Runs the trainings of the paper's tables 3 and 4 and prints the tables as Markdown.

    python -m examples.a2c_vtrace.paper --gpus 0 1 --results benchmarks/results/table3.jsonl
    python -m examples.a2c_vtrace.paper --settings fastest --games pong --seeds 0 1 2
    python -m examples.a2c_vtrace.paper --table 4

Each training is a process of its own, one at a time on each GPU. Its output and its row are in a
folder of its own. A training that has a row is not run again: you can stop this program by SIGINT
or SIGTERM and call it again to go on. A training that was stopped starts from the beginning.
"""

from __future__ import annotations

import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tqdm import tqdm

from cule.files import replacing
from cule.json_lines import read_lines
from cule.train.command import options_of, run_program
from cule.train.rows import append_row
from examples.a2c_vtrace.paper_settings import (
    GOALS,
    PROGRAMS,
    QUIET_TRAIN,
    SETTINGS,
    TRAIN,
    Options,
)  # fmt: skip
from examples.a2c_vtrace.paper_tables import Row, table3, table4, table_of

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Args:
    """Runs the trainings of the paper's tables 3 and 4, and prints the tables."""

    table: Literal[3, 4] = 3
    """3: wall clock and frames to a test score; 4: frames per second of A2C, PPO and DQN, with cule
    and with ale-py"""
    games: tuple[str, ...] = tuple(GOALS)
    """games of table 3, each with the paper's test score"""
    settings: tuple[Literal["ale", "a2c", "vtrace5", "vtrace20", "fastest"], ...] = tuple(SETTINGS)
    """settings of table 3: A2C with 120 envs of ale-py or 1,200 of cule, V-trace with 5 or 20
    batches, the fastest"""
    seeds: tuple[int, ...] = (0, 1, 2)
    """seeds of table 3"""
    num_envs: tuple[int, ...] = (256, 1024)
    """numbers of envs of table 4, whose game is Pong"""
    gpus: tuple[int, ...] = (0,)
    """GPUs to train on, all at the same time"""
    together: int = 1
    """trainings at the same time on each GPU; they slow each other down, so their rows say that
    they shared it"""
    folder: Path = Path("runs/paper")
    """where the trainings' folders are"""
    results: Path | None = None
    """file to which the rows are appended, as JSON lines; each training's folder always gets its
    row"""
    show: tuple[Path, ...] = ()
    """run nothing, and show the table of the rows in these files"""
    but: tuple[str, ...] = ()
    """settings to change in every training, as NAME=VALUE, such as max_seconds=600"""
    progress: bool = True
    """show a progress bar"""


@dataclass(frozen=True)
class Job:
    """A training: its name, the module to run, and its settings."""

    name: str
    module: str
    options: Options

    def command(self, folder: Path) -> list[str]:
        """The command line of the training in this folder."""
        # A training writes its row into its folder itself.
        settings = self.options | {"folder": folder}
        return [sys.executable, "-m", self.module, *options_of(settings)]


def table3_jobs(args: Args) -> list[Job]:
    """The trainings of table 3: all games and settings with the first seed, then with the next.

    Raises:
        ValueError: the paper has no score for a game.
    """
    for game in args.games:
        if game not in GOALS:
            raise ValueError(f"expected games to be some of {', '.join(GOALS)}, got {game!r}")
    jobs = []
    for seed, setting, game in itertools.product(args.seeds, args.settings, args.games):
        goal = GOALS[game]
        options = {
            "game": game, "seed": seed, "stop_at_score": goal, "eval_every": 2_000_000,
            "eval_from": goal - goal / 5,
            **SETTINGS[setting], **QUIET_TRAIN,
        }  # fmt: skip
        jobs.append(Job(f"{setting}-{game}-{seed}", TRAIN, options))
    return jobs


def table4_jobs(args: Args) -> list[Job]:
    """The trainings of table 4."""
    jobs = []
    for emulator, num_envs, (algorithm, (module, more)) in itertools.product(
        ("cule", "ale-py"), args.num_envs, PROGRAMS.items()
    ):
        # Each takes about twenty seconds.
        frames = 10_000_000 if emulator == "cule" and num_envs >= 1024 else 3_000_000
        options = {
            "game": "pong",
            "emulator": emulator,
            "num_envs": num_envs,
            "total_frames": frames,
            **more,
        }
        jobs.append(Job(f"{algorithm.lower()}-{emulator}-{num_envs}", module, options))
    return jobs


class Campaign:
    """Runs jobs, some at once on each GPU.

    Args:
        args: where and how.
        jobs: what to run, in this order.
    """

    def __init__(self, args: Args, jobs: Sequence[Job]):
        self.args, self.jobs = args, jobs
        self.rows: list[Row] = []
        self.failed: list[str] = []
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.processes: set[subprocess.Popen] = set()
        self.waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.bar = tqdm(
            total=len(jobs), unit="training", disable=not args.progress, file=sys.stderr
        )

    def run(self) -> None:
        """Runs all jobs that have no row yet. A signal stops those that run; no others start."""
        for job in self.jobs:
            self.waiting.put(job)
        slots = [gpu for _ in range(self.args.together) for gpu in self.args.gpus]
        workers = [threading.Thread(target=self._work, args=(gpu,)) for gpu in slots]
        before = {
            number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self.bar.close()

    def _stop(self, *_: Any) -> None:
        self.stopping.set()
        for process in list(self.processes):
            process.terminate()

    def _work(self, gpu: int) -> None:
        while not self.stopping.is_set():
            try:
                job = self.waiting.get_nowait()
            except queue.Empty:
                return
            try:
                row = self._row_of(job, gpu)
            except (OSError, ValueError) as problem:
                row = None
                self.bar.write(f"{job.name}: {problem}", file=sys.stderr)
            with self.lock:
                if row is not None:
                    self.rows.append(row)
                elif not self.stopping.is_set():
                    self.failed.append(job.name)
                self.bar.update()

    def _row_of(self, job: Job, gpu: int) -> Row | None:
        """The job's row, from its folder or from running it; None if it failed (see its output)."""
        folder = self.args.folder / job.name
        done = folder / "done.json"
        if done.exists():
            row = json.loads(done.read_text())
            self._append(row)
            return row
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "result.jsonl").unlink(missing_ok=True)
        with (folder / "output.txt").open("w") as output:
            process = subprocess.Popen(
                job.command(folder), stdout=output, stderr=subprocess.STDOUT, cwd=ROOT,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu)},
            )  # fmt: skip
            self.processes.add(process)
            # A signal may have come while it started.
            if self.stopping.is_set():
                process.terminate()
            status = process.wait()
            self.processes.discard(process)
        if status or self.stopping.is_set():
            return None
        row = json.loads((folder / "result.jsonl").read_text().splitlines()[-1])
        if self.args.together > 1:
            row["trainings_on_gpu"] = self.args.together
        with replacing(done) as file:
            file.write(json.dumps(row).encode())
        self._append(row)
        return row

    def _append(self, row: Row) -> None:
        with self.lock:
            append_row(row, self.args.results, once=True)


def rows_of(path: Path) -> list[Row]:
    """The rows in a file. Damaged ones are left out with a warning.

    Raises:
        OSError: it cannot be read.
        ValueError: it has lines, but no row.
    """
    lines = read_lines(path, lambda values: {**values, "mode": values["mode"]})
    if lines.damaged and not lines.good:
        raise ValueError(f"expected a file of JSON lines, got {path} ({lines.damaged[0][1]})")
    return lines.kept("row of results")


def run(args: Args) -> int:
    """Runs the trainings and prints the table.

    Returns:
        The exit status, 1 if a training failed or was stopped.

    Raises:
        OSError: a file to show cannot be read.
        ValueError: a setting is wrong.
    """
    table = table3 if args.table == 3 else table4
    if args.show:
        rows = [row for path in args.show for row in rows_of(path)]
        # Older rows of an iteration's parts have no seconds and are in no table.
        trainings = [row for row in rows if row["mode"] == "training" and "seconds" in row]
        print(table([row for row in trainings if table_of(row) == args.table]))
        return 0
    changes = {}
    for change in args.but:
        name, equals, value = change.partition("=")
        if not equals:
            raise ValueError(f"expected --but with NAME=VALUE, got {change!r}")
        changes[name] = value
    if args.together < 1:
        raise ValueError(f"expected together to be at least 1, got {args.together}")
    jobs = table3_jobs(args) if args.table == 3 else table4_jobs(args)
    jobs = [Job(job.name, job.module, job.options | changes) for job in jobs]
    campaign = Campaign(args, jobs)
    campaign.run()
    if campaign.rows:
        print(table(campaign.rows))
    for name in campaign.failed:
        print(
            f"paper: {name} failed; {args.folder / name / 'output.txt'} says why", file=sys.stderr
        )
    if campaign.stopping.is_set():
        print("Stopped by a signal; the same command goes on.", file=sys.stderr)
    return int(bool(campaign.failed) or campaign.stopping.is_set())


def main() -> int:
    """Runs the program; returns the exit status."""
    return run_program("python -m examples.a2c_vtrace.paper", Args, run)


if __name__ == "__main__":
    sys.exit(main())
