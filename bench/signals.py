"""SIGINT and SIGTERM as one exception, while something is measured.

The exception can be raised between any two lines. `uninterrupted` keeps lines together, such as starting a process and
recording that it must be stopped.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from bench.errors import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _SignalState:
    """What the handler shares with `uninterrupted`. Only the main thread handles signals, so one state is enough."""

    handled = False
    depth = 0
    pending: int | None = None


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` on the first SIGINT or SIGTERM, and ignore those after it so that clean-up can finish.

    Outside the main thread, signals cannot be handled and nothing changes. Nor does a block within another one.
    """
    if _SignalState.handled or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: FrameType | None) -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        if not _SignalState.depth:
            raise Interrupted(signum)
        _SignalState.pending = signum

    previous = {number: signal.signal(number, stop) for number in SIGNALS}
    _SignalState.handled = True
    try:
        yield
    finally:
        _SignalState.handled = False
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay a signal: `Interrupted` is raised at the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _SignalState.depth += 1
    try:
        yield
    finally:
        _SignalState.depth -= 1
        if not _SignalState.depth and _SignalState.pending is not None:
            signum, _SignalState.pending = _SignalState.pending, None
            raise Interrupted(signum)
