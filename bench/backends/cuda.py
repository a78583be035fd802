"""One NVIDIA GPU, through TensorFlow's own CUDA build: the first that CUDA_VISIBLE_DEVICES leaves visible.

There is no falling back: whatever is missing is named before a worker starts, and a worker whose TensorFlow then sees
no GPU ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from bench.backends import Capabilities, _nvml, hidden
from bench.backends import _cuda_checks as look
from bench.backends._probe import cuda
from bench.backends._shared import common_environment, refuse
from bench.errors import DeviceAbsent
from bench.machine import installed
from bench.model.check import Check
from bench.model.environment import Device
from bench.model.spec import Spec

NAME = "cuda"
DESCRIPTION = "an NVIDIA GPU, by CUDA"
EXTRA = look.EXTRA
IMAGE = "devbench:cuda"
PLATFORMS = "Linux x86-64 and WSL2, with an NVIDIA driver of 525.60.13 or newer"
CAPABILITIES = Capabilities(
    telemetry=_nvml.open_sampler, tf32=True, tensor_cores=True, hide={"CUDA_VISIBLE_DEVICES": "-1"}
)


def environment(spec: Spec) -> dict[str, str]:
    """Variables that a worker needs before it imports TensorFlow; which GPU and which cache stays the user's choice."""
    variables = {
        **common_environment(spec),
        **hidden(NAME),
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        # CUDA's own order puts the fastest first, NVML and nvidia-smi go by the bus: one number must mean one GPU.
        "CUDA_DEVICE_ORDER": os.environ.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
    }
    if not spec.tf32:
        variables["NVIDIA_TF32_OVERRIDE"] = "0"
    return variables


def require() -> None:
    """Makes sure that a run can start.

    Raises:
        DeviceAbsent: with everything that is missing. Where there is no driver, that takes about a second.
    """
    refuse("no CUDA device", checks())


def configure(tf: Any) -> str:
    """Takes the first GPU, with memory growth, hides the others, and returns its name.

    Args:
        tf: the imported TensorFlow, in which nothing has run yet.

    Raises:
        DeviceAbsent: TensorFlow sees no GPU.
    """
    devices = tf.config.list_physical_devices("GPU")
    if not tf.test.is_built_with_cuda():
        raise DeviceAbsent(f"no CUDA device: TensorFlow {tf.__version__} is built without CUDA", look.INSTALL)
    if not devices:
        refuse("TensorFlow sees no GPU", checks())
        raise DeviceAbsent(
            f"TensorFlow {tf.__version__} sees no GPU although the driver has one",
            "its lines on stderr name the library that it could not load",
        )
    tf.config.set_visible_devices(devices[0], "GPU")
    tf.config.experimental.set_memory_growth(devices[0], True)
    return "/device:GPU:0"


def slow_start(tf: Any) -> str:
    """Says when the driver must compile TensorFlow's kernels, which are older than the GPU; it may do so for minutes.

    Args:
        tf: the imported TensorFlow, in which nothing has run yet.
    """
    for device in tf.config.list_physical_devices("GPU")[:1]:
        capability = tf.config.experimental.get_device_details(device).get("compute_capability")
        targets = tf.sysconfig.get_build_info().get("cuda_compute_capabilities", [])
        if capability is not None and look.covered(tuple(capability), targets) == "ptx":
            version = ".".join(map(str, capability))
            return f"TensorFlow has no machine code for this GPU ({version}): the first start compiles it, for minutes"
    return ""


def describe(tf: Any) -> Device:
    """Return the GPU and what drives it."""
    device = tf.config.get_visible_devices("GPU")[0]
    details = tf.config.experimental.get_device_details(device)
    driver = cuda(look.LIBRARY)  # loaded in this process already
    name = details.get("device_name")
    same = [one for one in driver.get("devices", []) if one["name"] == name]
    build = tf.sysconfig.get_build_info()
    capability = details.get("compute_capability")
    return Device(
        name=name,
        compute_capability=".".join(map(str, capability)) if capability else None,
        memory=same[0]["memory"] if same else None,
        driver=look.driver_version(),
        driver_cuda=look.dotted(driver["driver"]) if "driver" in driver else None,
        built_cuda=build.get("cuda_version"),
        built_cudnn=build.get("cudnn_version"),
        cudnn=installed.version("nvidia-cudnn-cu12"),
        cublas=installed.version("nvidia-cublas-cu12"),
        gpus=len(tf.config.list_physical_devices("GPU")),
    )


def checks() -> Iterator[Check]:
    """Doctor's lines for this backend; never raises."""
    if sys.platform == "win32":
        fix = f"use WSL2 with {look.INSTALL}, or --backend directml"
        yield Check("platform", "FAIL", "TensorFlow 2.11 and later have no CUDA on native Windows", fix)
    elif sys.platform == "linux":
        yield from look.checks()
    else:
        yield Check("platform", "FAIL", f"there is no CUDA on {sys.platform}", "use Linux with an NVIDIA GPU")
