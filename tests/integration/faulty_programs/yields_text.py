"""A program that yields text instead of a number."""

from __future__ import annotations

from collections.abc import Iterator


def as_written() -> Iterator[str]:
    while True:
        yield "step done"
