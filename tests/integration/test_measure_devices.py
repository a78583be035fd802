"""No silent fallback: a backend whose device is absent measures nothing, and says what is missing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from commandline import ROOT, devbench
from measuring import ONCE

pytestmark = pytest.mark.once


@pytest.mark.needs("no-nvidia-gpu", "linux")
def test_cuda_without_a_gpu_ends_with_all_that_is_missing(tmp_path: Path) -> None:
    ended = devbench(tmp_path, "run", "cifar", "--backend", "cuda", *ONCE)
    assert ended.code == 3
    for missing in ("libcuda.so.1", "/dev/nvidia0", "libcudart.so.12", "driver", "--gpus all"):
        assert missing in ended.said()
    assert "Traceback" not in ended.said()
    assert ended.out == ""
    assert ended.every == []


@pytest.mark.needs("no-nvidia-gpu")
def test_one_absent_device_stops_the_run_before_the_other_is_measured(tmp_path: Path) -> None:
    ended = devbench(tmp_path, "run", "cifar", "--backend", "cpu,cuda", "--json", *ONCE)
    assert ended.code == 3
    assert json.loads(ended.out)["error"]["exit_code"] == 3
    assert ended.every == []


@pytest.mark.needs("no-directml-adapter")
def test_directml_without_an_adapter_ends_with_cause_and_cure(directml_python: Path, tmp_path: Path) -> None:
    words = [str(directml_python), "-m", "bench", "run", "cifar", "--backend", "directml", *ONCE]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 3
    for part in ("/dev/dxg", "libd3d12.so", "--device=/dev/dxg", "/usr/lib/wsl"):
        assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []
