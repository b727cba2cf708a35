"""The paper's tables, and its figures' numbers, as Markdown from rows of results."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from examples.a2c_vtrace.paper.cases import GOALS, LOAD_NAMES, PROGRAMS, Case, column_cases
from examples.a2c_vtrace.paper.choices import Choice, figure2_cases, figure3_cases
from examples.a2c_vtrace.paper.curves import curve_of, mean_curve
from examples.a2c_vtrace.paper.rows import Found, Row

MISSING = "not measured"


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table; all columns except the first hold numbers."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *lines))


def thousand(fps: float) -> str:
    """FPS in thousands, with three digits or more."""
    return f"{fps / 1e3:,.0f}" if fps >= 1e5 else f"{fps / 1e3:.3g}"


def fps_of(row: Row) -> float:
    """A row's FPS. Rows without are not read."""
    return float(row.values["fps"])


def without_rows(names: Iterable[str]) -> str:
    """A sentence after a table, of what it leaves out because there are no rows of it."""
    missing = "; ".join(names)
    return "\n\n" + textwrap.fill(f"Not measured: {missing}.", 100) if missing else ""


def range_of(found: Found, rows: Sequence[Row]) -> str:
    """The least and the greatest FPS of rows, in thousands."""
    fps = [fps_of(row) for row in rows]
    text = "-".join(dict.fromkeys(thousand(value) for value in (min(fps), max(fps))))
    return found.cell(text, rows)


def rows_of(found: Found, cases: Iterable[Case], **wanted: Any) -> list[Row]:
    """The newest row of each of some cases' wishes that has what is wanted."""
    return found.every(
        values
        for case in cases
        for values in case.wanted
        if all(values.get(name) == value for name, value in wanted.items())
    )


def table1(choice: Choice, found: Found) -> str:
    """Least and greatest FPS over games, and how long 200 million frames take at these."""
    groups = []
    for load in ("end-to-end", "with-policy"):
        for engine in choice.engines:
            rows = rows_of(found, figure2_cases(choice), engine=engine, mode=load)
            groups.append((f"{engine}, {LOAD_NAMES[load]}", rows))
    for column in choice.columns:
        if column.name in ("vtrace20", "gpus"):
            for count in choice.gpus if column.several else (1,):
                games = [game for game in GOALS if game in choice.games]
                cases = column_cases([column], games, choice.seeds, [count])
                gpus = f"{count} GPU{'s' if count > 1 else ''}"
                name = f"{column.engine}, training, A2C+V-trace, 20 batches, {gpus}"
                groups.append((name, rows_of(found, cases)))
    head = ["", "thousand FPS", "games", "minutes for 200 M frames", "measured on"]
    table = markdown(head, [_line1(found, name, rows) for name, rows in groups if rows])
    return table + without_rows(name for name, rows in groups if not rows)


def _line1(found: Found, name: str, rows: Sequence[Row]) -> list[str]:
    fps = [fps_of(row) for row in rows]
    ends = dict.fromkeys(f"{200e6 / value / 60:.3g}" for value in (max(fps), min(fps)))
    games = len({row.values["game"] for row in rows})
    devices = sorted({str(row.values.get("device_name")) for row in rows})
    return [name, range_of(found, rows), f"{games}", "-".join(ends), ", ".join(devices)]


def table3(choice: Choice, found: Found) -> str:
    """For each game and column FPS, updates a second, seconds and million frames to the score.

    They are means over seeds, the last two over those that reached it. ">" is how long the
    trainings took, if none reached it.
    """
    shown = [
        (column.title.format(gpus=count), column, count)
        for column in choice.columns
        for count in (choice.gpus if column.several else (1,))
    ]
    rows = {
        (title, game): found.every(
            case.wanted[0] for case in column_cases([column], [game], choice.seeds, [count])
        )
        for title, column, count in shown
        for game in choice.games
    }
    titles = [title for title, *_ in shown if any(rows[title, game] for game in choice.games)]
    missing = [title for title, *_ in shown if title not in titles]
    lines = []
    for game in choice.games:
        if not any(rows[title, game] for title in titles):
            missing.append(game)
            continue
        cells = [_cells3(found, rows[title, game]) for title in titles]
        names = ("thousand FPS", "updates a second", f"seconds to {GOALS[game]}", "million frames")
        for i, name in enumerate(names):
            lines.append([f"{game}, {name}", *(cell[i] for cell in cells)])
    return markdown(["", *titles], lines) + without_rows(missing)


def _cells3(found: Found, rows: Sequence[Row]) -> tuple[str, str, str, str]:
    if not rows:
        return (MISSING,) * 4
    reached = [row for row in rows if row.number("seconds_to_score") is not None]
    if reached:
        share = "" if len(reached) == len(rows) else f" ({len(reached)} of {len(rows)})"
        seconds = f"{_mean(reached, 'seconds_to_score'):.1f}{share}"
        frames = f"{(_mean(reached, 'frames_to_score') or 0) / 1e6:.1f}"
    else:
        seconds = f"> {max(row.number('seconds') or 0 for row in rows):.0f}"
        frames = "not reached"
    updates = _mean(rows, "updates_per_second")
    return (
        found.cell(thousand(statistics.mean(map(fps_of, rows))), rows),
        MISSING if updates is None else f"{updates:.1f}", seconds, frames,
    )  # fmt: skip


def _mean(rows: Sequence[Row], name: str) -> float | None:
    """The mean of a number over the rows that have it."""
    known = [value for row in rows if (value := row.number(name)) is not None]
    return statistics.mean(known) if known else None


def speeds(choice: Choice, found: Found, groups: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """FPS of each engine: a line for each group of wishes and number of envs, with the least and
    greatest utilization of the GPU where it is known."""
    lines = []
    for name, wanted in groups:
        for count in choice.num_envs:
            rows = [
                found.of({**wanted, "engine": engine, "num_envs": count})
                for engine in choice.engines
            ]
            if any(rows):
                cells = [MISSING if row is None else _speed(found, row) for row in rows]
                lines.append([name, f"{count:,}", *cells])
    return markdown(["", "envs", *(f"{engine}, FPS" for engine in choice.engines)], lines)


def _speed(found: Found, row: Row) -> str:
    least, most = row.number("gpu_utilization_min"), row.number("gpu_utilization_max")
    busy = "" if least is None or most is None else f" ({least:.0f}-{most:.0f}%)"
    return found.cell(f"{fps_of(row):,.0f}{busy}", [row])


def table4(choice: Choice, found: Found) -> str:
    """FPS of each algorithm, number of envs and engine."""
    return speeds(
        choice, found,
        [
            (f"{algorithm}, {game}", {
                "mode": "training", "algorithm": algorithm, "game": game, "num_gpus": 1,
                "stop_at_score": None,
            })
            for game in choice.games
            for algorithm in PROGRAMS
        ],
    )  # fmt: skip


def figure4(choice: Choice, found: Found) -> str:
    """FPS of each load, number of envs and engine."""
    training = {"algorithm": "A2C", "num_gpus": 1, "stop_at_score": None}
    return speeds(
        choice, found,
        [
            (f"{LOAD_NAMES[load]}, {game}",
             {"mode": load, "game": game, **(training if load == "training" else {})})
            for game in choice.games
            for load in choice.loads
        ],
    )  # fmt: skip


def figure2(choice: Choice, found: Found) -> str:
    """Minimum, quartiles and maximum over games of FPS, and the median of an env's FPS."""
    cases = figure2_cases(choice)
    lines, missing = [], []
    for load in ("end-to-end", "with-policy"):
        for engine in choice.engines:
            no_rows = []
            for count in choice.num_envs:
                rows = rows_of(found, cases, engine=engine, mode=load, num_envs=count)
                if not rows:
                    no_rows.append(f"{count:,}")
                else:
                    fps = sorted(map(fps_of, rows))
                    quartiles = [fps[0], *_quartiles(fps), fps[-1]]
                    marked = found.cell(thousand(fps[0]), rows)
                    lines.append([
                        f"{LOAD_NAMES[load]}, {engine}", f"{count:,}",
                        f"{len(rows)} of {len(choice.games)}", marked,
                        *map(thousand, quartiles[1:]), f"{quartiles[2] / count:,.0f}",
                    ])  # fmt: skip
            if no_rows:
                missing.append(f"{LOAD_NAMES[load]}, {engine}, {', '.join(no_rows)} envs")
    head = ["", "envs", "games", "thousand FPS, minimum", "25%", "median", "75%", "maximum",
            "median FPS an env"]  # fmt: skip
    return markdown(head, lines) + without_rows(missing)


def _quartiles(values: Sequence[float]) -> list[float]:
    if len(values) == 1:
        return [values[0]] * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def figure3(choice: Choice, found: Found) -> str:
    """FPS of the first and the last steps, the least and greatest between, resets, divergence."""
    lines = []
    for row in rows_of(found, figure3_cases(choice)):
        fps, shares = row.values["bin_fps"], row.values["bin_distinct_share"]
        tenth = max(1, len(fps) // 10)
        first, last = statistics.mean(fps[:tenth]), statistics.mean(fps[-tenth:])
        lines.append([
            f"{row.values['game']}, {row.facts['engine']}",
            f"{len(fps) * row.values['steps_in_bin']}", found.cell(thousand(first), [row]),
            thousand(last), f"{100 * (last / first - 1):+.0f}%", f"{sum(row.values['bin_resets'])}",
            f"{100 * shares[-1]:.0f}%",
        ])  # fmt: skip
    head = ["", "steps", "thousand FPS in the first tenth", "in the last", "change", "resets",
            "distinct states at the end"]  # fmt: skip
    missing = [
        f"{values['game']}, {values['engine']}"
        for case in figure3_cases(choice)
        for values in case.wanted
        if found.of(values) is None
    ]
    return markdown(head, lines) + without_rows(missing)


def spread(deviation: float, rows: Sequence[Row]) -> str:
    """A deviation of seeds, which one seed has not."""
    return f" ± {deviation:,.1f}" if len(rows) > 1 else ""


def figure5(choice: Choice, found: Found) -> str:
    """The score of each column at some times, as mean and deviation over seeds."""
    lines = []
    for game in choice.games:
        for column in choice.columns:
            for count in choice.gpus if column.several else (1,):
                cases = column_cases([column], [game], choice.seeds, [count])
                rows = [row for row in rows_of(found, cases) if curve_of(row)]
                if rows:
                    seconds, means, deviations = mean_curve([curve_of(row) for row in rows])
                    told = [f"{means[i]:,.1f}{spread(deviations[i], rows)} at {seconds[i]:.0f} s"
                            for i in (len(seconds) // 4, len(seconds) // 2, -1)]  # fmt: skip
                    title = column.title.format(gpus=count)
                    name = f"{game}: {title}"
                    lines.append([name, f"{len(rows)}", found.cell(told[0], rows), *told[1:]])
    return markdown(["", "seeds", "score at a quarter", "at half", "at the end"], lines)
