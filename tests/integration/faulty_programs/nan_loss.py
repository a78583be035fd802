"""A program whose loss is NaN after 60 steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any


def as_written() -> Iterator[Any]:
    import tensorflow as tf

    for number in range(1000):
        time.sleep(0.01)
        yield tf.constant(float(number) if number < 60 else float("nan")) + 1.0
