"""What is known about a GPU before a worker starts: its memory and other programs that use it."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from stand_in_nvml import Nvml

from bench.backends import _nvml
from bench.machine import gpu
from bench.machine.gpu import GpuMemory, MemoryCheck
from bench.model.spec import Data, Spec, Threads
from bench.session.memory_fit import gpu_memory
from bench.session.starting import variables_of

GIB = 2**30


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    """Install a machine with two GPUs, and without variables that choose one."""
    stand_in = Nvml(["GPU-aaaa", "GPU-bbbb"])
    monkeypatch.setitem(sys.modules, "pynvml", stand_in)
    monkeypatch.setattr(gpu, "READING_SECONDS", 0.0)
    for name in ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    return stand_in


def test_the_memory_is_that_of_the_gpu_that_a_worker_uses(nvml: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = Spec(workload="cifar", backend="cuda", threads=Threads(intra=1, inter=1), data=Data(kind="own"))
    assert gpu_memory(spec, variables_of(spec)) == GpuMemory(3 * GIB, 16 * GIB)
    assert nvml.handles == {0}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    gpu_memory(spec, variables_of(spec))
    assert nvml.handles == {0, 1}
    assert nvml.open == 0
    assert gpu_memory(spec.model_copy(update={"backend": "cpu"}), {}) is None


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([5], 0.05),
        ([90, 60, 4], 0.04),  # a worker of an earlier session ended within the last second
        ([90, 60, 70, 80, 90, 90, 90], 0.6),
    ],
)
def test_a_gpu_is_busy_only_if_it_stays_busy(nvml: Nvml, readings: list[int], expected: float) -> None:
    nvml.utilizations = list(readings)
    busy = gpu.utilization(_nvml.open_sampler, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    assert (busy, nvml.utilizations, nvml.open) == (expected, [], 0)


def test_a_reading_that_fails_does_not_make_a_busy_gpu_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "READING_SECONDS", 0.0)
    readings = iter([0.9, None, 0.8, None, 0.9, 0.9, 0.9])
    sampler: Any = SimpleNamespace(utilization=lambda: next(readings), close=lambda: None)
    assert gpu.utilization(lambda environ: sampler, {}) == 0.8


def test_a_gpu_is_not_sampled_if_there_is_no_room_for_another_thread(
    nvml: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_room)
    assert _nvml.open_sampler({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}) is None
    assert nvml.open == 0


def test_without_a_sampler_nothing_is_known_about_a_gpu() -> None:
    assert gpu.utilization(None, {}) is None
    assert gpu.memory(None, {}) is None


def test_a_gpu_must_hold_workers_as_large_as_the_largest_so_far() -> None:
    check = MemoryCheck(GpuMemory(1 * GIB, 16 * GIB))
    assert check.holds(GpuMemory(2 * GIB, 16 * GIB), 2)
    assert not check.holds(GpuMemory(9 * GIB, 16 * GIB), 1)  # the second one needs 7 GiB


def test_a_gpu_whose_memory_is_not_known_counts_as_large_enough() -> None:
    assert MemoryCheck(None).holds(GpuMemory(15 * GIB, 16 * GIB), 9)
    assert MemoryCheck(GpuMemory(0, GIB)).holds(None, 9)
