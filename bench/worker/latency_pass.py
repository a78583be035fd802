"""The latency pass: single steps, each of which is synchronized by itself."""

from __future__ import annotations

import statistics
import time

WALL_LIMITS = 4
"""The pass ends after this many times its time limit, with what passes between its steps, such as validations."""

FEWEST_STEPS = 10
"""Fewest steps of a pass that ends for this reason."""


class LatencyPass:
    """Collects the times of single steps, and how long reading a number from the device takes.

    Args:
        steps: maximum number of steps.
        seconds: time limit of all steps together.
    """

    def __init__(self, steps: int = 0, seconds: float = 0.0) -> None:
        self._most_steps, self._limit = steps, seconds
        self._steps: list[float] = []
        self._reads: list[float] = []
        self._start = 0.0

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, seconds: float, read_seconds: float, counts: bool) -> None:
        """Add a step.

        Args:
            seconds: its time, with its synchronization.
            read_seconds: time of another synchronization alone.
            counts: whether the time of the step counts. The time of the synchronization always counts.
        """
        if not self._reads:
            self._start = time.perf_counter() - seconds - read_seconds
        self._reads.append(read_seconds)
        if counts:
            self._steps.append(seconds)

    @property
    def complete(self) -> bool:
        """Whether there are enough steps, or there is no time for more."""
        if len(self._steps) >= self._most_steps or sum(self._steps) >= self._limit:
            return True
        return len(self._steps) >= FEWEST_STEPS and time.perf_counter() - self._start >= WALL_LIMITS * self._limit

    def latencies(self, per_call: int) -> list[float]:
        """Return the seconds of each step, without the median cost of a synchronization.

        Args:
            per_call: number of steps that one call issued.
        """
        floor = statistics.median(self._reads)
        return [max(0.0, seconds - floor) / per_call for seconds in self._steps]
