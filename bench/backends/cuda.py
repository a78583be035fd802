"""An NVIDIA GPU, through TensorFlow's CUDA build: the first one that CUDA_VISIBLE_DEVICES leaves visible.

There is no fallback to the CPU. A run does not start if something is missing, and a worker ends if TensorFlow then sees
no GPU.

On Linux, workers can be forked: the import of TensorFlow does not open the GPU, so each worker opens it itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bench.backends import Capabilities, _cuda_cards, _cuda_checks, _cuda_libraries, _nvml, _probe, hiding_variables
from bench.backends._shared import common_environment, gpu_of, refuse
from bench.errors import DeviceAbsent
from bench.machine import installed
from bench.model.check import Check

if TYPE_CHECKING:
    from bench.model.device import Device
    from bench.model.spec import Spec

NAME = "cuda"
DESCRIPTION = "an NVIDIA GPU, through CUDA"
PLATFORMS = "Linux x86-64 and WSL2, with NVIDIA driver 525.60.13 or newer"
LARGEST_CACHE = str(2**32)
"""The largest size of the driver's cache of compiled kernels that it accepts, in bytes."""

CAPABILITIES = Capabilities(
    forks=sys.platform == "linux",
    telemetry=_nvml.open_sampler,
    tensor_cores={"float16": (7, 0), "bfloat16": (8, 0), "tf32": (8, 0)},  # Volta and Ampere
    hide={"CUDA_VISIBLE_DEVICES": "-1"},
    packages=("nvidia-ml-py", "nvidia-*-cu[0-9]*"),
    prefixes=("CUDA_", "NVIDIA_"),
    resource="nvidia.com/gpu",
    product_label="nvidia.com/gpu.product",
    kernel_cache="CUDA_CACHE_PATH",
)


def environment(spec: Spec) -> dict[str, str]:
    """Return the environment variables that a worker needs before it imports TensorFlow.

    The user's choice of a GPU and of a cache stays as it is.
    """
    variables = {
        **common_environment(spec),
        **hiding_variables(NAME),
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        **_cuda_checks.device_order(),
        **_cuda_libraries.search_path(spec.env),
    }
    # By default, the driver's cache is smaller than TensorFlow's kernels for a GPU that is newer than its build.
    variables["CUDA_CACHE_MAXSIZE"] = os.environ.get("CUDA_CACHE_MAXSIZE", LARGEST_CACHE)
    if not spec.tf32:
        variables["NVIDIA_TF32_OVERRIDE"] = "0"
    return variables


def require() -> None:
    """Check that a run can start. Without a driver, this takes about a second.

    Raises:
        DeviceAbsent: something is missing. The message names all of it.
    """
    refuse("no CUDA device", checks())


def configure(tf: Any) -> str:
    """Select the first GPU, let its memory grow on demand, hide the others and return its name.

    Args:
        tf: TensorFlow, imported but not yet used.

    Raises:
        DeviceAbsent: TensorFlow sees no GPU.
    """
    devices = tf.config.list_physical_devices("GPU")
    if not tf.test.is_built_with_cuda():
        raise DeviceAbsent(f"no CUDA device: TensorFlow {tf.__version__} was built without CUDA", _cuda_checks.INSTALL)
    if not devices:
        if (hidden := os.environ.get("CUDA_VISIBLE_DEVICES")) in ("", "-1"):
            hint = "Leave out what sets it, in the program or in the environment, or use --backend cpu."
            raise DeviceAbsent(f"CUDA_VISIBLE_DEVICES='{hidden}' hides all GPUs", hint)
        refuse("TensorFlow sees no GPU", checks())
        raise DeviceAbsent(
            f"TensorFlow {tf.__version__} sees no GPU, although the driver does",
            "See TensorFlow's lines on stderr: they name the library that did not load.",
        )
    tf.config.set_visible_devices(devices[0], "GPU")
    tf.config.experimental.set_memory_growth(devices[0], True)
    return "/device:GPU:0"


def slow_start(tf: Any) -> str:
    """Return why the first start may take minutes; "" if it does not.

    The driver compiles TensorFlow's kernels for a newer GPU.

    Args:
        tf: TensorFlow, imported but not yet used.
    """
    for device in tf.config.list_physical_devices("GPU")[:1]:
        capability = tf.config.experimental.get_device_details(device).get("compute_capability")
        targets = installed.build_of(tf.sysconfig.get_build_info()).cuda_compute_capabilities
        if capability is not None and _cuda_cards.build_support(tuple(capability), targets) == "ptx":
            version = ".".join(map(str, capability))
            reason = f"TensorFlow has no machine code for this GPU ({version})"
            return f"{reason}. The first start compiles it, which takes minutes"
    return ""


def slow_first_step() -> str:
    """Return why the first step may take minutes if XLA compiles it.

    XLA times several kernels for each operation that it compiles (autotuning).
    """
    return "If XLA is used, it first tries which kernels are fastest, which may take minutes"


def describe(tf: Any) -> Device:
    """Return the GPU with its memory, its compute capability and the versions of its drivers."""
    from bench.model.device import Device

    details = tf.config.experimental.get_device_details(gpu_of(tf))
    driver = _probe.cuda(_cuda_checks.LIBRARY)  # this process has loaded the driver already
    name = details.get("device_name")
    first = driver.gpus[0] if driver.gpus else None  # TensorFlow and the driver number GPUs alike
    build = installed.build_of(tf.sysconfig.get_build_info())
    capability = details.get("compute_capability")
    return Device(
        name=name,
        compute_capability=".".join(map(str, capability)) if capability else None,
        memory=first.memory if first and first.name == name else None,
        driver=_cuda_checks.driver_version(),
        driver_cuda=_cuda_cards.cuda_version(driver.version) if driver.version is not None else None,
        built_cuda=build.cuda_version,
        built_cudnn=build.cudnn_version,
        cudnn=installed.version("nvidia-cudnn-cu12"),
        cublas=installed.version("nvidia-cublas-cu12"),
        gpus=len(tf.config.list_physical_devices("GPU")),
    )


def checks() -> Iterator[Check]:
    """Yield doctor's checks of this backend. Never raises."""
    if sys.platform == "win32":
        fix = f"Use WSL2: {_cuda_checks.INSTALL}\nOr use --backend directml."
        yield Check("platform", "FAIL", "TensorFlow 2.11 and later do not support CUDA on native Windows", fix)
    elif sys.platform == "linux":
        yield from _cuda_checks.checks()
    else:
        yield Check("platform", "FAIL", f"CUDA does not support {sys.platform}", "Use Linux with an NVIDIA GPU.")
