"""A stand-in for nvidia-ml-py: GPUs with the names of their slices; None: one is not divided."""

from __future__ import annotations

from types import ModuleType


class NVMLError(Exception):
    """What NVML raises."""


def nvml_of(
    gpus: dict[str, list[str] | None], *, driver: bool = True, lost: str = ""
) -> ModuleType:
    """The module, for a machine with these GPUs, of which one may be lost."""

    class Module(ModuleType):
        NVMLError = NVMLError
        open = 0

        def nvmlInit(self):
            if not driver:
                raise NVMLError("no driver")
            self.open += 1

        def nvmlShutdown(self):
            self.open -= 1

        def nvmlDeviceGetCount(self):
            assert self.open
            return len(gpus)

        def nvmlDeviceGetHandleByIndex(self, index):
            if [*gpus][index] == lost:
                raise NVMLError("GPU is lost")
            return [*gpus][index]

        def nvmlDeviceGetUUID(self, handle):
            return handle

        def nvmlDeviceGetMigMode(self, handle):
            if handle.startswith("GPU-old"):
                raise NVMLError("not supported")
            divided = int(gpus[handle] is not None)
            return [divided, divided]

        def nvmlDeviceGetMaxMigDeviceCount(self, handle):
            return 7

        def nvmlDeviceGetMigDeviceHandleByIndex(self, handle, index):
            # NVML's numbers may have gaps.
            number, rest = divmod(index, 2)
            if rest or number >= len(gpus[handle]):
                raise NVMLError("not found")
            return gpus[handle][number]

    return Module("pynvml")
