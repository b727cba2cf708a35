"""The third depth of GPU use: how many multiprocessors and issue slots were busy, counted by ncu.

ncu (Nsight Compute) plays each kernel several times to count, so it measures an iteration in a run
of its own, between cudaProfilerStart and cudaProfilerStop. What it counts of each kernel is weighed
with the time that the kernel took in the recording.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cule.disk.files import content_of, replacing
from cule.disk.forms import formed
from cule.disk.json_lines import DAMAGE
from cule.errors import InvalidValue
from cule.scope.events import Work

TIME = "gpu__time_duration.sum"
ACTIVE = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"
ISSUED = "smsp__issue_active.avg.pct_of_peak_sustained_elapsed"
_SUFFIX = ".counters.json"


@dataclass(frozen=True)
class Counted:
    """The counters of all kernels of a name, on average.

    Attributes:
        nanoseconds: all of them together, alone on the GPU and with the clocks that ncu sets.
        active: percent of the multiprocessors' cycles with work on them.
        issued: percent of the issue slots that were used.
    """

    nanoseconds: float
    active: float
    issued: float


def ncu_command(program: Sequence[str]) -> list[str]:
    """The command that counts a program's kernels between cudaProfilerStart and cudaProfilerStop.

    Raises:
        ValueError: there is no ncu.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        raise InvalidValue(
            "expected ncu (Nsight Compute, of the CUDA toolkit) on PATH for --counters, got none"
        )
    return [
        ncu, "--profile-from-start", "off", "--graph-profiling", "node", "--clock-control", "none",
        "--target-processes", "all", "--metrics", ",".join((TIME, ACTIVE, ISSUED)), "--csv",
        "--page", "raw", "--print-units", "base", *program,
    ]  # fmt: skip


def parse_counters(lines: Iterable[str]) -> dict[str, Counted]:
    """Reads counters by the kernel's name, from ncu's CSV among other output.

    Raises:
        ValueError: there is none.
    """
    lines = list(lines)
    begins = [n for n, line in enumerate(lines) if line.startswith('"ID"') and TIME in line]
    if not begins:
        said = next((line.strip() for line in lines if "==ERROR==" in line), "nothing")
        raise InvalidValue(f"expected ncu to count kernels, got: {said}")
    sums: dict[str, list[float]] = {}
    for row in csv.DictReader(line for line in lines[begins[0] :] if line.startswith('"')):
        try:
            time, active, issued = (
                float(row[name].replace(",", "")) for name in (TIME, ACTIVE, ISSUED)
            )
        except (ValueError, TypeError):
            continue  # the row of units
        of_name = sums.setdefault(row["Kernel Name"], [0.0, 0.0, 0.0])
        for place, value in enumerate((time, time * active, time * issued)):
            of_name[place] += value
    if not sums:
        raise InvalidValue("expected ncu to count kernels, got none in the iterations")
    return {
        name: Counted(time, active / max(time, 1e-9), issued / max(time, 1e-9))
        for name, (time, active, issued) in sums.items()
    }


def count(program: Sequence[str], folder: Path, name: str) -> dict[str, Counted]:
    """Runs a program under ncu and writes the counters into a recording's folder.

    Raises:
        OSError: the file cannot be written.
        ValueError: there is no ncu, or it counts nothing.
    """
    done = subprocess.run(ncu_command(program), stdout=subprocess.PIPE, text=True, check=False)
    counted = parse_counters(done.stdout.splitlines())
    with replacing(folder / f"{name}{_SUFFIX}") as file:
        file.write(
            json.dumps(
                {n: [one.nanoseconds, one.active, one.issued] for n, one in counted.items()}
            ).encode()
        )
    return counted


def read_counters(folder: Path, name: str) -> dict[str, Counted]:
    """The counters of a process by kernel; empty if there are none.

    Raises:
        ValueError: the file is damaged.
    """
    path = folder / f"{name}{_SUFFIX}"
    if not path.exists():
        return {}
    try:
        return {
            name: Counted(*map(float, of_name))
            for name, of_name in formed(
                json.loads(content_of(path)), dict[str, list[float]]
            ).items()
        }
    except (OSError, *DAMAGE) as problem:
        raise InvalidValue(f"expected counters of ncu, got {path}: {problem}") from problem


def weighed(work: Iterable[Work], counted: dict[str, Counted]) -> tuple[float, float]:
    """Nanoseconds times the share of multiprocessors that were active, and of issue slots used.

    A kernel that was not counted is taken for an average one.
    """
    total = sum(one.nanoseconds for one in counted.values())
    average = Counted(
        total,
        sum(one.nanoseconds * one.active for one in counted.values()) / max(total, 1e-9),
        sum(one.nanoseconds * one.issued for one in counted.values()) / max(total, 1e-9),
    )
    active = issued = 0.0
    for one in work:
        if one.kind == "kernel":
            counters = counted.get(one.name, average)
            active += (one.end - one.start) * counters.active / 100
            issued += (one.end - one.start) * counters.issued / 100
    return active, issued
