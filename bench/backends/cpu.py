"""The CPU, whatever else the machine has.

Accelerators are hidden before TensorFlow is imported and again when it is configured: Keras 3 turns XLA on by
itself wherever the machine has an accelerator, for its CPU runs too, and it asks for the machine's devices, not for
the visible ones.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import Any

from bench.backends import Capabilities, hidden
from bench.backends._shared import common_environment, require_tensorflow, tensorflow_check
from bench.machine import system
from bench.model.check import Check, guarded
from bench.model.environment import Device
from bench.model.spec import Spec

NAME = "cpu"
DESCRIPTION = "the CPU, with every accelerator hidden"
EXTRA = "cpu"
IMAGE = "devbench:cpu"
PLATFORMS = "Linux (x86-64, arm64), Windows (x86-64) and macOS (arm64)"
CAPABILITIES = Capabilities(
    gpu=False, reference=True, parallel_start=True, onednn=True, dtypes=("mixed_bfloat16",), peaks={}
)


def environment(spec: Spec) -> dict[str, str]:
    """Variables that a worker needs before it imports TensorFlow."""
    return {**common_environment(spec), **hidden()}


def require() -> None:
    """Makes sure that a run can start.

    Raises:
        SettingsError: there is no TensorFlow. The device itself is always there.
    """
    require_tensorflow(EXTRA)


def configure(tf: Any) -> str:
    """Hides what is not the CPU and returns the CPU's name.

    Args:
        tf: the imported TensorFlow, in which nothing has run yet.
    """
    # Plug-ins that mind no variable, such as Apple's, are hidden only here.
    for kind in {device.device_type for device in tf.config.list_physical_devices()} - {"CPU"}:
        tf.config.set_visible_devices([], kind)
    return "/device:CPU:0"


def slow_start(tf: Any) -> str:
    """Empty: nothing is compiled for a CPU."""
    return ""


def describe(tf: Any) -> Device:
    """Return the CPU with the extensions that choose its code paths."""
    return Device(
        name=system.cpu_model(),
        architecture=platform.machine(),
        features=system.cpu_features(),
        visible=[device.name for device in tf.config.get_visible_devices()],
    )


def checks() -> Iterator[Check]:
    """Doctor's lines for this backend; never raises."""
    yield from guarded("TensorFlow", lambda: tensorflow_check(EXTRA))
    yield from guarded("CPU", _device)


def _device() -> Iterator[Check]:
    wide = [name for name in ("avx2", "avx512f", "amx_tile", "asimd", "sve") if name in system.cpu_features()]
    yield Check("CPU", "PASS", f"{system.cpu_model()}{' with ' + ', '.join(wide) if wide else ''}")
