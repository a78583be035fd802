"""A GPU of any maker that supports DirectX 12, on Windows and in WSL2, through Microsoft's plug-in for TensorFlow 2.10.

Microsoft paused the plug-in in October 2023, so it needs TensorFlow 2.10 and Python 3.10. Its devices have the type
GPU, and `list_physical_devices("DML")` is empty. If the plug-in finds no device, TensorFlow only warns and continues on
the CPU. This module raises an error instead.

Workers are not forked: TensorFlow loads the plug-in while it is imported, and whether that survives a fork has not been
shown on a GPU.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.backends import Capabilities, hiding_variables
from bench.backends._probe import QueryFailed, query_libraries
from bench.backends._shared import common_environment, files_named, gpu_of, install, library_folders, refuse
from bench.errors import DeviceAbsent
from bench.machine import installed, system
from bench.model.check import Check, run_check

if TYPE_CHECKING:
    from bench.model.device import Device
    from bench.model.spec import Spec

NAME = "directml"
DESCRIPTION = "a DirectX 12 GPU of any maker, through Microsoft's DirectML plug-in (paused since October 2023)"
PLATFORMS = "Windows and WSL2, with Python 3.10"
PLUGIN = "tensorflow-directml-plugin"
CAPABILITIES = Capabilities(
    xla=False,  # the plug-in registers no compiler
    distributes=False,  # its TensorFlow is built without NCCL
    computes=("float32", "float16"),
    dtypes=("mixed_float16",),
    hide={"DML_VISIBLE_DEVICES": "-1"},
    packages=(PLUGIN,),
    prefixes=("DML_",),
)

INSTALL = install(NAME) if system.image() else f"{install(NAME)} (with Python 3.10)"
CONTAINER = "--device=/dev/dxg -v /usr/lib/wsl:/usr/lib/wsl -e LD_LIBRARY_PATH=/usr/lib/wsl/lib"
_LIBRARIES = ("libd3d12.so", "libdxcore.so")
_SECONDS = 8.0


def environment(spec: Spec) -> dict[str, str]:
    """Return the environment variables that a worker needs before it imports TensorFlow.

    A CUDA device has the type GPU as well, so it is hidden.
    """
    return {**common_environment(spec), **hiding_variables(NAME)}


def require() -> None:
    """Check that a run can start.

    Raises:
        DeviceAbsent: something is missing. The message names all of it.
    """
    refuse("no DirectML device", checks())


def configure(tf: Any) -> str:
    """Select the first adapter, hide the others and return its name.

    Args:
        tf: TensorFlow, imported but not yet used.

    Raises:
        DeviceAbsent: the plug-in found no adapter.
    """
    devices = tf.config.list_physical_devices("GPU")
    if not devices:
        refuse("TensorFlow sees no DirectML adapter", checks())
        hidden = os.environ.get("DML_VISIBLE_DEVICES")
        reason = f": DML_VISIBLE_DEVICES='{hidden}' may hide it" if hidden else ""
        raise DeviceAbsent(f"the DirectML plug-in found no adapter{reason}", "Update the GPU's driver on Windows.")
    tf.config.set_visible_devices(devices[0], "GPU")
    return "/device:GPU:0"


def slow_start(tf: Any) -> str:
    """Return "": DirectML compiles nothing that takes minutes."""
    return ""


def slow_first_step() -> str:
    """Return "": XLA does not try kernels here."""
    return ""


def describe(tf: Any) -> Device:
    """Return the adapter and the version of the plug-in."""
    from bench.model.device import Device

    return Device(
        name=tf.config.experimental.get_device_details(gpu_of(tf)).get("device_name"),
        plugin=installed.version(PLUGIN),
        gpus=len(tf.config.list_physical_devices("GPU")),
        wsl=system.wsl(),
    )


def checks() -> Iterator[Check]:
    """Yield doctor's checks of this backend. Never raises."""
    if sys.platform == "darwin":
        yield Check("platform", "FAIL", "DirectML needs DirectX 12, which macOS does not have", "Use Windows or WSL2.")
        return
    yield from run_check("DirectML plug-in", _plugin)
    yield from run_check("Direct3D 12", _windows if sys.platform == "win32" else _wsl)


def _plugin() -> Iterator[Check]:
    name = "DirectML plug-in"
    version = installed.version(PLUGIN)
    if version is None:
        cause = f"{PLUGIN} is not installed (Microsoft paused it in October 2023)"
        if sys.version_info >= (3, 11):
            cause += f"; it does not support Python {sys.version_info.major}.{sys.version_info.minor}"
        yield Check(name, "FAIL", cause, INSTALL)
        return
    distribution = installed.tensorflow()
    numpy = installed.version("numpy") or ""
    if distribution is None or not distribution[1].startswith("2.10."):
        present = " ".join(distribution) if distribution else "none"
        yield Check(name, "FAIL", f"{PLUGIN} {version} works only with TensorFlow 2.10; installed: {present}", INSTALL)
    elif numpy.split(".")[0] not in ("0", "1"):
        yield Check(name, "FAIL", f"TensorFlow 2.10 crashes with NumPy {numpy}", "pip install 'numpy<2'")
    else:
        yield Check(
            name, "PASS", f"{PLUGIN} {version} on TensorFlow {distribution[1]} (paused by Microsoft in October 2023)"
        )


def _wsl() -> Iterator[Check]:
    """Check for /dev/dxg, which is the GPU in WSL2, and for the libraries that Windows provides for it."""
    fix = _how_to_get_a_gpu()
    if Path("/dev/dxg").exists():
        yield Check("WSL GPU", "PASS", "/dev/dxg exists")
    else:
        outside = "" if system.wsl() else ", and this Linux does not run in WSL2"
        yield Check("WSL GPU", "FAIL", f"/dev/dxg does not exist{outside}", fix)
    try:
        errors = query_libraries(*_LIBRARIES, timeout=_SECONDS).errors
        absent = [name for name in _LIBRARIES if errors[name] is not None]
        reason = "; ".join(str(errors[name]) for name in absent)
    except QueryFailed as error:
        absent, reason = list(_LIBRARIES), str(error)
    if not absent:
        yield Check("Direct3D 12", "PASS", f"{' and '.join(_LIBRARIES)} load")
        return
    present = files_named(absent[0], library_folders("/usr/lib/wsl/lib"))
    if present:
        fix = f"export LD_LIBRARY_PATH={present[0].parent}:$LD_LIBRARY_PATH\n{fix}"
    yield Check("Direct3D 12", "FAIL", f"{' and '.join(absent)} did not load ({reason})", fix)


def _how_to_get_a_gpu() -> str:
    if system.container():
        return f"On a Windows machine with WSL2, start the container with {CONTAINER}"
    if system.wsl():
        return "Install the GPU's driver on Windows.\nwsl --update\nexport LD_LIBRARY_PATH=/usr/lib/wsl/lib"
    return "Use WSL2 or Windows. Plain Linux has no DirectX 12."


def _windows() -> Iterator[Check]:
    system32 = Path(os.environ.get("SYSTEMROOT", r"C:\Windows")) / "System32"
    if (system32 / "d3d12.dll").exists():
        yield Check("Direct3D 12", "PASS", f"{system32 / 'd3d12.dll'}; the plug-in contains its own DirectML.dll")
    else:
        fix = "Use Windows 10 version 1709 or newer."
        yield Check("Direct3D 12", "FAIL", f"{system32 / 'd3d12.dll'} does not exist", fix)
