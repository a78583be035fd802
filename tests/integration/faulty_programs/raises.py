"""A step raises in the middle."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any


def as_written() -> Iterator[Any]:
    import tensorflow as tf

    for number in range(1000):
        if number == 60:
            raise RuntimeError("the middle of nowhere")
        time.sleep(0.01)
        yield tf.constant(float(number)) + 1.0
