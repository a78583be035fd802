"""The failure of a worker, and of the result that needed it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench.model.record import Record


class Failure(Record):
    """How a worker failed."""

    kind: Literal[
        "error",
        "workload",
        "data",
        "device",
        "memory",
        "crashed",
        "killed",
        "hung",
        "nan",
        "interrupted",
        "placement",
        "same-answer",
    ] = Field(description="cause; the reference explains each")
    message: str = Field(description="what happened, to what")
    hint: str = Field("", description="what to do about it")
    exit_code: int | None = Field(None, description="exit code of the process")
    signal: str | None = Field(None, description="name of the signal that ended the process")
    phase: str | None = Field(None, description="what the worker was doing")
    last_lines: list[str] = Field(default_factory=list, description="the end of its stderr")
