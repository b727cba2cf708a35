"""A plot of FPS against the number of envs, as in figure 2 of the CuLE paper.

There is a panel for each mode, with a box for each number of envs. A box shows the slowest game,
the quartiles and the fastest game.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cule.bench.cases import MODES
from cule.bench.rows import Row
from cule.errors import InvalidValue
from cule.programs.figures import new_figure, save_figure

PANEL_WIDTH, HEIGHT = 6.4, 4.8  # inches
GROUP_WIDTH = 0.8  # of the distance between two numbers of envs


def boxes(rows: Iterable[Row]) -> dict[str, dict[str, dict[int, list[float]]]]:
    """FPS of the games by mode, by system and device, and by number of envs.

    CPU envs under a learner have a name of their own for each number of groups.

    If a case was measured several times, its last row counts.
    """
    latest = {
        (
            row.mode,
            f"{row.system}, {row.device_name}, frameskip {row.frameskip}{_groups(row)}",
            row.num_envs,
            row.game,
        ): row.fps
        for row in rows
        if row.fps is not None
    }
    found: dict[str, dict[str, dict[int, list[float]]]] = {}
    for (mode, series, num_envs, _), fps in latest.items():
        found.setdefault(mode, {}).setdefault(series, {}).setdefault(num_envs, []).append(fps)
    return found


def _groups(row: Row) -> str:
    return f", CPU envs in {row.env_groups} groups" if row.env_groups else ""


def plot(rows: Iterable[Row], path: Path) -> None:
    """Draws the rows into a file, in the format that its suffix names.

    Raises:
        ValueError: no row has been measured, matplotlib is not installed, or the file cannot be
            written.
    """
    figure = new_figure(path)
    panels = boxes(rows)
    if not panels:
        raise InvalidValue("expected --plot to have a case that has been measured, got none")
    modes = sorted(
        panels, key=lambda mode: (MODES.index(mode) if mode in MODES else len(MODES), mode)
    )
    colors = {
        name: f"C{i}"
        for i, name in enumerate(sorted({name for panel in panels.values() for name in panel}))
    }
    figure.set_size_inches(PANEL_WIDTH * len(modes), HEIGHT)
    all_axes = figure.subplots(1, len(modes), sharey=True, squeeze=False)[0]
    legend: dict[str, Any] = {}
    for mode, axes in zip(modes, all_axes, strict=True):
        axes.set(title=mode, xlabel="envs", yscale="log")
        legend |= draw_boxes(axes, panels[mode], colors)
        axes.grid(axis="y", which="both", alpha=0.3)
    all_axes[0].set_ylabel("emulated frames per second")
    figure.legend(legend.values(), legend.keys(), loc="outside lower center", fontsize="small")
    save_figure(figure, path, dpi="figure")


def draw_boxes(
    axes: Any, panel: Mapping[str, Mapping[int, list[float]]], colors: Mapping[str, str]
) -> dict[str, Any]:
    """Draws boxes, with those of one number of envs side by side.

    Args:
        axes: the axes to draw on.
        panel: values by name and number of envs; there is a box for each list.
        colors: of each name.

    Returns:
        One box of each name, for the legend.
    """
    counts = sorted({count for by_count in panel.values() for count in by_count})
    width = GROUP_WIDTH / len(colors)
    drawn = {}
    for i, (name, color) in enumerate(colors.items()):
        shown = sorted(panel.get(name, {}))
        offset = (i - (len(colors) - 1) / 2) * width
        if shown:
            result = axes.boxplot(
                [panel[name][count] for count in shown],
                positions=[counts.index(count) + offset for count in shown],
                widths=0.9 * width, whis=(0, 100), patch_artist=True, boxprops={"facecolor": color},
                medianprops={"color": "black"}, manage_ticks=False,
            )  # fmt: skip
            drawn[name] = result["boxes"][0]
    axes.set_xticks(range(len(counts)), [f"{count:,}" for count in counts])
    axes.set_xlim(-0.5, len(counts) - 0.5)
    thousands_axis(axes)
    return drawn


def thousands_axis(axes: Any) -> None:
    """Writes the numbers of a y axis as 500k or 2M, on a logarithmic one 2 and 5 as well."""
    from matplotlib.ticker import EngFormatter, LogLocator

    formatted = [axes.yaxis.set_major_formatter]
    if axes.get_yscale() == "log":
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        formatted.append(axes.yaxis.set_minor_formatter)
    for set_formatter in formatted:
        set_formatter(EngFormatter(sep=""))
