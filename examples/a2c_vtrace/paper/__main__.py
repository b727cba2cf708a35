"""The command line of `python -m examples.a2c_vtrace.paper`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

import cule
from cule.devices.device import MAX_THREADS, usable_cpus
from cule.disk.files import replacing
from cule.errors import InvalidValue
from cule.programs import results
from cule.programs.command_line import check_output
from cule.programs.figures import new_figure
from cule.rom import find_game
from cule.train.checks import above, at_least, within
from cule.train.command import run_program
from cule.train.sweep.sweep import STOPPED, devices_of
from examples.a2c_vtrace.paper import rows
from examples.a2c_vtrace.paper.cases import COLUMNS, ENGINES, LOADS, Column
from examples.a2c_vtrace.paper.choices import Choice
from examples.a2c_vtrace.paper.measure import Budget, left, measure
from examples.a2c_vtrace.paper.reports import REPORTS, Report

RESULTS = Path(__file__).resolve().parents[3] / "benchmarks" / "results"
Name = Literal["table1", "table3", "table4", "figure2", "figure3", "figure4", "figure5"]
ColumnName = Literal[
    "ale", "ale-5", "ale-20", "ale-1200", "a2c", "vtrace5", "vtrace20", "gpus", "thrice", "fastest"
]


@dataclass
class Args:
    """Measures and shows the tables and figures of the CuLE paper.

    A case that has a row of this commit in the results is not measured again, so a command that
    was stopped goes on. What is left out here is as in the paper.
    """

    report: Annotated[Name, tyro.conf.Positional]
    """which table or figure"""
    show: bool = False
    """measure nothing; show what rows say"""
    games: tuple[str, ...] = ()
    """games, or atari57 for these 57"""
    engines: tuple[Literal["ale-py", "cule-cpu", "cule"], ...] = ()
    """what emulates: ale-py, cule's core on the CPU, cule on a GPU (default: all that this machine
    has)"""
    num_envs: tuple[int, ...] = ()
    """numbers of envs, but for table3 and figure5"""
    loads: tuple[Literal["end-to-end", "with-policy", "training"], ...] = LOADS
    """emulation only, inference only, training: of table1, figure2 and figure4"""
    columns: tuple[ColumnName, ...] = ()
    """columns of table3 and figure5; gpus: of all GPUs together"""
    seeds: tuple[int, ...] = (0, 1, 2)
    """seeds of table3 and figure5"""
    gpus: tuple[int, ...] = ()
    """numbers of the GPUs, which measure cases side by side (default: all)"""
    seconds: float | None = None
    """the most seconds of a training, or how long each system is measured in a case"""
    rounds: int = 5
    """into how many rounds these seconds are divided, but for trainings"""
    warmup_steps: int = 300
    """steps before them, but for trainings"""
    steps: int = 2000
    """steps of figure3, a multiple of 10"""
    num_threads: int = 0
    """CPU threads of each system; 0: the cores, divided among the GPUs that train side by side"""
    folder: Path = Path("runs/paper")
    """where the trainings' folders are"""
    results: Path = Path("paper.jsonl")
    """file to which rows are appended, and whose rows are not measured again"""
    rows: tuple[Path, ...] = ()
    """with --show, the files (default: all in benchmarks/results)"""
    commits: tuple[str, ...] = ()
    """with --show, how the rows' commits begin; all: any (default: that of the newest row)"""
    plot: Path | None = None
    """draw a figure into this PNG, PDF or SVG file"""
    progress: bool = True
    """show progress"""

    def check(self) -> None:
        """Checks the numbers.

        Raises:
            ValueError: one is wrong.
        """
        at_least(1, self, "rounds", "warmup_steps")
        within(0, MAX_THREADS, self, "num_threads")
        if self.seconds is not None:
            above(0, self, "seconds")
        if self.steps < 10 or self.steps % 10:
            raise InvalidValue(f"expected steps to be a multiple of 10, got {self.steps}")
        if not self.show and (self.rows or self.commits):
            raise InvalidValue("expected --rows and --commits with --show")
        if wrong := [number for number in self.num_envs if number < 1]:
            raise InvalidValue(f"expected num_envs of at least 1, got {wrong[0]}")
        if self.plot is not None and REPORTS[self.report].draw is None:
            drawn = [name for name, report in REPORTS.items() if report.draw]
            raise InvalidValue(f"expected --plot with {', '.join(drawn)}, got {self.report}")


def engines_of(args: Args, devices: Sequence[str]) -> Sequence[str]:
    """The engines that are measured or shown.

    Raises:
        ValueError: cule is to be measured on a GPU, and there is none.
    """
    on_cpu = ENGINES[:-1]
    if args.show or devices != ["cpu"]:
        return args.engines or ENGINES
    if "cule" in args.engines:
        raise InvalidValue(f"expected a GPU for engine cule, or engines {' '.join(on_cpu)}")
    return args.engines or on_cpu


def columns_of(args: Args, engines: Sequence[str]) -> list[Column]:
    """The columns whose engine is wanted; where only cule's core on the CPU is, theirs is that."""
    own = "cule-cpu" if "cule" not in engines else "cule"
    chosen = [column for column in COLUMNS if not args.columns or column.name in args.columns]
    placed = [
        dataclasses.replace(column, engine=own) if column.engine == "cule" else column
        for column in chosen
    ]
    return [column for column in placed if column.engine in engines]


def choice_of(args: Args, report: Report, devices: Sequence[str]) -> Choice:
    """What is measured or shown.

    Raises:
        ValueError: an argument is wrong.
    """
    engines = engines_of(args, devices)
    games = cule.ATARI_57 if args.games == ("atari57",) else args.games
    several = (2, 4, 8) if args.show else (len(devices),)
    return Choice(
        engines=engines,
        games=[find_game(game).name for game in games] or report.games,
        num_envs=args.num_envs or report.num_envs, loads=args.loads,
        columns=columns_of(args, engines), seeds=args.seeds,
        gpus=[count for count in several if count > 1],
    )  # fmt: skip


def show(args: Args, report: Report, choice: Choice) -> None:
    """Prints what rows say, and draws it.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: there are no such rows.
    """
    found = rows.Found(
        rows.read(args.rows or sorted(RESULTS.glob("*.jsonl"))), args.commits, report.cases(choice)
    )
    text = report.text(choice, found)
    # A figure without a source would be none: rows may lack what is shown, such as evaluations.
    if not found.sources():
        places = ", ".join(map(str, args.rows or (RESULTS,)))
        raise InvalidValue(
            f"expected rows that have what {args.report} shows, got none in {places}"
        )
    print(f"{report.title}.\n\n{text}\n\n{found.sources()}")
    if args.plot is not None:
        assert report.draw is not None
        figure = new_figure(args.plot)
        report.draw(choice, found, figure)
        with replacing(args.plot) as file:
            figure.savefig(file, format=args.plot.suffix[1:])
        print(f"\nThe figure is in {args.plot}.")


def run(args: Args) -> int:
    """Measures and shows; the exit status.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: an argument is wrong.
    """
    args.check()
    if args.plot is not None:
        # Both fail before anything is measured, not after.
        new_figure(args.plot)
        check_output("--plot", args.plot)
    report = REPORTS[args.report]
    devices = ["cpu"] if args.show else devices_of(args.gpus, None)
    choice = choice_of(args, report, devices)
    status = 0
    if not args.show:
        cases = report.cases(choice)
        some = left(cases, args.results)
        sys.stderr.write(f"{args.report}: {len(some)} of {len(cases)} cases are left.\n")
        seconds = report.seconds if args.seconds is None else args.seconds
        budget = Budget(
            devices, seconds, args.rounds, args.warmup_steps, args.steps,
            args.num_threads or max(1, usable_cpus() // len(devices)), args.folder, args.results,
            args.progress,
        )  # fmt: skip
        try:
            status = measure(some, budget)
        except KeyboardInterrupt:
            again = results.command_line() or "run this command again"
            sys.stderr.write(f"Stopped. To go on: {again}\n")
            status = STOPPED
        # What it has measured, if anything: what failed has been told.
        args = dataclasses.replace(args, rows=(args.results,), commits=(results.commit(),))
        if len(left(cases, args.results)) == len(cases):
            return status
    show(args, report, choice)
    return status


def main(words: Sequence[str] | None = None) -> Any:
    """Runs the program; returns the exit status."""
    return run_program("python -m examples.a2c_vtrace.paper", Args, run, words)


if __name__ == "__main__":
    sys.exit(main())
