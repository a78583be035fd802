"""Names of the series that `peaks` and `transfer` time, and that other parts of devbench read."""

from __future__ import annotations

from typing import Literal, get_args

PRODUCT = "matmul/"
"""Prefix of the series of a matrix product. The name of the dtype follows."""

MEMORY_TRIAD = "triad/memory"
"""Series of a triad (as in the STREAM benchmark) over arrays that fit into no cache."""

CACHE_TRIAD = "triad/cache"
"""Series of a triad over arrays that fit into the cache of a core."""

Direction = Literal["h2d", "d2h"]
"""The direction of a copy. h2d: from the host to the device. d2h: from the device to the host."""

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


def copy_series(direction: Direction, size: int) -> str:
    """Return the name of the series of a copy of `size` bytes."""
    return f"{direction}/{size}"


def direction_of(name: str) -> Direction | None:
    """Return the direction of the copy that a series times. None if it times no copy."""
    return next((direction for direction in DIRECTIONS if name.startswith(f"{direction}/")), None)
