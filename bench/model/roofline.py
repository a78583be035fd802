"""The machine's peaks, and a step under its roofline."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench.model.record import Record


class Peaks(Record):
    """What one machine attains with one TensorFlow, on one device."""

    fingerprint: str = Field(description="of the machine, its device, its threads and its TensorFlow")
    flops_per_second: dict[str, float] = Field(description="dtype: attained in a matrix product")
    memory_bytes_per_second: float = Field(description="attained in a triad that no cache holds")
    cache_bytes_per_second: float | None = Field(
        description="attained in a triad that a core's cache holds; none on a GPU, where so small a one is all launch"
    )
    cache_bytes: int | None = Field(description="working set of that triad")


class Roofline(Record):
    """One step under the roofs."""

    flops: float = Field(description="floating-point operations of a step")
    flops_method: Literal["formula", "counted"]
    bytes: float = Field(description="that a step must move at least")
    intensity: float = Field(description="operations a byte, at most")
    flops_per_second: float = Field(description="operations a second")
    dtype: str
    compute_peak: float = Field(description="operations a second, of a matrix product")
    memory_peak: float = Field(description="operations a second that the memory's bandwidth allows")
    cache_peak: float | None = Field(description="the same for the cache's")
    bound: Literal["compute", "memory"] = Field(description="the lower one of the compute and the memory roof")
    share: float = Field(description="attained over that roof")
    exceeds_memory_peak: bool = Field(description="faster than memory allows: its working set is in a cache")
