"""The clock of a block. It can be paused, and can leave out time that does not belong to the block."""

from __future__ import annotations

import time


class BlockClock:
    """Measures wall time and CPU time, in seconds, since the start of a block. Pauses do not count.

    Attributes:
        start: when the block started, by `time.perf_counter`. Time that is left out moves it later.
        paused_seconds: wall time of the pauses since the start.
    """

    def __init__(self) -> None:
        self._paused_at: tuple[float, float] | None = None
        self.restart()

    def restart(self) -> None:
        """Start a new block now."""
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
        """Whether the clock is paused."""
        return self._paused_at is not None

    def pause(self, at: float | None = None, cpu: float | None = None) -> None:
        """Pause the clock.

        Args:
            at: when the pause began, by `time.perf_counter`. Default: now.
            cpu: the CPU time of this process at that time, in seconds. Default: that of now.
        """
        wall = time.perf_counter() if at is None else at
        self._paused_at = wall, time.process_time() if cpu is None else cpu

    def resume(self) -> None:
        """End a pause. Do nothing if the clock is not paused."""
        if self._paused_at is None:
            return
        seconds, cpu_seconds = time.perf_counter() - self._paused_at[0], time.process_time() - self._paused_at[1]
        self.start += seconds
        self._cpu_start += cpu_seconds
        self.paused_seconds += seconds
        self._paused_at = None

    def leave_out(self, seconds: float) -> None:
        """Leave out wall time of the current block, in seconds. CPU time is not changed."""
        self.start += seconds
