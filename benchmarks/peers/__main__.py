"""The figures 9 and 10 of TimeRL (Silvestre and Pietzuch): PPO by cule.train and by other systems.

    python -m benchmarks.peers figure9 --plot figure9.png
    python -m benchmarks.peers figure10 --memory 16 --plot figure10.png

All play the same envs with the same network and settings, each by its own code, in a process of its
own. Figure 9: seconds of an iteration by its steps, its envs, and the network's width and depth;
the systems take turns. Figure 10: larger and larger RGB pictures, until a system no longer fits
into so many GiB of the device's memory. Each case appends a row to `--results`.

CleanRL is not a package: `--cleanrl` is a folder with its repository. What is not installed is left
out: pip install stable-baselines3 "ray[rllib]" torchrl rl_games.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.peers.process import Iteration, System, in_turns
from benchmarks.peers.setting import Setting
from benchmarks.peers.systems import PACKAGES, SYSTEMS
from cule.programs.figures import new_figure
from cule.programs.results import append_row, command_line, commit, machine, now

AXES: dict[str, tuple[float, ...]] = {
    "num_steps": (125, 250, 500, 1000), "num_envs": (256, 512, 1024, 2048),
    "width": (0.5, 1, 2, 4), "depth": (1, 2, 4, 8),
}  # fmt: skip
SIZES = ((84, 64), (105, 80), (210, 160), (420, 320), (840, 640))


def installed(cleanrl: str | None) -> list[str]:
    """The systems that can be measured here."""
    return [
        name for name in SYSTEMS
        if (cleanrl is not None if name == "CleanRL"
            else name not in PACKAGES or importlib.util.find_spec(PACKAGES[name]) is not None)
    ]  # fmt: skip


def row_of(name: str, setting: Setting, found: list[Iteration] | str) -> dict[str, Any]:
    """A row of results."""
    package = PACKAGES.get(name)
    row = {
        "commit": commit(), "date": now(), "system": name,
        "version": None if package is None else importlib.metadata.version(package),
        **machine(torch.device(setting.device), 1), **asdict(setting), "command": command_line(),
    }  # fmt: skip
    del row["cleanrl"]  # a folder of this machine
    if isinstance(found, str):
        return row | {"problem": found[:300]}
    seconds = [one.seconds for one in found]
    return row | {
        "seconds": statistics.median(seconds),
        "all_seconds": seconds,
        "peak_bytes": max(one.peak_bytes for one in found),
    }


def say(row: dict[str, Any], what: str) -> None:
    """Prints a row."""
    result = row.get("problem") or f"{1e3 * row['seconds']:.1f} ms"
    sys.stdout.write(f"{what:20} {row['system']:20} {result}\n")
    sys.stdout.flush()


def figure9(args: argparse.Namespace, setting: Setting) -> list[dict[str, Any]]:
    """Measures all systems along the axes."""
    rows = []
    for axis in args.axes:
        for value in args.values or AXES[axis]:
            value = type(getattr(setting, axis))(value)
            case = replace(setting, **{axis: value})
            case = replace(case, minibatch=max(1, case.steps // args.minibatches))
            with ExitStack() as stack:
                systems = [
                    stack.enter_context(System(name, case, args.patience)) for name in args.systems
                ]
                found = in_turns(systems, args.warm_up, args.rounds)
            for name, iterations in found.items():
                row = {"mode": "figure9", "axis": axis, "value": value}
                rows.append(row | row_of(name, case, iterations))
                append_row(args.results, rows[-1])
                say(rows[-1], f"{axis} {value}")
    return rows


def figure10(args: argparse.Namespace, setting: Setting) -> list[dict[str, Any]]:
    """Measures each system with larger and larger pictures, until one is too large for it."""
    rows = []
    for name in args.systems:
        for size in args.sizes:
            case = replace(setting, size=size, minibatch=setting.steps // args.minibatches)
            with System(name, case, args.patience) as system:
                found = in_turns([system], args.warm_up, args.rounds)[name]
            rows.append({"mode": "figure10"} | row_of(name, case, found))
            append_row(args.results, rows[-1])
            say(rows[-1], f"{size[0]}x{size[1]}")
            if isinstance(found, str):
                break
    return rows


def draw(figure: Any, rows: Sequence[dict[str, Any]]) -> None:
    """Seconds of an iteration: a panel for each axis of figure 9, or figure 10's."""
    measured = [row | {"axis": row.get("axis", "height")} for row in rows if "seconds" in row]
    for row in measured:
        row.setdefault("value", row["size"] and row["size"][0])
    axes = list(dict.fromkeys(row["axis"] for row in measured))
    panels = figure.subplots(1, max(1, len(axes)), squeeze=False)[0]
    for panel, axis in zip(panels, axes, strict=False):
        of_axis = [row for row in measured if row["axis"] == axis]
        for name in dict.fromkeys(row["system"] for row in of_axis):
            some = [row for row in of_axis if row["system"] == name]
            panel.plot(
                [row["value"] for row in some], [row["seconds"] for row in some], "o-", label=name
            )
        panel.set_xlabel(axis)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
    panels[0].set_ylabel("seconds of an iteration")
    panels[-1].legend(fontsize="small")


def size_of(text: str) -> tuple[int, int]:
    """Height and width of a size such as "210x160"."""
    height, width = map(int, text.split("x"))
    return height, width


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("figure", choices=("figure9", "figure10"))
    parser.add_argument("--game", default="pong")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--num-envs", type=int, help="512; 256 in figure 10")
    parser.add_argument("--num-steps", type=int, help="250; 1,000 in figure 10")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--minibatches", type=int, default=4, help="of an epoch")
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--axes", nargs="+", choices=list(AXES), default=list(AXES))
    parser.add_argument(
        "--values", nargs="+", type=float, help="of one axis, in place of the usual"
    )
    parser.add_argument("--sizes", nargs="+", type=size_of, default=SIZES, metavar="HxW")
    parser.add_argument("--memory", type=float, metavar="GIB", help="of the GPU; default: all")
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), help="default: those here")
    parser.add_argument("--cleanrl", metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=4, help="iterations that do not count")
    parser.add_argument(
        "--patience", type=float, default=600.0, help="most seconds of an iteration"
    )
    parser.add_argument("--results", type=Path, default=Path("peers.jsonl"))
    parser.add_argument("--plot", type=Path, metavar="FILE")
    args = parser.parse_args(words)
    if args.values and len(args.axes) != 1:
        parser.error(f"expected one of --axes with --values, got {len(args.axes)}")
    if args.rounds < 1 or args.warm_up < 1 or args.minibatches < 1:
        parser.error("expected at least 1 as --rounds, --warm-up and --minibatches")
    here = installed(args.cleanrl)
    args.systems = args.systems or here
    if missing := [name for name in args.systems if name not in here]:
        parser.error(f"expected some of {', '.join(here)}, which are there, got {missing[0]}")
    return args


def main(words: Sequence[str] | None = None) -> int:
    """Does what the command line asks for; returns the exit status."""
    args = parsed(words)
    of_figure = (512, 250) if args.figure == "figure9" else (256, 1000)
    setting = Setting(
        game=args.game, device=args.device, num_envs=args.num_envs or of_figure[0],
        num_steps=args.num_steps or of_figure[1], epochs=args.epochs, width=args.width,
        memory=args.memory, cleanrl=args.cleanrl,
    )  # fmt: skip
    figure = None if args.plot is None else new_figure(args.plot)
    rows = (figure9 if args.figure == "figure9" else figure10)(args, setting)
    if figure is not None:
        draw(figure, rows)
        figure.savefig(args.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
