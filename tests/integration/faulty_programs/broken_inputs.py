"""Its inputs can't be made, so no loop can drive it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def inputs() -> Any:
    raise RuntimeError("there is nothing to eat")


def step() -> Callable[[Any], Any]:
    return lambda x: x * 2.0


def as_written(inputs: Any) -> Iterator[Any]:
    while True:
        yield inputs
