"""`python -m cule.scope`: records programs, and shows where their time went."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence

from cule.devices.device import find_device, usable_cpus
from cule.errors import InvalidValue
from cule.programs.command_line import check_output, run_main
from cule.programs.figures import new_figure
from cule.programs.results import append_row
from cule.scope import bars, calibration, check, compare, machine, perfetto, start, table
from cule.scope.activities import check_torch
from cule.scope.annotations import listen
from cule.scope.boundary import find_boundary
from cule.scope.costs import Costs
from cule.scope.counters import count
from cule.scope.depths import gpu_use
from cule.scope.instruments import INSTRUMENTS, instruments_with
from cule.scope.measures import measure
from cule.scope.names import process_name
from cule.scope.options import make_parser
from cule.scope.overlaps import overlaps_of
from cule.scope.program import program_of, run_recorded
from cule.scope.recorder import Recorder
from cule.scope.recording import Recording
from cule.scope.rows import json_rows, results_row
from cule.scope.storage import parts_of
from cule.scope.turns import Turns
from cule.scope.windows import Program


def _tell(text: str) -> None:
    print(f"measuring: {text}", file=sys.stderr, flush=True)


def _costs(options: argparse.Namespace) -> Costs | None:
    return None if options.calibration is None else Costs.read(options.calibration)


def run(options: argparse.Namespace) -> int:
    """Runs a program and records it; returns the program's exit status.

    Raises:
        ValueError: an argument is wrong.
    """
    if options.counters:
        return _count(options)
    words = program_of(options.command)
    for name in options.boundaries:
        find_boundary(name)
    if options.turns is not None:
        first, end = _wanted_iterations(options, "--turns")
        kinds = options.kinds or [INSTRUMENTS]
        turns = Turns(options.out, (first, end), options.turns, kinds, options.boundaries)
        return run_recorded(words, turns, options.markers)
    if options.memory:
        _wanted_iterations(options, "--memory")
    instruments = options.instruments
    if instruments is None:
        instruments = instruments_with(options.memory)
    recorder = Recorder(
        options.out, iterations=options.iterations, boundaries=options.boundaries,
        instruments=instruments, overwrite=options.overwrite, finish=options.finish,
        children=options.children and options.instruments is None,
        in_parts=options.instruments is None and not options.until_first,
    )  # fmt: skip
    if options.until_first:
        listen(start.UntilFirst(recorder))
        return run_recorded(words, recorder, options.markers)
    status = run_recorded(words, recorder, options.markers)
    if options.instruments is None and recorder.complete:
        print(f"The recording is in {options.out}: python -m cule.scope report {options.out}")
    return status


def _wanted_iterations(options: argparse.Namespace, why: str) -> tuple[int, int]:
    if options.iterations is None:
        raise InvalidValue(f"expected --iterations with {why}, got none")
    return options.iterations


def _count(options: argparse.Namespace) -> int:
    """Adds counters to a recording."""
    words = program_of(options.command)
    first, end = _wanted_iterations(options, "--counters")
    inner = [
        sys.executable, "-m", "cule.scope", "run", "--out", str(options.out / "counting"),
        "--overwrite", "--iterations", f"{first}:{end}", "--finish", "--no-markers",
        "--instruments", "range", "--", *words,
    ]  # fmt: skip
    counted = count(inner, options.out, process_name())
    print(f"The counters of {len(counted)} kernels are in {options.out}.")
    return 0


def report(options: argparse.Namespace) -> None:
    """Shows recordings.

    Raises:
        ValueError: an argument is wrong, or a recording is damaged.
    """
    for option, path in (("--plot", options.plot), ("--perfetto", options.perfetto)):
        if path is not None:
            check_output(option, path)
    if options.plot:
        new_figure(options.plot)  # fails before the work
    costs = _costs(options)
    if options.perfetto and len(options.folders) > 1 and not options.merge:
        raise InvalidValue(
            f"expected one folder, or --merge, with --perfetto, got {len(options.folders)} folders"
        )
    groups = [options.folders] if options.merge else [[folder] for folder in options.folders]
    recordings = [Recording(folders, costs, usable_cpus()) for folders in groups]
    alone = [] if options.alone is None else [
        one.process for one in Recording(options.alone, costs).processes
    ]  # fmt: skip
    for recording in recordings:
        processes = [one.process for one in recording.processes]
        if options.results is not None:
            append_row(options.results, results_row(recording))
        if options.json:
            for row in json_rows(recording):
                print(json.dumps(row))
            continue
        overlaps = [row for process in processes for row in overlaps_of(process, alone)]
        if len(recordings) > 1:
            print(f"{recording.folders[0]}\n")
        print(table.report(recording, gpu_use(processes), overlaps))
    if options.plot:
        bars.plot(
            {
                str(one.folders[0]): (one.breakdown(), one.processes[0].process.iterations)
                for one in recordings
            },
            options.plot,
        )
    if options.perfetto:
        # As they were recorded: Kineto's part of the trace is not corrected.
        for folders in groups:
            perfetto.write_traces(parts_of(folders), options.perfetto)


def show_start(options: argparse.Namespace) -> None:
    """Shows where the time from a command to its first iteration goes.

    Raises:
        ValueError: an argument is wrong, or the program does not get there.
    """
    words = program_of(options.command)
    for name in options.boundaries:
        find_boundary(name)
    if options.plot:
        check_output("--plot", options.plot)
        new_figure(options.plot)  # fails before the work
    found = start.run(words, options.boundaries, options.out)
    print(start.table(found))
    if options.plot:
        start.plot(found, options.plot)


def show_machine(options: argparse.Namespace) -> None:
    """Measures what a plan needs of this machine, and keeps it.

    Raises:
        ValueError: there is no such device.
    """
    found = measure(find_device(options.device))
    machine.save(found)
    print(json.dumps(dataclasses.asdict(found)) if options.json else machine.table(found))


def _measured(options: argparse.Namespace) -> Program:
    """The program that calibrate and check run."""
    words = program_of(options.command)
    return Program(words, options.iterations, options.boundaries, options.together)


def calibrate(options: argparse.Namespace) -> None:
    """Measures the costs of book-keeping, and writes them to a file.

    Raises:
        RuntimeError: the command fails.
        ValueError: an argument is wrong.
    """
    for name in options.boundaries:
        find_boundary(name)
    program = _measured(options) if options.command else None
    options.out.parent.mkdir(parents=True, exist_ok=True)
    check_output("--out", options.out)
    costs = calibration.calibrate(program, options.repeats, _tell)
    costs.write(options.out)
    print(f"annotation {costs.annotation:8.0f} ns\nboundary   {costs.boundary:8.0f} ns")
    print(f"operator   {costs.operator:8.0f} ns")
    for name, cost in costs.apis.items():
        print(f"{name:<24} {cost:8.0f} ns")
    print(f"The calibration is in {options.out}.")


def compare_two(options: argparse.Namespace) -> None:
    """Shows what became slower between two recordings.

    Raises:
        ValueError: a recording is damaged.
    """
    costs = _costs(options)
    before, after = (Recording(folder, costs) for folder in (options.before, options.after))
    print(compare.changes_table(compare.compare(before, after)))


def check_bias(options: argparse.Namespace) -> int:
    """Measures the bias; returns 1 if it is larger than RL-Scope's, else 0.

    Raises:
        RuntimeError: the command fails.
        ValueError: an argument is wrong.
    """
    program = _measured(options)
    bias = check.check(program, options.turns, _costs(options), _tell)
    print(check.sentence(bias))
    if options.results is not None:
        append_row(options.results, check.row_of(bias, program))
    return int(abs(bias.bias) > check.MOST_BIAS)


PROGRAMS: dict[str, Callable[[argparse.Namespace], int | None]] = {
    "run": run, "report": report, "start": show_start, "machine": show_machine,
    "calibrate": calibrate, "compare": compare_two, "check": check_bias,
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a program; returns the exit status."""

    def chosen(options: argparse.Namespace) -> int | None:
        check_torch()
        return PROGRAMS[options.program_name](options)

    return run_main(make_parser(), chosen, argv)


if __name__ == "__main__":
    sys.exit(main())
