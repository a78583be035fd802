"""TensorFlow's settings for a script: what the run asks for, and what the script changes."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

from bench import backends
from bench.model.spec import Spec
from bench.worker.diagnose.placement import short
from bench.worker.protocol import EnvironmentRead
from bench.worker.script.calls import Observation


def configure(tf: Any, spec: Spec) -> str:
    """Set everything that a default of the framework would decide, without using TensorFlow. Return the device.

    The script may change any of it afterwards.
    """
    backend = backends.load(spec.backend)
    tf.config.threading.set_intra_op_parallelism_threads(spec.threads.intra)
    tf.config.threading.set_inter_op_parallelism_threads(spec.threads.inter)
    device: str = backend.configure(tf)
    if hasattr(tf.config.experimental, "enable_tensor_float_32_execution"):
        tf.config.experimental.enable_tensor_float_32_execution(spec.tf32)
    tf.keras.utils.set_random_seed(spec.seed)
    if spec.deterministic:
        tf.config.experimental.enable_op_determinism()
    if spec.dtype == "float64":
        tf.keras.backend.set_floatx("float64")
    elif spec.dtype != "float32":
        tf.keras.mixed_precision.set_global_policy(spec.dtype)
    return device


def report(tf: Any, spec: Spec, send: Callable[[Any], None]) -> None:
    """Report the environment."""
    from bench.machine.environment import framework

    backend = backends.load(spec.backend)
    send(EnvironmentRead(framework=framework(tf, backends.recorded_packages()), device=backend.describe(tf)))


class DeviceScopes:
    """Notes the devices that lines of the script name with `tf.device`, if they are not the device under test.

    Args:
        seen: what the observers share.
        device: the device under test.
    """

    def __init__(self, seen: Observation, device: str) -> None:
        self.named: dict[str, None] = {}
        original, wanted = seen.tf.device, short(device)

        @functools.wraps(original)
        def scope(device_name: Any) -> Any:
            if isinstance(device_name, str) and short(device_name) not in (wanted, wanted.partition(":")[0]):
                call = seen.call("function", "tf.device")
                if seen.is_program(sys._getframe(1).f_code.co_filename):
                    self.named[f"tf.device({device_name!r}) in {call.file}, line {call.line}"] = None
            return original(device_name)

        seen.tf.device = scope


def differences(tf: Any, spec: Spec) -> list[str]:
    """Return each setting that differs from what the run asked for, in words."""
    policy = tf.keras.mixed_precision.global_policy().name
    threads = tf.config.threading
    variables = {
        name: (os.environ.get(name), value)
        for name, value in backends.load(spec.backend).environment(spec).items()
        if name.endswith("VISIBLE_DEVICES")
    }
    found: dict[str, tuple[Any, Any]] = {
        "threads within an operation": (threads.get_intra_op_parallelism_threads(), spec.threads.intra),
        "operations at a time": (threads.get_inter_op_parallelism_threads(), spec.threads.inter),
        "TF32": (tf.config.experimental.tensor_float_32_execution_enabled(), spec.tf32),
        "dtype policy": (policy, "float32" if spec.dtype == "float64" and policy == "float32" else spec.dtype),
        "TF_ENABLE_ONEDNN_OPTS": (os.environ.get("TF_ENABLE_ONEDNN_OPTS"), "1" if spec.onednn else "0"),
        **variables,
    }
    return [f"{name} {actual} instead of {asked}" for name, (actual, asked) in found.items() if actual != asked]
