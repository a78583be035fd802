"""TensorFlow, as a worker imported and configured it."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from bench.model.record import Record
from bench.model.trait import Trait


class Build(Record):
    """How TensorFlow was built, by the names of `tf.sysconfig.get_build_info()`, which differ by version."""

    model_config = ConfigDict(extra="allow")

    is_cuda_build: bool | None = Field(None, description="whether it supports CUDA")
    cuda_version: Annotated[str | None, Trait("CUDA", from_backend=True)] = Field(None, description="version of CUDA")
    cudnn_version: Annotated[str | None, Trait("cuDNN", from_backend=True)] = Field(
        None, description="version of cuDNN"
    )
    cuda_compute_capabilities: list[str] = Field(
        default_factory=list, description="GPUs that it has code for: `sm_80` is machine code, `compute_90` is PTX"
    )


class ThreadPools(Record):
    """The sizes of TensorFlow's thread pools."""

    intra: int = Field(description="threads within one operation")
    inter: int = Field(description="operations that run at the same time")


class Framework(Record):
    """TensorFlow, as a worker imported and configured it."""

    tensorflow: Annotated[str | None, Trait("TensorFlow", ("fingerprint", "peaks"))] = Field(
        None, description="version of TensorFlow"
    )
    git_version: Annotated[str | None, Trait("TensorFlow's build")] = Field(
        None, description="commit that TensorFlow was built from"
    )
    distribution: tuple[str, str] | None = Field(None, description="name and version of the installed distribution")
    compiler: str | None = Field(None, description="compiler that TensorFlow was built with")
    xla_flags: Annotated[str | None, Trait("XLA's flags")] = Field(None, description="XLA_FLAGS")
    tf_xla_flags: str | None = Field(None, description="TF_XLA_FLAGS")
    build: Build = Field(default_factory=Build)
    keras: Annotated[str | None, Trait("Keras")] = Field(None, description="version of Keras")
    numpy: Annotated[str | None, Trait("NumPy")] = Field(None, description="version of NumPy")
    packages: dict[str, str] = Field(
        default_factory=dict, description="versions of the other packages that TensorFlow computes with"
    )
    onednn: bool | None = Field(None, description="whether oneDNN is on; None if the build decides and does not say")
    tf32: bool | None = Field(None, description="whether TF32 is allowed")
    jit: str | bool | None = Field(None, description="global setting of the XLA compiler")
    cpu_features: list[str] = Field(default_factory=list, description="CPU extensions that the worker's system lists")
    threads: ThreadPools | None = None
