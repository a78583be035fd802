"""A value computed from all results, cached until one of them changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cached(Generic[T]):
    """A value computed from the results at one version (`result_queries.version`)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cached: tuple[tuple[int, int], T] | None = None

    def get(self, version: tuple[int, int], compute: Callable[[], T]) -> T:
        """Return the value. If the version has changed, one thread computes it while the others wait."""
        with self._lock:
            cached = self._cached
            if cached is None or cached[0] != version:
                cached = self._cached = (version, compute())
            return cached[1]
