"""A case of a study: a training in a process of its own, some of whose iterations are recorded."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import importlib.util
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from benchmarks.studies.marks import Mark, Marks
from cule.programs.results import command_line, commit, machine, now
from cule.scope import Costs, Recording, iteration, record
from cule.scope.bias import iteration_times
from cule.scope.depths import gpu_use

Iterated = Callable[[], None]


@dataclass(frozen=True)
class Options:
    """What a study's cases have in common.

    Attributes:
        device: where networks are, and cule's envs.
        num_envs, num_steps: an iteration is so many steps of so many envs.
        epochs, minibatches: how often an iteration learns from each step, in how many parts.
        warm_up: iterations before the recorded ones; at least the last of them are timed.
        iterations: how many are recorded.
        cleanrl: a folder with CleanRL's repository.
    """

    device: str = "cpu"
    num_envs: int = 16
    num_steps: int = 32
    epochs: int = 2
    minibatches: int = 4
    warm_up: int = 8
    iterations: int = 8
    cleanrl: str | None = None


@dataclass(frozen=True)
class Case:
    """A training that is recorded.

    Attributes:
        run: `run(options, iterated)` trains for ever, and calls `iterated()` after each iteration.
        says: what its row says of it; "system" is whose program it is.
        marks: its operations.
        needs: packages that have to be installed; the row has the version of the first.
        boundaries: modules of its simulator, as of cule.scope.record.
        names: other names of operations that the program itself marks; "": of no operation.
        on: devices on which there is such a case.
    """

    run: Callable[[Options, Iterated], None]
    says: Mapping[str, Any]
    marks: Sequence[Mark] = ()
    needs: tuple[str, ...] = ()
    boundaries: tuple[str, ...] = ()
    names: Callable[[str], str] = str
    on: tuple[str, ...] = ("cpu", "cuda")

    def lacks(self, options: Options) -> str | None:
        """What is not there for it; None: nothing."""
        if options.device.partition(":")[0] not in self.on:
            return f"a device of the kind {', '.join(self.on)}"
        if "CleanRL" in self.says["system"] and options.cleanrl is None:
            return "--cleanrl FOLDER"
        missing = [name for name in self.needs if importlib.util.find_spec(name) is None]
        return missing[0] if missing else None


class Enough(Exception):
    """All iterations are recorded."""


class Iterations:
    """Marks iterations; it is called at the end of each.

    Args:
        marks: the operations.
        count: after so many it raises Enough.
    """

    def __init__(self, marks: Marks, count: int):
        self._marks, self._left = marks, count
        # The first one includes the start, and is none.
        self._open: iteration | None = None

    def __call__(self) -> None:
        self._marks.iteration_ended()
        if self._open is not None:
            self._open.__exit__()
            self._left -= 1
        if not self._left:
            raise Enough
        self._open = iteration()
        self._open.__enter__()


def train(study: str, name: str, options: Options, folder: str, pipe: Connection) -> None:
    """Trains and records; the main function of a case's process."""
    sys.stdout = sys.stderr  # what libraries print is no result
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    case: Case = importlib.import_module(f"benchmarks.studies.{study}").CASES[name]
    end = options.warm_up + options.iterations
    problem = None
    try:
        iterated = Iterations(Marks(case.marks), end)
        with record(
            folder, iterations=(options.warm_up, end), boundaries=case.boundaries, children=False
        ):
            case.run(options, iterated)
    except Enough:
        pass
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"[:300]
    pipe.send(problem)


def recorded(
    study: str, name: str, options: Options, costs: Costs, patience: float, folder: Path
) -> Recording | str:
    """Records a case; a text says why there is no recording.

    Args:
        study: the module that has the case.
        name: the case.
        options: of the study.
        costs: of the book-keeping, which are taken out.
        patience: the most seconds.
        folder: of the recording.
    """
    context = multiprocessing.get_context("spawn")
    pipe, its = context.Pipe()
    process = context.Process(target=train, args=(study, name, options, str(folder), its))
    process.start()
    its.close()
    try:
        if not pipe.poll(patience):
            return f"it takes longer than {patience:g} s"
        problem = pipe.recv()
    except EOFError:
        process.join(10)
        return f"its process ended with status {process.exitcode}"
    finally:
        process.join(10)
        if process.is_alive():
            process.kill()
            process.join()
    return problem or Recording(folder, costs)


def head_of(study: str, options: Options, says: Mapping[str, Any]) -> dict[str, Any]:
    """The begin of a row: what, when and where."""
    settings = dataclasses.asdict(options)
    del settings["cleanrl"]  # a folder of this machine
    return {
        "commit": commit(), "date": now(), "mode": f"study-{study}", **says,
        **machine(torch.device(options.device), 1), "torch": torch.__version__, **settings,
        "command": command_line(),
    }  # fmt: skip


def body_of(recording: Recording, names: Callable[[str], str] = str) -> dict[str, Any]:
    """The rest of a row: where the time of a recording's first process went."""
    first = recording.processes[0]
    name, count = first.process.name, max(first.process.iterations, 1)
    parts: dict[tuple[str, str, str], float] = {}
    for row in recording.breakdown():
        if row.process == name:
            part = (names(row.operation), row.resource, row.level)
            parts[part] = parts.get(part, 0) + 1e3 * row.seconds / count
    calls: dict[tuple[str, str, str], float] = {}
    for one in recording.transitions():
        if one.process == name:
            call = (names(one.operation), one.source, one.target)
            calls[call] = calls.get(call, 0) + one.count / count
    use = gpu_use([one.process for one in recording.processes])
    return {
        "iteration_milliseconds": round(1e3 * first.seconds / count, 4),
        "all_milliseconds": [round(one, 4) for one in iteration_times(first.process)],
        "recorded_milliseconds": round(1e3 * first.recorded_seconds / count, 4),
        "reference": first.process.about.get("reference"),
        "breakdown": [[*part, round(value, 5)] for part, value in parts.items()],
        "transitions": [[*call, round(value, 3)] for call, value in calls.items()],
        "gpu_use": [dataclasses.asdict(one) for one in use],
        "problems": recording.problems,
    }  # fmt: skip


def row_of(
    study: str, name: str, case: Case, options: Options, costs: Costs, patience: float
) -> dict[str, Any]:
    """Records a case; returns its row, which has a "problem" if it could not be recorded."""
    versions = {
        "case": name, "version": importlib.metadata.version(case.needs[0]) if case.needs else None
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        found = recorded(study, name, options, costs, patience, Path(folder) / "recording")
        row = head_of(study, options, {**case.says, **versions})
        return row | ({"problem": found} if isinstance(found, str) else body_of(found, case.names))
