"""The failure of a worker, and of the result that needed it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from bench.model.record import Record

SMALLER_BATCH = "The program needs more memory than there is. Try a smaller batch, such as --param batch=16."
"""The hint of a failure of the kind `memory`."""

LONGEST_BRIEF = 200
"""Maximum length of a failure in one line, in characters."""

_OUT_OF_MEMORY = re.compile(
    r"OOM when allocating tensor with shape\S+ and type \w+"
    r"|Unable to allocate [\d.]+ \w+ for an array.*"
    r"|Dst tensor is not initialized"
    r"|(?:RESOURCE_EXHAUSTED: )?Out of memory (?:while )?(?:trying )?to allocate [^\s,;]+(?: bytes)?"
    r"|CUDA_ERROR_OUT_OF_MEMORY(?:: out of memory)?"
    r"|cudaErrorMemoryAllocation"
    r"|\bCU[A-Z]+(?:_STATUS)?_ALLOC_FAILED"
    r"|\bE_OUTOFMEMORY|0x8007000e",
    re.IGNORECASE,
)
"""What NumPy, TensorFlow, XLA, CUDA, CUDA's libraries and DirectX write when they cannot allocate memory."""

_FATAL = re.compile(r"^(?:\d{4}-\d\d-\d\d [\d:.]+: F|F\d{4} [\d:.]+) ")
"""The beginning of a fatal line in TensorFlow's log, in both of its formats. The process ends after such a line."""

_ERROR = re.compile(r"[\w.]*(Error|Exception)\b.*: ")

_UNNAMED = " name:"
"""The end of TensorFlow's message about an operation without a name."""


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
        "rendezvous",
        "lost-worker",
    ] = Field(description="cause; the reference explains each")
    message: str = Field(description="what happened, to what")
    hint: str = Field("", description="what to do about it")
    exit_code: int | None = Field(None, description="exit code of the process")
    signal: str | None = Field(None, description="name of the signal that ended the process")
    phase: str | None = Field(None, description="what the worker was doing")
    last_lines: list[str] = Field(default_factory=list, description="the end of its stderr")

    @property
    def advice(self) -> str:
        """The hint, and below it the end of the stderr, to which many hints refer."""
        return "\n".join(filter(None, [self.hint, *self.last_lines]))

    @property
    def brief(self) -> str:
        """One line of the message: the first, or if that is a heading, the line that names the error."""
        lines = [line.strip() for line in self.message.splitlines() if line.strip()] or [""]
        line = lines[0].removesuffix(_UNNAMED)
        if line.endswith(":"):
            line = next((other for other in lines[1:] if _ERROR.match(other)), lines[-1])
        return line if len(line) <= LONGEST_BRIEF else line[: LONGEST_BRIEF - 1] + "…"


def memory_request(text: str) -> str | None:
    """Return the part of an error's message that says that memory ran out. None if no part says so."""
    match = _OUT_OF_MEMORY.search(text)
    return match.group() if match else None


def fatal_memory_request(lines: Sequence[str]) -> str | None:
    """Return what `memory_request` finds in the fatal lines of a log. Other lines may only announce a retry."""
    return next((request for line in lines if _FATAL.match(line) and (request := memory_request(line))), None)
