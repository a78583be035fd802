"""Where a result was measured: TensorFlow, the device and the host.

Sizes are in bytes, frequencies in hertz. A field that is None could not be read or does not exist there.

A field that tells environments apart declares its `Trait` where it is defined. The fingerprint, the hub's comparison
key, the cache of peaks, and the rows of comparisons and reports follow from the traits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, get_args

from pydantic import BaseModel, Field

from bench.model.device import Device
from bench.model.framework import Framework
from bench.model.record import Record
from bench.model.trait import Identity, Trait


class Python(Record):
    """The Python interpreter."""

    version: Annotated[str | None, Trait("Python")] = Field(None, description="such as 3.11.9")
    implementation: str | None = Field(None, description="such as CPython")
    build: str | None = Field(None, description="number and date of its build")
    compiler: str | None = Field(None, description="compiler that it was built with")


class Cpu(Record):
    """The CPU, and how much of it devbench may use."""

    model: Annotated[str | None, Trait("CPU", ("fingerprint", "comparison key", "peaks"))] = Field(
        None, description="name of the CPU, as its maker gives it"
    )
    limit: Annotated[float | None, Trait("CPU limit", ("fingerprint", "comparison key", "peaks"))] = Field(
        None, description="CPUs that may be used, by affinity and quota"
    )
    cpuset: Annotated[str | None, Trait("CPU set")] = Field(None, description="CPUs of the affinity mask, such as 0-3")
    governor: Annotated[str | None, Trait("CPU governor")] = Field(None, description="frequency governor")
    architecture: str | None = Field(None, description="such as x86_64")
    features: list[str] = Field(default_factory=list, description="extensions that choose code paths")
    physical_cores: int | None = Field(None, description="cores of the machine")
    logical_cores: int | None = Field(None, description="hardware threads of the machine")
    affinity: int | None = Field(None, description="CPUs in the affinity mask")
    quota: float | None = Field(None, description="CPUs by the quota of the control group")
    max_frequency_hz: float | None = Field(None, description="highest frequency of CPU 0")
    numa_nodes: int | None = Field(None, description="number of NUMA nodes")
    smt: bool | None = Field(None, description="whether simultaneous multithreading is on")


class Memory(Record):
    """Main memory, in bytes."""

    total: Annotated[int | None, Trait("memory", size=True)] = Field(None, description="of the machine")
    limit: Annotated[int | None, Trait("memory limit", size=True)] = Field(
        None, description="limit of the control group"
    )
    available: int | None = Field(None, description="that could be used when the run started")
    transparent_hugepages: Annotated[str | None, Trait("huge pages")] = Field(
        None, description="the setting, such as madvise"
    )


class System(Record):
    """The operating system, and what it runs in."""

    os: Annotated[str | None, Trait("operating system")] = Field(None, description="name and version")
    kernel: Annotated[str | None, Trait("kernel")] = Field(None, description="release of the kernel")
    hypervisor: Annotated[str | None, Trait("hypervisor")] = Field(
        None, description="such as kvm; unknown if only the CPU's flag says that there is one; None on bare metal"
    )
    container: Annotated[str | None, Trait("container")] = Field(
        None, description="engine of the container; None outside a container"
    )
    cgroup: str | None = Field(None, description="version of the control groups")
    wsl: str | None = Field(None, description="wsl1 or wsl2, inside the Windows Subsystem for Linux")
    load: float | None = Field(None, description="load average of the last minute; None on Windows")


class Deployment(Record):
    """The image and the place in a cluster that devbench runs in."""

    image: str | None = Field(None, description="name of the image")
    image_version: str | None = Field(None, description="version of devbench in the image")
    image_digest: str | None = Field(None, description="digest of the image")
    image_id: str | None = Field(
        None, description="id of the image; only Podman reports it, and only to a privileged container"
    )
    node: str | None = Field(None, description="name of the node")
    pool: Annotated[str | None, Trait(None, ("fingerprint", "comparison key"))] = Field(
        None, description="name of the pool"
    )
    instance_type: Annotated[str | None, Trait(None, ("fingerprint", "comparison key"))] = Field(
        None, description="type of the machine at the cloud provider"
    )
    shared_gpu: str | None = Field(None, description="allowed, if the pool may use a GPU that others also use")
    chart: str | None = Field(None, description="version of the Helm chart")
    revision: Annotated[str | None, Trait("revision of devbench")] = Field(
        None, description="git revision of devbench from which the image was built"
    )


class Host(Record):
    """The machine, its system and the Python interpreter."""

    devbench: Annotated[str | None, Trait("devbench")] = Field(None, description="version of devbench")
    python: Python = Field(default_factory=Python)
    cpu: Cpu = Field(default_factory=Cpu)
    memory: Memory = Field(default_factory=Memory)
    system: System = Field(default_factory=System)
    deployment: Annotated[Deployment, Trait("deployment")] = Field(default_factory=Deployment)
    variables: Annotated[dict[str, str], Trait("variables")] = Field(
        default_factory=dict, description="environment variables that change what TensorFlow does"
    )


class Environment(Record):
    """Where a result was measured."""

    framework: Framework | None = Field(None, description="None if no worker imported TensorFlow")
    device: Device | None = Field(None, description="None if no worker selected a device")
    host: Host = Field(default_factory=Host)

    @property
    def tensorflow(self) -> str | None:
        """The version of TensorFlow."""
        return self.framework.tensorflow if self.framework else None

    def identity(self, of: Identity) -> list[Any]:
        """Return the values of the fields that are part of an identity."""
        return [_value_at(self, path) for path, trait in TRAITS.items() if of in trait.part_of]

    def fingerprint(self) -> str:
        """Return 12 hex digits that name the kind of machine and the version of TensorFlow."""
        return hashlib.sha256(json.dumps(self.identity("fingerprint")).encode()).hexdigest()[:12]

    def rows(self) -> dict[str, Any]:
        """Return what a comparison or a report lists: name of the row, and its value as JSON types."""
        return {trait.row: _value_at(self, path) for path, trait in TRAITS.items() if trait.row}


def _traits(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Trait]]:
    """Yield the path and the trait of each field of a model, and of the models in it, that declares one."""
    for name, field in model.model_fields.items():
        yield from (((*path, name), item) for item in field.metadata if isinstance(item, Trait))
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _traits(kind, (*path, name))


TRAITS: Mapping[tuple[str, ...], Trait] = MappingProxyType(dict(_traits(Environment)))
"""The traits of all fields that declare one, by the path of the field from `Environment`."""

ROWS: Mapping[str, Trait] = MappingProxyType({trait.row: trait for trait in TRAITS.values() if trait.row})
"""The traits of the fields that have a row, by the name of the row."""


def _value_at(value: Any, path: tuple[str, ...]) -> Any:
    """Return the value at a path, as JSON types. None if there is none."""
    for name in path:
        value = getattr(value, name, None)
    return value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else value
