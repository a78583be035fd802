"""A stand-in for NVML's Python module, `pynvml`, with the functions, units and errors of the real one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

from bench.backends import _nvml


class NVMLError(Exception):
    pass


class Nvml(ModuleType):
    """A stand-in for `pynvml`. Its figures change with each reading."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, uuids: list[str], missing: tuple[str, ...] = (), absent: tuple[str, ...] = ()) -> None:
        """Make a stand-in whose GPUs do not support `missing`, and whose module does not have `absent`."""
        super().__init__("pynvml")
        self.absent = absent
        self.uuids = uuids
        self.missing = missing
        self.open = 0
        self.energy = 1_000_000
        self.clocks = [1500, 1300]
        self.clocks_read = threading.Event()
        self.handles: set[int] = set()
        self.utilizations: list[int] = []  # utilizations in percent that are read before the usual one
        self.instances: dict[int, list[int]] = {}  # handles of the instances of each GPU in MIG mode

    def nvmlInit(self) -> None:  # noqa: N802
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.uuids)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return self.uuids[handle]

    def nvmlDeviceGetMigMode(self, handle: int) -> tuple[int, int]:  # noqa: N802
        return int(handle in self.instances), 0

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: int) -> int:  # noqa: N802
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: int, index: int) -> int:  # noqa: N802
        if index >= len(self.instances[handle]):
            raise NVMLError("Not Found")
        return self.instances[handle][index]

    def nvmlDeviceIsMigDeviceHandle(self, handle: int) -> int:  # noqa: N802
        return int(any(handle in handles for handles in self.instances.values()))

    def next_clock(self) -> int:
        if not self.clocks:
            self.clocks_read.set()
            raise NVMLError("Unknown Error")
        return self.clocks.pop(0)

    def answer(self, name: str) -> Any:
        """Return what a function of NVML returns, whatever the GPU."""
        if name == "nvmlDeviceGetTotalEnergyConsumption":
            self.energy += 2_500
            return self.energy
        if name == "nvmlDeviceGetUtilizationRates" and self.utilizations:
            return SimpleNamespace(gpu=self.utilizations.pop(0), memory=10)
        if name == "nvmlDeviceGetClockInfo":
            return self.next_clock()
        return {
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=80, memory=10),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=3 * 2**30, total=16 * 2**30),
            "nvmlDeviceGetPowerUsage": 65_000,
            **dict.fromkeys(_nvml.TEMPERATURE, 71),
            **dict.fromkeys(_nvml.CLOCK_REASONS, 0x1 | 0x4 | 0x40),
        }[name]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in self.absent:
            raise AttributeError(name)

        def answer(handle: int, *_: object) -> Any:
            self.handles.add(handle)
            if name in self.missing:
                raise NVMLError("Not Supported")
            return self.answer(name)

        return answer
