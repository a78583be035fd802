"""A program that fails in the loop `as-written` and runs in others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def inputs(ctx: Any) -> Any:
    return (ctx.rng.random(10),)


def step() -> Callable[[Any], Any]:
    return lambda x: x * 2.0


def as_written() -> Iterator[float]:
    yield 1.0
    raise RuntimeError("planted error")
