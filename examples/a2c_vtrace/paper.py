"""Runs the trainings of the paper's tables 3 and 4, one at a time on each GPU, and prints the tables as Markdown.

    python -m examples.a2c_vtrace.paper --gpus 0 1 --results benchmarks/results/table3.jsonl
    python -m examples.a2c_vtrace.paper --settings fastest --games pong --seeds 0 1 2
    python -m examples.a2c_vtrace.paper --table 4

Each training is a process of its own, in a folder of its own, where its output and its row are. What has a row is not
run again, so that all this can be stopped, by SIGINT or SIGTERM, and called once more to go on; a training that was
stopped begins anew.
"""

from __future__ import annotations

import itertools
import json
import os
import queue
import signal
import statistics
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tqdm import tqdm

from cule.files import replacing
from cule.json_lines import read_lines
from examples.common.program import run_program
from examples.common.results import append_row

ROOT = Path(__file__).resolve().parents[2]
Options = dict[str, Any]
Row = dict[str, Any]

# Test scores of table 3.
GOALS = {"pong": 18, "ms_pacman": 1500, "asterix": 1000, "assault": 800}
A2C = {"num_batches": 1, "n_steps": 5, "steps_per_update": 5}
VTRACE20 = {"num_envs": 1200, "num_batches": 20, "n_steps": 20, "steps_per_update": 1}
# Table 3's settings, and the fastest that we know.
SETTINGS: dict[str, Options] = {
    "ale": {"emulator": "ale-py", "num_envs": 120, **A2C},
    "a2c": {"num_envs": 1200, **A2C},
    "vtrace5": {"num_envs": 1200, "num_batches": 5, "n_steps": 5, "steps_per_update": 1},
    "vtrace20": VTRACE20,
    "fastest": {**VTRACE20, "updates_at_once": 3, "overlap": True},
}
# What they do not say.
PLAIN: Options = {"emulator": "cule", "updates_at_once": 1, "overlap": False, "learning_rate": 6.5e-4, "num_gpus": 1}
TRAIN = "examples.a2c_vtrace.train"
QUIET = {"progress": False}
# A training that was cut off begins anew.
QUIET_TRAIN = {**QUIET, "plot": False, "tensorboard": False, "checkpoint_every": 0, "overwrite": True}
# Table 4's programs, and what is particular to each.
PROGRAMS: dict[str, tuple[str, Options]] = {
    "A2C": (TRAIN, {**A2C, "warmup_steps": 20, "eval_episodes": 0, **QUIET_TRAIN}),
    "PPO": ("examples.ppo.ppo", QUIET),
    "DQN": ("examples.dqn.dqn", QUIET),
}


@dataclass
class Args:
    """Runs the trainings of the paper's tables 3 and 4, and prints the tables."""

    table: Literal[3, 4] = 3
    """3: wall clock and frames to a test score; 4: frames per second of A2C, PPO and DQN, with cule and with ale-py"""
    games: tuple[str, ...] = tuple(GOALS)
    """of table 3, each with the paper's test score"""
    settings: tuple[Literal["ale", "a2c", "vtrace5", "vtrace20", "fastest"], ...] = tuple(SETTINGS)
    """of table 3: A2C with 120 envs of ale-py, with 1,200 of cule, V-trace with 5 and 20 batches, the fastest known"""
    seeds: tuple[int, ...] = (0, 1, 2)
    """of table 3"""
    num_envs: tuple[int, ...] = (256, 1024)
    """of table 4, whose game is Pong"""
    gpus: tuple[int, ...] = (0,)
    """which GPUs to train on, each at the same time"""
    together: int = 1
    """trainings at once on each GPU; rows of more than one say so, as they share it: their seconds count for less"""
    folder: Path = Path("runs/paper")
    """where the trainings' folders are"""
    results: Path | None = None
    """file to which the rows are appended, as JSON lines; each is in its training's folder in any case"""
    show: tuple[Path, ...] = ()
    """run nothing, and show the table of the rows in these files"""
    but: tuple[str, ...] = ()
    """settings of every training that are to be others, as NAME=VALUE, such as max_seconds=600"""
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
        words = [sys.executable, "-m", self.module]
        # train.py writes its row into its folder itself.
        where = {"folder": folder} if self.module == TRAIN else {"results": folder / "result.jsonl"}
        for name, value in (self.options | where).items():
            option = name.replace("_", "-")
            words += [f"--{'' if value else 'no-'}{option}"] if isinstance(value, bool) else [f"--{option}", str(value)]
        return words


def table3_jobs(args: Args) -> list[Job]:
    """The trainings of table 3, all games and settings with a seed before the next seed.

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
            "game": game, "seed": seed, "stop_at_score": goal, "eval_every": 2_000_000, "eval_from": goal - goal / 5,
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
        # Some twenty seconds of each.
        frames = 10_000_000 if emulator == "cule" and num_envs >= 1024 else 3_000_000
        options = {"game": "pong", "emulator": emulator, "num_envs": num_envs, "total_frames": frames, **more}
        jobs.append(Job(f"{algorithm.lower()}-{emulator}-{num_envs}", module, options))
    return jobs


class Campaign:
    """Runs jobs, some at once on each GPU.

    Args:
        args: where and how.
        jobs: what, in this order.
    """

    def __init__(self, args: Args, jobs: Sequence[Job]):
        self.args, self.jobs = args, jobs
        self.rows: list[Row] = []
        self.failed: list[str] = []
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.processes: set[subprocess.Popen] = set()
        self.waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.bar = tqdm(total=len(jobs), unit="training", disable=not args.progress, file=sys.stderr)

    def run(self) -> None:
        """Runs all jobs that have no row yet. A signal stops those that run, and keeps the others from beginning."""
        for job in self.jobs:
            self.waiting.put(job)
        slots = [gpu for _ in range(self.args.together) for gpu in self.args.gpus]
        workers = [threading.Thread(target=self._work, args=(gpu,)) for gpu in slots]
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
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
        """The job's row, which is there already or comes now; None if there is none, for what the job's output says."""
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
            # A signal may have come by while it started.
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
    """The rows in a file. Of damaged ones a warning tells.

    Raises:
        OSError: it cannot be read.
        ValueError: it has lines, but no row.
    """
    lines = read_lines(path, lambda values: {**values, "mode": values["mode"]})
    if lines.damaged and not lines.good:
        raise ValueError(f"expected a file of JSON lines, got {path} ({lines.damaged[0][1]})")
    return lines.kept("row of results")


# Tables --------------------------------------------------------------------------------------------------------------


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table; all columns but the first are of numbers."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *lines))


def setting_of(row: Row) -> str:
    """Which of SETTINGS, or else what, a row of training was trained with."""
    names = (*VTRACE20, *PLAIN)
    asked = {name: row.get(name, PLAIN.get(name)) for name in names} | {"emulator": row["system"]}
    for name, options in SETTINGS.items():
        if asked == PLAIN | options:
            return name
    others = (f"{name} {value}" for name, value in asked.items() if value != PLAIN.get(name))
    return ", ".join(others).replace("_", " ")


def table_of(row: Row) -> int | None:
    """The table that a row of training is for: 3 if it was to reach a score, or else 4 if that has its algorithm."""
    if row.get("stop_at_score") is not None:
        return 3
    return 4 if row["algorithm"] in PROGRAMS else None


def alone(row: Row) -> bool:
    """Whether a training had its GPU to itself."""
    return row.get("trainings_on_gpu", 1) == 1


def table3(rows: Sequence[Row]) -> str:
    """Seconds and million frames to each game's score, means over seeds, and how many of these reached it.

    Of several rows of a seed the newest counts, those first that had the GPU to themselves. Where a seed has none of
    these, the mean of the seconds is shown as a bound: what shared a GPU took longer than it needs.
    """
    cells: dict[str, dict[str, dict[int, Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in sorted(rows, key=lambda row: (alone(row), row["date"])):
        cells[setting_of(row)][row["game"]][row["seed"]] = row

    def cell(found: Sequence[Row]) -> str:
        good = [row for row in found if row["seconds_to_score"] is not None]
        if not good:
            return f"0 of {len(found)}" if found else ""
        seconds = statistics.mean(row["seconds_to_score"] for row in good)
        frames = statistics.mean(row["frames_to_score"] for row in good) / 1e6
        return f"{'' if all(map(alone, good)) else '<'}{seconds:.1f} s, {frames:.1f} M ({len(good)} of {len(found)})"

    games = [game for game in GOALS if any(game in found for found in cells.values())]
    order = sorted(cells, key=lambda name: [*SETTINGS, name].index(name))
    lines = [[name, *(cell([*cells[name][game].values()]) for game in games)] for name in order]
    return markdown(["", *(f"{game} {GOALS[game]}" for game in games)], lines)


def table4(rows: Sequence[Row]) -> str:
    """FPS of each algorithm, number of envs and emulator, of several rows the fastest, and how busy the GPU was."""
    found = {
        (row["algorithm"], row["num_envs"], row["system"]): row for row in sorted(rows, key=lambda row: row["fps"])
    }

    def cells(row: Row | None) -> list[str]:
        if row is None:
            return ["", ""]
        busy = row["gpu_utilization_mean"]
        return [f"{row['fps']:,.0f}", "" if busy is None else f"{busy:.0f}%"]

    pairs = sorted({key[:2] for key in found}, key=lambda pair: (list(PROGRAMS).index(pair[0]), pair[1]))
    lines = [
        [algorithm, f"{num_envs:,}", *cells(found.get((algorithm, num_envs, "cule"))),
         *cells(found.get((algorithm, num_envs, "ale-py")))]
        for algorithm, num_envs in pairs
    ]  # fmt: skip
    return markdown(["", "envs", "cule FPS", "GPU busy", "ale-py FPS", "GPU busy"], lines)


def run(args: Args) -> int:
    """Runs what is asked for and prints the table; returns the exit status, 1 if a training failed or was stopped.

    Raises:
        OSError: a file to show cannot be read.
        ValueError: a setting is not as it should be.
    """
    table = table3 if args.table == 3 else table4
    if args.show:
        rows = [row for path in args.show for row in rows_of(path)]
        # measure.py's rows, of no seconds, are in no table.
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
        print(f"paper: {name} failed; {args.folder / name / 'output.txt'} says why", file=sys.stderr)
    if campaign.stopping.is_set():
        print("Stopped by a signal; the same command goes on.", file=sys.stderr)
    return int(bool(campaign.failed) or campaign.stopping.is_set())


def main() -> int:
    """Runs the program; returns the exit status."""
    return run_program("examples.a2c_vtrace.paper", Args, run)


if __name__ == "__main__":
    sys.exit(main())
