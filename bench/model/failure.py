"""The failure of a worker, and of the result that needed it."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field

from bench.model.record import Record

LONGEST_BRIEF = 200
"""Maximum length of a failure in one line, in characters."""

_ERROR = re.compile(r"[\w.]*(Error|Exception)\b.*: ")


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

    @property
    def brief(self) -> str:
        """The message in one line. Of a message that begins with a heading, the line that says what happened."""
        lines = [line.strip() for line in self.message.splitlines() if line.strip()] or [""]
        line = lines[0]
        if line.endswith(":"):
            line = next((other for other in lines[1:] if _ERROR.match(other)), lines[-1])
        return line if len(line) <= LONGEST_BRIEF else line[: LONGEST_BRIEF - 1] + "…"
