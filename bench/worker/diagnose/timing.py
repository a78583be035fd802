"""Times an action of the diagnosis."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

REPEATS = 10


def median_seconds(action: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Return the median seconds of an action over several repeats."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
