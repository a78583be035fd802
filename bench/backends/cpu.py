"""The host's CPU, with every accelerator hidden.

Accelerators are hidden before TensorFlow is imported and again when it is configured. Keras 3 turns XLA on if the
machine has an accelerator, even for runs on the CPU, and it looks at all devices, not only at the visible ones.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bench.backends import Capabilities, hiding_variables
from bench.backends._shared import common_environment, require_tensorflow, tensorflow_check
from bench.machine import system
from bench.model.check import Check, run_check

if TYPE_CHECKING:
    from bench.model.device import Device
    from bench.model.spec import Spec

NAME = "cpu"
DESCRIPTION = "the CPU, with every accelerator hidden"
PLATFORMS = "Linux (x86-64, arm64), Windows (x86-64) and macOS (arm64)"
CAPABILITIES = Capabilities(
    gpu=False,
    reference=True,
    parallel_start=True,
    forks=sys.platform == "linux",
    onednn=True,
    dtypes=("mixed_bfloat16",),
    peaks={},
)


def environment(spec: Spec) -> dict[str, str]:
    """Return the environment variables that a worker needs before it imports TensorFlow."""
    return {**common_environment(spec), **hiding_variables()}


def require() -> None:
    """Check that a run can start.

    Raises:
        SettingsError: TensorFlow is not installed. The device itself is always there.
    """
    require_tensorflow(NAME)


def configure(tf: Any) -> str:
    """Hide all devices but the CPU and return the CPU's name.

    Args:
        tf: TensorFlow, imported but not yet used.
    """
    # Some plug-ins, such as Apple's, ignore environment variables. They are hidden here.
    for kind in {device.device_type for device in tf.config.list_physical_devices()} - {"CPU"}:
        tf.config.set_visible_devices([], kind)
    return "/device:CPU:0"


def slow_start(tf: Any) -> str:
    """Return "": a CPU needs no compilation at its first start."""
    return ""


def slow_first_step() -> str:
    """Return "": XLA does not try kernels here."""
    return ""


def describe(tf: Any) -> Device:
    """Return the CPU with the extensions that decide which code paths it can run."""
    from bench.model.device import Device

    return Device(
        name=system.cpu_model(),
        architecture=platform.machine(),
        features=system.cpu_features(),
        visible=[device.name for device in tf.config.get_visible_devices()],
    )


def checks() -> Iterator[Check]:
    """Yield doctor's checks of this backend. Never raises."""
    yield from run_check("TensorFlow", lambda: tensorflow_check(NAME))
    yield from run_check("CPU", _device)


def _device() -> Iterator[Check]:
    extensions = [name for name in ("avx2", "avx512f", "amx_tile", "asimd", "sve") if name in system.cpu_features()]
    yield Check("CPU", "PASS", f"{system.cpu_model()}{' with ' + ', '.join(extensions) if extensions else ''}")
