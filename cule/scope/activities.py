"""Operators of torch, CUDA calls and the work of GPUs, recorded by torch.profiler (Kineto).

Kineto is the process's one subscriber of CUPTI, and this is the only use of it: with a second
subscription, later profiles lose their GPU events (https://github.com/pytorch/pytorch/issues/191944).
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import sys
import tempfile
import threading
import types
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType

from cule.errors import Failed, MissingPackage

LEAST_TORCH = (2, 11)

# Held while a profile begins or ends, and during forks: a fork in the middle would have Kineto's
# locks as they are then, and wait for them for ever.
_changing = threading.RLock()
os.register_at_fork(
    before=_changing.acquire, after_in_parent=_changing.release, after_in_child=_changing.release
)


def check_torch() -> None:
    """Checks that this torch is new enough.

    Raises:
        ImportError: it is not.
    """
    version = tuple(int(number) for number in re.findall(r"\d+", torch.__version__)[:2])
    if version < LEAST_TORCH:
        wanted = ".".join(map(str, LEAST_TORCH))
        raise MissingPackage(
            f"expected torch {wanted} or newer for cule.scope, got {torch.__version__}; the rest "
            "of cule works with it"
        )


class _WithoutCompiler:
    """torch, but as if it had no compiler."""

    def __getattr__(self, name: str) -> Any:
        if name == "_inductor":
            raise AttributeError(name)
        return getattr(torch, name)


def _profile_class() -> Any:
    """torch.profiler's profile, which does not import torch's compiler.

    It would when it first begins, which takes seconds, only to read there whether compiled code is
    put into CUDA graphs. Where nothing has imported the compiler, that is what a variable says.
    """
    from torch.profiler import profile

    if "torch._inductor" in sys.modules or os.environ.get("TORCHINDUCTOR_CUDAGRAPHS") == "1":
        return profile
    prepare = profile.prepare_trace
    if prepare.__closure__ is not None:  # of another torch
        return profile
    names = {**prepare.__globals__, "torch": _WithoutCompiler()}
    own = types.FunctionType(prepare.__code__, names, argdefs=prepare.__defaults__)
    return type("profile", (profile,), {"prepare_trace": own})


def records_gpu() -> bool:
    """Whether this torch can record what a GPU does."""
    return torch.profiler.ProfilerActivity.CUDA in torch.profiler.supported_activities()


def missing_gpu() -> str | None:
    """A sentence if there is a GPU of which this torch records nothing; else None."""
    if not torch.cuda.is_available() or records_gpu():
        return None
    return (
        f"expected a torch whose profiler records GPUs, got {torch.__version__}, which was built "
        "without Kineto's GPU part (CUPTI): the report has times of the CPU only"
    )


def uses_gpu() -> bool:
    """Whether this process has used a GPU by now."""
    return torch.cuda.is_available() and torch.cuda.is_initialized()


def synchronize() -> None:
    """Waits for the GPU, if the program uses one."""
    if uses_gpu():
        torch.cuda.synchronize()


class Activities:
    """A profile of torch's operators and CUDA calls, and of the GPUs.

    Attributes:
        with_gpu: whether GPUs and CUDA calls are recorded.

    Args:
        with_gpu: whether GPUs and CUDA calls are recorded, too, where this torch can.
        with_memory: whether memory that tensors take and give back is recorded, too. torch does
            that only for one thread and its backward passes, whose operators are recorded then.

    Raises:
        RuntimeError: another profile runs already.
    """

    def __init__(self, with_gpu: bool = True, with_memory: bool = False):
        from torch._C._profiler import _ExperimentalConfig
        from torch.profiler import ProfilerActivity

        if torch.autograd._profiler_enabled():
            raise Failed(
                "expected no other profile while cule.scope records, got a torch.profiler that "
                "runs: end it first"
            )
        activities = [ProfilerActivity.CPU]
        # CUDA, and so a profile of it, cannot be used in a fork of a process that used it.
        usable = torch.cuda.is_available() and not torch.cuda._is_in_bad_fork()
        self.with_gpu = with_gpu and usable and records_gpu()
        if self.with_gpu:
            activities.append(ProfilerActivity.CUDA)
        self._profile: Any = _profile_class()(
            activities=activities, profile_memory=with_memory,
            experimental_config=_ExperimentalConfig(profile_all_threads=not with_memory),
        )  # fmt: skip

    def start(self) -> None:
        """Begins to record."""
        with _changing:
            self._profile.start()

    def stop(self) -> None:
        """Ends recording."""
        with _changing:
            self._profile.stop()

    def count_operators(self) -> int:
        """How many events of torch's operators there were on the CPU."""
        return sum(one.device_type == DeviceType.CPU for one in self._profile.events())

    def write(self, path: Path) -> None:
        """Writes the trace, gzipped.

        Torch can compress it, too, but line by line, which takes ten times as long.

        Raises:
            OSError, RuntimeError: it cannot be written.
        """
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace.json"
            self._profile.export_chrome_trace(str(trace))
            with trace.open("rb") as plain, gzip.open(path, "wb", compresslevel=1) as packed:
                shutil.copyfileobj(plain, packed, 1 << 20)

    def release(self) -> None:
        """Gives its events' memory back: nothing can be written afterwards.

        The profile is in a circle of objects, which Python would collect at some later time, and
        looking for it among all of a program's objects takes up to seconds.
        """
        vars(self._profile).clear()
