"""Pauses between failed attempts, as Kubernetes' own clients make them: longer each time, with jitter."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

FIRST = 0.8
"""First pause, in seconds."""

LONGEST = 30.0
"""Longest pause, in seconds."""

RESET = 120.0
"""Seconds without a failure after which the next pause is the first one again."""


class Backoff:
    """The pauses of one series of attempts.

    Args:
        clock: returns the time of a monotonic clock in seconds.
        jitter: returns a number in [0, 1), by which a pause grows, so that clients do not retry together.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, jitter: Callable[[], float] = random.random
    ) -> None:
        self._clock = clock
        self._jitter = jitter
        self._pause = FIRST
        self._last_failure = float("-inf")

    def next(self) -> float:
        """Return the seconds to pause after a failure."""
        now = self._clock()
        if now - self._last_failure > RESET:
            self._pause = FIRST
        self._last_failure = now
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST)
        return min(pause * (1 + self._jitter()), LONGEST)
