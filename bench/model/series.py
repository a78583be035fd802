"""Names of the series that `peaks` and `transfer` time, and that other parts of devbench read."""

from __future__ import annotations

from typing import Literal, get_args

PRODUCT = "matmul/"
"""A matrix product. The name of its dtype follows."""

MEMORY_TRIAD = "triad/memory"
"""A triad over arrays that fit into no cache."""

CACHE_TRIAD = "triad/cache"
"""A triad over arrays that fit into a core's cache."""

Direction = Literal["h2d", "d2h"]
"""Of a copy: to the device, or from it."""

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


def copy_series(direction: Direction, size: int) -> str:
    """Return the name of a copy of `size` bytes."""
    return f"{direction}/{size}"


def direction_of(name: str) -> Direction | None:
    """Return the direction of a copy. None if the series is no copy."""
    return next((direction for direction in DIRECTIONS if name.startswith(f"{direction}/")), None)
