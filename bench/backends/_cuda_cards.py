"""Checks of a CUDA device: whether TensorFlow's build and the installed cuDNN support this GPU."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from bench.backends._probe import CudaGpu
from bench.machine import installed, system
from bench.model.check import Check

BLACKWELL = 10
"""First compute capability for which the driver cannot compile the kernels of TensorFlow's builds without machine code
for it: CUDA_ERROR_INVALID_PTX or CUDA_ERROR_INVALID_HANDLE (tensorflow/tensorflow#101746 and #111958)."""

LAST_CUDNN, CUDNN_CAPABILITY = (9, 10), (7, 5)
"""The last version of cuDNN for GPUs of Maxwell, Pascal and Volta, and the lowest compute capability of later ones
(NVIDIA's support matrix of cuDNN)."""


def device_checks(gpus: list[CudaGpu], supported: int) -> Iterator[Check]:
    """Check the first GPU, which is the one that devbench uses, and count the others."""
    first, others = gpus[0], len(gpus) - 1
    major, minor = first.capability
    text = f"{first.name}, compute capability {major}.{minor}, {first.memory / 2**30:.1f} GiB"
    text += f" (and {others} more, unused)" if others else ""
    build = installed.build()
    code = build_support((major, minor), build.cuda_compute_capabilities)
    if code == "none":
        targets = ", ".join(build.cuda_compute_capabilities)
        message = f"{text}: TensorFlow has no code for this GPU, only for {targets}"
        yield Check("GPU", "FAIL", message, "Use another GPU.")
        return
    if code == "ptx" and major >= BLACKWELL:
        message = f"{text}: TensorFlow has no machine code for this GPU, and what the driver compiles for it fails"
        yield Check("GPU", "FAIL", message, "Use a TensorFlow that was built for this GPU, such as NVIDIA's container.")
        return
    yield Check("GPU", "PASS", text)
    yield from _cudnn(first.capability)
    if code == "ptx":
        yield from _compilation(supported, build.cuda_version or "")


def _cudnn(capability: tuple[int, int]) -> Iterator[Check]:
    """Check whether the installed package of cuDNN supports the GPU. Convolutions fail if it does not."""
    version = installed.version("nvidia-cudnn-cu12")
    numbers = tuple(int(part) for part in re.findall(r"\d+", version or "")[:2])
    if capability >= CUDNN_CAPABILITY or len(numbers) < 2 or numbers <= LAST_CUDNN:
        return
    newest, oldest = (".".join(map(str, pair)) for pair in (LAST_CUDNN, CUDNN_CAPABILITY))
    message = f"cuDNN {version} needs a GPU of compute capability {oldest} or higher; {newest} is the last for this one"
    fix = f"pip install 'nvidia-cudnn-cu12<{LAST_CUDNN[0]}.{LAST_CUDNN[1] + 1}'"
    if system.image():
        fix = f"Use another GPU, or build an image with cuDNN {newest} (docs/containers.md, GPUs before Turing)."
    yield Check("cuDNN", "FAIL", message, fix)


def _compilation(supported: int, built: str) -> Iterator[Check]:
    """Check the consequences if the driver has to compile TensorFlow's kernels (PTX) at the first start."""
    cache = os.environ.get("CUDA_CACHE_PATH")
    slow = "TensorFlow has no machine code for this GPU; the first start compiles it, which takes minutes"
    if cache and system.image() and not system.is_mounted(Path(cache)):
        message = f"{slow}. Nothing is mounted at {cache}, so the next start compiles it again"
        yield Check("GPU code", "WARN", message, f"Start the container with -v devbench-cache:{cache}")
    elif cache:
        yield Check("GPU code", "PASS", f"{slow}. The result is cached in {cache}")
    else:
        yield Check("GPU code", "WARN", slow, "Set CUDA_CACHE_PATH to a permanent folder to keep the compiled code.")
    numbers = [int(part) for part in re.findall(r"\d+", built)[:2]]
    if len(numbers) == 2 and supported < numbers[0] * 1000 + numbers[1] * 10:
        message = f"TensorFlow was built with CUDA {built}, but the driver supports {cuda_version(supported)}"
        fix = "Install a newer driver."
        yield Check("GPU code", "WARN", f"{message}: compilation may fail with unsupported PTX", fix)


def build_support(capability: tuple[int, int], targets: list[str]) -> str:
    """Return how a TensorFlow build supports a GPU.

    Machine code `sm_XY` runs on GPUs with the same X and an equal or higher Y. PTX `compute_XY` is compiled for any
    later GPU. With the suffix `a`, both are only for the GPU XY itself, and with `f`, only for those with the same X.

    TensorFlow's build adds machine code for XY to the PTX of `compute_XY`, except for small generated kernels, which
    the driver compiles when they are first used. An H100 (9.0) with TensorFlow 2.21, whose build lists `compute_90`,
    was ready within 0.7 s.

    Args:
        capability: the GPU's compute capability, such as (7, 5).
        targets: the build's `cuda_compute_capabilities`.

    Returns:
        "code" (machine code), "ptx" (compiled at the first start), "none", or "unknown" if `targets` is empty.
    """
    if not targets:
        return "unknown"
    support = "none"
    for target in targets:
        match = re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", target)
        if match is None:
            continue
        kind, suffix = match[1], match[4]
        major, minor = int(match[2]), int(match[3])
        same = major == capability[0] if suffix == "f" or kind == "sm" else True
        exact = (major, minor) == capability if suffix == "a" else True
        if not (same and exact and (major, minor) <= capability):
            continue
        if kind == "sm" or (major, minor) == capability:
            return "code"
        support = "ptx"
    return support


def cuda_version(number: int) -> str:
    """Return a CUDA version in the usual notation: 12040 is "12.4"."""
    return f"{number // 1000}.{number % 1000 // 10}"
