"""Notices that a script goes on after its last step: it serves requests, shows plots or waits for something.

A script that only prepares its next step must not be ended. So it is ended only if the known steps have run. If these
may be a preparation for others, it is ended only shortly before the parent would take it for hung. It counts as idle
only if it uses hardly any CPU and runs nothing of TensorFlow. The parent is told that a script computes between steps.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from bench.machine import telemetry
from bench.worker import channel
from bench.worker.script.progress import ScriptProgress

CHECK_SECONDS = 1.0
"""Seconds between two checks."""

LONGEST_CHECK = 2.0
"""Seconds that count for one check at most. While the worker is suspended, there is no check."""

IDLE_CPU = 0.05
"""Share of one CPU that an idle script may use, with its child processes."""

IDLE_SHARE = 0.5
"""A script is ended after it was idle for this share of the time-out of its worker."""

RETURNED_SECONDS = 15.0
"""A script whose `fit` has returned is ended after it was idle for this many seconds, if that is less."""

BUSY_SHARE = 0.9
"""A script is ended after this share of the time-out less `UNSEEN_SECONDS`, even if it is not idle."""

REPORTED_SHARE = 0.25
"""The parent is told after this share of the time-out that a script computes between two steps."""

LONGEST_BUSY = 600.0
"""Seconds without a step after which the parent is not told any more."""

UNSEEN_SECONDS = 5.0
"""The parent may have heard of the last step this many seconds before it ended."""


class Silence:
    """Counts how long a script has run no step.

    Args:
        timeout: seconds of silence after which the parent takes the worker for hung.
        progress: how far the script has got. While it needs more steps, it is not ended.
        is_program: returns whether a source file, by its path, is the script's.
        libraries: folders of TensorFlow and Keras.
    """

    def __init__(
        self,
        timeout: float,
        progress: ScriptProgress,
        is_program: Callable[[str], bool],
        libraries: tuple[str, ...],
    ) -> None:
        self._timeout = timeout
        self._progress = progress
        self._is_program = is_program
        self._libraries = libraries
        self._latest = 0
        self._checked = time.perf_counter()
        self._cpu_seconds: float | None = None
        self._silent = self._idle = 0.0
        self._reported = 0.0  # seconds of silence until the latest report to the parent
        self._cpu_used = 0.0  # since then

    def start(self, on_end: Callable[[], object], on_busy: Callable[[], object]) -> None:
        """Check from now on, in a thread.

        Args:
            on_end: is called once, in that thread, if the script is to be ended.
            on_busy: is called from time to time while the script computes although it runs no step.
        """

        def check() -> None:
            while not self.check():
                if self.is_busy():
                    on_busy()
                time.sleep(CHECK_SECONDS)
            on_end()

        threading.Thread(target=check, name="devbench-silence", daemon=True).start()

    def check(self) -> bool:
        """Return whether the script is to be ended."""
        before, self._checked = self._checked, time.perf_counter()
        seconds = min(self._checked - before, LONGEST_CHECK)
        steps = self._progress.steps
        if steps != self._latest or not steps:
            self._latest = steps
            self._begin_silence()
            return False
        stacks = [*map(_stack, sys._current_frames().values())]
        if any(channel.__file__ in stack for stack in stacks):  # it waits for an order
            self._begin_silence()
            return False
        self._silent += seconds
        self._idle = self._idle + seconds if self._is_idle(seconds, stacks) else 0.0
        if self._progress.needs_more:
            return False
        if self._progress.may_need_more:
            return self._silent - self._reported >= self._busy_limit
        idle_limit = min(self._busy_limit, IDLE_SHARE * self._timeout)
        if self._progress.returned:
            idle_limit = min(idle_limit, RETURNED_SECONDS)
        return self._idle >= idle_limit or self._silent >= self._busy_limit

    def is_busy(self) -> bool:
        """Return whether to tell the parent now that the script computes, and may run more steps."""
        seconds = self._silent - self._reported
        if seconds < REPORTED_SHARE * self._timeout or self._silent > LONGEST_BUSY:
            return False
        if self._cpu_used < IDLE_CPU * seconds or not (self._progress.needs_more or self._progress.may_need_more):
            return False
        self._reported, self._cpu_used = self._silent, 0.0
        return True

    @property
    def _busy_limit(self) -> float:
        """Seconds after which the parent soon takes the script for hung."""
        return BUSY_SHARE * self._timeout - UNSEEN_SECONDS

    def _begin_silence(self) -> None:
        self._silent = self._idle = self._reported = self._cpu_used = 0.0
        self._cpu_seconds = None

    def _is_idle(self, seconds: float, stacks: list[list[str]]) -> bool:
        before, self._cpu_seconds = self._cpu_seconds, _cpu_seconds()
        if before is None or self._cpu_seconds is None:
            return False
        used = self._cpu_seconds - before
        self._cpu_used += used
        return used < IDLE_CPU * seconds and not any(map(self._computes, stacks))

    def _computes(self, stack: list[str]) -> bool:
        """Whether a thread of the script runs something of TensorFlow. Threads of TensorFlow itself may wait in it."""
        return any(map(self._is_program, stack)) and any(path.startswith(self._libraries) for path in stack)


def _stack(frame: FrameType | None) -> list[str]:
    """Return the source files of a thread's frames."""
    files = []
    while frame is not None:
        files.append(frame.f_code.co_filename)
        frame = frame.f_back
    return files


def _cpu_seconds() -> float | None:
    """Return the CPU time of this process and its children, without this thread. None if it is not known."""
    try:
        used = telemetry.cpu_seconds(os.getpid())
    except ImportError:  # another Python environment
        used = None if _may_have_children() else time.process_time()
    return None if used is None else used - time.thread_time()


def _may_have_children() -> bool:
    """Whether this process may have living children."""
    try:
        return any(path.read_text() for path in Path("/proc/self/task").glob("*/children"))
    except OSError:  # not on Linux
        return True
