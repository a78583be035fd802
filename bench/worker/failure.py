"""Describes a program's exception: its message and the line of the user's file, without frames of devbench."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Literal

from bench.errors import DataError, DevbenchError, DeviceAbsent
from bench.model.failure import Failure
from bench.model.phase import Activity
from bench.registry.user_file import error_text

LONGEST = 2000
"""Maximum length of a message, in characters. A hub refuses texts of more than 10,000."""


def failure_of(error: BaseException, file: str | None, phase: Activity) -> Failure:
    """Return the failure that an exception stands for.

    Args:
        error: the exception.
        file: the user's file, whose line the message names. None for a built-in.
        phase: what the worker was doing.
    """
    if isinstance(error, DevbenchError):
        return Failure(kind=_kind(error), message=error.message[:LONGEST], hint=error.hint[:LONGEST], phase=phase)
    text = error_text(error, Path(file)) if file else f"{type(error).__name__}: {str(error).strip()[:LONGEST]}"
    if isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError":
        request = re.search(r"OOM when allocating tensor with shape\S+ and type \w+|Unable to allocate .*", text)
        text = request.group(0) if request else text
        hint = "The program needs more memory than there is. Try a smaller batch, such as --param batch=16."
        return Failure(kind="memory", message=text, hint=hint, phase=phase)
    return Failure(kind="error", message=text, hint="The last lines below come from the program.", phase=phase)


def print_traceback(error: BaseException) -> None:
    """Write the traceback to stderr, without the frames of this package above the program."""
    inner = error.__traceback__
    while inner is not None and Path(__file__).parent in Path(inner.tb_frame.f_code.co_filename).parents:
        inner = inner.tb_next
    traceback.print_exception(type(error), error, inner or error.__traceback__)


def _kind(error: DevbenchError) -> Literal["device", "data", "workload"]:
    if isinstance(error, DeviceAbsent):
        return "device"
    return "data" if isinstance(error, DataError) else "workload"
