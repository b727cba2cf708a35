"""Where trainings run, as options of the programs that run many: a sweep, Atari-57, its search."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from cule.errors import InvalidValue
from cule.train.checks import at_least
from cule.train.sweep.executor import BESIDE, Executor, Local
from cule.train.sweep.sweep import MOST_LOSSES, devices_of

Name = Literal["local", "ray", "slurm", "submitit-local"]
CLUSTERS = ("cpus_per_training", "at_once", "retries")
# The options below, but for `executor`, `device` and `gpus_per_training`, that each executor has.
HONOURED: dict[str, tuple[str, ...]] = {
    "local": ("gpus", "per_gpu"),
    "ray": (*CLUSTERS, "ray_address", "ray_wait"),
    "slurm": (*CLUSTERS, "slurm_partition", "slurm_minutes", "slurm_options"),
    "submitit-local": ("at_once", "retries"),
}


@dataclass(kw_only=True)
class Placing:
    """Options of where trainings run."""

    gpus: tuple[int, ...] = ()
    """numbers of the GPUs; by default all"""
    device: Literal["cpu"] | None = None
    """cpu, to train there even if there is a GPU"""
    per_gpu: int = 1
    """trainings on a device at the same time; beside them four times as many may start or be
    evaluated"""
    gpus_per_training: int = 1
    """GPUs of each training, which torchrun starts with a process for each; with device cpu its
    processes"""
    executor: Name = "local"
    """what starts trainings: local, this machine's processes; ray, a Ray cluster; slurm, jobs of
    Slurm by submitit; submitit-local, submitit's own processes on this machine, to try it out"""
    cpus_per_training: int = 1
    """CPUs that Ray or Slurm reserve for each training"""
    at_once: int = 0
    """trainings that Ray or Slurm are given at the same time; 0: all"""
    retries: int = MOST_LOSSES
    """how often a training is started again because its machine was lost, or its time with Slurm
    was over"""
    ray_address: str | None = None
    """HOST:PORT of the Ray cluster's head, or auto; by default RAY_ADDRESS"""
    ray_wait: float = 0.0
    """seconds to wait for a machine that could hold a training, which an autoscaler may add; 0: one
    has to be there at the start"""
    slurm_partition: str | None = None
    """Slurm's partition"""
    slurm_minutes: int = 60
    """Slurm's limit for a job; a training that needs longer goes on in another one"""
    slurm_options: tuple[str, ...] = ()
    """further options of submitit for Slurm, as NAME=VALUE, such as account=lab mem=32GB"""


def _check(args: Placing) -> None:
    """Refuses what the executor would not look at.

    Raises:
        ValueError: an option is wrong, or is another executor's.
    """
    at_least(1, args, "per_gpu", "gpus_per_training", "cpus_per_training", "slurm_minutes")
    at_least(0, args, "at_once", "retries", "ray_wait")
    honoured = ("executor", "device", "gpus_per_training", *HONOURED[args.executor])
    for field in dataclasses.fields(Placing):
        value = getattr(args, field.name)
        if field.name not in honoured and value != field.default:
            raise InvalidValue(
                f"expected no {field.name} with executor {args.executor}, which does not have it, "
                f"got {value}"
            )


def _options(args: Placing) -> dict[str, str]:
    """The options of submitit for Slurm.

    Raises:
        ValueError: one is no NAME=VALUE, or is one that has an option of its own.
    """
    found = {} if args.slurm_partition is None else {"partition": args.slurm_partition}
    own = ("partition", "time", "timeout_min", "nodes", "ntasks_per_node", "tasks_per_node",
           "cpus_per_task", "gpus_per_node", "job_name")  # fmt: skip
    for word in args.slurm_options:
        name, equals, value = word.partition("=")
        if not (name and equals) or name in own:
            raise InvalidValue(
                f"expected slurm_options as NAME=VALUE, none of {', '.join(own)}, got {word}"
            )
        found[name] = value
    return found


def executor_of(args: Placing, *, needs_folder: bool = False) -> Executor:
    """What starts the trainings.

    Args:
        args: the options.
        needs_folder: what the trainings leave in their folders is used here, so that Ray's machines
            have to share the sweep's folder.

    Raises:
        ValueError: an option is wrong or another executor's, a package is missing, or there is no
            such cluster.
    """
    _check(args)
    each = args.gpus_per_training
    if args.executor == "local":
        devices = devices_of(args.gpus, args.device, each)
        if each > 1 and args.per_gpu > 1 and devices[0] != "cpu":
            raise InvalidValue(
                f"expected per_gpu 1 with gpus_per_training {each}, as trainings of several "
                f"processes take no turns, got {args.per_gpu}"
            )
        return Local(devices, args.per_gpu, 0 if each > 1 else BESIDE)
    device = args.device or "cuda"
    gpus = 0 if device == "cpu" else each
    cpus, at_once = args.cpus_per_training, args.at_once
    if args.executor == "ray":
        from cule.train.sweep.on_ray import OnRay

        return OnRay(
            args.ray_address, cpus, gpus, device, at_once, shared=needs_folder, room=args.ray_wait
        )
    from cule.train.sweep.on_slurm import OnSlurm

    return OnSlurm(
        "slurm" if args.executor == "slurm" else "local", cpus, gpus, device, at_once,
        args.slurm_minutes, args.retries, _options(args),
    )  # fmt: skip


def device_of(executor: Executor) -> str:
    """The device for which settings are checked, such as "cuda:0"; a cluster's has no number."""
    known = getattr(executor, "device", None)
    return known or executor.slots(1)[0].partition(",")[0]
