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

from cule.bench.cases import MODES, OUTPUTS, Case
from cule.bench.kinds import others_of
from cule.bench.measure import Worker
from cule.bench.plot import plot
from cule.bench.rows import Row, RowMaker, read_rows, table
from cule.devices.device import find_device
from cule.errors import InvalidValue
from cule.programs.command_line import Parser, check_output, number, run_main
from cule.programs.figures import new_figure
from cule.programs.results import append_row
from cule.rom import find_game, games

# The folder for results in a checkout. Outside of one, results go to the current folder.
RESULTS = Path("benchmarks/results")


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(
        prog="python -m cule.bench",
        description="Measures how many Atari frames a second cule emulates, and appends the "
        "results to a file. Actions are drawn at random on the device; every step delivers all "
        "observations, rewards and ends of episodes there. FPS are emulated frames per second of "
        "all consoles together; a step is four frames unless --frameskip says otherwise.",
        epilog="Example: python -m cule.bench pong breakout --num-envs 32 256 --device cpu "
        "--num-threads 2. A case that fails, as for lack of memory, gets a row that says why, and "
        "the next case follows; the exit status is then 1.",
    )
    parser.add_argument(
        "games", nargs="*", metavar="GAME",
        help="games such as pong, ms_pacman or ALE/Pong-v5; 'all' for all 104",
    )  # fmt: skip
    _add_case_options(parser)
    _add_result_options(parser)
    return parser


def _adder(parser: Any) -> Any:
    """Adds an option to `parser`; a number's help text ends with its default."""

    def add(name: str, text: str, **settings: Any) -> None:
        if isinstance(settings.get("default"), (int, float)):
            text += " (default: %(default)s)"
        parser.add_argument(name, help=text, **settings)

    return add


def _add_case_options(parser: Parser) -> None:
    """Adds the options that say what is measured, and how long."""
    count, add, mode = number(int), _adder(parser), _adder(parser.add_mutually_exclusive_group())
    add("--num-envs", "consoles at once; each number is a case (default: 32)", nargs="+",
        type=count, default=[32], metavar="N")  # fmt: skip
    add("--device", "cpu, cuda or cuda:1 (default: cuda if there is one, else cpu)", metavar="D")
    mode("--emulation-only", "observe RAM (obs_type='ram') instead of pictures, which the engine "
         "may then leave out. The CuLE paper's 'emulation only' is what is measured without this "
         "option: random actions, with pictures", action="store_true")  # fmt: skip
    mode("--with-policy", "an untrained neural network, the Nature CNN, chooses the actions on "
         "the device: the CuLE paper's 'inference only'", action="store_true")  # fmt: skip
    mode("--with-training", "the network also learns from what it plays, with envs on the CPU "
         "(--env-groups)", action="store_true")  # fmt: skip
    add("--env-groups", "with --with-policy or --with-training: the envs are on the CPU, in so "
        "many groups that are in flight while the network on the device acts for others; EnvPool "
        "gets batches of that size; each is a case (default with --with-training: 1)", nargs="+",
        type=count, default=[], metavar="K")  # fmt: skip
    add("--seconds", "how long to measure each system in each case", type=number(float),
        default=5.0, metavar="S")  # fmt: skip
    add("--rounds", "into how many rounds these seconds are divided; the median round counts",
        type=count, default=5, metavar="R")  # fmt: skip
    add("--warmup-steps", "least number of steps before measuring: more are added while the envs' "
        "states still become more different, but not with --env-groups",
        type=count, default=300, metavar="N")  # fmt: skip
    add("--output", "what cule's steps return: its own tensors, or new ones (default: "
        "torch_shared; AtariEnv's is torch)", choices=OUTPUTS)  # fmt: skip
    add("--frameskip", "frames in a step", type=count, default=4, metavar="N")
    add("--num-threads", "CPU threads, for each system; each number is a case (default: 2)",
        nargs="+", type=count, default=[2], metavar="T")  # fmt: skip
    add("--against-ale", "measure ale_py.AtariVectorEnv in turns with cule (default: on the CPU, "
        "except with --emulation-only)", action=argparse.BooleanOptionalAction)  # fmt: skip
    add("--against-envpool", "measure EnvPool, too (pip install envpool)", action="store_true")
    add("--against-original", "measure NVIDIA's CuLE 0.1, too; torchcule must be importable "
        "(docs/benchmarks.md)", action="store_true")  # fmt: skip


def _add_result_options(parser: Parser) -> None:
    """Adds the options for the output of results."""
    add = _adder(parser)
    add("--results", f"where to append the results, as JSON lines (default: {RESULTS}/DATE.jsonl "
        "if that folder exists, as in a checkout, else cule-bench-DATE.jsonl)", type=Path,
        metavar="FILE")  # fmt: skip
    add("--plot", "draw FPS against the number of envs, boxes over games, into a PNG, PDF or SVG "
        "file (pip install matplotlib)", type=Path, metavar="FILE")  # fmt: skip
    add("--from", "measure nothing: show and plot the results in these files", nargs="+",
        type=Path, dest="sources", metavar="FILE")  # fmt: skip
    add("--quiet", "no progress bar", action="store_true")


def cases_of(options: argparse.Namespace) -> list[Case]:
    """The cases that the command line asks for, game by game.

    Raises:
        ValueError: if an argument is wrong.
    """
    if not options.games:
        raise InvalidValue("expected a GAME, or 'all'; or --from with files of results")
    device = find_device(options.device)
    asked = [name for name in MODES[1:] if getattr(options, name.replace("-", "_"))]
    mode = asked[0] if asked else MODES[0]
    groups = _groups_of(options, mode)
    for name in ("ale", "envpool", "original"):
        if options.emulation_only and getattr(options, f"against_{name}"):
            raise InvalidValue(
                f"expected --emulation-only without --against-{name}, whose envs always observe "
                "pictures"
            )
    against_ale = options.against_ale
    if against_ale is None:
        on_cpu = device.type == "cpu" or groups != [0]
        against_ale = on_cpu and not options.emulation_only
    names = [
        game.name
        for game in (games() if options.games == ["all"] else map(find_game, options.games))
    ]
    cases = [
        Case(
            game=name, num_envs=num_envs, device=str(device), mode=mode,
            frameskip=options.frameskip,
            num_threads=num_threads, seconds=options.seconds, rounds=options.rounds,
            warmup_steps=options.warmup_steps, against_ale=against_ale,
            against_envpool=options.against_envpool,
            against_original=options.against_original, env_groups=env_groups,
            output=options.output or OUTPUTS[0],
        )
        for name in names
        for num_envs in options.num_envs
        for env_groups in groups
        for num_threads in options.num_threads
    ]  # fmt: skip
    for case in cases:
        for system in others_of(case):
            system.check(case)
    return cases


def _groups_of(options: argparse.Namespace, mode: str) -> list[int]:
    """The numbers of groups of CPU envs; [0]: the envs step together, where the device is.

    Raises:
        ValueError: the groups do not fit the other options.
    """
    groups = options.env_groups or ([1] if mode == "with-training" else [0])
    if groups == [0]:
        return groups
    if mode not in ("with-policy", "with-training"):
        raise InvalidValue(
            f"expected --env-groups with --with-policy or --with-training, got it with mode {mode}"
        )
    if options.output:
        raise InvalidValue(
            "expected --env-groups without --output, as groups in flight are not copied, got "
            f"{options.output}"
        )
    if options.against_original:
        raise InvalidValue(
            "expected --env-groups without --against-original, whose envs step at once"
        )
    for num_envs in options.num_envs:
        for count in groups:
            if num_envs % count:
                raise InvalidValue(
                    f"expected --env-groups to divide --num-envs ({num_envs}), got {count}"
                )
    return groups


def default_results() -> Path:
    """The file for results without --results."""
    today = datetime.date.today().isoformat()
    return RESULTS / f"{today}.jsonl" if RESULTS.is_dir() else Path(f"cule-bench-{today}.jsonl")


def measured_rows(cases: Sequence[Case], bar: tqdm) -> Iterator[Row]:
    """The cases' rows, each as soon as it is measured."""
    maker = RowMaker(find_device(cases[0].device))
    with Worker() as worker:
        for case in cases:
            bar.set_description(f"{case.game} x {case.num_envs}")
            yield from maker.rows(case, worker.measure(case))
            bar.update()


def measure_and_append(options: argparse.Namespace) -> list[Row]:
    """Measures all cases and appends each row to the file of results as soon as it is measured.

    Raises:
        ValueError: if an argument is wrong, or a row cannot be written.
    """
    cases = cases_of(options)
    results = options.results or default_results()
    check_output("--results", results, makes_folder=True)
    rows: list[Row] = []
    try:
        with tqdm(total=len(cases), unit="case", disable=options.quiet, file=sys.stderr) as bar:
            for row in measured_rows(cases, bar):
                rows.append(row)
                append_row(results, dataclasses.asdict(row))
    finally:
        # Also if the disk is full.
        if rows:
            print(table(rows))
    print(f"Appended {len(rows)} rows to {results}.")
    return rows


def run(options: argparse.Namespace) -> int:
    """Does what the command line asks for; 1 if a case failed, else 0.

    Raises:
        ValueError: if an argument is wrong.
    """
    if options.plot:
        # Both fail before anything is measured, not after.
        new_figure(options.plot)
        check_output("--plot", options.plot)
    if options.sources:
        if options.games:
            raise InvalidValue(
                f"expected either games or --from, got {' '.join(options.games)} and --from"
            )
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
