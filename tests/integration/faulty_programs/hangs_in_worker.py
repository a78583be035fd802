"""It imports at once where devbench looks at it, and waits for ever in the worker, where TensorFlow is."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

if "tensorflow" in sys.modules:
    threading.Event().wait()


def as_written() -> Iterator[float]:
    while True:
        yield 1.0
