"""The placement check: where the operations of a step ran."""

from __future__ import annotations

from pydantic import Field

from bench.model.record import Record


class Operation(Record):
    """One operation of a partitioned graph."""

    name: str = Field(description="its name in the graph")
    op: str = Field(description="its type")
    device: str = Field(description="the device that it ran on")


class Placement(Record):
    """The placement check: where the operations of one step ran, read after the timed blocks."""

    requested_device: str = Field(description="requested device, such as CPU:0")
    method: str = Field(description="graphs that were read, such as partition graphs of a new step")
    verified: bool = Field(description="false if there was no evidence or an operation ran elsewhere")
    on_device: int = Field(description="operations on the requested device")
    host_by_design: dict[str, int] = Field(
        default_factory=dict, description="operations on the host where they belong: type to count"
    )
    misplaced: list[Operation] = Field(default_factory=list, description="operations on another device")
    xla_clusters: int = Field(0, description="clusters that XLA compiled")
    devices: dict[str, int] = Field(default_factory=dict, description="device to number of operations")
    reason: str | None = Field(None, description="why it is not verified")
