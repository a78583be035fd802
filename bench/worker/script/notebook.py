"""Runs the cells of a notebook in one process, without Jupyter."""

from __future__ import annotations

import builtins
import linecache
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any


class NoShell:
    """What `get_ipython()` returns. It has no kernel, so magics and shell commands do nothing."""

    config: Mapping[str, Any] = {}

    def __getattr__(self, name: str) -> Callable[..., list[str] | None]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: [] if name == "getoutput" else None


def display(*objects: Any, **options: Any) -> None:
    """Print objects, as IPython does outside a notebook."""
    print(*objects)


def run(cells: Mapping[str, str], folder: Path) -> None:
    """Run cells in one namespace, in order.

    Args:
        cells: the code of each cell by its name.
        folder: the folder of the notebook.

    Raises:
        BaseException: what a cell raises.
    """
    module = ModuleType("__main__")  # without `__file__`, as in Jupyter
    module.__dict__.update(__builtins__=builtins, get_ipython=NoShell, display=display)
    sys.modules["__main__"] = module
    for name, text in cells.items():
        path = str(folder / name)
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)  # for tracebacks and AutoGraph
        exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
