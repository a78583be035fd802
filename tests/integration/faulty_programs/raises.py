"""A program that raises an error after 60 steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any


def as_written() -> Iterator[Any]:
    import tensorflow as tf

    for number in range(1000):
        if number == 60:
            raise RuntimeError("planted error")
        time.sleep(0.01)
        yield tf.constant(float(number)) + 1.0
