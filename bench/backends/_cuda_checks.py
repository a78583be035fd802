"""Checks everything that a CUDA run needs, without TensorFlow. A failed check names its cause and its fix.

Each part can be missing on its own, so each has its own check: TensorFlow may be a build without CUDA, CUDA's libraries
may not be installed, the driver's library may be absent or a stub, the container may not have the device nodes, the
driver may be too old, and an environment variable may hide the GPU.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

from bench.backends import _cuda_libraries
from bench.backends._cuda_cards import cuda_version, device_checks
from bench.backends._probe import CudaDriver, QueryFailed, query_cuda
from bench.backends._shared import files_named, install, library_folders
from bench.machine import installed, system
from bench.machine.system import ROOT, read
from bench.model.check import Check, run_check

LIBRARY = "libcuda.so.1"
INSTALL = install("cuda")

# The oldest driver for CUDA 12 (NVIDIA's CUDA compatibility guide), and the CUDA version in the driver's notation.
OLDEST_DRIVER, OLDEST_CUDA = "525.60.13", 12000

# cuInit wakes every GPU. Without persistence mode, that takes seconds for each.
DRIVER_SECONDS = 60.0

NO_DEVICE = 100
"""What cuInit returns if there is no GPU, or if none is visible: CUDA_ERROR_NO_DEVICE."""

NONE_VISIBLE = {"CUDA_VISIBLE_DEVICES": ("", "-1", "nodevfiles"), "NVIDIA_VISIBLE_DEVICES": ("void", "none")}
"""Variables that choose GPUs, and their values that hide all of them."""

_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/compat",
    "/run/opengl-driver/lib",
)


def checks(root: Path = ROOT, timeout: float = DRIVER_SECONDS) -> Iterator[Check]:
    """Yield the checks for Linux, including WSL. Never raises.

    Args:
        root: folder to use as `/` when looking for device nodes and kernel files.
        timeout: seconds to wait for the driver.
    """
    yield from run_check("TensorFlow with CUDA", _tensorflow_build)
    yield from run_check("CUDA libraries", lambda: _cuda_libraries.checks(DRIVER_SECONDS))
    yield from run_check("visible GPUs", _visible)
    yield from run_check("CUDA driver", lambda: _driver(root, timeout))


def _tensorflow_build() -> Iterator[Check]:
    name = "TensorFlow with CUDA"
    distribution = installed.tensorflow()
    if distribution is None:
        yield Check(name, "FAIL", "TensorFlow is not installed", INSTALL)
        return
    build = installed.build_info()
    if not build.get("is_cuda_build"):
        fix = INSTALL if system.image() else f"pip uninstall {distribution[0]}\n{INSTALL}"
        if platform.machine() == "aarch64":
            fix = "Use NVIDIA's TensorFlow container: there is no such package for arm64."
        yield Check(name, "FAIL", f"{distribution[0]} {distribution[1]} was built without CUDA", fix)
    else:
        versions = f"built for CUDA {build.get('cuda_version') or '?'}, cuDNN {build.get('cudnn_version') or '?'}"
        yield Check(name, "PASS", f"{distribution[0]} {distribution[1]}, {versions}")


def _visible() -> Iterator[Check]:
    for variable, values in NONE_VISIBLE.items():
        value = os.environ.get(variable)
        # CUDA stops at the first entry that is not a device, so the first entry decides.
        if value is not None and value.split(",")[0].strip().lower() in values:
            yield Check("visible GPUs", "FAIL", f"{variable}='{value}' hides every GPU", f"unset {variable}")


def _driver(root: Path, timeout: float) -> Iterator[Check]:
    try:
        driver = query_cuda(LIBRARY, timeout, os.environ | device_order())
    except QueryFailed as error:
        fix = "Run nvidia-smi. If it fails too, look at dmesg and restart. If it is slow, enable persistence mode."
        yield Check("driver library", "FAIL", f"{LIBRARY}: {error}", fix)
        yield from _nodes(root)
        return
    if driver.status in (0, NO_DEVICE) and not driver.gpus and (wrong := _wrong_choice(timeout)):
        yield wrong
        return
    yield _driver_library(driver, root)
    if driver.status != 0:
        yield from _nodes(root)
        return
    supported = driver.version or 0
    text = f"driver {driver_version(root) or 'of unknown version'}, CUDA {cuda_version(supported)}"
    if supported < OLDEST_CUDA:
        fix = f"Install NVIDIA driver {OLDEST_DRIVER} or newer."
        yield Check("driver version", "FAIL", f"{text}; TensorFlow needs CUDA {cuda_version(OLDEST_CUDA)}", fix)
    else:
        yield Check("driver version", "PASS", text)
    if driver.gpus:
        yield from device_checks(driver.gpus, supported)
    else:
        yield Check("GPU", "FAIL", "the driver works but reports no GPU", _how_to_get_a_gpu(root))


def _wrong_choice(timeout: float) -> Check | None:
    """Return a failed check if there are GPUs, but `CUDA_VISIBLE_DEVICES` names none of them. None otherwise."""
    value = os.environ.get("CUDA_VISIBLE_DEVICES")
    if value is None or value.split(",")[0].strip().lower() in NONE_VISIBLE["CUDA_VISIBLE_DEVICES"]:
        return None
    others = {name: text for name, text in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    try:
        gpus = query_cuda(LIBRARY, timeout, others | device_order()).gpus
    except QueryFailed:
        return None
    if not gpus:
        return None
    names = ", ".join(f"{number}: {gpu.name}" for number, gpu in enumerate(gpus))
    message = f"CUDA_VISIBLE_DEVICES='{value}' names none of the GPUs ({names})"
    return Check("visible GPUs", "FAIL", message, "export CUDA_VISIBLE_DEVICES=0")


def device_order() -> dict[str, str]:
    """Return the variable that makes CUDA number GPUs as NVML does, by the bus, unless the user chose an order.

    By default, CUDA numbers the fastest GPU first. A number must mean the same GPU to doctor, NVML and the worker.
    """
    return {"CUDA_DEVICE_ORDER": os.environ.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID")}


def _driver_library(driver: CudaDriver, root: Path) -> Check:
    """Check whether the driver's library loads and starts."""
    name = "driver library"
    path = driver.path or LIBRARY
    if driver.error and not driver.path:
        return _not_loaded(driver.error, root)
    if driver.error:
        return Check(name, "FAIL", f"{path}: {driver.error}", _replace(path, root))
    if driver.status == 34:  # CUDA_ERROR_STUB_LIBRARY
        return Check(
            name, "FAIL", f"{path} is the stub of the CUDA toolkit, which is only for linking", _replace(path, root)
        )
    if driver.status != 0:
        return Check(name, "FAIL", f"{path} loads, but cuInit fails with {driver.status_name}", _how_to_get_a_gpu(root))
    return Check(name, "PASS", path)


def _not_loaded(error: str, root: Path) -> Check:
    folders = library_folders(*_FOLDERS)
    present = files_named(LIBRARY, folders)
    if present:
        fix = f"export LD_LIBRARY_PATH={present[0].parent}:$LD_LIBRARY_PATH"
        return Check("driver library", "FAIL", f"{present[0]} exists but does not load: {error}", fix)
    searched = ", ".join(map(str, folders))
    return Check("driver library", "FAIL", f"{LIBRARY} not found in {searched}", _how_to_get_a_gpu(root))


def _replace(path: str, root: Path) -> str:
    return f"Remove {Path(path).parent} from LD_LIBRARY_PATH, or uninstall the library.\n{_how_to_get_a_gpu(root)}"


def _nodes(root: Path) -> Iterator[Check]:
    """Check the files through which the driver's library reaches the kernel, and whether a container has them."""
    if system.wsl(root):
        exist = (root / "dev/dxg").exists() and (root / "usr/lib/wsl/lib" / LIBRARY).exists()
        nodes = "/dev/dxg and /usr/lib/wsl/lib/libcuda.so.1"
    else:
        numbered = [path for path in (root / "dev").glob("nvidia[0-9]*") if re.fullmatch(r"nvidia\d+", path.name)]
        exist = bool(numbered) and (root / "dev/nvidiactl").exists()
        nodes = "/dev/nvidia0 and /dev/nvidiactl"
    if exist:
        yield Check("device nodes", "PASS", f"{nodes} exist")
        return
    yield Check("device nodes", "FAIL", f"{nodes} do not exist", _how_to_get_a_gpu(root))
    engine = system.container(root)
    if engine:
        fix = f"{_how_to_get_a_gpu(root)}\n{_host_needs(root)}"
        yield Check("container", "FAIL", f"this container ({engine}) has no GPU", fix)


def _how_to_get_a_gpu(root: Path) -> str:
    engine = system.container(root)
    if engine == "kubernetes":
        return "Set resources.limits of the container to {nvidia.com/gpu: 1}, on a node with NVIDIA's device plugin."
    if engine:
        return "Start the container with a GPU: docker run --gpus all … or podman run --device nvidia.com/gpu=all …"
    if system.wsl(root):
        return f"Install NVIDIA driver {OLDEST_DRIVER} or newer on Windows, and no driver inside WSL.\nwsl --update"
    return f"Install NVIDIA driver {OLDEST_DRIVER} or newer. nvidia-smi must then list the GPU."


def _host_needs(root: Path) -> str:
    """Return what the host of a container needs."""
    on_wsl = " for Windows" if system.wsl(root) else ""
    return f"Install NVIDIA driver {OLDEST_DRIVER} or newer{on_wsl} and the NVIDIA Container Toolkit on the host."


def driver_version(root: Path = ROOT) -> str | None:
    """Return the version of the kernel driver, such as "550.54.14"; None if the kernel does not report it (WSL)."""
    match = re.search(r"Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)", read(root / "proc/driver/nvidia/version") or "")
    return match[1] if match else None
