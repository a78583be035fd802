"""Which line of the program is being executed, and what it calls. Worker's side only."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

WRAPPERS = ("error_handler", "devbench_call")
"""Functions that Keras, and devbench where it observes calls, put around Keras' own."""


def line_in(file: str) -> int:
    """Return the innermost line of a file that is being executed. 0 if there is none."""
    return call_in(file)[0]


def call_in(file: str) -> tuple[int, str]:
    """Return the innermost line of a file that is being executed, and the name of the function that it calls.

    Returns:
        0 and an empty name if no line of the file is being executed.
    """
    frame: Any = sys._getframe(1)
    called = ""
    while frame is not None:
        if frame.f_code.co_filename == file:
            return int(frame.f_lineno), called
        called = called if frame.f_code.co_name in WRAPPERS else frame.f_code.co_name
        frame = frame.f_back
    return 0, ""


def library_folders() -> tuple[str, ...]:
    """Return the folders of TensorFlow and Keras."""
    modules = (sys.modules.get(name) for name in ("tensorflow", "keras"))
    return tuple(str(Path(module.__file__).parent) for module in modules if module is not None and module.__file__)
