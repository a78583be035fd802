"""Keeps matplotlib from opening windows, which a script would wait for. Plots are drawn, and can be saved.

The parent sets `MPLBACKEND`, but a script may choose another backend.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from bench.worker.script.notes import once, place_of

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
    note = once(note)
    switch, show = pyplot.switch_backend, pyplot.show

    def switch_backend(newbackend: Any) -> Any:
        if isinstance(newbackend, str) and opens_no_windows(newbackend):
            return switch(newbackend)
        if isinstance(newbackend, str):  # not the value with which matplotlib chooses one itself
            note(f"The script chose matplotlib's backend {newbackend}. devbench used Agg, which opens no windows.")
        return switch("agg")

    def show_nothing(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        if frame.f_code.co_filename != pyplot.__file__:  # as in `plt.pause`
            note(f"plt.show() in {place_of(frame)} opened no window.")
        return show(*args, **kwargs)

    pyplot.switch_backend, pyplot.show = switch_backend, show_nothing
    if not opens_no_windows(pyplot.get_backend()):  # the script chose it before this import
        switch_backend(pyplot.get_backend())


def opens_no_windows(backend: str) -> bool:
    """Whether a backend opens no windows: it writes files, or shows plots in a notebook."""
    return backend.lower() in WITHOUT_WINDOWS or backend.lower().endswith("inline")
