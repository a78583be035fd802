"""Which line of the program runs, and what it calls. Worker's side only."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

WRAPPERS = ("error_handler", "_method_wrapper", "devbench_call")
"""Functions that Keras, TensorFlow and devbench put around methods. They are not what a line calls."""

WORKER = str(Path(__file__).parent)
"""The folder of the worker's own files."""

OBSERVERS = (
    *WRAPPERS, "call", "apply", "enter_tape", "take_gradient", "run", "batch", "create", "scope", "iterate",
    "func_graph_from_py_func", "fit", "_run_fit", "evaluate", "train_function", "make_train_function", "on_epoch_begin",
    "on_epoch_end", "_keeping",
)  # fmt: skip
"""Functions that devbench puts around TensorFlow's own. What they call is the program's work."""


class SourceLine(NamedTuple):
    """A line of the program.

    Attributes:
        file: the name of its file. Empty if it is the program's own file.
        line: number of the line. 0 if no line of the program runs.
    """

    file: str
    line: int


class Sources:
    """Names the files of the program.

    Args:
        own: its own file.
        others: returns the name of another file by its path. Empty if the file is not the program's.
    """

    def __init__(self, own: str, others: Callable[[str], str] = lambda path: "") -> None:
        self.own = own
        self._others = others

    def name(self, path: str) -> str | None:
        """Return the name of a file. Empty for the program's own file. None if the file is not the program's."""
        if path == self.own:
            return ""
        return self._others(path) or None


def call_in(sources: Sources, start: Any = None) -> tuple[SourceLine, str]:
    """Return the innermost line of the program that runs, and the name of the function that it calls.

    Args:
        sources: the files of the program.
        start: the innermost frame. Default: the caller's.

    Returns:
        Line 0 and an empty name if no line of the program runs.
    """
    frame: Any = start or sys._getframe(1)
    called = ""
    while frame is not None:
        code = frame.f_code
        if (name := sources.name(code.co_filename)) is not None:
            return SourceLine(name, int(frame.f_lineno or code.co_firstlineno)), called
        if code.co_name not in WRAPPERS and not code.co_filename.startswith(WORKER):
            called = code.co_name
        frame = frame.f_back
    return SourceLine("", 0), ""


def is_own_work(frame: Any, sources: Sources) -> bool:
    """Whether a stack shows devbench's own work, such as counting the updates of an optimizer.

    Args:
        frame: the innermost frame.
        sources: the files of the program.
    """
    is_innermost = True
    while frame is not None:
        path = frame.f_code.co_filename
        if sources.name(path) is not None:
            return False
        if path.startswith(WORKER):
            return is_innermost or frame.f_code.co_name not in OBSERVERS
        is_innermost, frame = False, frame.f_back
    return False


def library_folders() -> tuple[str, ...]:
    """Return the folders of TensorFlow and Keras, TensorFlow's first."""
    modules = (sys.modules.get(name) for name in ("tensorflow", "keras", "tf_keras"))
    return tuple(str(Path(module.__file__).parent) for module in modules if module is not None and module.__file__)


def keras_folder(tf: Any) -> str:
    """Return the folder of the package that is `tf.keras`: keras or tf_keras."""
    package = sys.modules[tf.keras.Model.__module__.partition(".")[0]]
    return str(Path(package.__file__ or "").parent)
