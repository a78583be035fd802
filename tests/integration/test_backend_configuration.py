"""What each backend does to a real TensorFlow, in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

RUN = """
import importlib, json, os, sys
from bench.backends import recorded_packages
from bench.errors import DevbenchError
from bench.machine.environment import framework
from bench.model.spec import Data, Spec, Threads

backend = importlib.import_module("bench.backends." + sys.argv[1])
threads = Threads(intra=1, inter=1)
spec = Spec(workload="cifar", backend=backend.NAME, threads=threads, onednn=False, data=Data(kind="own"))
os.environ.update(backend.environment(spec))
import tensorflow as tf
try:
    slow = backend.slow_start(tf)
    device = backend.configure(tf)
except DevbenchError as error:
    report = {"error": type(error).__name__, "code": error.exit_code, "message": error.message, "hint": error.hint}
    print(json.dumps(report))
    sys.exit()
with tf.device(device):
    value = tf.matmul(tf.ones((2, 3)), tf.ones((3, 2)))
report = {"device": device, "slow": slow, "ran": value.device, "value": float(value[0, 0])}
report["describe"] = backend.describe(tf).model_dump()
report["physical"] = [device.device_type for device in tf.config.list_physical_devices()]
print(json.dumps({**report, "framework": framework(tf, recorded_packages()).model_dump()}))
"""


def run_backend(backend: str, python: Path, **variables: str) -> dict[str, Any]:
    """Configure TensorFlow for a backend in a separate process, and return its report."""
    environ = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": str(ROOT), **variables}
    process = subprocess.run([python, "-c", RUN, backend], env=environ, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    report: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return report


@pytest.fixture(scope="module")
def cpu() -> dict[str, Any]:
    return run_backend("cpu", Path(sys.executable))


def test_the_cpu_backend_runs_on_the_cpu_and_sees_no_other_device(cpu: dict[str, Any]) -> None:
    assert cpu["device"] == "/device:CPU:0"
    assert cpu["ran"].endswith("/device:CPU:0")
    assert cpu["physical"] == ["CPU"]
    assert cpu["value"] == 3.0
    assert cpu["slow"] == ""


def test_the_cpu_is_described(cpu: dict[str, Any]) -> None:
    assert cpu["describe"]["name"]
    assert cpu["describe"]["visible"] == ["/physical_device:CPU:0"]


def test_the_framework_is_described(cpu: dict[str, Any]) -> None:
    report = cpu["framework"]
    assert report["tensorflow"] == report["distribution"][1]
    assert report["keras"].split(".")[0] in ("2", "3")
    assert report["build"]["is_cuda_build"] in (True, False)
    assert report["numpy"]
    assert {"protobuf", "h5py"} <= report["packages"].keys()
    assert report["git_version"].startswith("v2.")


def test_onednn_is_off_if_the_spec_says_so(cpu: dict[str, Any]) -> None:
    assert cpu["framework"]["onednn"] is False


def test_a_tensorflow_without_cuda_is_refused_by_the_worker_too() -> None:
    from bench.machine import installed

    if installed.build().is_cuda_build:
        report = run_backend("cuda", Path(sys.executable), CUDA_VISIBLE_DEVICES="-1")
    else:
        report = run_backend("cuda", Path(sys.executable))
        assert "built without CUDA" in report["message"]
    assert (report["error"], report["code"]) == ("DeviceAbsent", 3)


@pytest.mark.needs("nvidia-gpu")
def test_a_gpu_is_selected_and_described() -> None:
    report = run_backend("cuda", Path(sys.executable))
    assert report["device"] == "/device:GPU:0"
    assert report["ran"].endswith("/device:GPU:0")
    assert report["describe"]["name"]
    assert report["describe"]["compute_capability"]
    assert report["describe"]["memory"] > 0


@pytest.mark.needs("no-directml-adapter")
def test_the_plug_in_without_an_adapter_never_falls_back_to_the_cpu(directml_python: Path) -> None:
    report = run_backend("directml", directml_python)
    assert (report["error"], report["code"]) == ("DeviceAbsent", 3)
    assert "/dev/dxg" in report["message"]
    assert report["hint"]


@pytest.mark.essential
def test_the_cpu_backend_works_if_the_directml_plug_in_is_installed(directml_python: Path) -> None:
    report = run_backend("cpu", directml_python)
    assert report["ran"].endswith("/device:CPU:0")
    assert report["framework"]["tensorflow"].startswith("2.10.")
    assert "tensorflow-directml-plugin" in report["framework"]["packages"]


@pytest.mark.needs("directml-adapter")
def test_an_adapter_is_selected_and_described(directml_python: Path) -> None:
    report = run_backend("directml", directml_python)
    assert report["device"] == "/device:GPU:0"
    assert report["ran"].endswith("/device:GPU:0")
    assert report["describe"]["plugin"]
