"""There is no silent fallback: a backend whose device is absent measures nothing and reports what is missing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from background_runs import ONCE
from devbench_process import ROOT, devbench

from bench.machine import system

pytestmark = pytest.mark.once


@pytest.mark.essential
@pytest.mark.needs("no-nvidia-gpu", "linux", "no-directml-adapter")
def test_cuda_without_a_gpu_reports_everything_that_is_missing(tmp_path: Path) -> None:
    ended = devbench(tmp_path, "run", "cifar", "--backend", "cuda", *ONCE)
    assert ended.code == 3
    engine = system.container()
    way = "nvidia.com/gpu" if engine == "kubernetes" else "--gpus all" if engine else "Install NVIDIA driver"
    for missing in ("libcuda.so.1", "libcudart.so.12", "driver", way):
        assert missing in ended.said()
    assert "Traceback" not in ended.said()
    assert ended.out == ""
    assert ended.every == []


@pytest.mark.needs("nvidia-gpu", "linux")
def test_a_gpu_and_the_cpu_run_interleaved_and_pass_the_placement_check(tmp_path: Path) -> None:
    words = ("run", "cifar", "mnist", "matmul", "--backend", "cpu,cuda", "--data", "sample", "--max-processes", "2")
    ended = devbench(tmp_path, *words)
    assert ended.code == 0, ended.said()
    asked = {(each.spec.workload, each.spec.backend): each.placement for each in ended.every}
    assert len(asked) == 6
    for (_, backend), placement in asked.items():
        assert placement is not None
        assert (placement.requested_device, placement.verified) == ("GPU:0" if backend == "cuda" else "CPU:0", True)


@pytest.mark.needs("nvidia-gpu", "linux")
def test_copies_to_a_gpu_have_a_bandwidth_in_both_directions(tmp_path: Path) -> None:
    ended = devbench(tmp_path, "run", "transfer", "--backend", "cuda", "--param", "max_bytes=65536", *ONCE)
    assert ended.code == 0, ended.said()
    (found,) = ended.every
    assert {"h2d/65536", "d2h/65536"} <= found.summary.bytes_per_second.keys()


@pytest.mark.needs("no-nvidia-gpu")
def test_one_absent_device_stops_the_run_before_anything_is_measured(tmp_path: Path) -> None:
    ended = devbench(tmp_path, "run", "cifar", "--backend", "cpu,cuda", "--json", *ONCE)
    assert ended.code == 3
    assert json.loads(ended.out)["error"]["exit_code"] == 3
    assert ended.every == []


@pytest.mark.needs("no-directml-adapter")
def test_directml_without_an_adapter_reports_cause_and_fix(directml_python: Path, tmp_path: Path) -> None:
    words = [str(directml_python), "-m", "bench", "run", "cifar", "--backend", "directml", *ONCE]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 3
    for part in ("/dev/dxg", "libd3d12.so", "--device=/dev/dxg", "/usr/lib/wsl"):
        assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []
