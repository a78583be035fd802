"""Finds calls that train a model in the source of a script, to tell a training from an inference."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

TRAINS = re.compile(r"\.(?:fit|train_on_batch|apply_gradients|minimize|assign_sub)\s*\(|optimizer\w*\.apply\s*\(")
"""A call that trains a model, in the source of a script."""


def contains_training(program: Callable[[str], bool], cells: Iterable[str] = ()) -> bool:
    """Return whether the source of a script, or of its modules that are imported by now, has a call that trains.

    Args:
        program: returns whether a source file, by its path, is the script's.
        cells: the code of a notebook.
    """
    if any(map(TRAINS.search, cells)):
        return True
    paths = [str(path) for module in [*sys.modules.values()] if (path := getattr(module, "__file__", None))]
    for path in filter(program, paths):
        with contextlib.suppress(OSError):
            if TRAINS.search(Path(path).read_text(encoding="utf-8", errors="replace")):
                return True
    return False
