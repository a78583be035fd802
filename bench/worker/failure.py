"""Describes a program's exception: its message and the line of the user's file, without frames of devbench."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Literal

from bench.errors import DataError, DevbenchError, DeviceAbsent
from bench.model.failure import SMALLER_BATCH, Failure, memory_request
from bench.model.phase import Activity
from bench.registry.program_errors import error_text, is_devbench, names_program, traceback_lines

LONGEST = 2000
"""Maximum length of a message, in characters. A hub refuses texts of more than 10,000."""

LONGEST_IN_NOTE = 200
"""Maximum length of the message of an error in a note, in characters."""


class ClusterError(Exception):
    """Workers cannot train together. `failure` gives the reason."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class ProgramFailed(Exception):
    """A script ended with an exit code other than 0.

    Args:
        name: the script's name.
        code: the exit code.
        lines: the last lines that it wrote to stderr.
    """

    def __init__(self, name: str, code: int, lines: list[str]) -> None:
        super().__init__("\n".join([f"{name} ended with exit code {code}" + (":" if lines else ""), *lines]))
        self.code = code


def failure_of(error: BaseException, file: str | None, phase: Activity) -> Failure:
    """Return the failure that describes an exception.

    Args:
        error: the exception.
        file: the user's file, whose line the message names. None for a built-in.
        phase: what the worker was doing.
    """
    if isinstance(error, ClusterError):
        return error.failure.model_copy(update={"phase": phase})
    if isinstance(error, DevbenchError):
        return Failure(kind=_kind(error), message=error.message[:LONGEST], hint=error.hint[:LONGEST], phase=phase)
    if isinstance(error, ProgramFailed):  # 2 is the code of a wrong argument
        kind: Literal["workload", "error"] = "workload" if error.code == 2 else "error"
        return Failure(kind=kind, message=str(error)[:LONGEST], exit_code=error.code, phase=phase)
    program = Path(file) if file else None
    text = error_text(error, program)[:LONGEST]
    request = memory_request(str(error))
    if request or isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError":
        return Failure(kind="memory", message=(request or text)[:LONGEST], hint=SMALLER_BATCH, phase=phase)
    return Failure(kind="error", message=text, hint=_hint(error, program), phase=phase)


def short_text(error: BaseException) -> str:
    """Return the type of an exception and the start of its message, for a note."""
    return f"{type(error).__name__}: {str(error)[:LONGEST_IN_NOTE]}"


def _hint(error: BaseException, program: Path | None) -> str:
    """Return a sentence that says where the last lines come from."""
    frames = traceback.extract_tb(error.__traceback__)
    is_library_error = not type(error).__module__.startswith(("builtins", "bench"))
    is_library_error |= any(frame.name == "error_handler" for frame in frames)  # of Keras, which removes inner frames
    if frames and is_devbench(Path(frames[-1].filename)) and not is_library_error:
        return "This is probably a fault of devbench. Its last lines are below."
    if names_program(error, program):
        return "The last lines below come from the program."
    return "The error came from a library, not from a line of the program. Its last lines are below."


def print_traceback(error: BaseException, file: str | None) -> None:
    """Write the traceback to stderr, without devbench's own frames unless nothing else is left.

    Args:
        error: the exception.
        file: the user's file. None for a built-in.
    """
    sys.stderr.writelines(traceback_lines(error, Path(file) if file else None))


def _kind(error: DevbenchError) -> Literal["device", "data", "workload"]:
    if isinstance(error, DeviceAbsent):
        return "device"
    return "data" if isinstance(error, DataError) else "workload"
