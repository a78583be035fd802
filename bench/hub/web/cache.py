"""What is made of all results at once, kept until one of them changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """One thing that was made of the results in the state that `reading.version` names."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: tuple[tuple[int, int], T] | None = None

    def get(self, version: tuple[int, int], make: Callable[[], T]) -> T:
        """The thing; made anew where the results are others, by one while the others wait for it."""
        with self._lock:
            made = self._made
            if made is None or made[0] != version:
                made = self._made = (version, make())
            return made[1]
