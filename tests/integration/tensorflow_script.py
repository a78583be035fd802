"""Run a script with a real TensorFlow in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

from warm_server import SCRIPT
from warm_workers import WarmServer

PRELUDE = """
import json, os, sys, time
import numpy as np
import tensorflow as tf
from bench import registry
from bench.registry.params import parse_params
from bench.datasets import load
from bench.model.spec import Data
from bench.workloads import Context

DEVICE = "/device:CPU:0"
tf.keras.utils.set_random_seed(1)

def context():
    rng = np.random.default_rng(1)
    return Context(rng=rng, device=DEVICE, backend="cpu", dtype="float32", seed=1,
                   _load=lambda name: load(Data(kind="sample", name=name), 1))

class Workload:
    def __init__(self, name, **params):
        self.module = registry.load(name)
        self.p = parse_params(self.module, params)
        self.values = {"p": self.p, "ctx": context()}
    def call(self, function):
        import inspect
        target = getattr(self.module, function)
        parameters = inspect.signature(target).parameters
        for name in ("data", "inputs", "model"):
            if name in parameters and name not in self.values:
                self.values[name] = self.call(name)
        return target(**{name: self.values[name] for name in parameters})

def report(**values):
    with os.fdopen(CHANNEL, "w") as out:
        json.dump(values, out)

CHANNEL = os.dup(1)
os.dup2(2, 1)
"""


def run_script(script: str, warm: WarmServer | None) -> dict[str, Any]:
    """Run a script after the prelude in a separate Python process and return what it passes to `report`.

    Args:
        script: its source.
        warm: the server from which the process is forked. None if it is fresh.
    """
    if warm is not None:
        with warm.connect() as server:
            return answer(server.run(SCRIPT, PRELUDE + textwrap.dedent(script)))
    quiet = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    process = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script)],
        capture_output=True, text=True, timeout=800, check=False, env={**os.environ, **quiet},
    )  # fmt: skip
    return answer(process)


def answer(process: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return what the script passed to `report`."""
    assert process.returncode == 0, process.stderr[-3000:]
    report: dict[str, Any] = json.loads(process.stdout)
    return report
