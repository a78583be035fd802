"""Any GPU that speaks DirectX 12, on Windows and in WSL2, by Microsoft's plug-in for TensorFlow 2.10.

Microsoft paused the plug-in in October 2023: it stays at TensorFlow 2.10 and Python 3.10. Its devices have the type
GPU (`list_physical_devices("DML")` is empty), and where it finds none TensorFlow goes on with the CPU, with a warning
only; so a device is insisted on here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.backends import Capabilities, hidden
from bench.backends._probe import ask
from bench.backends._shared import common_environment, files_named, install, library_folders, refuse
from bench.errors import DeviceAbsent
from bench.machine import installed, system
from bench.model.check import Check, guarded
from bench.model.environment import Device
from bench.model.spec import Spec

NAME = "directml"
DESCRIPTION = "a DirectX 12 GPU of any maker, by Microsoft's DirectML plug-in (paused since October 2023)"
EXTRA = "directml"
IMAGE = "devbench:directml"
PLATFORMS = "Windows and WSL2, Python 3.10"
CAPABILITIES = Capabilities(hide={"DML_VISIBLE_DEVICES": "-1"})

PLUGIN = "tensorflow-directml-plugin"
INSTALL = install(EXTRA) if system.image() else f"with Python 3.10: {install(EXTRA)}"
CONTAINER = "--device=/dev/dxg -v /usr/lib/wsl:/usr/lib/wsl -e LD_LIBRARY_PATH=/usr/lib/wsl/lib"
_LIBRARIES = ("libd3d12.so", "libdxcore.so")
_SECONDS = 8.0


def environment(spec: Spec) -> dict[str, str]:
    """Variables that a worker needs before it imports TensorFlow; DML_VISIBLE_DEVICES stays as it is."""
    # A CUDA device would have the type GPU as well and must not pass for this one.
    return {**common_environment(spec), **hidden(NAME)}


def require() -> None:
    """Makes sure that a run can start.

    Raises:
        DeviceAbsent: with everything that is missing.
    """
    refuse("no DirectML device", checks())


def configure(tf: Any) -> str:
    """Takes the first adapter, hides the others, and returns its name.

    Args:
        tf: the imported TensorFlow, in which nothing has run yet.

    Raises:
        DeviceAbsent: the plug-in found no adapter.
    """
    devices = tf.config.list_physical_devices("GPU")
    if not devices:
        refuse("TensorFlow sees no DirectML adapter", checks())
        hidden = os.environ.get("DML_VISIBLE_DEVICES")
        reason = f": DML_VISIBLE_DEVICES='{hidden}' may hide it" if hidden else ""
        raise DeviceAbsent(f"the DirectML plug-in found no adapter{reason}", "update the GPU's driver for Windows")
    tf.config.set_visible_devices(devices[0], "GPU")
    return "/device:GPU:0"


def slow_start(tf: Any) -> str:
    """Empty: DirectML compiles nothing for minutes."""
    return ""


def describe(tf: Any) -> Device:
    """Return the adapter and what drives it."""
    device = tf.config.get_visible_devices("GPU")[0]
    return Device(
        name=tf.config.experimental.get_device_details(device).get("device_name"),
        plugin=installed.version(PLUGIN),
        gpus=len(tf.config.list_physical_devices("GPU")),
        wsl=system.wsl(),
    )


def checks() -> Iterator[Check]:
    """Doctor's lines for this backend; never raises."""
    if sys.platform == "darwin":
        yield Check("platform", "FAIL", "DirectML needs DirectX 12, which macOS does not have", "use Windows or WSL2")
        return
    yield from guarded("DirectML plug-in", _plugin)
    yield from guarded("Direct3D 12", _windows if sys.platform == "win32" else _wsl)


def _plugin() -> Iterator[Check]:
    name = "DirectML plug-in"
    version = installed.version(PLUGIN)
    if version is None:
        cause = f"{PLUGIN} is not installed (Microsoft paused it in October 2023)"
        if sys.version_info >= (3, 11):
            cause += f"; it has no wheel for Python {sys.version_info.major}.{sys.version_info.minor}"
        yield Check(name, "FAIL", cause, INSTALL)
        return
    found = installed.tensorflow()
    numpy = installed.version("numpy") or ""
    if found is None or not found[1].startswith("2.10."):
        has = f"{found[0]} {found[1]}" if found else "no TensorFlow"
        yield Check(name, "FAIL", f"{PLUGIN} {version} works with TensorFlow 2.10 only; here is {has}", INSTALL)
    elif numpy.split(".")[0] not in ("0", "1"):
        yield Check(name, "FAIL", f"TensorFlow 2.10 crashes with NumPy {numpy}", "pip install 'numpy<2'")
    else:
        yield Check(name, "PASS", f"{PLUGIN} {version} on TensorFlow {found[1]} (paused by Microsoft in October 2023)")


def _wsl() -> Iterator[Check]:
    """In WSL2 the GPU is /dev/dxg, and Windows lends the libraries that speak to it."""
    fix = _give()
    node = Path("/dev/dxg").exists()
    missing = "" if system.wsl() else ", and this Linux does not run in WSL2"
    if node:
        yield Check("WSL GPU", "PASS", "/dev/dxg is there")
    else:
        yield Check("WSL GPU", "FAIL", f"no WSL GPU: /dev/dxg is not there{missing}", fix)
    answer = ask("load", *_LIBRARIES, timeout=_SECONDS)
    absent = [name for name in _LIBRARIES if answer.get(name, "not tried") is not None]
    if not absent:
        yield Check("Direct3D 12", "PASS", f"{' and '.join(_LIBRARIES)} load")
        return
    why = answer.get("error") or "; ".join(str(answer[name]) for name in absent)
    lying = files_named(absent[0], library_folders("/usr/lib/wsl/lib"))
    if lying:
        fix = f"export LD_LIBRARY_PATH={lying[0].parent}:$LD_LIBRARY_PATH\n{fix}"
    yield Check("Direct3D 12", "FAIL", f"{' and '.join(absent)} do not load ({why})", fix)


def _give() -> str:
    if system.container():
        return f"on a Windows machine with WSL2, start the container with {CONTAINER}"
    if system.wsl():
        return "install the GPU's driver for Windows, then: wsl --update; and export LD_LIBRARY_PATH=/usr/lib/wsl/lib"
    return "run in WSL2 or on Windows: plain Linux has no DirectX 12"


def _windows() -> Iterator[Check]:
    system32 = Path(os.environ.get("SYSTEMROOT", r"C:\Windows")) / "System32"
    if (system32 / "d3d12.dll").exists():
        yield Check("Direct3D 12", "PASS", f"{system32 / 'd3d12.dll'}; the plug-in brings its own DirectML.dll")
    else:
        fix = "use Windows 10 version 1709 or newer"
        yield Check("Direct3D 12", "FAIL", f"{system32 / 'd3d12.dll'} is not there", fix)
