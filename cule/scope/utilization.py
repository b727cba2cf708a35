"""How busy the driver says that the GPUs are: the share of time in which a kernel ran.

nvidia-smi's `utilization.gpu`: "Percent of time over the past sample period during which one or
more kernels was executing on the GPU. The sample period may be between 1 second and 1/6 second"
(nvidia-smi --help-query-gpu). RL-Scope's finding F.11 is how little that says.
"""

from __future__ import annotations

import datetime
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

import torch

SAMPLE_MILLISECONDS = 250
_QUERY = "--query-gpu=uuid,timestamp,utilization.gpu"


@dataclass(frozen=True)
class Sample:
    """A sample: the GPU's UUID, Unix seconds, percent."""

    uuid: str
    time: float
    percent: float


def parse_samples(lines: list[str]) -> list[Sample]:
    """The samples in lines of nvidia-smi; others are left out."""
    samples = []
    for line in lines:
        with suppress(ValueError):
            uuid, stamp, percent = (part.strip() for part in line.split(","))
            time = datetime.datetime.strptime(stamp, "%Y/%m/%d %H:%M:%S.%f").timestamp()
            samples.append(Sample(uuid, time, float(percent)))
    return samples


def gpu_uuid(index: int) -> str:
    """The UUID of a GPU, as nvidia-smi has it."""
    return f"GPU-{torch.cuda.get_device_properties(index).uuid}"


class Utilization:
    """Samples all GPUs that this process sees, from `start` to `stop`; nothing without a GPU.

    It is also a context manager.

    Args:
        device: the one GPU to sample; None: all.

    Attributes:
        samples: what was sampled; there after `stop`.
    """

    def __init__(self, device: torch.device | None = None):
        self.device = device
        self.samples: list[Sample] = []
        self._process: subprocess.Popen | None = None
        self._printed: IO[str] | None = None

    def _uuids(self) -> list[str]:
        if not torch.cuda.is_available() or (self.device and self.device.type != "cuda"):
            return []
        if self.device is not None:
            return [gpu_uuid(self.device.index or 0)]
        return [gpu_uuid(index) for index in range(torch.cuda.device_count())]

    def start(self) -> None:
        """Begins to sample."""
        uuids = self._uuids()
        if not uuids:
            return
        command = ["nvidia-smi", "-i", ",".join(uuids), _QUERY, "--format=csv,noheader,nounits"]
        # A file, as hours of samples would fill a pipe.
        self._printed = tempfile.TemporaryFile("w+")  # noqa: SIM115 (`stop` closes it)
        with suppress(OSError):
            self._process = subprocess.Popen(
                [*command, "-lms", str(SAMPLE_MILLISECONDS)], stdout=self._printed
            )

    def stop(self) -> None:
        """Ends sampling."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
        if self._printed is not None:
            self._printed.seek(0)
            self.samples = parse_samples(self._printed.readlines())
            self._printed.close()
        self._process = self._printed = None

    def __enter__(self) -> Utilization:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def row(self) -> dict[str, float | None]:
        """`gpu_utilization_min`, `_mean` and `_max`, percent; None if nothing was sampled."""
        found = [sample.percent for sample in self.samples]
        return {
            "gpu_utilization_min": min(found, default=None),
            "gpu_utilization_mean": round(sum(found) / len(found), 1) if found else None,
            "gpu_utilization_max": max(found, default=None),
        }
