"""The machine's peaks, and a step under the roofline."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench.model.record import Record


class Peaks(Record):
    """The highest rates that one machine attains with one TensorFlow on one device."""

    fingerprint: str = Field(description="16 digits for the machine, its device, its threads and its TensorFlow")
    flops_per_second: dict[str, float] = Field(description="dtype to the rate of a matrix product")
    memory_bytes_per_second: float = Field(description="bandwidth of a triad that fits no cache")
    cache_bytes_per_second: float | None = Field(
        description="bandwidth of a triad that fits a core's cache; null on a GPU, where so small a triad is all launch"
    )
    cache_bytes: int | None = Field(description="bytes that this triad works on")


class Roofline(Record):
    """One step under the roofline."""

    flops: float = Field(description="floating-point operations of a step")
    flops_method: Literal["formula", "counted"] = Field(
        description="formula: the workload's own; counted: by TensorFlow in the unoptimized graph"
    )
    bytes: float = Field(description="least bytes that a step must move")
    intensity: float = Field(description="operations per byte, at most")
    flops_per_second: float = Field(description="attained operations per second")
    dtype: str = Field(description="dtype of the matrix product that gives the compute peak")
    compute_peak: float = Field(description="operations per second of a matrix product")
    memory_peak: float = Field(description="operations per second that the memory's bandwidth allows")
    cache_peak: float | None = Field(description="operations per second that the cache's bandwidth allows")
    bound: Literal["compute", "memory"] = Field(description="the lower one of the compute and the memory peak")
    share: float = Field(description="attained operations per second over that peak")
    exceeds_memory_peak: bool = Field(
        description="whether the step is faster than memory allows, because it works in a cache"
    )
