"""glibc's heap, which the hub keeps small. Other C libraries lack these functions and are left alone."""

from __future__ import annotations

import ctypes
from contextlib import suppress

M_ARENA_MAX = -8
"""From glibc's malloc.h."""


def share() -> None:
    """Make all threads allocate from one heap. By default each has its own, which keeps the memory it has ever used."""
    _call("mallopt", M_ARENA_MAX, 1)


def trim() -> None:
    """Return free memory to the system. By default glibc keeps free memory that lies between blocks in use."""
    _call("malloc_trim", 0)


def _call(function: str, *numbers: int) -> None:
    with suppress(AttributeError, OSError, TypeError):
        getattr(ctypes.CDLL(None), function)(*numbers)
