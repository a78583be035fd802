"""How a program's exception is told to its user: in words, with the line of their own file, without our own frames."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any

from bench.errors import DataError, DevbenchError, DeviceAbsent
from bench.model.result import Failure
from bench.registry.user_file import error_text


def failure_of(error: BaseException, file: str | None, phase: str) -> Failure:
    """What to tell the user of an exception: in words, with the line of their own file where it has one."""
    if isinstance(error, DevbenchError):
        kind: Any = (
            "device" if isinstance(error, DeviceAbsent) else "data" if isinstance(error, DataError) else "workload"
        )
        return Failure(kind=kind, message=error.message, hint=error.hint, phase=phase)
    text = error_text(error, Path(file)) if file else f"{type(error).__name__}: {str(error).strip()[:2000]}"
    if isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError":
        asked = re.search(r"OOM when allocating tensor with shape\S+ and type \w+|Unable to allocate .*", text)
        text = asked.group(0) if asked else text
        hint = "It needs more memory than there is: try a smaller batch, such as --param batch=16."
        return Failure(kind="memory", message=text, hint=hint, phase=phase)
    return Failure(kind="error", message=text, hint="The last lines below are the program's own.", phase=phase)


def print_traceback(error: BaseException) -> None:
    """Writes the traceback to stderr from where it leaves this package: what is above is no news to its user."""
    inner = error.__traceback__
    while inner is not None and Path(__file__).parent in Path(inner.tb_frame.f_code.co_filename).parents:
        inner = inner.tb_next
    traceback.print_exception(type(error), error, inner or error.__traceback__)
