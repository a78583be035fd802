"""Keeps matplotlib from opening windows, which a script would wait for. Plots are drawn, and can be saved.

The parent sets `MPLBACKEND`, but a script may choose another backend.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

WITHOUT_WINDOWS = frozenset({"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"})
"""Backends of matplotlib that only write files."""


def open_no_windows(note: Callable[[str], None]) -> None:
    """Let matplotlib draw without windows, once the script imports it.

    Args:
        note: takes a sentence for the reader of the result.
    """
    with suppress(ImportError):  # TensorFlow requires wrapt, so TensorFlow is missing too
        import wrapt

        wrapt.register_post_import_hook(lambda pyplot: _patch(pyplot, note), "matplotlib.pyplot")


def _patch(pyplot: Any, note: Callable[[str], None]) -> None:
    noted: set[str] = set()
    switch, show = pyplot.switch_backend, pyplot.show

    def note_once(sentence: str) -> None:
        if sentence not in noted:
            noted.add(sentence)
            note(sentence)

    def switch_backend(newbackend: Any) -> Any:
        if isinstance(newbackend, str) and opens_no_windows(newbackend):
            return switch(newbackend)
        if isinstance(newbackend, str):  # not the value with which matplotlib chooses one itself
            note_once(f"The script chose matplotlib's backend {newbackend}. devbench used Agg, which opens no windows.")
        return switch("agg")

    def show_nothing(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        if frame.f_code.co_filename != pyplot.__file__:  # as in `plt.pause`
            where = f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
            note_once(f"plt.show() in {where} opened no window.")
        return show(*args, **kwargs)

    pyplot.switch_backend, pyplot.show = switch_backend, show_nothing
    if not opens_no_windows(pyplot.get_backend()):  # the script chose it before this import
        switch_backend(pyplot.get_backend())


def opens_no_windows(backend: str) -> bool:
    """Whether a backend opens no windows: it writes files, or shows plots in a notebook."""
    return backend.lower() in WITHOUT_WINDOWS or backend.lower().endswith("inline")
