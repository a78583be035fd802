"""Samples an NVIDIA GPU through NVML while a worker runs on it, from a thread of the parent process.

Sampling costs the worker only the driver's attention, five times a second. NVML sees the whole GPU, so its figures
include whatever else runs there.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bench.errors import Interrupted
from bench.machine.gpu import GpuMemory, GpuReadings

PERIOD_SECONDS = 0.2

RAMP_SECONDS = 0.1
"""How long a GPU's clock may take to rise after a pause. The clock is not read before."""

WINDOW_SECONDS = 1.0
"""NVML averages utilization and power over up to 1 s. A reading counts once the sampler has been on for as long."""

# Bits of nvmlClocksEventReasons (nvml.h), without "GPU idle", which only means that there was nothing to do.
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

# The names of each of NVML's functions, the newest first.
MEMORY = ("nvmlDeviceGetMemoryInfo",)
ENERGY = ("nvmlDeviceGetTotalEnergyConsumption",)
UTILIZATION = ("nvmlDeviceGetUtilizationRates",)
POWER = ("nvmlDeviceGetPowerUsage",)
CLOCK = ("nvmlDeviceGetClockInfo",)
CLOCK_REASONS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
TEMPERATURE = ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature")
IS_INSTANCE = ("nvmlDeviceIsMigDeviceHandle",)
SHUTDOWN = ("nvmlShutdown",)


def choose(nvml: Any, environ: Mapping[str, str]) -> Any | None:
    """Return NVML's handle of the GPU that CUDA calls number 0; None if it cannot be determined.

    Args:
        nvml: the module `pynvml`, initialised.
        environ: the worker's environment variables. `CUDA_VISIBLE_DEVICES` lists numbers, UUIDs or beginnings of UUIDs.
            NVML numbers GPUs in the order of the PCI bus. CUDA does so only if `CUDA_DEVICE_ORDER` is `PCI_BUS_ID`.
            Without it, and with several GPUs, a number does not identify a GPU.
    """
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    first = "0" if visible is None else visible.split(",")[0].strip()
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    if first.isdigit():
        ordered = len(handles) == 1 or environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
        return _instance(nvml, handles[int(first)]) if ordered and int(first) < len(handles) else None
    if first.startswith("MIG-"):
        return nvml.nvmlDeviceGetHandleByUUID(first.encode())
    if first.startswith("GPU-"):
        found = [handle for handle in handles if _text(nvml.nvmlDeviceGetUUID(handle)).startswith(first)]
        return _instance(nvml, found[0]) if found else None
    return None


def _instance(nvml: Any, handle: Any) -> Any | None:
    """Return the instance that CUDA uses of a GPU in MIG mode, or the GPU itself without MIG.

    A process uses one instance only. With several, NVML does not tell which, so the result is None.
    """
    try:
        if not nvml.nvmlDeviceGetMigMode(handle)[0]:
            return handle
    except (nvml.NVMLError, AttributeError):  # no support for MIG
        return handle
    instances = []
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        with contextlib.suppress(nvml.NVMLError):
            instances.append(nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index))
    return instances[0] if len(instances) == 1 else None


def _text(value: str | bytes) -> str:
    """Return text as `str`: older releases of pynvml return bytes."""
    return value.decode() if isinstance(value, bytes) else value


class NvmlSampler:
    """Samples one NVIDIA GPU while it is on; see `open_sampler`."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._shared = bool(self._read(IS_INSTANCE, handle))  # its GPU's load, power and energy include other instances
        self._on = False
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._energy: float | None = None
        self._since = 0.0
        self.readings = GpuReadings()
        self._thread = threading.Thread(target=self._run, name="devbench-nvml", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(PERIOD_SECONDS):
            with self._lock:
                if self._on:
                    self._sample(time.monotonic() - self._since)

    def on(self) -> None:
        """Start or resume sampling. Nothing is read yet, because the GPU was idle or ran another worker until now."""
        with self._lock:
            self._on, self._since = True, time.monotonic()
            self._energy = self._joules()

    def off(self) -> None:
        """Pause sampling, when the worker's last block has just ended. Memory and temperature are read once more."""
        with self._lock:
            if not self._on:
                return
            self._on = False
            self._sample_state()
            now = self._joules()
            if now is not None and self._energy is not None and now >= self._energy:
                self.readings.joules = (self.readings.joules or 0.0) + now - self._energy

    def close(self) -> None:
        """End the thread and shut NVML down."""
        self._end.set()
        self._thread.join()
        self._read(SHUTDOWN)

    def memory(self) -> GpuMemory | None:
        """Return the GPU's memory as it is now; None if the GPU does not report it."""
        info = self._read(MEMORY, self._handle)
        return None if info is None else GpuMemory(int(info.used), int(info.total))

    def utilization(self) -> float | None:
        """Return the share of the last second in which the GPU was busy; None if the GPU does not report it."""
        rates = None if self._shared else self._read(UTILIZATION, self._handle)
        return None if rates is None else float(rates.gpu) / 100

    def _read(self, names: Sequence[str], *arguments: Any) -> Any | None:
        """Call the first of these NVML functions that works; return None if none does.

        NVML drops and renames functions: an old driver knows only the old name, and CUDA 14 only the new one.
        """
        for name in names:
            function = getattr(self._nvml, name, None)
            if function is not None:
                with contextlib.suppress(self._nvml.NVMLError):
                    return function(*arguments)
        return None

    def _joules(self) -> float | None:
        value = None if self._shared else self._read(ENERGY, self._handle)
        return None if value is None else value / 1e3

    def _sample(self, on_seconds: float) -> None:
        """Read what holds after the sampler has been on for this many seconds."""
        nvml, handle, readings = self._nvml, self._handle, self.readings
        self._sample_state()
        if on_seconds >= WINDOW_SECONDS:
            if (busy := self.utilization()) is not None:
                readings.utilization.append(busy)
            if not self._shared and (milliwatts := self._read(POWER, handle)) is not None:
                readings.watts.append(milliwatts / 1e3)
        if on_seconds >= RAMP_SECONDS:
            if (megahertz := self._read(CLOCK, handle, nvml.NVML_CLOCK_SM)) is not None:
                readings.clock_hz.append(megahertz * 1e6)
            mask = self._read(CLOCK_REASONS, handle) or 0
            readings.reasons.update(name for bit, name in REASONS.items() if mask & bit)

    def _sample_state(self) -> None:
        nvml, handle, readings = self._nvml, self._handle, self.readings
        if (memory := self._read(MEMORY, handle)) is not None:
            readings.memory.append(int(memory.used))
        if (degrees := self._read(TEMPERATURE, handle, nvml.NVML_TEMPERATURE_GPU)) is not None:
            readings.celsius.append(float(degrees))


def open_sampler(environ: Mapping[str, str]) -> NvmlSampler | None:
    """Open a sampler of a worker's GPU; return None if NVML or the GPU is not there.

    Args:
        environ: the worker's environment variables.

    Raises:
        Interrupted: a signal arrived. Nothing else is raised.
    """
    try:
        nvml: Any = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Interrupted:
        raise
    except Exception:  # package, library or driver absent, or versions that do not match: there are no figures
        return None
    try:
        handle = choose(nvml, environ)
    except nvml.NVMLError:
        handle = None
    if handle is not None:
        with contextlib.suppress(RuntimeError):  # a limit of processes has no room for its thread
            return NvmlSampler(nvml, handle)
    nvml.nvmlShutdown()
    return None
