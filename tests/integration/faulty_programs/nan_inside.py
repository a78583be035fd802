"""A program whose outputs contain a NaN at an index that a synchronization does not read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def as_written() -> Iterator[Any]:
    import tensorflow as tf

    while True:
        yield tf.constant([float("nan"), 1.0]) + 1.0
