"""Rows of studies as Markdown tables and stacked bars."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from benchmarks.studies.marks import BACKPROPAGATION, INFERENCE, SIMULATION
from cule.scope.events import LEVELS, UNATTRIBUTED

Row = Mapping[str, Any]
Column = tuple[str, Callable[[Row], str]]
_ZEROS = {"0", "0.0%", "0.000"}
OPERATIONS = (INFERENCE, SIMULATION, BACKPROPAGATION)


def share(row: Row, operation: str | None = None, level: str | None = None) -> float:
    """The share of an iteration that an operation takes, and in it a level of the CPU's.

    Args:
        row: of a case.
        operation: its name; None: all.
        level: one of LEVELS; None: all time.
    """
    return _share(row, lambda of, _, its: operation in (None, of) and level in (None, its))


def gpu_share(row: Row, operation: str | None = None) -> float:
    """The share of an iteration in which the GPU works for an operation; None: for any."""
    return _share(row, lambda of, what, _: operation in (None, of) and what in ("gpu", "both"))


def _share(row: Row, counts: Callable[[str, str, str], bool]) -> float:
    total = sum(value for *_, value in row["breakdown"])
    return sum(value for *part, value in row["breakdown"] if counts(*part)) / total


def transitions(row: Row, source: str, target: str, operation: str | None = None) -> float:
    """How often an iteration goes from one level to another, in an operation or in all."""
    return sum(
        count
        for of, one, other, count in row["transitions"]
        if (one, other) == (source, target) and operation in (None, of)
    )


def unrecorded(row: Row) -> float:
    """Milliseconds of an iteration: the median of those before the recording."""
    return float(statistics.median(row["reference"]["times"]))


def middle_tries(rows: Iterable[Row]) -> list[Row]:
    """Of each case that was recorded, the try with the median of `unrecorded`."""
    tries: dict[str, list[Row]] = {}
    for row in rows:
        if "problem" not in row:
            tries.setdefault(row["case"], []).append(row)
    return [sorted(some, key=unrecorded)[(len(some) - 1) // 2] for some in tries.values()]


def markdown(columns: Sequence[Column], rows: Iterable[Any], left: int = 1) -> str:
    """A table; the first `left` columns are texts, the others numbers.

    Columns of zeros are left out, such as those of GPUs where there is none.
    """
    found = list(rows)
    shown = [(title, [text(row) for row in found]) for title, text in columns]
    shown = shown[:left] + [one for one in shown[left:] if set(one[1]) - _ZEROS]
    lines = [[title for title, _ in shown]]
    lines.append(["---"] * left + ["---:"] * (len(shown) - left))
    lines += [[cells[place] for _, cells in shown] for place in range(len(found))]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def _level(title: str, level: str) -> Column:
    return title, lambda row: _percent(share(row, level=level))


def _operation(operation: str) -> Column:
    return operation, lambda row: _percent(share(row, operation))


def _count(title: str, source: str, target: str) -> Column:
    return title, lambda row: f"{transitions(row, source, target):,.0f}"


_NAME: Column = ("case", lambda row: row["case"])
_MILLISECONDS: Column = ("ms an iteration", lambda row: f"{unrecorded(row):,.1f}")
_GPU: Column = ("GPU", lambda row: _percent(gpu_share(row)))
_LEVELS = (
    _level("Python", "python"), _level("simulator", "simulator"), _level("backend", "backend"),
    _level("CUDA API", "cuda_api"),
)  # fmt: skip
_ALL_OPERATIONS = (
    *map(_operation, OPERATIONS), ("around", lambda row: _percent(share(row, UNATTRIBUTED)))
)  # fmt: skip
_TRANSITIONS = (
    _count("Python to backend", "python", "backend"),
    _count("Python to simulator", "python", "simulator"),
    _count("backend to CUDA API", "backend", "cuda_api"),
)
COLUMNS: dict[str, tuple[Column, ...]] = {
    "frameworks": (_NAME, _MILLISECONDS, *_LEVELS, _GPU, *_TRANSITIONS),
    "algorithms": (
        _NAME, ("policy", lambda row: row["policy"]), ("task", lambda row: row["task"]),
        _MILLISECONDS, *_ALL_OPERATIONS, *_LEVELS, _GPU,
    ),
    "simulators": (
        _NAME, ("task", lambda row: row["task"]), _MILLISECONDS, *_ALL_OPERATIONS, *_LEVELS, _GPU,
    ),
}  # fmt: skip
TEXTS = {"frameworks": 1, "algorithms": 3, "simulators": 2}


def by_operation(rows: Iterable[Row]) -> str:
    """A table with a line for each operation of each case."""
    Cell = tuple[Row, str]

    def level(title: str, name: str) -> tuple[str, Callable[[Cell], str]]:
        return title, lambda cell: _percent(share(*cell, name))

    columns: tuple[tuple[str, Callable[[Cell], str]], ...] = (
        ("case", lambda cell: cell[0]["case"]), ("operation", lambda cell: cell[1]),
        ("share", lambda cell: _percent(share(*cell))), level("Python", "python"),
        level("simulator", "simulator"), level("backend", "backend"),
        level("CUDA API", "cuda_api"), ("GPU", lambda cell: _percent(gpu_share(*cell))),
        ("Python to backend",
         lambda cell: f"{transitions(cell[0], 'python', 'backend', cell[1]):,.0f}"),
    )  # fmt: skip
    cells = [(row, one) for row in rows for one in (*OPERATIONS, UNATTRIBUTED)]
    return markdown(columns, cells, 2)


def processes_table(row: Row) -> str:
    """A table with a line for each process of a training in many."""

    def seconds(title: str, key: str) -> tuple[str, Callable[[Row], str]]:
        return title, lambda one: f"{one[key]:.3f}"

    columns = (
        ("process", lambda one: one["process"]), seconds("seconds", "seconds"),
        *(seconds(level.replace("_", " "), level) for level in LEVELS),
        seconds("kernels", "gpu_seconds"),
    )  # fmt: skip
    return markdown(columns, row["processes"])


def use_sentences(row: Row) -> list[str]:
    """How much of each GPU was used: as nvidia-smi says it, and in truth."""
    return [
        f"{row['case']}, {use['gpu']}: nvidia-smi says "
        + ("nothing" if use["nvml"] is None else f"{use['nvml']:.1f}%")
        + f", kernels ran {use['kernels']:.1f}% of the time"
        for use in row["gpu_use"]
    ]


def tables(study: str, rows: Sequence[Row]) -> str:
    """All tables of a study's rows, of the middle tries."""
    found = middle_tries(rows)
    if study == "scale-up":
        parts = [
            part
            for row in found
            for part in (f"{row['case']}:\n", processes_table(row), *use_sentences(row))
        ]
        return "\n".join(parts).rstrip() + "\n"
    made = markdown(COLUMNS[study], found, TEXTS[study])
    return made if study != "frameworks" else f"{made}\n{by_operation(found)}"


COLORS = {
    INFERENCE: "#4c78a8", SIMULATION: "#f58518", BACKPROPAGATION: "#54a24b",
    "self-play": "#b279a2", "SGD updates": "#9d755d", "evaluation": "#e45756",
    UNATTRIBUTED: "#d0d0d0",
}  # fmt: skip
PATTERNS = {
    "python": "", "simulator": "///", "backend": "...", "cuda_api": "xxx", "waiting": "---",
    "": "ooo",
}  # fmt: skip
_TITLES = {"cuda_api": "CUDA API", "": "the GPU alone"}


def draw(figure: Any, rows: Sequence[Row]) -> None:
    """Draws a bar for each case: colors are operations, patterns levels.

    Args:
        figure: an empty figure of matplotlib.
        rows: of one study.
    """
    from matplotlib.patches import Patch

    found = middle_tries(rows)
    figure.set_size_inches(8, 1.8 + 0.35 * len(found))
    axes, seen = figure.subplots(), set()
    for place, row in enumerate(found):
        left = 0.0
        order = list(COLORS)
        parts: dict[tuple[str, str], float] = {}
        for operation, _, level, _ in row["breakdown"]:
            parts[operation, level] = share(row, operation, level)
        for operation, level in sorted(parts, key=lambda part: (order.index(part[0]), part[1])):
            width = 100 * parts[operation, level]
            axes.barh(place, width, left=left, color=COLORS[operation], edgecolor="white",
                      linewidth=0.5, hatch=PATTERNS[level])  # fmt: skip
            left += width
            seen |= {operation, level}
    axes.set_yticks(range(len(found)), [row["case"] for row in found])
    axes.invert_yaxis()
    axes.set_xlabel("percent of an iteration")
    entries = [Patch(facecolor=COLORS[one], label=one) for one in COLORS if one in seen]
    entries += [
        Patch(facecolor="white", edgecolor="gray", hatch=PATTERNS[one],
              label=_TITLES.get(one, one))
        for one in PATTERNS if one in seen
    ]  # fmt: skip
    figure.legend(handles=entries, loc="outside lower center", ncols=4, fontsize="small")
