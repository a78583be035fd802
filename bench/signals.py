"""SIGINT and SIGTERM as one exception, while something is measured.

An exception may come between any two lines. `uninterrupted` keeps it away from the few that belong together, such as
starting a process and noting that it has to be ended.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from bench.errors import Interrupted


class _State:
    """What the handler has to know; signals come to the main thread alone, so one is enough."""

    depth = 0
    waiting: int | None = None


@contextmanager
def interruptible() -> Iterator[None]:
    """Within, the first SIGINT or SIGTERM raises `Interrupted`; what follows is ignored, so that cleaning up ends.

    Outside the main thread signals can't be caught and nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: FrameType | None) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        if not _State.depth:
            raise Interrupted(signum)
        _State.waiting = signum

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Within, a signal has to wait: `Interrupted` comes at the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _State.depth += 1
    try:
        yield
    finally:
        _State.depth -= 1
        if not _State.depth and _State.waiting is not None:
            signum, _State.waiting = _State.waiting, None
            raise Interrupted(signum)
