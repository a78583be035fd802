"""A value computed from all results, cached until one of them changes.

While results arrive all the time, requests that wait for a thread share one computation: it is new enough if it read
the database after they arrived.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from bench.hub.web.threads import ARRIVAL, START, WAITING

T = TypeVar("T")

MANY = 10
"""If more requests than these wait for a thread, a value may be old."""

BUSY_AGE = 5.0
"""How old the value may be then, in seconds. A value that takes long to compute may be older."""

BUSY_SHARE = 0.1
"""Largest share of the time in which a busy hub computes a value again."""

LONGEST_AGE = 60.0
"""How old a value may be at most, in seconds, however long it takes to compute."""


class Cached(Generic[T]):
    """A value computed from the results at one version (`result_queries.version`)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cached: tuple[tuple[int, int], float, T] | None = None
        self._seconds = 0.0  # duration of the last computation

    def get(self, version: tuple[int, int], compute: Callable[[], T]) -> T:
        """Return the value. If the version has changed, one thread computes it while the others wait.

        A value whose thread started after the request arrived is new enough, whatever has changed since. While many
        requests wait, a value of the last seconds is new enough too. Then no request waits for a newer one.
        """
        now = time.monotonic()
        start = START.get(now)
        oldest = ARRIVAL.get(now)
        if WAITING.get(0) > MANY:
            oldest = min(oldest, now - min(LONGEST_AGE, max(BUSY_AGE, self._seconds / BUSY_SHARE)))
        cached = self._cached
        if cached is not None and (cached[0] == version or cached[1] >= oldest):
            return cached[2]
        with self._lock:
            cached = self._cached
            if cached is None or (cached[0] != version and cached[1] < oldest):
                began = time.monotonic()
                cached = self._cached = (version, start, compute())
                self._seconds = time.monotonic() - began
            return cached[2]
