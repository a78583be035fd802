"""Backends: the ways to reach a device. Each backend is one module in this folder.

A backend module defines:

    NAME            its name on the command line, and that of its file, its package extra and its image's tag
    DESCRIPTION     one line for `devbench list`
    PLATFORMS       where it runs, for `devbench list`
    CAPABILITIES    what it can do: a `Capabilities`

    environment(spec) -> dict[str, str]
        Return the environment variables that a worker needs before it imports TensorFlow.
    require() -> None
        Raise `DeviceAbsent`, with cause and fix, if a run cannot start. Quick, and without TensorFlow.
    checks() -> Iterator[Check]
        Yield the checks of `devbench doctor`, without importing TensorFlow. The first one is about the packages.

and, for the worker, which has imported TensorFlow but has not used it yet:

    slow_start(tf) -> str
        Return why the first start may take many minutes, or "" if it does not.
    slow_first_step() -> str
        Return why the first step may take many minutes if XLA compiles it, or "" if it does not.
    configure(tf) -> str
        Select the device, hide all others and return its name, such as "/device:GPU:0". Raise `DeviceAbsent` if it is
        not there.
    describe(tf) -> Device
        Return the device's name and the versions of its drivers.

Importing a backend module is cheap and does not import TensorFlow. Code outside this folder never compares a backend's
name. It asks for `capabilities(name)`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType

from bench.errors import UnknownName
from bench.machine.gpu import OpenSampler

GPU_NAMES = ("gpu", "gpu:0", "nvidia", "amd", "intel", "accelerator")
"""What users call a GPU instead of its backend."""


@dataclass(frozen=True)
class Capabilities:
    """What a backend can do. The defaults describe an unknown GPU.

    Attributes:
        gpu: the device is an accelerator, not the host's CPU.
        reference: the backend that the others are compared with. Exactly one backend is the reference.
        parallel_start: several workers may set up at the same time. False if a worker measures which kernels are
            fastest while it starts, which others would disturb.
        forks: a process that has imported TensorFlow, but has not used it, can fork workers.
        telemetry: opens a sampler of the GPU's clocks, power and memory; None if there is nothing to sample.
        tensor_cores: dtypes of matrix products that run on units that work best with sides that are multiples of 8,
            each with the lowest compute capability that has them. "tf32" is float32 with `--tf32`.
        xla: XLA can compile for the device.
        distributes: several workers can train together on such devices (`tf.distribute`).
        computes: dtypes in which the device multiplies matrices.
        onednn: oneDNN's kernels can be switched on and off (`--onednn`).
        dtypes: dtype policies narrower than float32 that an explanation tries.
        peaks: parameters of the workload `peaks` with which it keeps the device busy.
        hide: environment variables that hide this backend's devices from TensorFlow.
        packages: distributions, besides TensorFlow, whose versions a result records, as patterns such as
            "nvidia-*-cu[0-9]*".
        prefixes: beginnings of the names of environment variables that the backend's libraries read. A result records
            these variables.
        resource: the resource by which a Kubernetes device plugin offers the device; "" if no plugin offers it. A pool
            of the chart can have any backend that needs no device or has a resource.
        product_label: the label with which Kubernetes' feature discovery names the model of a node's device; "" if no
            label names it.
        kernel_cache: the environment variable that names the folder of the kernels that the driver compiles; "" if
            there is no such cache.
    """

    gpu: bool = True
    reference: bool = False
    parallel_start: bool = False
    forks: bool = False
    telemetry: OpenSampler | None = None
    tensor_cores: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    xla: bool = True
    distributes: bool = True
    computes: tuple[str, ...] = ("float32", "float64", "bfloat16", "float16")
    onednn: bool = False
    dtypes: tuple[str, ...] = ("mixed_float16", "mixed_bfloat16")
    peaks: Mapping[str, str] = field(default_factory=lambda: {"n": "8192", "memory_bytes": str(2**30)})
    hide: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    resource: str = ""
    product_label: str = ""
    kernel_cache: str = ""


def obstacle(name: str, dtype: str, xla: bool) -> str:
    """Return why a backend cannot run what a spec asks for; "" if nothing is known to prevent it.

    Args:
        name: the backend.
        dtype: a dtype policy, such as "mixed_bfloat16".
        xla: whether XLA is asked for.
    """
    can = capabilities(name)
    if dtype.removeprefix("mixed_") not in can.computes:
        return f"{name} computes only in {' and '.join(can.computes)}"
    return f"{name} does not support XLA" if xla and not can.xla else ""


def has_tensor_cores(name: str, dtype: str, capability: str | None) -> bool:
    """Return whether matrix products of a dtype run on tensor cores, as far as the device is known.

    Args:
        name: the backend.
        dtype: such as "float16". "tf32" is float32 with `--tf32`.
        capability: the compute capability of the GPU, such as "7.5". None if it is not known.
    """
    lowest = capabilities(name).tensor_cores.get(dtype)
    if lowest is None or capability is None:
        return lowest is not None
    major, minor = map(int, capability.split("."))
    return (major, minor) >= lowest


@cache
def names() -> tuple[str, ...]:
    """Return the names of all backends of this installation, sorted."""
    return tuple(sorted(file.stem for file in Path(__file__).parent.glob("*.py") if not file.stem.startswith("_")))


def load(name: str) -> ModuleType:
    """Import a backend.

    Raises:
        UnknownName: there is no backend of that name.
    """
    if name.lower() in GPU_NAMES:  # of the names, "cpu" is the most similar one
        gpus = [other for other in names() if capabilities(other).gpu]
        raise UnknownName("backend", name, gpus, " ".join(f"{gpu}: {load(gpu).DESCRIPTION}." for gpu in gpus))
    if name not in names():
        raise UnknownName("backend", name, names())
    return importlib.import_module(f"bench.backends.{name}")


@cache
def capabilities(name: str) -> Capabilities:
    """Return a backend's capabilities.

    A result may come from a backend that this installation does not have, such as one that a newer devbench sent to a
    hub. It counts as an unknown GPU.
    """
    if name not in names():
        return Capabilities()
    declared: Capabilities = load(name).CAPABILITIES
    return declared


@cache
def reference() -> str:
    """Return the name of the backend that the others are compared with."""
    return next(name for name in names() if capabilities(name).reference)


def recorded_packages() -> tuple[str, ...]:
    """Return the patterns of the distributions whose versions a result records, of all backends."""
    return tuple(pattern for name in names() for pattern in capabilities(name).packages)


def recorded_prefixes() -> tuple[str, ...]:
    """Return the prefixes of the environment variables that a result records, of all backends."""
    return tuple(prefix for name in names() for prefix in capabilities(name).prefixes)


def hiding_variables(visible: str | None = None) -> dict[str, str]:
    """Return the environment variables that hide the devices of every backend but `visible`."""
    others = (capabilities(name) for name in names() if name != visible)
    return {variable: value for other in others for variable, value in other.hide.items()}
