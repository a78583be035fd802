"""Finds calls that train a model in the source of a script, to tell a training from an inference."""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from bench.registry.actions import has_training


def contains_training(program: Callable[[str], bool], cells: Iterable[str] = ()) -> bool:
    """Return whether the source of a script, or of its modules that are imported by now, has a call that trains.

    Args:
        program: returns whether a source file, by its path, is the script's.
        cells: the code of a notebook.
    """
    if _trains("\n".join(cells)):
        return True
    paths = [str(path) for module in [*sys.modules.values()] if (path := getattr(module, "__file__", None))]
    for path in filter(program, paths):
        with contextlib.suppress(OSError):
            if _trains(Path(path).read_text(encoding="utf-8", errors="replace")):
                return True
    return False


def _trains(source: str) -> bool:
    """Return whether a source has a call that trains. False if it is no Python, such as a compiled module."""
    try:
        return has_training(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError):
        return False
