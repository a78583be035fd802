"""The C library's heap, which a hub keeps small; a library other than glibc, without such functions, is left alone."""

from __future__ import annotations

import ctypes
from contextlib import suppress

ARENAS = -8
"""M_ARENA_MAX of glibc's `mallopt`, as its header has it."""


def share() -> None:
    """Lets all threads allocate from one heap. The C library gives each its own, which keeps what it once held."""
    _call("mallopt", ARENAS, 1)


def give_back() -> None:
    """Returns what is free to the machine. By itself the C library keeps what lies between pieces still in use."""
    _call("malloc_trim", 0)


def _call(function: str, *numbers: int) -> None:
    with suppress(AttributeError, OSError, TypeError):
        getattr(ctypes.CDLL(None), function)(*numbers)
