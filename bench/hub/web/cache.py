"""A value computed from all results, cached until one of them changes.

While results arrive all the time, requests that wait for a thread share one computation: it is new enough if it read
the database after they arrived.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from bench.hub.web.threads import ARRIVAL, START

T = TypeVar("T")


class Cached(Generic[T]):
    """A value computed from the results at one version (`result_queries.version`)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cached: tuple[tuple[int, int], T] | None = None
        self._start = -math.inf

    def get(self, version: tuple[int, int], compute: Callable[[], T]) -> T:
        """Return the value. If the version has changed, one thread computes it while the others wait.

        A value whose thread started after the request arrived is new enough, whatever has changed since.
        """
        now = time.monotonic()
        arrival, start = ARRIVAL.get(now), START.get(now)
        with self._lock:
            cached = self._cached
            if cached is None or (cached[0] != version and self._start < arrival):
                cached = self._cached = (version, compute())
                self._start = start
            return cached[1]
