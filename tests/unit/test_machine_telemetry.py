"""The meter, on real processes.

There is no GPU where these run, so NVML is a small stand-in for its Python module, with the functions, units and
errors of the real one; everything else is real.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from bench.backends import _nvml, capabilities
from bench.machine.telemetry import Meter, cpu_seconds, package_joules, peak_rss, rapl_zones
from bench.model.result import Telemetry

WORKER = """
import subprocess, sys, time
print(flush=True)
for line in sys.stdin:
    if line == "work\\n":
        begun = time.process_time()
        while time.process_time() - begun < 0.3: pass
    elif line == "child\\n":
        subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.3: pass"], check=True)
    elif line == "memory\\n":
        held = b"x" * (200 * 2**20)
        del held
    print(time.process_time(), flush=True)
"""


class Worker:
    """A real process that works when told to."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._out.readline()

    def do(self, what: str) -> float:
        """Does it; returns the CPU seconds that the worker itself counts."""
        self._in.write(f"{what}\n")
        self._in.flush()
        return float(self._out.readline())

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def worker() -> Iterator[Worker]:
    one = Worker()
    yield one
    one.end()


def test_the_meter_counts_the_workers_cpu_time_between_start_and_stop(worker: Worker) -> None:
    before = worker.do("work")
    meter = Meter(worker.process.pid)
    meter.start()
    after = worker.do("work")
    told = meter.stop()
    assert told.cpu_seconds == pytest.approx(after - before, abs=0.05)
    assert told.wall_seconds >= (told.cpu_seconds or 0.0) - 0.05  # the CPU clock ticks in hundredths of a second


def test_what_a_worker_does_while_paused_is_left_out(worker: Worker) -> None:
    meter = Meter(worker.process.pid)
    meter.start()
    worker.do("work")
    meter.pause()
    worker.do("work")
    meter.resume()
    worker.do("work")
    assert meter.stop().cpu_seconds == pytest.approx(0.6, abs=0.1)


def test_a_meter_stopped_while_paused_adds_nothing(worker: Worker) -> None:
    meter = Meter(worker.process.pid)
    meter.start()
    meter.pause()
    worker.do("work")
    meter.pause()
    assert (meter.stop().cpu_seconds or 0.0) < 0.1


def test_a_meter_that_is_started_again_counts_from_zero(worker: Worker) -> None:
    meter = Meter(worker.process.pid)
    meter.start()
    worker.do("work")
    meter.stop()
    meter.start()
    assert (meter.stop().cpu_seconds or 0.0) < 0.1


@pytest.mark.needs("linux")
def test_a_process_that_has_used_no_tick_yet_counts_zero_and_is_not_taken_for_gone() -> None:
    told = []
    for _ in range(20):  # its start alone takes a tick now and then
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as idle:
            told.append(cpu_seconds(idle.pid))
    assert None not in told
    assert 0.0 in told


def test_a_child_of_the_worker_counts_too(worker: Worker) -> None:
    meter = Meter(worker.process.pid)
    meter.start()
    worker.do("child")
    told = meter.stop()
    assert told.cpu_seconds is not None
    assert told.cpu_seconds >= 0.25


@pytest.mark.needs("linux")
def test_the_peak_of_memory_is_told_although_it_was_freed(worker: Worker) -> None:
    meter = Meter(worker.process.pid)
    meter.start()
    worker.do("memory")
    told = meter.stop()
    assert told.peak_rss_bytes is not None
    assert told.peak_rss_bytes >= 200 * 2**20


def test_a_worker_that_dies_leaves_its_own_figures_out_and_raises_nothing(worker: Worker) -> None:
    meter = Meter(worker.process.pid)
    meter.start()
    worker.end()
    told = meter.stop()
    assert told.cpu_seconds is None
    assert told.wall_seconds > 0
    assert cpu_seconds(worker.process.pid) is None
    assert peak_rss(worker.process.pid) is None


def test_a_meter_that_was_never_started_tells_an_empty_window() -> None:
    assert Meter(1).stop().wall_seconds == 0


def test_the_load_before_the_worker_is_kept_where_it_is_given(worker: Worker) -> None:
    assert Meter(worker.process.pid, load_before=0.25).stop().load_before == 0.25


def lay(root: Path, files: dict[str, object]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
    return root


def test_throttling_within_the_window_is_the_difference(tmp_path: Path, worker: Worker) -> None:
    stat = "sys/fs/cgroup/cpu.stat"
    mount = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
    files = {"proc/self/mountinfo": mount, "proc/self/cgroup": "0::/"}
    lay(tmp_path, {**files, stat: "nr_throttled 10\nthrottled_usec 4000000"})
    meter = Meter(worker.process.pid, root=tmp_path)
    meter.start()
    lay(tmp_path, {stat: "nr_throttled 13\nthrottled_usec 4500000"})
    told = meter.stop()
    assert (told.throttled_periods, told.throttled_seconds) == (3, 0.5)


RAPL = "sys/class/powercap/intel-rapl:{}"
TOP = 262_143_328_850


def rapl(root: Path, zone: str, name: str, energy: int) -> Path:
    folder = RAPL.format(zone)
    return lay(root, {f"{folder}/name": name, f"{folder}/energy_uj": energy, f"{folder}/max_energy_range_uj": TOP})


def test_packages_alone_are_counted_once_each(tmp_path: Path) -> None:
    for zone, name in (("0", "package-0"), ("1", "package-1"), ("2", "psys"), ("0:0", "core")):
        rapl(tmp_path, zone, name, 5)
    assert [path.name for path in rapl_zones(tmp_path)] == ["intel-rapl:0", "intel-rapl:1"]


def test_energy_is_added_over_packages_and_a_counter_may_go_round(tmp_path: Path, worker: Worker) -> None:
    rapl(tmp_path, "0", "package-0", 1_000_000)
    rapl(tmp_path, "1", "package-1", TOP - 500_000)
    meter = Meter(worker.process.pid, root=tmp_path)
    meter.start()
    rapl(tmp_path, "0", "package-0", 4_000_000)
    rapl(tmp_path, "1", "package-1", 1_500_000)
    assert meter.stop().package_joules == pytest.approx(5.0)


def test_energy_is_not_told_where_a_counter_may_have_gone_round_twice(tmp_path: Path) -> None:
    zone = tmp_path / "zone"
    assert package_joules({zone: 0}, {zone: 9_000_000}, {zone: TOP}, wall=60.0) == 9.0
    assert package_joules({zone: 0}, {zone: 9_000_000}, {zone: TOP}, wall=3600.0) is None


def test_without_counters_of_energy_none_is_told(tmp_path: Path, worker: Worker) -> None:
    meter = Meter(worker.process.pid, root=tmp_path)
    meter.start()
    assert meter.stop().package_joules is None


class NVMLError(Exception):
    pass


class Nvml(ModuleType):
    """A stand-in for `pynvml` with GPUs whose figures move at each reading."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, uuids: list[str], missing: tuple[str, ...] = ()) -> None:
        super().__init__("pynvml")
        self.uuids = uuids
        self.missing = missing
        self.open = 0
        self.energy = 1_000_000
        self.clocks = [1500, 1300]
        self.asked: set[int] = set()

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

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def answer(handle: int, *_: object) -> Any:
            self.asked.add(handle)
            if name in self.missing:
                raise NVMLError("Not Supported")
            if name == "nvmlDeviceGetUtilizationRates":
                return SimpleNamespace(gpu=80, memory=10)
            if name == "nvmlDeviceGetMemoryInfo":
                return SimpleNamespace(used=3 * 2**30)
            if name == "nvmlDeviceGetPowerUsage":
                return 65_000
            if name == "nvmlDeviceGetTotalEnergyConsumption":
                self.energy += 2_500
                return self.energy
            if name == "nvmlDeviceGetClockInfo":
                return self.clocks[0] if len(self.clocks) == 1 else self.clocks.pop(0)
            if name == "nvmlDeviceGetTemperature":
                return 71
            if name == "nvmlDeviceGetCurrentClocksThrottleReasons":
                return 0x1 | 0x4 | 0x40
            raise AttributeError(name)

        return answer


def metered(monkeypatch: pytest.MonkeyPatch, worker: Worker, nvml: ModuleType | None) -> Telemetry:
    # An entry of None makes the import fail, as it does where the package is absent.
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    # A sample at the start and one at the end, however long the test takes.
    monkeypatch.setattr(_nvml, "PERIOD_SECONDS", 3600.0)
    meter = Meter(worker.process.pid, _nvml.open_sampler)
    meter.start()
    return meter.stop()


def test_a_gpus_samples_become_means_peaks_and_differences(monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
    nvml = Nvml(["GPU-aaaa"])
    told = metered(monkeypatch, worker, nvml)
    assert told.gpu_utilization_ratio == pytest.approx(0.8)
    assert told.gpu_memory_bytes == 3 * 2**30
    assert told.gpu_power_watts == pytest.approx(65.0)
    assert told.gpu_joules == pytest.approx(2.5)
    assert told.gpu_sm_clock_hz == pytest.approx(1.4e9)
    assert told.gpu_sm_clock_spread == pytest.approx(0.2 / 1.4)
    assert told.gpu_temperature_celsius == 71
    assert told.gpu_throttle_reasons == ["hardware-thermal-slowdown", "software-power-cap"]
    assert nvml.open == 0


def test_a_gpu_without_an_energy_counter_still_tells_the_rest(monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
    missing = ("nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetCurrentClocksThrottleReasons")
    told = metered(monkeypatch, worker, Nvml(["GPU-aaaa"], missing))
    assert told.gpu_joules is None
    assert told.gpu_throttle_reasons == []
    assert told.gpu_power_watts == pytest.approx(65.0)


def test_without_nvml_the_rest_is_told(monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
    told = metered(monkeypatch, worker, None)
    assert told.gpu_utilization_ratio is None
    assert told.cpu_seconds is not None


def test_a_driver_that_does_not_answer_nvml_is_no_error(monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
    nvml = Nvml(["GPU-aaaa"])

    def broken() -> None:
        raise NVMLError("Driver/library version mismatch")

    monkeypatch.setattr(nvml, "nvmlInit", broken)
    assert metered(monkeypatch, worker, nvml).gpu_utilization_ratio is None


def test_no_thread_samples_for_a_worker_on_the_cpu(monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
    nvml = Nvml(["GPU-aaaa"])
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    meter = Meter(worker.process.pid, capabilities("cpu").telemetry)
    meter.start()
    assert meter.stop().gpu_utilization_ratio is None
    assert nvml.asked == set()


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, 0),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1,0"}, 1),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "7"}, None),
        ({"CUDA_VISIBLE_DEVICES": "GPU-bb"}, 1),
        ({"CUDA_VISIBLE_DEVICES": "GPU-zz"}, None),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, None),
        ({"CUDA_VISIBLE_DEVICES": ""}, None),
    ],
)
def test_the_gpu_sampled_is_the_one_that_cuda_calls_number_0(environ: dict[str, str], expected: int | None) -> None:
    assert _nvml.choose(Nvml(["GPU-aaaa", "GPU-bbbb"]), environ) == expected


def test_a_lone_gpu_is_known_in_any_order() -> None:
    assert _nvml.choose(Nvml(["GPU-aaaa"]), {}) == 0
