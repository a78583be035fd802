"""Measures from outside what a worker used and what disturbed it, while it runs its timed blocks.

Counters are read only before and after the blocks, so that nothing runs beside the worker while it is timed. The
exception is a GPU, whose utilization and clocks can only be sampled (see gpu.py).
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bench.machine.environment import load_average
from bench.machine.gpu import GpuReadings, OpenSampler, Sampler
from bench.machine.limits import Throttling, throttling
from bench.machine.system import ROOT, read
from bench.model.telemetry import Telemetry

if TYPE_CHECKING:
    import psutil

T = TypeVar("T")

# A package's energy counter wraps around (on many at 262 kJ). If it could have wrapped more than once at this power,
# the energy is unknown.
_MAX_WATTS = 400.0


@dataclass(frozen=True)
class _Counters:
    """All counters at one moment, `at`, in seconds of `time.perf_counter`. Energy is in microjoules, by zone."""

    at: float
    cpu: float | None
    steal: float | None
    throttled: Throttling | None
    energy: Mapping[Path, int]


class Meter:
    """Counts what one worker process uses between `start` and `stop`.

    Interleaved workers run one after another. `pause` and `resume` exclude the time in which the others run. The worker
    may end at any time. A counter that could not be read is None.

    Args:
        pid: the worker's process.
        open_gpu: opens a sampler of the worker's GPU; None if there is no GPU to sample.
        load_before: the load average before the worker started; None reads it now.
        gpu_busy_before: share of the time in which the GPU was busy before; None if not known.
        root: folder to use as `/`.
    """

    def __init__(
        self,
        pid: int,
        open_gpu: OpenSampler | None = None,
        *,
        load_before: float | None = None,
        gpu_busy_before: float | None = None,
        root: Path = ROOT,
    ) -> None:
        self._pid = pid
        self._open_gpu = open_gpu
        self._root = root
        self._load = load_average() if load_before is None else load_before
        self._gpu_busy = gpu_busy_before
        self._gpu: Sampler | None = None
        self._from: _Counters | None = None
        self._zones: dict[Path, int] = {}
        self._peak: int | None = None
        self._reset()

    def _reset(self) -> None:
        self._wall = 0.0
        self._cpu: float | None = None
        self._steal: float | None = None
        self._seconds: float | None = None
        self._periods: int | None = None
        self._joules: float | None = None

    def start(self) -> None:
        """Start counting, from zero."""
        self._reset()
        self._zones = rapl_zones(self._root)
        if self._gpu is not None:
            self._gpu.close()
        if self._open_gpu is not None:
            self._gpu = self._open_gpu(worker_environment(self._pid))
        self.resume()

    def pause(self) -> None:
        """Stop counting until `resume`."""
        if self._from is None:
            return
        if self._gpu is not None:
            self._gpu.off()
        # The clock is read first here and last in `resume`, so that the reading itself is not counted.
        end = time.perf_counter()
        before, now = self._from, self._read()
        self._from = None
        wall = end - before.at
        self._wall += wall
        if now.cpu is not None and before.cpu is not None:
            self._cpu = (self._cpu or 0.0) + max(0.0, now.cpu - before.cpu)
        if now.steal is not None and before.steal is not None:
            self._steal = (self._steal or 0.0) + max(0.0, now.steal - before.steal)
        if now.throttled is not None and before.throttled is not None:
            self._seconds = (self._seconds or 0.0) + max(0.0, now.throttled.seconds - before.throttled.seconds)
            self._periods = (self._periods or 0) + max(0, now.throttled.periods - before.throttled.periods)
        joules = package_joules(before.energy, now.energy, self._zones, wall)
        if joules is not None:
            self._joules = (self._joules or 0.0) + joules
        self._peak = max(filter(None, (self._peak, peak_rss(self._pid, self._root))), default=None)

    def resume(self) -> None:
        """Continue to count after `pause`."""
        self._from = self._read()
        if self._gpu is not None:
            self._gpu.on()

    def stop(self) -> Telemetry:
        """Stop counting and return the counts. The peak memory covers the whole life of the worker and its children."""
        self.pause()
        gpu = GpuReadings()
        if self._gpu is not None:
            self._gpu.close()
            gpu, self._gpu = self._gpu.readings, None
        clock = _mean(gpu.clock_hz)
        return Telemetry(
            wall_seconds=self._wall,
            cpu_seconds=self._cpu,
            peak_rss_bytes=self._peak,
            load_before=self._load,
            throttled_seconds=self._seconds,
            throttled_periods=self._periods,
            stolen_seconds=self._steal,
            package_joules=self._joules,
            gpu_utilization_before=self._gpu_busy,
            gpu_utilization_ratio=_mean(gpu.utilization),
            gpu_memory_bytes=max(gpu.memory, default=None),
            gpu_power_watts=_mean(gpu.watts) if gpu.joules is None else gpu.joules / self._wall if self._wall else None,
            gpu_joules=gpu.joules,
            gpu_sm_clock_hz=clock,
            gpu_sm_clock_spread=(max(gpu.clock_hz) - min(gpu.clock_hz)) / clock if clock else None,
            gpu_temperature_celsius=max(gpu.celsius, default=None),
            gpu_temperature_rise_celsius=gpu.celsius[-1] - gpu.celsius[0] if gpu.celsius else None,
            gpu_throttle_reasons=sorted(gpu.reasons),
        )

    def _read(self) -> _Counters:
        energy = {zone: value for zone in self._zones if (value := _energy(zone)) is not None}
        cpu, steal, throttled = cpu_seconds(self._pid), stolen_seconds(), throttling(self._root)
        return _Counters(time.perf_counter(), cpu, steal, throttled, energy)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _process_tree(pid: int, read_process: Callable[[psutil.Process], T]) -> list[T]:
    """Read a value from a process and each of its living descendants; return an empty list if the process is gone.

    A descendant that ends while it is read is skipped.
    """
    import psutil

    try:
        process = psutil.Process(pid)
        values = [read_process(process)]
        children = process.children(recursive=True)
    except (psutil.Error, OSError):
        return []
    for child in children:
        with contextlib.suppress(psutil.Error, OSError):
            values.append(read_process(child))
    return values


def cpu_seconds(pid: int) -> float | None:
    """Return the CPU time of a process, its threads and its children, dead or alive, in seconds; None if it is gone."""

    def cpu_time(process: psutil.Process) -> float:
        times = process.cpu_times()
        return float(sum(getattr(times, name, 0.0) for name in ("user", "system", "children_user", "children_system")))

    times = _process_tree(pid, cpu_time)
    return sum(times) if times else None  # a process that has just started has used 0.0 seconds, which is not None


def peak_rss(pid: int, root: Path = ROOT) -> int | None:
    """Return the peak memory of a process plus that of each living child, in bytes; None if it is gone.

    macOS reports no peak, so the result there is the current memory.
    """

    def peak(process: psutil.Process) -> int:
        if sys.platform == "linux":
            for line in (read(root / f"proc/{process.pid}/status") or "").splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        info = process.memory_info()
        return int(getattr(info, "peak_wset", info.rss))

    return sum(_process_tree(pid, peak)) or None


def stolen_seconds() -> float | None:
    """Return the stolen time of all CPUs since this machine started, in seconds; None if not reported."""
    import psutil

    steal = getattr(psutil.cpu_times(), "steal", None)
    return None if steal is None else float(steal)


def worker_environment(pid: int) -> Mapping[str, str]:
    """Return the environment variables of a process. If they cannot be read, return those of this process."""
    import psutil

    try:
        return psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return os.environ


def rapl_zones(root: Path = ROOT) -> dict[Path, int]:
    """Return the readable energy counters of CPU packages: folder to the microjoules at which the counter wraps around.

    Processors of both Intel and AMD appear as `intel-rapl` (Linux's power capping framework). Zones within a package
    and the zone `psys` are left out, because they are parts of a package or contain it.
    """
    zones = {}
    for zone in sorted((root / "sys/class/powercap").glob("intel-rapl:*")):
        package = zone.name.count(":") == 1 and (read(zone / "name") or "").startswith("package")
        if package and _energy(zone) is not None:
            zones[zone] = int(read(zone / "max_energy_range_uj") or 0)
    return zones


def _energy(zone: Path) -> int | None:
    text = read(zone / "energy_uj")
    return int(text) if text and text.isdigit() else None


def package_joules(
    before: Mapping[Path, int], now: Mapping[Path, int], ranges: Mapping[Path, int], wall: float
) -> float | None:
    """Return the energy between two readings of the packages' counters, in joules.

    Args:
        before: microjoules of each zone at the start.
        now: microjoules of each zone at the end.
        ranges: microjoules at which each counter wraps around.
        wall: seconds between the two readings.

    Returns:
        The energy; None if a counter is missing, or has wrapped around and its range is not known, or may have wrapped
        around more than once.
    """
    total = 0
    for zone, limit in ranges.items():
        if zone not in before or zone not in now or wall * _MAX_WATTS * 1e6 > limit > 0:
            return None
        delta = now[zone] - before[zone]
        if delta < 0 and not limit:
            return None
        total += delta + limit if delta < 0 else delta
    return total / 1e6 if ranges else None
