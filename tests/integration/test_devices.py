"""There is no silent fallback: a backend whose device is absent measures nothing and reports what is missing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from background_runs import ONE_PROCESS
from devbench_process import ROOT, run_devbench

from bench.machine import system

pytestmark = pytest.mark.once


@pytest.mark.essential
@pytest.mark.needs("no-nvidia-gpu", "linux", "no-directml-adapter")
def test_cuda_without_a_gpu_reports_everything_that_is_missing(tmp_path: Path) -> None:
    run = run_devbench(tmp_path, "run", "cifar", "--backend", "cuda", *ONE_PROCESS)
    assert run.code == 3
    engine = system.container()
    fix = "nvidia.com/gpu" if engine == "kubernetes" else "--gpus all" if engine else "Install NVIDIA driver"
    for missing in ("libcuda.so.1", "libcudart.so.12", "driver", fix):
        assert missing in run.text()
    assert "Traceback" not in run.text()
    assert run.out == ""
    assert run.results == []


@pytest.mark.needs("nvidia-gpu", "linux")
def test_a_gpu_and_the_cpu_run_interleaved_and_pass_the_placement_check(tmp_path: Path) -> None:
    arguments = ("run", "cifar", "mnist", "matmul", "--backend", "cpu,cuda", "--data", "sample", "--max-processes", "2")
    run = run_devbench(tmp_path, *arguments)
    assert run.code == 0, run.text()
    placements = {(result.spec.workload, result.spec.backend): result.placement for result in run.results}
    assert len(placements) == 6
    for (_, backend), placement in placements.items():
        assert placement is not None
        assert (placement.requested_device, placement.verified) == ("GPU:0" if backend == "cuda" else "CPU:0", True)


@pytest.mark.needs("nvidia-gpu", "linux")
def test_copies_to_a_gpu_have_a_bandwidth_in_both_directions(tmp_path: Path) -> None:
    run = run_devbench(tmp_path, "run", "transfer", "--backend", "cuda", "--param", "max_bytes=65536", *ONE_PROCESS)
    assert run.code == 0, run.text()
    (result,) = run.results
    assert {"h2d/65536", "d2h/65536"} <= result.summary.bytes_per_second.keys()


@pytest.mark.needs("no-nvidia-gpu")
def test_one_absent_device_stops_the_run_before_anything_is_measured(tmp_path: Path) -> None:
    run = run_devbench(tmp_path, "run", "cifar", "--backend", "cpu,cuda", "--json", *ONE_PROCESS)
    assert run.code == 3
    assert json.loads(run.out)["error"]["exit_code"] == 3
    assert run.results == []


@pytest.mark.needs("no-directml-adapter")
def test_directml_without_an_adapter_reports_cause_and_fix(directml_python: Path, tmp_path: Path) -> None:
    command = [str(directml_python), "-m", "bench", "run", "cifar", "--backend", "directml", *ONE_PROCESS]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 3
    for part in ("/dev/dxg", "libd3d12.so", "--device=/dev/dxg", "/usr/lib/wsl"):
        assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
