"""A program whose `inputs` raises an error, so that all loops fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def inputs() -> Any:
    raise RuntimeError("planted error in inputs")


def step() -> Callable[[Any], Any]:
    return lambda x: x * 2.0


def as_written(inputs: Any) -> Iterator[Any]:
    while True:
        yield inputs
