"""Stacked bars of where the time goes, as in RL-Scope's figures 4 and 5.

A bar for each operation, a group of bars for each recording. Colors are resources, patterns the
levels of the CPU's part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cule.programs.figures import new_figure, save_figure
from cule.scope.breakdown import Row

_COLORS = {"cpu": "#4c78a8", "both": "#72b7b2", "gpu": "#f58518", "none": "#d0d0d0"}
_PATTERNS = {
    "python": "", "simulator": "///", "backend": "...", "cuda_api": "xxx", "waiting": "---", "": "",
}  # fmt: skip
_NAMES = {
    "cpu": "CPU", "both": "CPU and GPU", "gpu": "GPU", "none": "neither", "python": "Python",
    "simulator": "simulator", "backend": "backend", "cuda_api": "CUDA API", "waiting": "waiting",
}  # fmt: skip
HEIGHT, BAR_WIDTH, LEAST_WIDTH = 4.8, 0.9, 6.4  # inches


def segments(rows: Sequence[Row], iterations: int) -> dict[str, dict[tuple[str, str], float]]:
    """Milliseconds an iteration by operation, and by resource and level."""
    bars: dict[str, dict[tuple[str, str], float]] = {}
    for row in rows:
        of_operation = bars.setdefault(row.operation, {})
        cell = (row.resource, row.level)
        of_operation[cell] = of_operation.get(cell, 0) + 1e3 * row.seconds / max(iterations, 1)
    return bars


def _draw(axes: Any, place: int, of_operation: Mapping[tuple[str, str], float]) -> None:
    bottom = 0.0
    order = list(_COLORS)
    for (resource, level), height in sorted(
        of_operation.items(), key=lambda one: (order.index(one[0][0]), one[0][1])
    ):
        axes.bar(
            place, height, bottom=bottom, width=0.8, color=_COLORS[resource], edgecolor="white",
            linewidth=0.5, hatch=_PATTERNS[level],
        )  # fmt: skip
        bottom += height
    axes.text(place, bottom, f"{bottom:.3g}", ha="center", va="bottom", fontsize="small")


def _legend(axes: Any, cells: set[tuple[str, str]]) -> None:
    from matplotlib.patches import Patch

    resources = [one for one in _COLORS if any(cell[0] == one for cell in cells)]
    levels = [one for one in _PATTERNS if one and any(cell[1] == one for cell in cells)]
    entries = [Patch(facecolor=_COLORS[one], label=_NAMES[one]) for one in resources]
    entries += [
        Patch(facecolor="white", edgecolor="gray", hatch=_PATTERNS[one], label=_NAMES[one])
        for one in levels
    ]
    axes.legend(handles=entries, fontsize="small", ncols=2)


def plot(recordings: Mapping[str, tuple[Sequence[Row], int]], path: Path) -> None:
    """Draws the bars into a PNG, PDF or SVG file.

    Args:
        recordings: rows and iterations of each recording, by its name.
        path: the file.

    Raises:
        ValueError: matplotlib is missing, or the file cannot be written.
    """
    figure = new_figure(path)
    groups = {name: segments(rows, count) for name, (rows, count) in recordings.items()}
    bars = [
        (name, operation, of_operation)
        for name, operations in groups.items()
        for operation, of_operation in sorted(
            operations.items(), key=lambda one: -sum(one[1].values())
        )
    ]
    width = max(LEAST_WIDTH, BAR_WIDTH * (len(bars) + len(groups)))
    figure.set_size_inches(width, HEIGHT)
    axes = figure.subplots()
    places, place, before = [], 0, None
    for name, _, of_operation in bars:
        place += 1 if before in (None, name) else 2
        before = name
        places.append(place)
        _draw(axes, place, of_operation)
    several = len(groups) > 1
    axes.set_xticks(
        places,
        [f"{operation}\n{name}" if several else operation for name, operation, _ in bars],
        rotation=30, ha="right",
    )  # fmt: skip
    axes.set_ylabel("milliseconds an iteration")
    axes.margins(y=0.15)
    _legend(axes, {cell for _, _, of_operation in bars for cell in of_operation})
    save_figure(figure, path)
