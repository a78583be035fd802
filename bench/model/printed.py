"""What a script wrote to stdout, apart from what TensorFlow writes."""

from __future__ import annotations

from pydantic import Field

from bench.model.record import Record


class Printed(Record):
    """The first and last lines that a script printed."""

    lines: int = Field(description="number of lines")
    first: list[str] = Field(default_factory=list, description="the first lines")
    last: list[str] = Field(default_factory=list, description="the last lines after these")
