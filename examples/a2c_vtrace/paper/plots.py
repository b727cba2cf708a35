"""The paper's figures from rows of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cule.bench.plot import draw_boxes, thousands_axis
from examples.a2c_vtrace.paper.cases import COLUMNS, ENGINES, LOAD_NAMES, LOADS, column_cases
from examples.a2c_vtrace.paper.choices import (
    Choice,
    figure2_cases,
    figure3_cases,
    figure4_cases,
)
from examples.a2c_vtrace.paper.curves import curve_of, mean_curve
from examples.a2c_vtrace.paper.rows import Found
from examples.a2c_vtrace.paper.tables import fps_of, rows_of

COLORS = {engine: f"C{i}" for i, engine in enumerate(ENGINES)}
LINES = dict(zip(LOADS, ("-", "--", ":"), strict=True))
PANEL = 5.0, 3.8  # inches


def figure2(choice: Choice, found: Found, figure: Any) -> None:
    """Four panels of boxes over games: FPS (a, b) and FPS of an env (c, d)."""
    cases = figure2_cases(choice)
    figure.set_size_inches(2 * PANEL[0], 2 * PANEL[1])
    panels = figure.subplots(2, 2, sharex=True, sharey="row", squeeze=False)
    drawn: dict[str, Any] = {}
    for i, load in enumerate(("end-to-end", "with-policy")):
        fps = {
            engine: {
                count: [fps_of(row) for row in rows]
                for count in choice.num_envs
                if (rows := rows_of(found, cases, engine=engine, mode=load, num_envs=count))
            }
            for engine in choice.engines
        }
        each = {
            engine: {count: [value / count for value in values] for count, values in of.items()}
            for engine, of in fps.items()
        }
        for axes, boxes, letter, unit in (
            (panels[0][i], fps, "ab"[i], "FPS"), (panels[1][i], each, "cd"[i], "FPS of an env")
        ):  # fmt: skip
            axes.set(title=f"({letter}) {LOAD_NAMES[load]}", yscale="log", ylabel=unit)
            drawn |= draw_boxes(axes, boxes, COLORS)
            axes.grid(axis="y", which="both", alpha=0.3)
        panels[1][i].set_xlabel("envs")
    figure.legend(drawn.values(), drawn.keys(), loc="outside lower center")


def figure3(choice: Choice, found: Found, figure: Any) -> None:
    """A panel for each game and engine: FPS by step, with resets and distinct states."""
    rows = rows_of(found, figure3_cases(choice))
    figure.set_size_inches(PANEL[0], PANEL[1] * len(rows))
    for axes, row in zip(figure.subplots(len(rows), squeeze=False)[:, 0], rows, strict=True):
        values = row.values
        steps = [(i + 1) * values["steps_in_bin"] for i in range(len(values["bin_fps"]))]
        name = f"{values['game']}, {row.facts['engine']}, {values['num_envs']:,} envs"
        axes.set(title=name, xlabel="step", ylabel="FPS", ylim=(0, 1.05 * max(values["bin_fps"])))
        lines = axes.plot(steps, values["bin_fps"], color="C0", label="FPS")
        thousands_axis(axes)
        right = axes.twinx()
        right.set(ylabel="%", ylim=(0, 105))
        shares = [100 * share for share in values["bin_distinct_share"]]
        resets = [
            100 * count / values["num_envs"] / values["steps_in_bin"]
            for count in values["bin_resets"]
        ]
        lines += right.plot(steps, shares, color="C1", label="distinct states, %")
        lines += right.plot(steps, resets, color="C2", label="envs that reset in a step, %")
        axes.legend(lines, [line.get_label() for line in lines], fontsize="small")


def figure4(choice: Choice, found: Found, figure: Any) -> None:
    """A panel for each game: a line for each engine and load."""
    cases = figure4_cases(choice)
    figure.set_size_inches(PANEL[0] * len(choice.games), 1.3 * PANEL[1])
    for axes, game in zip(figure.subplots(1, len(choice.games), squeeze=False)[0], choice.games,
                          strict=True):  # fmt: skip
        for engine in choice.engines:
            for load in choice.loads:
                rows = rows_of(found, cases, engine=engine, mode=load, game=game)
                points = sorted((row.values["num_envs"], fps_of(row)) for row in rows)
                if points:
                    axes.plot(*zip(*points, strict=True), LINES[load], marker="o",
                              color=COLORS[engine], label=f"{engine}, {LOAD_NAMES[load]}",
                              )  # fmt: skip
        axes.set(title=game, xlabel="envs", ylabel="FPS", xscale="log", yscale="log")
        axes.grid(which="both", alpha=0.3)
        axes.legend(fontsize="small")
        thousands_axis(axes)


def figure5(choice: Choice, found: Found, figure: Any) -> None:
    """A panel for each game: score over seconds of each column, mean and deviation of seeds."""
    figure.set_size_inches(PANEL[0] * len(choice.games), 1.3 * PANEL[1])
    colors = {column.name: f"C{i}" for i, column in enumerate(COLUMNS)}
    for axes, game in zip(figure.subplots(1, len(choice.games), squeeze=False)[0], choice.games,
                          strict=True):  # fmt: skip
        for column in choice.columns:
            for count in choice.gpus if column.several else (1,):
                curves = _curves(choice, found, column, game, count)
                if curves:
                    seconds, means, deviations = mean_curve(curves)
                    below, above = (
                        [mean + sign * deviation
                         for mean, deviation in zip(means, deviations, strict=True)]
                        for sign in (-1, 1)
                    )  # fmt: skip
                    axes.plot(seconds, means, color=colors[column.name],
                              label=f"{column.title.format(gpus=count)} ({len(curves)})",
                              )  # fmt: skip
                    axes.fill_between(seconds, below, above, color=colors[column.name], alpha=0.2)
        axes.set(title=game, xlabel="seconds", ylabel="test score", xscale="log")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="x-small")


def _curves(choice: Choice, found: Found, column: Any, game: str, count: int) -> Sequence[Any]:
    cases = column_cases([column], [game], choice.seeds, [count])
    return [curve for row in rows_of(found, cases) if (curve := curve_of(row))]
