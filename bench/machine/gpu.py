"""What an NVIDIA GPU does while a worker runs on it, sampled through NVML by a thread of the parent.

The sampling costs the worker nothing but the driver's attention, five times a second. NVML sees the whole GPU:
whatever else runs on it is in these figures too.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PERIOD_SECONDS = 0.2

# Bits of nvmlClocksEventReasons (nvml.h). "GPU idle" is left out: it only says that nothing was to be done.
REASONS = {
    0x2: "applications-clocks-setting",
    0x4: "software-power-cap",
    0x8: "hardware-slowdown",
    0x10: "sync-boost",
    0x20: "software-thermal-slowdown",
    0x40: "hardware-thermal-slowdown",
    0x80: "hardware-power-brake",
    0x100: "display-clock-setting",
}


@dataclass
class GpuReadings:
    """Everything sampled while it was on; a list is empty where the GPU does not tell that figure."""

    utilization: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    watts: list[float] = field(default_factory=list)
    clock_hz: list[float] = field(default_factory=list)
    celsius: list[float] = field(default_factory=list)
    reasons: set[str] = field(default_factory=set)
    joules: float | None = None


def choose(nvml: Any, environ: Mapping[str, str]) -> Any | None:
    """NVML's handle of the GPU that CUDA calls number 0; none where that can't be told.

    Args:
        nvml: the module `pynvml`, initialised.
        environ: the worker's environment. `CUDA_VISIBLE_DEVICES` lists numbers or (beginnings of) UUIDs. NVML counts
            in the order of the PCI bus; CUDA does so only where `CUDA_DEVICE_ORDER` says `PCI_BUS_ID`, so with
            several GPUs a number without that names none.
    """
    wanted = environ.get("CUDA_VISIBLE_DEVICES")
    first = "0" if wanted is None else wanted.split(",")[0].strip()
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    if first.isdigit():
        ordered = len(handles) == 1 or environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
        return handles[int(first)] if ordered and int(first) < len(handles) else None
    if first.startswith("MIG-"):
        return nvml.nvmlDeviceGetHandleByUUID(first.encode())
    if first.startswith("GPU-"):
        return next((handle for handle in handles if _text(nvml.nvmlDeviceGetUUID(handle)).startswith(first)), None)
    return None


def _text(value: str | bytes) -> str:
    """Older releases of pynvml return bytes."""
    return value.decode() if isinstance(value, bytes) else value


class GpuSampler:
    """Samples one GPU while it is on; see `open_sampler`."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._on = False
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._energy: float | None = None
        self.readings = GpuReadings()
        self._thread = threading.Thread(target=self._run, name="devbench-nvml", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(PERIOD_SECONDS):
            with self._lock:
                if self._on:
                    self._sample()

    def on(self) -> None:
        """Begin, or go on, to sample."""
        with self._lock:
            self._on = True
            self._energy = self._joules()
            self._sample()

    def off(self) -> None:
        """Stop sampling until `on`; a last sample is taken, so that a short window has one from its end."""
        with self._lock:
            if not self._on:
                return
            self._on = False
            self._sample()
            now = self._joules()
            if now is not None and self._energy is not None and now >= self._energy:
                self.readings.joules = (self.readings.joules or 0.0) + now - self._energy

    def close(self) -> None:
        """End the thread and let NVML go."""
        self._end.set()
        self._thread.join()
        self._read(self._nvml.nvmlShutdown)

    def memory(self) -> Memory | None:
        """The GPU's memory now; none where it does not tell."""
        found = self._read(self._nvml.nvmlDeviceGetMemoryInfo, self._handle)
        return None if found is None else Memory(int(found.used), int(found.total))

    def _read(self, function: Callable[..., Any], *arguments: Any) -> Any | None:
        """What an NVML function returns; none where this GPU or driver does not have it."""
        try:
            return function(*arguments)
        except self._nvml.NVMLError:
            return None

    def _joules(self) -> float | None:
        value = self._read(self._nvml.nvmlDeviceGetTotalEnergyConsumption, self._handle)
        return None if value is None else value / 1e3

    def _sample(self) -> None:
        nvml, handle, kept = self._nvml, self._handle, self.readings
        if (rates := self._read(nvml.nvmlDeviceGetUtilizationRates, handle)) is not None:
            kept.utilization.append(rates.gpu / 100)
        if (memory := self._read(nvml.nvmlDeviceGetMemoryInfo, handle)) is not None:
            kept.memory.append(int(memory.used))
        if (milliwatts := self._read(nvml.nvmlDeviceGetPowerUsage, handle)) is not None:
            kept.watts.append(milliwatts / 1e3)
        if (megahertz := self._read(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM)) is not None:
            kept.clock_hz.append(megahertz * 1e6)
        if (degrees := self._read(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)) is not None:
            kept.celsius.append(float(degrees))
        mask = self._read(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
        kept.reasons.update(name for bit, name in REASONS.items() if mask & bit)


@dataclass(frozen=True)
class Memory:
    """A GPU's memory, bytes."""

    used: int
    total: int


def memory() -> Memory | None:
    """Of the GPU that a worker of ours would be given now; none where that can't be told. Never raises."""
    sampler = open_sampler(os.environ)
    if sampler is None:
        return None
    try:
        return sampler.memory()
    finally:
        sampler.close()


def holds(before: Memory, now: Memory | None, more: int) -> bool:
    """Whether a GPU holds so many more workers as large as the one between two readings; true where nobody knows."""
    return now is None or 1.2 * (now.used - before.used) * more <= now.total - now.used


def open_sampler(environ: Mapping[str, str]) -> GpuSampler | None:
    """A sampler of the worker's GPU, off at first; none where there is no NVML or no such GPU. Never raises.

    Args:
        environ: the worker's environment.
    """
    try:
        nvml: Any = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # absent package, absent library, absent driver, a driver that doesn't match: no figures
        return None
    try:
        handle = choose(nvml, environ)
    except nvml.NVMLError:
        handle = None
    if handle is None:
        nvml.nvmlShutdown()
        return None
    return GpuSampler(nvml, handle)
