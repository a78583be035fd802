"""The meter, on real processes.

These tests need no GPU: a small stand-in replaces NVML's Python module. Everything else is real.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from stand_in_nvml import Nvml, NVMLError

from bench.backends import _nvml, capabilities
from bench.machine.telemetry import Meter, cpu_seconds, package_joules, peak_rss, rapl_zones
from bench.model.telemetry import Telemetry

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
    """A real process that works on request."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._out.readline()

    def do(self, command: str) -> float:
        """Run a command and return the CPU seconds that the worker itself counts."""
        self._in.write(f"{command}\n")
        self._in.flush()
        return float(self._out.readline())

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def worker() -> Iterator[Worker]:
    process = Worker()
    yield process
    process.end()


def test_the_meter_counts_the_workers_cpu_time_between_start_and_stop(worker: Worker) -> None:
    before = worker.do("work")
    meter = Meter(worker.process.pid)
    meter.start()
    after = worker.do("work")
    telemetry = meter.stop()
    assert telemetry.cpu_seconds == pytest.approx(after - before, abs=0.05)
    # The resolution of the CPU clock is 10 ms.
    assert telemetry.wall_seconds >= (telemetry.cpu_seconds or 0.0) - 0.05


def test_work_during_a_pause_is_not_counted(worker: Worker) -> None:
    meter = Meter(worker.process.pid)
    meter.start()
    worker.do("work")
    meter.pause()
    worker.do("work")
    meter.resume()
    worker.do("work")
    assert meter.stop().cpu_seconds == pytest.approx(0.6, abs=0.1)


def test_stopping_a_paused_meter_adds_nothing(worker: Worker) -> None:
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
def test_a_process_that_has_used_no_cpu_time_yet_counts_zero() -> None:
    telemetry = []
    for _ in range(20):  # in some attempts the start alone takes a tick
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as idle:
            telemetry.append(cpu_seconds(idle.pid))
    assert None not in telemetry
    assert 0.0 in telemetry


def test_a_child_of_the_worker_counts_too(worker: Worker) -> None:
    meter = Meter(worker.process.pid)
    meter.start()
    worker.do("child")
    telemetry = meter.stop()
    assert telemetry.cpu_seconds is not None
    assert telemetry.cpu_seconds >= 0.25


@pytest.mark.needs("linux")
def test_peak_memory_includes_memory_that_was_freed(worker: Worker) -> None:
    meter = Meter(worker.process.pid)
    meter.start()
    worker.do("memory")
    telemetry = meter.stop()
    assert telemetry.peak_rss_bytes is not None
    assert telemetry.peak_rss_bytes >= 200 * 2**20


def test_the_figures_of_a_dead_worker_are_none(worker: Worker) -> None:
    meter = Meter(worker.process.pid)
    meter.start()
    worker.end()
    telemetry = meter.stop()
    assert telemetry.cpu_seconds is None
    assert telemetry.wall_seconds > 0
    assert cpu_seconds(worker.process.pid) is None
    assert peak_rss(worker.process.pid) is None


def test_a_meter_that_was_never_started_counts_nothing() -> None:
    assert Meter(1).stop().wall_seconds == 0


def test_a_load_that_was_measured_before_the_worker_started_is_reported(worker: Worker) -> None:
    assert Meter(worker.process.pid, load_before=0.25).stop().load_before == 0.25


def write_files(root: Path, files: dict[str, object]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
    return root


def test_throttling_is_the_difference_of_two_readings(tmp_path: Path, worker: Worker) -> None:
    stat = "sys/fs/cgroup/cpu.stat"
    mount = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
    files = {"proc/self/mountinfo": mount, "proc/self/cgroup": "0::/"}
    write_files(tmp_path, {**files, stat: "nr_throttled 10\nthrottled_usec 4000000"})
    meter = Meter(worker.process.pid, root=tmp_path)
    meter.start()
    write_files(tmp_path, {stat: "nr_throttled 13\nthrottled_usec 4500000"})
    telemetry = meter.stop()
    assert (telemetry.throttled_periods, telemetry.throttled_seconds) == (3, 0.5)


RAPL = "sys/class/powercap/intel-rapl:{}"
TOP = 262_143_328_850


def rapl(root: Path, zone: str, name: str, energy: int) -> Path:
    folder = RAPL.format(zone)
    return write_files(
        root, {f"{folder}/name": name, f"{folder}/energy_uj": energy, f"{folder}/max_energy_range_uj": TOP}
    )


def test_only_whole_packages_are_counted(tmp_path: Path) -> None:
    for zone, name in (("0", "package-0"), ("1", "package-1"), ("2", "psys"), ("0:0", "core")):
        rapl(tmp_path, zone, name, 5)
    assert [path.name for path in rapl_zones(tmp_path)] == ["intel-rapl:0", "intel-rapl:1"]


def test_energy_is_summed_over_packages_and_a_counter_may_wrap(tmp_path: Path, worker: Worker) -> None:
    rapl(tmp_path, "0", "package-0", 1_000_000)
    rapl(tmp_path, "1", "package-1", TOP - 500_000)
    meter = Meter(worker.process.pid, root=tmp_path)
    meter.start()
    rapl(tmp_path, "0", "package-0", 4_000_000)
    rapl(tmp_path, "1", "package-1", 1_500_000)
    assert meter.stop().package_joules == pytest.approx(5.0)


def test_energy_is_unknown_if_a_counter_may_have_wrapped_twice(tmp_path: Path) -> None:
    zone = tmp_path / "zone"
    assert package_joules({zone: 0}, {zone: 9_000_000}, {zone: TOP}, wall=60.0) == 9.0
    assert package_joules({zone: 0}, {zone: 9_000_000}, {zone: TOP}, wall=3600.0) is None


def test_energy_is_unknown_if_a_counter_of_unknown_range_wrapped_around(tmp_path: Path) -> None:
    zone = tmp_path / "zone"
    assert package_joules({zone: 9_000_000}, {zone: 1_000_000}, {zone: 0}, wall=1.0) is None


def test_without_energy_counters_the_energy_is_none(tmp_path: Path, worker: Worker) -> None:
    meter = Meter(worker.process.pid, root=tmp_path)
    meter.start()
    assert meter.stop().package_joules is None


def metered(monkeypatch: pytest.MonkeyPatch, worker: Worker, nvml: ModuleType | None) -> Telemetry:
    # An entry of None makes the import fail, as if the package were not installed.
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    for name in ("PERIOD_SECONDS", "RAMP_SECONDS", "WINDOW_SECONDS"):
        monkeypatch.setattr(_nvml, name, 0.001)
    meter = Meter(worker.process.pid, _nvml.open_sampler)
    meter.start()
    if isinstance(nvml, Nvml) and nvml.handles:
        assert nvml.clocks_read.wait(60)
    return meter.stop()


def test_samples_of_a_gpu_become_means_maxima_and_differences(monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
    nvml = Nvml(["GPU-aaaa"])
    telemetry = metered(monkeypatch, worker, nvml)
    assert telemetry.gpu_utilization_ratio == pytest.approx(0.8)
    assert telemetry.gpu_memory_bytes == 3 * 2**30
    assert telemetry.gpu_joules == pytest.approx(2.5)
    assert telemetry.gpu_power_watts == pytest.approx(2.5 / telemetry.wall_seconds)
    assert telemetry.gpu_sm_clock_hz == pytest.approx(1.4e9)
    assert telemetry.gpu_sm_clock_spread == pytest.approx(0.2 / 1.4)
    assert telemetry.gpu_temperature_celsius == 71
    assert telemetry.gpu_throttle_reasons == ["hardware-thermal-slowdown", "software-power-cap"]
    assert nvml.open == 0


def test_a_gpu_without_an_energy_counter_reports_the_other_figures(
    monkeypatch: pytest.MonkeyPatch, worker: Worker
) -> None:
    missing = ("nvmlDeviceGetTotalEnergyConsumption", *_nvml.CLOCK_REASONS)
    telemetry = metered(monkeypatch, worker, Nvml(["GPU-aaaa"], missing))
    assert telemetry.gpu_joules is None
    assert telemetry.gpu_throttle_reasons == []
    assert telemetry.gpu_power_watts == pytest.approx(65.0)


class Turns(Nvml):
    """NVML of a GPU that another worker leaves idle: utilization and power are averages over the last second."""

    def __init__(self) -> None:
        super().__init__(["GPU-aaaa"])
        self.busy = True

    def clock(self, handle: int, kind: int) -> int:
        self.clocks_read.set()
        return 1980 if self.busy else 345

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name == "nvmlDeviceGetUtilizationRates":
            return lambda handle: SimpleNamespace(gpu=45, memory=10)
        if name == "nvmlDeviceGetPowerUsage":
            return lambda handle: 194_000
        if name == "nvmlDeviceGetClockInfo":
            return self.clock
        return super().__getattr__(name)


def test_turns_that_are_shorter_than_the_windows_of_nvml_report_energy_and_no_averages(
    monkeypatch: pytest.MonkeyPatch, worker: Worker
) -> None:
    nvml = Turns()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(_nvml, "PERIOD_SECONDS", 0.002)
    monkeypatch.setattr(_nvml, "RAMP_SECONDS", 0.0)
    monkeypatch.setattr(_nvml, "WINDOW_SECONDS", 3600.0)
    meter = Meter(worker.process.pid, _nvml.open_sampler)
    meter.start()
    for _ in range(5):
        assert nvml.clocks_read.wait(60)
        nvml.busy = False
        meter.pause()
        nvml.clocks_read.clear()
        nvml.busy = True
        meter.resume()
    telemetry = meter.stop()
    assert telemetry.gpu_utilization_ratio is None
    assert telemetry.gpu_joules is not None
    assert telemetry.gpu_power_watts == pytest.approx(telemetry.gpu_joules / telemetry.wall_seconds)
    assert telemetry.gpu_sm_clock_hz == pytest.approx(1.98e9)
    assert telemetry.gpu_sm_clock_spread == 0


NEW_NAMES = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetTemperatureV")
OLD_NAMES = ("nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetTemperature")


@pytest.mark.parametrize(
    "nvml",
    [
        Nvml(["GPU-aaaa"], absent=NEW_NAMES),
        Nvml(["GPU-aaaa"], absent=OLD_NAMES),
        Nvml(["GPU-aaaa"], missing=NEW_NAMES),  # the package is newer than the driver
    ],
    ids=["old", "new", "mixed"],
)
def test_a_figure_is_read_by_whichever_name_nvml_knows(
    monkeypatch: pytest.MonkeyPatch, worker: Worker, nvml: Nvml
) -> None:
    telemetry = metered(monkeypatch, worker, nvml)
    assert telemetry.gpu_throttle_reasons != []
    assert telemetry.gpu_temperature_celsius == 71


def test_a_figure_that_nvml_no_longer_has_is_none_and_the_others_are_reported(
    monkeypatch: pytest.MonkeyPatch, worker: Worker
) -> None:
    nvml = Nvml(["GPU-aaaa"], ("nvmlDeviceGetTotalEnergyConsumption",), ("nvmlDeviceGetPowerUsage",))
    telemetry = metered(monkeypatch, worker, nvml)
    assert telemetry.gpu_power_watts is None
    assert telemetry.gpu_utilization_ratio == pytest.approx(0.8)


def test_without_nvml_the_other_figures_are_reported(monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
    telemetry = metered(monkeypatch, worker, None)
    assert telemetry.gpu_utilization_ratio is None
    assert telemetry.cpu_seconds is not None


def test_a_driver_that_does_not_match_nvml_is_no_error(monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
    nvml = Nvml(["GPU-aaaa"])

    def fail() -> None:
        raise NVMLError("Driver/library version mismatch")

    monkeypatch.setattr(nvml, "nvmlInit", fail)
    assert metered(monkeypatch, worker, nvml).gpu_utilization_ratio is None


def test_the_gpu_is_not_sampled_for_a_worker_on_the_cpu(monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
    nvml = Nvml(["GPU-aaaa"])
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    meter = Meter(worker.process.pid, capabilities("cpu").telemetry)
    meter.start()
    assert meter.stop().gpu_utilization_ratio is None
    assert nvml.handles == set()


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
def test_the_sampled_gpu_is_the_one_that_cuda_calls_number_0(environ: dict[str, str], expected: int | None) -> None:
    assert _nvml.choose(Nvml(["GPU-aaaa", "GPU-bbbb"]), environ) == expected


def test_a_single_gpu_is_found_in_any_order() -> None:
    assert _nvml.choose(Nvml(["GPU-aaaa"]), {}) == 0


@pytest.mark.parametrize(("instances", "expected"), [([7], 7), ([7, 8], None), ([], None)])
def test_the_sampled_instance_of_a_gpu_in_mig_mode_is_its_only_one(instances: list[int], expected: int | None) -> None:
    nvml = Nvml(["GPU-aaaa"])
    nvml.instances = {0: instances}
    assert _nvml.choose(nvml, {}) == _nvml.choose(nvml, {"CUDA_VISIBLE_DEVICES": "GPU-aa"}) == expected


def test_an_instance_of_a_gpu_does_not_report_the_load_and_energy_of_the_whole_gpu(
    monkeypatch: pytest.MonkeyPatch, worker: Worker
) -> None:
    nvml = Nvml(["GPU-aaaa"])
    nvml.instances = {0: [7]}
    telemetry = metered(monkeypatch, worker, nvml)
    assert nvml.handles == {7}
    assert telemetry.gpu_utilization_ratio is telemetry.gpu_joules is telemetry.gpu_power_watts is None
    assert telemetry.gpu_memory_bytes == 3 * 2**30
    assert telemetry.gpu_temperature_celsius == 71
