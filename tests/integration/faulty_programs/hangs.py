"""A program that hangs after 60 steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any


def as_written() -> Iterator[Any]:
    import tensorflow as tf

    for number in range(60):
        time.sleep(0.01)
        yield tf.constant(float(number)) + 1.0
    while True:
        pass
