"""The clock of a block: it can stand still, and leave out what does not belong to the block."""

from __future__ import annotations

import time


class BlockClock:
    """Measures wall time and CPU time since the start of a block, without the time for which it was paused.

    Attributes:
        start: When the block started, by `time.perf_counter`. It is moved by everything that is left out.
        paused_seconds: Wall time for which it was paused since the start.
    """

    def __init__(self) -> None:
        self._paused_at: tuple[float, float] | None = None
        self.restart()

    def restart(self) -> None:
        """Start a block now."""
        self.paused_seconds = 0.0
        self._cpu_start = time.process_time()
        self.start = time.perf_counter()

    def seconds(self) -> float:
        """Return the wall time since the start."""
        return time.perf_counter() - self.start

    def cpu_seconds(self) -> float:
        """Return the CPU time of this process since the start."""
        return time.process_time() - self._cpu_start

    @property
    def paused(self) -> bool:
        """Whether it stands still."""
        return self._paused_at is not None

    def pause(self) -> None:
        """Stand still."""
        self._paused_at = time.perf_counter(), time.process_time()

    def resume(self) -> None:
        """Continue, if it stands still."""
        if self._paused_at is None:
            return
        seconds, cpu_seconds = time.perf_counter() - self._paused_at[0], time.process_time() - self._paused_at[1]
        self.start += seconds
        self._cpu_start += cpu_seconds
        self.paused_seconds += seconds
        self._paused_at = None

    def leave_out(self, seconds: float) -> None:
        """Let the block start later, by wall time that does not belong to it."""
        self.start += seconds
