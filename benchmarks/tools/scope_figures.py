"""Measures every figure about cule.scope, or lists the commands that do.

    python benchmarks/tools/scope_figures.py --list
    python benchmarks/tools/scope_figures.py planted costs bias profile --results ROWS.jsonl

Each figure is one or more commands, with about how many seconds each takes on an H200. A command
that fails is reported, and the next one follows.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

ENVS = {"cuda": 1024, "cpu": 16}
# ale-py plays on the CPU, whatever learns.
ENVS_OF_ALE_PY = {"cuda": 128, "cpu": 16}
# What makes each algorithm: module and options, then what a CPU needs to learn within the window.
VTRACE = "--num-batches 4 --num-steps 20 --steps-per-update 1 --warmup-steps 20"
PLAIN = "--num-batches 1 --num-steps 5 --steps-per-update 5 --warmup-steps 5"
A2C = "-m examples.a2c_vtrace.train"
TRAIN = (
    "--no-progress --logger none --no-plot --eval-episodes 0 --overwrite --folder {folder}/run "
    "--log-every 64"
)
PROGRAMS = {
    "A2C": f"{A2C} {TRAIN} {PLAIN}",
    "A2C+V-trace": f"{A2C} {TRAIN} {VTRACE}",
    "PPO": f"-m examples.ppo.ppo {TRAIN} --num-steps 8 --minibatch-size 2048",
    "DQN": f"-m examples.dqn.dqn {TRAIN} --first-update 8192 --memory 65536 --updates-at-once 1",
}
# An update's samples divide those of a phase, and ale-py has fewer envs.
WITH_ALE_PY = {"PPO": "--minibatch-size 256"}
ON_CPU = {"PPO": "--minibatch-size 32", "DQN": "--first-update 256 --memory 4096"}
# The first and last iteration of a window, by program, after the first ones, which are captured.
# An iteration of PPO is a whole phase.
WINDOWS = {"PPO": "16:17"}
WINDOW = "60:70"
TURNS = 7
SYSTEMS = {
    "cule": "--emulator cule", "cule without graphs": "--emulator cule --no-cuda-graphs",
    "ale-py": "--emulator ale-py",
}  # fmt: skip


Setting = tuple[str, str, str, str]


def settings(device: str) -> Iterator[Setting]:
    """Algorithm, system, command and window of each of the twelve settings."""
    for algorithm, command in PROGRAMS.items():
        for system, options in SYSTEMS.items():
            if device == "cpu" and system == "cule without graphs":
                continue
            num_envs = (ENVS_OF_ALE_PY if system == "ale-py" else ENVS)[device]
            words = f"{command} --game pong --device {device} --num-envs {num_envs} {options}"
            if system == "ale-py":
                words += f" {WITH_ALE_PY.get(algorithm, '')}"
            if device == "cpu":
                words += f" --width 0.25 {ON_CPU.get(algorithm, '')}"
            yield algorithm, system, words, WINDOWS.get(algorithm, WINDOW)


def bias_commands(
    scope: str, chosen: list[Setting], folder: str, results: str
) -> Iterator[tuple[int, str]]:
    """RL-Scope's figure 11: each setting calibrated in its own program, by other windows."""
    for _, _, command, window in chosen:
        words = command.format(folder=folder)
        check = f"{scope} check --together --turns {TURNS} --results {results}"
        yield 90, f"{check} --iterations {window} -- {words}"


def profile_commands(
    scope: str, device: str, chosen: list[Setting], folder: str, results: str
) -> Iterator[tuple[int, str]]:
    """Where the time goes in each setting; transitions, shares of simulation, three depths."""
    calibration = f"{folder}/costs.json"
    yield 15, f"{scope} calibrate --out {calibration}"
    for algorithm, system, command, window in chosen:
        name = f"{algorithm}-{system}".replace(" ", "-")
        out, words = f"{folder}/profile-{name}", command.format(folder=folder)
        later = window if device == "cpu" or algorithm in WINDOWS else "400:420"
        run = f"{scope} run --out {out}"
        yield 20, f"{run} --overwrite --finish --iterations {later} -- {words}"
        # ncu counts kernel by kernel: of six settings.
        if device == "cuda" and "--no-cuda-graphs" not in words and PLAIN not in words:
            first = int(later.partition(":")[0])
            yield 80, f"{run} --counters --iterations {first}:{first + 1} -- {words}"
        yield 5, f"{scope} report {out} --calibration {calibration} --results {results}"


def overlap_commands(scope: str, folder: str, results: str) -> Iterator[tuple[int, str]]:
    """The fastest setting, with overlap and without."""
    words = (
        f"{A2C} {TRAIN} --game pong --num-envs 1200 --num-batches 20 --num-steps 20 "
        "--steps-per-update 1"
    ).format(folder=folder)
    for name, option in (("apart", ""), ("overlap", " --lag 1")):
        run = f"{scope} run --out {folder}/{name} --overwrite --finish --iterations 400:420"
        yield 20, f"{run} -- {words} --updates-at-once 3{option}"
    pictures = f"--plot {folder}/overlap.png --perfetto {folder}/overlap.json.gz"
    report = f"{scope} report {folder}/overlap --alone {folder}/apart"
    yield 5, f"{report} --results {results} {pictures}"
    yield 5, f"{scope} compare {folder}/apart {folder}/overlap"


def commands(
    figure: str, device: str, chosen: list[Setting], folder: str, results: str
) -> Iterator[tuple[int, str]]:
    """Seconds and command of each part of a figure."""
    python, on_gpu = sys.executable, device == "cuda"
    scope, tools = f"{python} -m cule.scope", f"{python} benchmarks/tools"
    if figure == "planted":
        yield 90, f"{python} -m pytest {'-m gpu ' if on_gpu else ''}tests/scope -q"
    elif figure == "costs":
        few = "" if on_gpu else " --num-envs 16 --num-batches 4 --rounds 5 --iterations 20"
        yield 60, f"{tools}/scope_costs.py --device {device}{few} --results {results}"
    elif figure == "alone" and on_gpu:
        yield 40, f"{tools}/scope_alone.py --results {results}"
    elif figure == "overlap" and on_gpu:
        yield from overlap_commands(scope, folder, results)
    elif figure == "bias":
        yield from bias_commands(scope, chosen, folder, results)
    elif figure == "profile":
        yield from profile_commands(scope, device, chosen, folder, results)


FIGURES = ("planted", "costs", "alone", "overlap", "bias", "profile")


def main() -> int:
    """Measures, or lists; 1 if a command failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figures", nargs="*", default=list(FIGURES), metavar="FIGURE")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--folder", default=None, help="where recordings go")
    parser.add_argument("--results", default="scope.jsonl", help="the rows")
    names = [f"{algorithm}, {system}" for algorithm, system, _, _ in settings("cuda")]
    parser.add_argument(
        "--only", nargs="+", choices=names, default=names, metavar="SETTING",
        help="of bias and profile: 'PPO, ale-py' for example",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="only print the commands")
    args = parser.parse_args()
    if unknown := set(args.figures) - set(FIGURES):
        parser.error(f"expected figures of {', '.join(FIGURES)}, got {', '.join(unknown)}")
    chosen = [one for one in settings(args.device) if f"{one[0]}, {one[1]}" in args.only]
    folder = args.folder or tempfile.mkdtemp(prefix="scope-")
    Path(folder).mkdir(parents=True, exist_ok=True)
    failed, expected = [], 0
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"PYTHONPATH": path}
    for figure in args.figures:
        for seconds, command in commands(figure, args.device, chosen, folder, args.results):
            expected += seconds
            print(f"# {figure}, about {seconds} s\n{command}", flush=True)
            if args.list:
                continue
            begun = time.perf_counter()
            if subprocess.run(shlex.split(command), env=environment, check=False).returncode:
                failed.append(command)
            print(f"# took {time.perf_counter() - begun:.0f} s\n", flush=True)
    print(f"# about {expected} s in all")
    for command in failed:
        print(f"failed: {command}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
