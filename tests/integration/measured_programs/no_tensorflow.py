"""A program that does not use TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator


def as_written() -> Iterator[float]:
    total = 0.0
    while True:
        for number in range(1000):
            total = (total * 31 + number) % 1009
        yield total
