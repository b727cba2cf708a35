"""The case studies of RL-Scope (Gleeson et al., 2021), with the programs of today.

    python -m benchmarks.studies frameworks --cleanrl FOLDER --plot frameworks.png
    python -m benchmarks.studies algorithms
    python -m benchmarks.studies simulators
    python -m benchmarks.studies scale-up --workers 1 2 4

Each case is a training in a process of its own, some iterations of which cule.scope records. Its
operations are marked from outside. Each case appends a row to `--results`; what is not installed is
left out. docs/findings.md compares the tables with the paper's findings.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.studies import scale_up
from benchmarks.studies.case import Case, Options, row_of
from benchmarks.studies.tables import draw, tables
from cule.programs.command_line import check_output
from cule.programs.figures import new_figure, save_figure
from cule.programs.results import append_row
from cule.scope.calibration import calibrate
from cule.scope.costs import Costs

WITH_CASES = ("frameworks", "algorithms", "simulators")


def tell(text: str) -> None:
    """Says how it goes on."""
    print(text, file=sys.stderr, flush=True)


def cases_of(study: str) -> dict[str, Case]:
    """The cases of a study."""
    found: dict[str, Case] = importlib.import_module(f"benchmarks.studies.{study}").CASES
    return found


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.studies", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    usual = Options()
    add("study", choices=(*WITH_CASES, scale_up.STUDY))
    add("--systems", nargs="+", metavar="CASE", help="cases, or systems with all their cases "
        "(default: all that are installed)")  # fmt: skip
    add("--workers", nargs="+", type=int, default=[1, 2, 4], help="of scale-up: how many")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add("--num-envs", type=int, default=usual.num_envs)
    add("--num-steps", type=int, default=usual.num_steps, help="of an iteration, in each env")
    add("--epochs", type=int, default=usual.epochs, help="in which PPO learns from each step")
    add("--minibatches", type=int, default=usual.minibatches, help="of an epoch")
    add("--warm-up", type=int, default=usual.warm_up, help="iterations before the recording")
    add("--iterations", type=int, default=usual.iterations, help="that are recorded")
    add("--tries", type=int, default=3, help="rows of each case; tables have the median")
    add("--cleanrl", metavar="FOLDER", help="CleanRL's repository")
    add("--patience", type=float, default=600.0, help="most seconds of a case")
    add("--results", type=Path, default=Path("studies.jsonl"))
    add("--plot", type=Path, metavar="FILE")
    args = parser.parse_args(words)
    counts = (args.num_envs, args.num_steps, args.epochs, args.minibatches, args.iterations,
              args.tries, *args.workers)  # fmt: skip
    if min(counts) < 1 or args.warm_up < 2:
        parser.error("expected at least 1 as numbers, and at least 2 as --warm-up")
    if args.study == scale_up.STUDY:
        return args
    cases = cases_of(args.study)
    known = {*cases, *(case.says["system"] for case in cases.values())}
    if unknown := [name for name in args.systems or () if name not in known]:
        parser.error(f"expected --systems to be of {'; '.join(cases)}, got {unknown[0]}")
    return args


def chosen(args: argparse.Namespace, options: Options) -> dict[str, Case]:
    """The cases to record; says what is left out."""
    found = {}
    for name, case in cases_of(args.study).items():
        if args.systems and not {name, case.says["system"]} & set(args.systems):
            continue
        if lacking := case.lacks(options):
            tell(f"{name} is left out: it needs {lacking}")
        else:
            found[name] = case
    return found


def rows_of(args: argparse.Namespace, options: Options, costs: Costs) -> list[dict[str, Any]]:
    """Records all cases, and appends their rows."""
    if args.study == scale_up.STUDY:
        work: dict[str, Callable[[], dict[str, Any]]] = {
            scale_up.name_of(count): lambda count=count: scale_up.row_of(options, count, costs)
            for count in args.workers
        }
    else:
        work = {
            name: lambda name=name, case=case: row_of(
                args.study, name, case, options, costs, args.patience
            )
            for name, case in chosen(args, options).items()
        }
    rows = []
    for _ in range(args.tries):
        for name, measured in work.items():
            rows.append(measured())
            append_row(args.results, rows[-1])
            tell(f"{name}: {rows[-1].get('problem', 'recorded')}")
    return rows


def main(words: Sequence[str] | None = None) -> int:
    """Does what the command line asks for; returns the exit status."""
    args = parsed(words)
    figure = None
    if args.plot is not None:
        check_output("--plot", args.plot)
        figure = new_figure(args.plot)
    options = Options(
        args.device, args.num_envs, args.num_steps, args.epochs, args.minibatches, args.warm_up,
        args.iterations, args.cleanrl,
    )  # fmt: skip
    torch.set_num_threads(1)
    rows = rows_of(args, options, calibrate(None, 1, lambda _: None))
    sys.stdout.write(tables(args.study, rows))
    if figure is not None:
        draw(figure, rows)
        save_figure(figure, args.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
