"""The backends inside a worker: what they do to a real TensorFlow, each time in a process of its own."""

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
    told = {"error": type(error).__name__, "code": error.exit_code, "told": error.message, "hint": error.hint}
    print(json.dumps(told))
    sys.exit()
with tf.device(device):
    value = tf.matmul(tf.ones((2, 3)), tf.ones((3, 2)))
told = {"device": device, "slow": slow, "ran": value.device, "value": float(value[0, 0])}
told["describe"] = backend.describe(tf).model_dump()
told["physical"] = [one.device_type for one in tf.config.list_physical_devices()]
print(json.dumps({**told, "framework": framework(tf).model_dump()}))
"""


def worker(backend: str, python: Path, **variables: str) -> dict[str, Any]:
    """What a worker on that backend tells."""
    environ = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run([python, "-c", RUN, backend], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.fixture(scope="module")
def cpu() -> dict[str, Any]:
    return worker("cpu", Path(sys.executable))


def test_the_cpu_backend_runs_on_the_cpu_with_nothing_else_in_sight(cpu: dict[str, Any]) -> None:
    assert cpu["device"] == "/device:CPU:0"
    assert cpu["ran"].endswith("/device:CPU:0")
    assert cpu["physical"] == ["CPU"]
    assert cpu["value"] == 3.0
    assert cpu["slow"] == ""


def test_the_cpu_is_described(cpu: dict[str, Any]) -> None:
    assert cpu["describe"]["name"]
    assert cpu["describe"]["visible"] == ["/physical_device:CPU:0"]


def test_the_framework_is_told_in_full(cpu: dict[str, Any]) -> None:
    told = cpu["framework"]
    assert told["tensorflow"] == told["distribution"][1]
    assert told["keras"].split(".")[0] in ("2", "3")
    assert told["build"]["is_cuda_build"] in (True, False)
    assert {"numpy", "protobuf", "h5py"} <= told["packages"].keys()
    assert told["git_version"].startswith("v2.")


def test_onednn_is_off_where_the_spec_says_so_and_the_framework_tells(cpu: dict[str, Any]) -> None:
    assert cpu["framework"]["onednn"] is False


def test_a_tensorflow_without_cuda_is_refused_by_the_worker_too() -> None:
    from bench.machine import installed

    if installed.build().get("is_cuda_build"):
        told = worker("cuda", Path(sys.executable), CUDA_VISIBLE_DEVICES="-1")
    else:
        told = worker("cuda", Path(sys.executable))
        assert "built without CUDA" in told["told"]
    assert (told["error"], told["code"]) == ("DeviceAbsent", 3)


@pytest.mark.needs("nvidia-gpu")
def test_a_gpu_is_taken_and_described() -> None:
    told = worker("cuda", Path(sys.executable))
    assert told["device"] == "/device:GPU:0"
    assert told["ran"].endswith("/device:GPU:0")
    assert told["describe"]["name"]
    assert told["describe"]["compute_capability"]
    assert told["describe"]["memory"] > 0


@pytest.mark.needs("no-directml-adapter")
def test_the_plug_in_without_an_adapter_never_falls_back_to_the_cpu(directml_python: Path) -> None:
    told = worker("directml", directml_python)
    assert (told["error"], told["code"]) == ("DeviceAbsent", 3)
    assert "/dev/dxg" in told["told"]
    assert told["hint"]


@pytest.mark.essential
def test_the_cpu_backend_works_beside_the_directml_plug_in(directml_python: Path) -> None:
    told = worker("cpu", directml_python)
    assert told["ran"].endswith("/device:CPU:0")
    assert told["framework"]["tensorflow"].startswith("2.10.")
    assert "tensorflow-directml-plugin" in told["framework"]["packages"]


@pytest.mark.needs("directml-adapter")
def test_an_adapter_is_taken_and_described(directml_python: Path) -> None:
    told = worker("directml", directml_python)
    assert told["device"] == "/device:GPU:0"
    assert told["ran"].endswith("/device:GPU:0")
    assert told["describe"]["plugin"]
