"""The command line of `python -m cule.bench`."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from cule.bench.cases import Case
from cule.bench.measure import Worker
from cule.bench.plot import new_figure, plot
from cule.bench.rows import Row, RowMaker, append_row, read_rows, table
from cule.bench.systems import others_of
from cule.command_line import Parser, check_output, number, run_main
from cule.device import find_device
from cule.rom import find_game, games

# Where results go: the checkout's folder; where there is none, the current folder.
RESULTS = Path("benchmarks/results")


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(
        prog="python -m cule.bench",
        description="Measures how many Atari frames a second cule emulates, and appends the results to a file. Actions "
        "are drawn at random on the device; every step delivers all observations, rewards and endings there. FPS are "
        "emulated frames per second of all consoles together; a step is four frames unless --frameskip says otherwise.",
        epilog="Example: python -m cule.bench pong breakout --num-envs 32 256 --device cpu --num-threads 2. "
        "A case that fails, as for lack of memory, gets a row that says why, and the next one goes on; the exit status "
        "is then 1.",
    )
    count, switch = number(int), argparse.BooleanOptionalAction

    def add(name: str, text: str, to: Any = parser, **settings: Any) -> None:
        shown = " (default: %(default)s)" if isinstance(settings.get("default"), (int, float)) else ""
        to.add_argument(name, help=text + shown, **settings)

    add("games", "games such as pong, ms_pacman or ALE/Pong-v5; 'all' for all 104", nargs="*", metavar="GAME")
    add("--num-envs", "consoles at once; each number is a case (default: 32)", nargs="+", type=count, default=[32],
        metavar="N")  # fmt: skip
    add("--device", "cpu, cuda or cuda:1 (default: cuda where there is one, else cpu)", metavar="D")
    mode = parser.add_mutually_exclusive_group()
    add("--emulation-only", "observe RAM (obs_type='ram') instead of pictures, which the engine is then free to leave "
        "out. Note that the CuLE paper's 'emulation only' is what is measured without this option: random actions, "
        "pictures and all", to=mode, action="store_true")  # fmt: skip
    add("--with-policy", "an untrained neural network, the Nature CNN, chooses the actions on the device: the CuLE "
        "paper's 'inference only'", to=mode, action="store_true")  # fmt: skip
    add("--seconds", "how long to measure each system in each case", type=number(float), default=5.0, metavar="S")
    add("--rounds", "rounds that make up these seconds; their median counts", type=count, default=5, metavar="R")
    add("--warmup-steps", "steps before measuring, at least: more are added while the games still spread out",
        type=count, default=300, metavar="N")  # fmt: skip
    add("--frameskip", "frames in a step", type=count, default=4, metavar="N")
    add("--num-threads", "CPU threads, for each system", type=count, default=2, metavar="T")
    add("--against-ale", "measure ale_py.AtariVectorEnv in turns with cule (default: on the CPU, but for "
        "--emulation-only)", action=switch)  # fmt: skip
    add("--against-envpool", "measure EnvPool, too (pip install envpool)", action="store_true")
    add("--against-original", "measure NVIDIA's CuLE 0.1, too, where torchcule can be imported (docs/benchmarks.md)",
        action="store_true")  # fmt: skip
    add("--results", f"where to append the results, as JSON lines (default: {RESULTS}/DATE.jsonl "
        "where that folder is there, as in a checkout, else cule-bench-DATE.jsonl)", type=Path,
        metavar="FILE")  # fmt: skip
    add("--plot", "draw FPS against the number of envs, boxes over games, into a PNG, PDF or SVG file (matplotlib: pip "
        "install 'cule[plot]')", type=Path, metavar="FILE")  # fmt: skip
    add("--from", "measure nothing: show and plot the results in these files", nargs="+", type=Path, dest="sources",
        metavar="FILE")  # fmt: skip
    add("--quiet", "no progress bar", action="store_true")
    return parser


def cases_of(options: argparse.Namespace) -> list[Case]:
    """The cases that the command line asks for, game by game.

    Raises:
        ValueError: if it asks for what there is not.
    """
    if not options.games:
        raise ValueError("expected a GAME, or 'all'; or --from with files of results")
    device = find_device(options.device)
    mode = "emulation-only" if options.emulation_only else "with-policy" if options.with_policy else "end-to-end"
    for name in ("ale", "envpool", "original"):
        if options.emulation_only and getattr(options, f"against_{name}"):
            raise ValueError(f"expected --emulation-only without --against-{name}, whose envs always observe pictures")
    against_ale = options.against_ale
    if against_ale is None:
        against_ale = device.type == "cpu" and not options.emulation_only
    names = [game.name for game in (games() if options.games == ["all"] else map(find_game, options.games))]
    cases = [
        Case(
            game=name, num_envs=num_envs, device=str(device), mode=mode, frameskip=options.frameskip,
            num_threads=options.num_threads, seconds=options.seconds, rounds=options.rounds,
            warmup_steps=options.warmup_steps, against_ale=against_ale, against_envpool=options.against_envpool,
            against_original=options.against_original,
        )
        for name in names
        for num_envs in options.num_envs
    ]  # fmt: skip
    for case in cases:
        for system in others_of(case):
            system.check(case)
    return cases


def default_results() -> Path:
    """Where results go unless --results says."""
    today = datetime.date.today().isoformat()
    return RESULTS / f"{today}.jsonl" if RESULTS.is_dir() else Path(f"cule-bench-{today}.jsonl")


def measured_rows(cases: Sequence[Case], bar: tqdm) -> Iterator[Row]:
    """The cases' rows, as they come."""
    maker = RowMaker(find_device(cases[0].device), cases[0].num_threads)
    with Worker() as worker:
        for case in cases:
            bar.set_description(f"{case.game} x {case.num_envs}")
            yield from maker.rows(case, worker.measure(case))
            bar.update()


def measure_and_append(options: argparse.Namespace) -> list[Row]:
    """Measures all cases and appends their rows to the file of results, each as soon as it is there.

    Raises:
        ValueError: if the command line asks for what there is not, or a row cannot be written.
    """
    cases = cases_of(options)
    results = options.results or default_results()
    try:
        results.parent.mkdir(parents=True, exist_ok=True)
        results.open("a").close()
    except OSError as error:
        raise ValueError(f"--results has to name a file that can be written: {results}: {error.strerror}") from error
    rows: list[Row] = []
    try:
        with tqdm(total=len(cases), unit="case", disable=options.quiet, file=sys.stderr) as bar:
            for row in measured_rows(cases, bar):
                rows.append(row)
                append_row(results, dataclasses.asdict(row))
    finally:
        # Also where the disk is full.
        if rows:
            print(table(rows))
    print(f"Appended {len(rows)} rows to {results}.")
    return rows


def run(options: argparse.Namespace) -> int:
    """Does what the command line asks for; 1 if a case failed, else 0.

    Raises:
        ValueError: if it asks for what there is not.
    """
    if options.plot:
        new_figure(options.plot)  # which fails before anything is measured, not after, and so does this
        check_output("--plot", options.plot)
    if options.sources:
        if options.games:
            raise ValueError(f"expected either games or --from, got {' '.join(options.games)} and --from")
        rows = read_rows(options.sources)
        print(table(rows))
    else:
        rows = measure_and_append(options)
    if options.plot:
        plot(rows, options.plot)
        print(f"The plot is in {options.plot}.")
    return int(not options.sources and any(row.error for row in rows))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark; returns the exit status."""
    interrupted = "interrupted; the rows of the cases before this one are written"
    return run_main(make_parser(), run, argv, interrupted)


if __name__ == "__main__":
    sys.exit(main())
