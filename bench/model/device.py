"""The device that a result was measured on. Sizes are in bytes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bench.model.record import Record
from bench.model.trait import Trait


class Device(Record):
    """The device that the backend chose. Each backend fills in what it knows."""

    name: Annotated[str | None, Trait("device", ("fingerprint", "comparison key", "peaks"), from_backend=True)] = Field(
        None, description="name of the device, as its maker gives it"
    )
    driver: Annotated[str | None, Trait("driver", ("peaks",), from_backend=True)] = Field(
        None, description="version of the GPU's driver"
    )
    architecture: str | None = Field(None, description="architecture of the CPU")
    features: list[str] | None = Field(None, description="extensions of the CPU that choose code paths")
    visible: list[str] | None = Field(None, description="devices that TensorFlow may use")
    compute_capability: str | None = Field(None, description="of the GPU, such as 7.5")
    memory: int | None = Field(None, description="memory of the GPU")
    driver_cuda: str | None = Field(None, description="newest CUDA that the driver supports")
    built_cuda: str | None = Field(None, description="CUDA that TensorFlow was built with")
    built_cudnn: str | None = Field(None, description="cuDNN that TensorFlow was built with")
    cudnn: str | None = Field(None, description="version of the installed package of cuDNN")
    cublas: str | None = Field(None, description="version of the installed package of cuBLAS")
    gpus: int | None = Field(None, description="GPUs that TensorFlow sees")
    plugin: str | None = Field(None, description="version of the DirectML plug-in")
    wsl: str | None = Field(None, description="wsl1 or wsl2, inside the Windows Subsystem for Linux")
