"""Which process this is among those that train together, and on which machine: its environment.

torchrun says it in RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE, and GROUP_RANK is its number
of the machine. Slurm's srun has names of its own for these; where torchrun's are missing and the
user has set MASTER_ADDR and MASTER_PORT, they are taken, under torchrun's names from then on.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from cule.errors import InvalidValue
from cule.train.layout import Layout

# Above any number of processes.
MOST_PROCESSES = 2**20
ADDRESS = ("MASTER_ADDR", "MASTER_PORT")
# What torchrun and srun call the same.
SLURM = {"RANK": "SLURM_PROCID", "LOCAL_RANK": "SLURM_LOCALID", "GROUP_RANK": "SLURM_NODEID"}


def _number(name: str, stop: int, by: str = "torchrun") -> int:
    """A number below `stop` in the environment of each process.

    Raises:
        ValueError: it is not there, or is no such number.
    """
    text = os.environ.get(name, "")
    if not (text.isascii() and text.isdigit() and int(text) < stop):
        raise InvalidValue(
            f"expected {name} in the environment to be a number below {stop:,}, as {by} sets "
            f"it for processes that train together, got {text or 'nothing'}"
        )
    return int(text)


def rank_and_size() -> tuple[int, int]:
    """This process's number and how many there are, as the environment says.

    Raises:
        ValueError: that is there only in part, or srun alone has started several processes.
    """
    if not {"RANK", "WORLD_SIZE"} & os.environ.keys() and not _taken_from_slurm():
        return 0, 1
    size = max(1, _number("WORLD_SIZE", MOST_PROCESSES))
    rank = _number("RANK", size)
    if size > 1 and (missing := {*ADDRESS} - os.environ.keys()):
        raise InvalidValue(
            f"expected {' and '.join(sorted(missing))} in the environment of one of {size} "
            "processes that train together, as torchrun sets them, got nothing"
        )
    return rank, size


def address() -> tuple[str, int]:
    """Where the processes meet: a host's name, and a port.

    Raises:
        ValueError: the port is none.
    """
    return os.environ["MASTER_ADDR"], _number("MASTER_PORT", 2**16)


def _taken_from_slurm() -> bool:
    """Takes the numbers that srun has given this process, if it is one of several tasks.

    A script of sbatch has the number of tasks, too, and is only one process, the first.

    Raises:
        ValueError: it is one of several, which nothing connects, or a number is missing.
    """
    named = os.environ.keys() >= {*ADDRESS}
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS")
    # Only the tasks of srun are steps.
    in_step = "SLURM_STEP_ID" in os.environ or os.environ.get("SLURM_PROCID", "0") != "0"
    if tasks is None and in_step:
        tasks = os.environ.get("SLURM_NTASKS")
    if tasks is None or tasks == "1":
        return False
    if not named:
        raise InvalidValue(
            f"expected torchrun to start processes that train together, got one of {tasks} tasks "
            "of Slurm alone, which would each train all: srun --ntasks-per-node=1 torchrun ..., "
            "or MASTER_ADDR and MASTER_PORT for tasks that train together, or env -u "
            "SLURM_STEP_NUM_TASKS -u SLURM_PROCID for trainings of their own"
        )
    name = "SLURM_STEP_NUM_TASKS" if "SLURM_STEP_NUM_TASKS" in os.environ else "SLURM_NTASKS"
    size = _number(name, MOST_PROCESSES, "srun")
    taken = {ours: str(_number(its, size, "srun")) for ours, its in SLURM.items()
             if its != "SLURM_NODEID" or its in os.environ}  # fmt: skip
    counts = _tasks_by_node()
    node = int(taken.get("GROUP_RANK", "0"))
    if node < len(counts):
        taken["LOCAL_WORLD_SIZE"] = str(counts[node])
    os.environ.update(taken, WORLD_SIZE=str(size))
    return True


def _tasks_by_node() -> list[int]:
    """The tasks of each machine of a step, which Slurm writes as 2(x3),1; [] if it says nothing."""
    text = os.environ.get("SLURM_STEP_TASKS_PER_NODE") or os.environ.get("SLURM_TASKS_PER_NODE", "")
    found = re.findall(r"(\d+)(?:\(x(\d+)\))?(?:,|$)", text)
    return [int(tasks) for tasks, times in found for _ in range(int(times or 1))]


def machine() -> str:
    """What the processes of this machine have in common, and no others: they see each other's ids.

    Containers of a machine may have ids of their own, and torchrun's machines may be parts of one.
    """
    kernel = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = os.stat("/proc/self/ns/pid").st_ino
    text = f"{kernel} {namespace} {os.environ.get('GROUP_RANK', '0')}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def gpu_of(layout: Layout, rank: int, size: int) -> int:
    """The number that a process's GPU has on its machine.

    On one machine it is that of the layout. Of several each numbers its GPUs from 0 on: there it is
    that of the process among those of its machine.

    Raises:
        ValueError: LOCAL_RANK is not there.
    """
    if not layout.everywhere and not _several_machines(size):
        return layout.processes(size)[rank][0].device
    return _number("LOCAL_RANK", size) // layout.each


def _several_machines(size: int) -> bool:
    """Whether torchrun has started only some of the processes on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", size)) < size


def check_machines(layout: Layout, rank: int, size: int) -> None:
    """Checks that several machines can have a layout.

    Raises:
        ValueError: processes that share a GPU would be on different machines, or the layout names
            GPUs, whose numbers are those of one machine.
    """
    if "LOCAL_WORLD_SIZE" in os.environ:
        here = _number("LOCAL_WORLD_SIZE", size + 1)
    if not _several_machines(size):
        return
    local = _number("LOCAL_RANK", size)
    if layout.each > 1 and (here % layout.each or (rank - local) % layout.each):
        raise InvalidValue(
            f"expected a multiple of {layout.each} processes on each machine, one after the other, "
            f"with the layout {layout}, got {here} on that of process {rank}"
        )
    if not layout.everywhere and not layout.in_order:
        raise InvalidValue(
            "expected a layout that only says how many GPUs act and learn, such as decoupled:3+1, "
            "on several machines, where each process has the GPU of its LOCAL_RANK, got "
            f"{layout}"
        )
