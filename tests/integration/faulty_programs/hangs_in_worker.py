"""A program whose import hangs in the worker, which has loaded TensorFlow, but not where devbench inspects the file."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

if "tensorflow" in sys.modules:
    threading.Event().wait()


def as_written() -> Iterator[float]:
    while True:
        yield 1.0
