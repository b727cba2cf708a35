"""Results as rows, which are written and read as JSON lines and shown as a table."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

import torch

from cule.bench.cases import OUTPUTS, SHOWN_MODES, Case
from cule.bench.kinds import OTHERS, others_of, ours_of
from cule.bench.measure import Measurement
from cule.bench.systems import CuleSystem
from cule.disk.json_lines import read_lines
from cule.errors import InvalidType, InvalidValue
from cule.programs.results import PROFILER, commit, machine, now
from cule.rom import find_game


@dataclass(frozen=True)
class Row:
    """One line of the results: one system in one case.

    benchmarks/results/README.md says what the keys mean.
    """

    commit: str
    date: str
    system: str
    mode: str
    device_name: str
    driver: str | None
    cuda: str | None
    torch: str
    game: str
    rom_md5: str
    num_envs: int
    frameskip: int
    fps: float | None
    steps_per_second: float | None
    command: str
    rounds: list[float] | None = None
    warmup_steps: int | None = None
    distinct_share: float | None = None
    bytes_per_env: int | None = None
    faulty_envs: int | None = None
    env_groups: int | None = None
    num_threads: int | None = None
    output: str | None = None
    error: str | None = None


# The types of a row's keys.
_TYPES: dict[str, tuple[type, ...]] = {
    field.name: {
        "str": (str,), "str | None": (str, NoneType), "int": (int,), "int | None": (int, NoneType),
        "float | None": (float, int, NoneType), "list[float] | None": (list, NoneType),
    }[str(field.type)]
    for field in dataclasses.fields(Row)
}  # fmt: skip


# Making -------------------------------------------------------------------------------------------


class RowMaker:
    """Makes the rows of a run, whose cases all have the same device."""

    def __init__(self, device: torch.device):
        self.commit, self.device = commit(), device

    def rows(self, case: Case, outcome: dict[str, Measurement] | str) -> Iterator[Row]:
        """A row for each system of the case; if `outcome` is a reason, rows of a failure."""
        for kind in [ours_of(case), *others_of(case)]:
            system = kind.name
            on_host = kind.on_host and case.mode != "with-policy"
            where = machine(torch.device("cpu") if on_host else self.device, case.num_threads)
            if isinstance(outcome, str):
                found: dict[str, Any] = {"fps": None, "steps_per_second": None, "error": outcome}
            else:
                fps = statistics.median(outcome[system].rounds)
                found = {
                    "fps": round(fps, 1), "steps_per_second": round(fps / case.frameskip, 1),
                    **dataclasses.asdict(outcome[system]),
                }  # fmt: skip
            yield Row(
                commit=self.commit, date=now(),
                system=system, mode=case.mode, torch=torch.__version__, game=case.game,
                rom_md5=find_game(case.game).md5, num_envs=case.num_envs, frameskip=case.frameskip,
                command=case.command, env_groups=case.env_groups or None,
                num_threads=case.num_threads,
                output=case.output if kind is CuleSystem else None, **where, **found,
            )  # fmt: skip


# Reading and showing ------------------------------------------------------------------------------


def _parse(values: dict[str, Any]) -> Row | None:
    """The row of a line; None for one of another mode, such as an evaluation, or of cule.scope."""
    mode = values.get("mode")
    if values.get("system") == PROFILER or (isinstance(mode, str) and mode not in SHOWN_MODES):
        return None
    row = Row(**{key: value for key, value in values.items() if key in _TYPES})
    for key, types in _TYPES.items():
        if not isinstance(value := getattr(row, key), types):
            wanted = " or ".join(kind.__name__ for kind in types)
            raise InvalidType(f"expected {key} to be {wanted}, got {value!r}")
    return row


def read_rows(paths: Iterable[Path]) -> list[Row]:
    """The rows of files, in their order.

    Unknown keys, such as those of training, are left out. So are rows of other modes, such as
    evaluations of trained policies, and of cule.scope. Damaged lines are left out, too, with a
    warning for each.

    Raises:
        ValueError: a file cannot be read, or has lines but no row.
    """
    rows: list[Row] = []
    for path in paths:
        try:
            lines = read_lines(path, _parse)
        except OSError as problem:
            wanted = "expected a file of results that can be read"
            raise InvalidValue(f"{wanted}, got {path}: {problem.strerror}") from problem
        if lines.damaged and not lines.good:
            number, error = lines.damaged[0]
            raise InvalidValue(f"expected a row of results, got line {number} of {path}: {error}")
        rows += [row for row in lines.usable("row of results") if row is not None]
    return rows


def _numbers(case: dict[str, Row], others: Sequence[str]) -> list[float]:
    """The numbers of a case's line in the table, NaN if one is not known."""
    row = case.get(CuleSystem.name)
    ours = row.fps if row else None
    found = [ours, row.steps_per_second, row.bytes_per_env] if row else [None] * 3
    for name in others:
        theirs = case[name].fps if name in case else None
        found += [theirs, ours / theirs if ours and theirs else None]
    return [math.nan if number is None else number for number in found]


def _median(numbers: Iterable[float]) -> float:
    known = [number for number in numbers if not math.isnan(number)]
    return statistics.median(known) if known else math.nan


def _line(name: str, num_envs: int, numbers: Sequence[float]) -> str:
    formats = [">14,.0f", ">12,.0f", ">12,.0f"] + [">14,.0f", ">8.2f"] * len(OTHERS)
    cells = [f"{name:<20}{num_envs:>10,}"]
    for form, number in zip(formats, numbers, strict=False):
        width = int(form[1:].partition(",")[0].partition(".")[0])
        cells.append(" " * width if math.isnan(number) else format(number, form))
    return "".join(cells).rstrip()


def _block(title: str, cases: Sequence[dict[str, Row]]) -> str:
    """The cases' lines, then the medians over games for each number of envs."""
    others = [kind.name for kind in OTHERS if any(kind.name in case for case in cases)]
    head = f"{'game':<20}{'envs':>10}{'cule FPS':>14}{'steps/s':>12}{'bytes/env':>12}"
    lines = [title, head + "".join(f"{name + ' FPS':>14}{'ratio':>8}" for name in others)]
    measured: dict[int, list[list[float]]] = {}
    for case in cases:
        row = next(iter(case.values()))
        if row.error:
            lines.append(f"{row.game:<20}{row.num_envs:>10,}  {row.error}")
            continue
        measured.setdefault(row.num_envs, []).append(_numbers(case, others))
        lines.append(_line(row.game, row.num_envs, measured[row.num_envs][-1]))
    for num_envs, of_games in measured.items():
        if len(of_games) > 1:
            medians = [_median(column) for column in zip(*of_games, strict=True)]
            lines.append(_line("median", num_envs, medians))
    return "\n".join(lines)


def table(rows: Iterable[Row]) -> str:
    """The rows as text, in a block for each mode, frameskip and device.

    If a command was run several times, its last rows count.
    """
    cases: dict[str, dict[str, Row]] = {}
    for row in rows:
        cases.setdefault(row.command, {})[row.system] = row
    blocks: dict[str, list[dict[str, Row]]] = {}
    for case in cases.values():
        row = next(iter(case.values()))
        title = f"{row.mode}, frameskip {row.frameskip}, {row.device_name}"
        if row.env_groups:
            title += f", {row.env_groups} groups of CPU envs, {row.num_threads} threads"
        if row.output not in (None, OUTPUTS[0]):
            title += f", output={row.output!r}"
        blocks.setdefault(title, []).append(case)
    return "\n\n".join(_block(title, of_block) for title, of_block in blocks.items())
