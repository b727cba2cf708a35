"""Shared by the tests of executors: a program that behaves as a training, but imports nothing.

It goes on from its checkpoints, and notes in its folder when it was started (`starts`), whether it
ever ran beside itself (`twice`), and each part of its work (`work`).
"""

from __future__ import annotations

import os
from pathlib import Path

from cule.train.sweep import Job
from tests.support.waiting import wait_for

PROGRAM = """
import fcntl, json, os, signal, sys, time
from pathlib import Path

words = sys.argv[1:]
value = lambda name, default=None: words[words.index(name) + 1] if name in words else default
folder = Path(value("--folder"))
assert "--resume" in words and value("--device") in ("cpu", "cuda")
running = (folder / "running").open("w")
try:
    fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    (folder / "twice").touch()
with (folder / "starts").open("a") as file:
    file.write(f"{os.getpid()} {time.time()}\\n")
starts = len((folder / "starts").read_text().splitlines())
print("Here I am.", file=sys.stderr)
if starts <= int(value("--fails", "0")):
    sys.exit("The disk is full.")
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
saved = folder / "checkpoints"
saved.mkdir(exist_ok=True)
frames = max([int(path.stem) for path in saved.glob("*.complete")], default=0)
while frames < int(value("--total-frames")) and not stopped:
    time.sleep(float(value("--pause", "0.05")))
    frames += 100
    with (folder / "work").open("a") as file:
        file.write(f"{frames}\\n")
    line = {"kind": "training", "frames": frames, "seconds": frames / 100, "fps": 100.0}
    with (folder / "log.jsonl").open("a") as file:
        file.write(json.dumps(line | {"score": 1.5}) + "\\n")
    (saved / f"{frames}.complete").touch()
row = {"algorithm": "P", "game": "pong", "seed": int(value("--seed")), "frames": frames,
       "fps": 100.0, "seconds": 1.0, "score": float(value("--seed"))}
with (folder / "result.jsonl").open("a") as file:
    file.write(json.dumps(row | ({"interrupted": True} if stopped else {})) + "\\n")
"""
# A process that runs such trainings; EXECUTOR makes what starts them.
DRIVER = """
import sys
from pathlib import Path
from cule.train.sweep import Job, Sweep
from cule.train.sweep.on_ray import OnRay
from cule.train.sweep.on_slurm import OnSlurm
from cule.train.sweep.table import Live
if __name__ == "__main__":
    program, folder, count, frames, pause = sys.argv[1:]
    words = ("--total-frames", frames, "--pause", pause)
    jobs = [Job(f"t-{n}", (program, *words, "--seed", str(n))) for n in range(int(count))]
    made = Sweep(jobs, Path(folder), executor=EXECUTOR)
    made.run(Live(sys.stderr))
    print([state.state for state in made.states], made.interrupted)
"""


def written(folder: Path) -> str:
    """The program, in a folder."""
    path = folder / "pretender.py"
    path.write_text(PROGRAM)
    return str(path)


def jobs_of(program: str, count: int, *more: str, frames: int = 500) -> list[Job]:
    """Some trainings."""
    words = ("--total-frames", str(frames), *more)
    return [Job(f"t-{n}", (program, *words, "--seed", str(n))) for n in range(count)]


def starts(folder: Path) -> list[int]:
    """The processes that have trained in a folder, in their order."""
    path = folder / "starts"
    return [int(line.split()[0]) for line in path.read_text().splitlines()] if path.exists() else []


def lives(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_checkpoints(process, folder: Path, count: int) -> None:
    """Waits until so many trainings have a checkpoint of 200 steps, or a sweep's process ends."""
    pattern = "t-*/checkpoints/200.complete"
    wait_for(lambda: process.poll() is not None or len(list(folder.glob(pattern))) == count)


def check_once(folder: Path, count: int, frames: int = 500) -> None:
    """Checks that each training has ended once, and none has run beside itself.

    Each has one whole result. After a loss without a last checkpoint some work is done again, but
    never after the end.
    """
    for n in range(count):
        own = folder / f"t-{n}"
        assert not (own / "twice").exists()
        lines = (own / "result.jsonl").read_text().splitlines()
        assert sum('"interrupted"' not in line for line in lines) == 1
        assert (own / "work").read_text().splitlines().count(str(frames)) == 1


def environment(**more: str) -> dict[str, str]:
    """The environment of a process with one thread."""
    return {**os.environ, "OMP_NUM_THREADS": "1", **more}
