"""The profile: how the time of a step divides, read from a trace."""

from __future__ import annotations

from pydantic import Field

from bench.model.record import Record


class OperationTime(Record):
    """Operations of one kind in a profile, summed over threads or streams."""

    name: str = Field(description="type of the operation")
    seconds: float = Field(description="seconds per step")
    calls: float = Field(description="calls per step")


class Profile(Record):
    """How the time of a step divides, by a trace of TensorFlow's profiler (`--profile`). Tracing makes steps longer."""

    folder: str = Field(description="folder of the trace, for TensorBoard")
    steps: int = Field(description="number of traced steps")
    step_seconds: float = Field(description="seconds of a traced step")
    device_share: float | None = Field(
        description="share of the step in which an operation ran on the device; null if the device writes no trace"
    )
    input_share: float = Field(description="share in which none ran and the step waited for the next batch")
    host_share: float = Field(description="share in which neither was the case and TensorFlow worked on the host")
    idle_share: float = Field(description="the rest: Python's own work, or waiting")
    operations: list[OperationTime] = Field(default_factory=list, description="the longest first")
