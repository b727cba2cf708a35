"""The command line of `python -m cule.scope`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cule.programs.command_line import Parser, number

EXAMPLE = (
    "Example: python -m cule.scope run --out runs/scope --iterations 200:220 -- "
    "-m examples.a2c_vtrace.train --game pong --folder runs/x"
)


def iterations(text: str) -> tuple[int, int]:
    """Reads "200:220", from which iteration to before which one."""
    first, colon, end = text.partition(":")
    if colon and first.isdecimal() and end.isdecimal() and int(first) < int(end):
        return int(first), int(end)
    raise argparse.ArgumentTypeError(
        f"expected FIRST:END with FIRST less than END, such as 200:220, got {text!r}"
    )


def instruments(text: str) -> list[str]:
    """Reads "none" or names with commas between them."""
    return [] if text == "none" else text.split(",")


def _add_command(parser: Any, what: str) -> None:
    parser.add_argument(
        "command", nargs="*", metavar="COMMAND",
        help=f"{what}, after '--': -m MODULE ... or SCRIPT.py ..., as after 'python'",
    )  # fmt: skip
    parser.add_argument(
        "--boundary", action="append", default=[], metavar="MODULE[=LEVEL]", dest="boundaries",
        help="a module whose functions are a simulator's, besides those of cule, ale-py and "
        "EnvPool, or the backend's (MODULE=backend), besides torch's and JAX's; can be given "
        "several times",
    )  # fmt: skip


def _add_iterations(parser: Any, default: tuple[int, int] | None) -> None:
    text = "the whole program" if default is None else "{}:{}".format(*default)
    parser.add_argument(
        "--iterations", type=iterations, default=default, metavar="FIRST:END",
        help="which iterations, counted from 0, of those that the program marks by `with "
        f"scope.iteration():` (default: {text})",
    )  # fmt: skip


def _add_together(parser: Any) -> None:
    parser.add_argument(
        "--together", action="store_true",
        help="measure all windows in one run of the program, which is faster; else each window "
        "has a run of its own",
    )  # fmt: skip


def _add_run(programs: Any) -> None:
    parser = programs.add_parser("run", help="run a program and record it", epilog=EXAMPLE)
    _add_command(parser, "the program")
    _add_iterations(parser, None)
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="FOLDER", help="where the recording goes")
    add("--finish", action="store_true", help="end the program when the iterations are recorded")
    add("--overwrite", action="store_true", help="delete an older recording in the folder")
    add(
        "--children",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="record the Python processes that the program starts, too (default: yes)",
    )
    add("--memory", action="store_true", help="record what memory operations of torch take and "
        "give back, too, which makes them slower")  # fmt: skip
    add("--markers", action=argparse.BooleanOptionalAction, default=True,
        help="mark operations in CUDA graphs by tiny memsets, by which branches with the same "
        "kernels are told apart (default: yes)")  # fmt: skip
    add("--counters", action="store_true", help="add to a recording in the folder how many "
        "multiprocessors and issue slots were busy, which ncu counts while it runs the program "
        "again; two or three iterations are enough")  # fmt: skip
    # For start: the recording and the program end after the first iteration.
    add("--until-first", action="store_true", help=argparse.SUPPRESS)
    # For calibrate and check: which parts record, "none" or "range" for ncu; how many turns, and
    # what records in the windows of a turn.
    add("--instruments", type=instruments, help=argparse.SUPPRESS)
    add("--turns", type=number(int), help=argparse.SUPPRESS)
    add("--turn", type=instruments, action="append", dest="kinds", help=argparse.SUPPRESS)


def _add_report(programs: Any) -> None:
    parser = programs.add_parser("report", help="show a recording")
    add = parser.add_argument
    add("folders", nargs="+", type=Path, metavar="FOLDER", help="recordings")
    add("--merge", action="store_true", help="one report of all folders, such as those of several "
        "machines")  # fmt: skip
    add("--json", action="store_true", help="print rows as JSON lines instead of tables")
    add("--plot", type=Path, metavar="FILE", help="draw stacked bars into a PNG, PDF or SVG file")
    add("--perfetto", type=Path, metavar="FILE", help="write a trace for ui.perfetto.dev, which "
        "Holistic Trace Analysis reads, too; .json or .json.gz")  # fmt: skip
    add("--calibration", type=Path, metavar="FILE", help="take the book-keeping out, by what "
        "`calibrate` has measured")  # fmt: skip
    add("--results", type=Path, metavar="FILE", help="append a row with all figures to a file, as "
        "a JSON line")  # fmt: skip
    add("--alone", type=Path, metavar="FOLDER", help="a recording of the same program without "
        "overlap, by which to tell how much overlap slows operations")  # fmt: skip


def _add_start(programs: Any) -> None:
    parser = programs.add_parser(
        "start", help="where the time from a command to its first iteration goes"
    )
    _add_command(parser, "the program")
    add = parser.add_argument
    add("--out", type=Path, metavar="FOLDER", help="keep the recording there, for `report`")
    add("--plot", type=Path, metavar="FILE", help="draw the stages into a PNG, PDF or SVG file")


def _add_machine(programs: Any) -> None:
    parser = programs.add_parser(
        "machine", help="measure launches, copies, products and threads, and keep the figures for "
        "--explain of a training",
    )  # fmt: skip
    add = parser.add_argument
    add("--device", metavar="DEVICE", help="cpu or cuda (default: cuda if there is one)")
    add("--json", action="store_true", help="print the figures as JSON instead of tables")


def _add_others(programs: Any) -> None:
    parser = programs.add_parser("calibrate", help="measure what the book-keeping costs")
    _add_command(parser, "a program in which to measure it, too")
    _add_iterations(parser, (20, 40))
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the result")
    parser.add_argument(
        "--repeats", type=number(int), default=3, metavar="N",
        help="windows of the program for each part (default: %(default)s)",
    )  # fmt: skip
    _add_together(parser)

    parser = programs.add_parser("compare", help="what became slower between two recordings")
    parser.add_argument("before", type=Path, metavar="FOLDER")
    parser.add_argument("after", type=Path, metavar="FOLDER")
    parser.add_argument("--calibration", type=Path, metavar="FILE", help="take the book-keeping "
                        "out of both")  # fmt: skip

    parser = programs.add_parser(
        "check", help="how near corrected times are to those of uninstrumented runs"
    )
    _add_command(parser, "the program")
    _add_iterations(parser, (20, 40))
    add = parser.add_argument
    add("--turns", type=number(int), default=5, metavar="N",
        help="uninstrumented and instrumented runs (default: %(default)s)")  # fmt: skip
    add("--calibration", type=Path, metavar="FILE", help="what `calibrate` has measured "
        "(default: each turn has runs that calibrate, too)")  # fmt: skip
    _add_together(parser)
    add("--results", type=Path, metavar="FILE", help="append the result to a file, as a JSON line")


def make_parser() -> Parser:
    """The command line."""
    parser = Parser(
        prog="python -m cule.scope",
        description="Where the time of a training goes: by operation, on CPU and GPU, across "
        "Python, simulator, backend and CUDA, and inside CUDA graphs.",
        epilog=EXAMPLE,
    )
    programs = parser.add_subparsers(dest="program_name", metavar="PROGRAM", required=True)
    _add_run(programs)
    _add_report(programs)
    _add_start(programs)
    _add_machine(programs)
    _add_others(programs)
    return parser
