"""The driver's utilization of the GPUs: the share of time in which a kernel ran.

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

    Attributes:
        samples: the samples, after `stop`.
    """

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._process: subprocess.Popen | None = None
        self._printed: IO[str] | None = None

    def start(self) -> None:
        """Begins to sample."""
        if not torch.cuda.is_available():
            return
        uuids = [gpu_uuid(index) for index in range(torch.cuda.device_count())]
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
