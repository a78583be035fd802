"""A program that writes megabytes to both outputs and reads standard input."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

MEGABYTE = 1 << 20


def write() -> None:
    print("o" * MEGABYTE)
    print("e" * MEGABYTE, file=sys.stderr)
    os.write(1, b'{"event": "done"}\n\xff\x00 garbage without an end of line')
    assert sys.stdin.read() == ""


write()


def as_written() -> Iterator[Any]:
    import tensorflow as tf

    number = 0
    while True:
        number += 1
        if number in (1, 3, 60):
            write()
        time.sleep(0.01)
        yield tf.constant(float(number)) + 1.0
