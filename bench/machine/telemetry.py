"""What a worker used and what disturbed it, over the steady window only, read from outside it.

Everything is a counter read at the ends of the window, so nothing runs beside the worker while it is timed; but
for a CUDA GPU, whose utilisation and clocks exist only as samples (see gpu.py).
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

from bench.machine.environment import load
from bench.machine.gpu import GpuReadings, OpenSampler, Sampler
from bench.machine.limits import Throttling, throttling
from bench.machine.system import ROOT, read
from bench.model.result import Telemetry

if TYPE_CHECKING:
    import psutil

T = TypeVar("T")

# A package's energy counter goes round (at 262 kJ on many). In a window so long that it could have gone round
# more than once at this power, the energy can't be told.
_WATTS_AT_MOST = 400.0


@dataclass(frozen=True)
class _Counters:
    """Everything that only grows, at one moment."""

    at: float
    cpu: float | None
    steal: float | None
    throttled: Throttling | None
    energy: Mapping[Path, int]


class Meter:
    """Counts what one worker process uses between `start` and `stop`.

    In a trial each worker runs only in its turns: `pause` after one and `resume` before the next leave the others'
    turns out. The worker may die at any time; what can't be read any more is none.

    Args:
        pid: the worker's process.
        open_gpu: opens a sampler of the worker's GPU; None if no GPU is to be sampled.
        load_before: the load average before the worker was started, if it was read then.
        root: the folder that stands for `/`.
    """

    def __init__(
        self, pid: int, open_gpu: OpenSampler | None = None, *, load_before: float | None = None, root: Path = ROOT
    ) -> None:
        self._pid = pid
        self._open_gpu = open_gpu
        self._root = root
        self._load = load() if load_before is None else load_before
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
        """Begin to count, from zero."""
        self._reset()
        self._zones = rapl_zones(self._root)
        if self._gpu is not None:
            self._gpu.close()
        if self._open_gpu is not None:
            self._gpu = self._open_gpu(worker_environment(self._pid))
        self.resume()

    def pause(self) -> None:
        """Leave out what comes until `resume`."""
        if self._from is None:
            return
        if self._gpu is not None:
            self._gpu.off()
        # The clock first here and last in `resume`, so that what reading costs lies outside the window.
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
        joules = spent(before.energy, now.energy, self._zones, wall)
        if joules is not None:
            self._joules = (self._joules or 0.0) + joules
        self._peak = max(filter(None, (self._peak, peak_rss(self._pid, self._root))), default=None)

    def resume(self) -> None:
        """Count again after `pause`."""
        self._from = self._read()
        if self._gpu is not None:
            self._gpu.on()

    def stop(self) -> Telemetry:
        """Stop counting and tell what was counted. `peak_rss_bytes` is the worker's and its children's whole life's."""
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
            gpu_utilization_ratio=_mean(gpu.utilization),
            gpu_memory_bytes=max(gpu.memory, default=None),
            gpu_power_watts=_mean(gpu.watts),
            gpu_joules=gpu.joules,
            gpu_sm_clock_hz=clock,
            gpu_sm_clock_spread=(max(gpu.clock_hz) - min(gpu.clock_hz)) / clock if clock else None,
            gpu_temperature_celsius=max(gpu.celsius, default=None),
            gpu_temperature_rise_celsius=gpu.celsius[-1] - gpu.celsius[0] if gpu.celsius else None,
            gpu_throttle_reasons=sorted(gpu.reasons),
        )

    def _read(self) -> _Counters:
        energy = {zone: value for zone in self._zones if (value := _energy(zone)) is not None}
        cpu, steal, held = cpu_seconds(self._pid), stolen_seconds(), throttling(self._root)
        return _Counters(time.perf_counter(), cpu, steal, held, energy)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _family(pid: int, one: Callable[[psutil.Process], T]) -> list[T]:
    """What `one` reads of a process and of each of its living descendants; empty where the process is gone.

    A descendant that ends meanwhile is left out.
    """
    import psutil

    try:
        process = psutil.Process(pid)
        found = [one(process)]
        children = process.children(recursive=True)
    except (psutil.Error, OSError):
        return []
    for child in children:
        with contextlib.suppress(psutil.Error, OSError):
            found.append(one(child))
    return found


def cpu_seconds(pid: int) -> float | None:
    """CPU time of a process with all its threads and its children, living or waited for; none once it is gone."""

    def one(process: psutil.Process) -> float:
        times = process.cpu_times()
        return float(sum(getattr(times, name, 0.0) for name in ("user", "system", "children_user", "children_system")))

    counted = _family(pid, one)
    return sum(counted) if counted else None  # 0.0 is a count too: that of a process that has just begun


def peak_rss(pid: int, root: Path = ROOT) -> int | None:
    """The most bytes of memory that a process and its living children ever held each, summed; none once it is gone.

    Where the system tells only what is held now (macOS), it is that.
    """

    def one(process: psutil.Process) -> int:
        if sys.platform == "linux":
            for line in (read(root / f"proc/{process.pid}/status") or "").splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        info = process.memory_info()
        return int(getattr(info, "peak_wset", info.rss))

    return sum(_family(pid, one)) or None


def stolen_seconds() -> float | None:
    """CPU time that the hypervisor gave to other machines since the start of this one, all CPUs; none if not told."""
    import psutil

    steal = getattr(psutil.cpu_times(), "steal", None)
    return None if steal is None else float(steal)


def worker_environment(pid: int) -> Mapping[str, str]:
    """The variables that a process was started with, or ours where they can't be read."""
    import psutil

    try:
        return psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return os.environ


def rapl_zones(root: Path = ROOT) -> dict[Path, int]:
    """The CPU packages' energy counters that can be read: folder, and microjoules at which the counter goes round.

    Intel's and AMD's processors both appear as `intel-rapl` (Linux' power capping framework). Zones within a package
    and the `psys` zone are left out: they are parts of it or hold it.
    """
    found = {}
    for zone in sorted((root / "sys/class/powercap").glob("intel-rapl:*")):
        package = zone.name.count(":") == 1 and (read(zone / "name") or "").startswith("package")
        if package and _energy(zone) is not None:
            found[zone] = int(read(zone / "max_energy_range_uj") or 0)
    return found


def _energy(zone: Path) -> int | None:
    text = read(zone / "energy_uj")
    return int(text) if text and text.isdigit() else None


def spent(before: Mapping[Path, int], now: Mapping[Path, int], ranges: Mapping[Path, int], wall: float) -> float | None:
    """Joules between two readings of the packages' counters; none where one is missing or may have gone round twice.

    Args:
        before: microjoules of each zone at first.
        now: the same at the end.
        ranges: microjoules at which each counter goes round.
        wall: seconds between the two.
    """
    total = 0
    for zone, top in ranges.items():
        if zone not in before or zone not in now or wall * _WATTS_AT_MOST * 1e6 > top > 0:
            return None
        delta = now[zone] - before[zone]
        total += delta + top if delta < 0 else delta
    return total / 1e6 if ranges else None
