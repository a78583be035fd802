"""A program whose process aborts after 60 steps, as after a failed assertion in C++."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any


def as_written() -> Iterator[Any]:
    import tensorflow as tf

    for number in range(1000):
        if number == 60:
            print("the last line before the abort", flush=True)
            os.abort()
        time.sleep(0.01)
        yield tf.constant(float(number)) + 1.0
