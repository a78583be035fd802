"""Steady state: when a process has warmed up, and whether it stays settled.

Only block times decide. A process is settled if the medians of two neighbouring windows of blocks differ by no more
than their scatter, or by a few percent. The blocks before that are the warm-up. After the measurement, the two halves
of the measured blocks are compared in the same way.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

WINDOW = 4
"""Blocks in each of the two windows."""

TOLERANCE = 0.05
"""Relative difference of medians that counts as noise."""


def is_settled(times: Sequence[float], window: int = WINDOW, tolerance: float = TOLERANCE) -> bool:
    """Return whether the last two windows of block times (seconds per step) agree."""
    if len(times) < 2 * window:
        return False
    return agree(times[-2 * window : -window], times[-window:], tolerance)


def agree(before: Sequence[float], after: Sequence[float], tolerance: float = TOLERANCE) -> bool:
    """Return whether the medians of two series of block times differ by at most the tolerance or their scatter."""
    a, b = statistics.median(before), statistics.median(after)
    scatter = max(_scatter(before), _scatter(after))
    return abs(a - b) <= max(tolerance * min(a, b), scatter)


def stayed_settled(times: Sequence[float], tolerance: float = TOLERANCE) -> bool:
    """Return whether the first and the second half of the measured blocks agree."""
    half = len(times) // 2
    return half < 2 or agree(times[:half], times[half:], tolerance)


def _scatter(times: Sequence[float]) -> float:
    """Return the median absolute deviation, scaled to the standard deviation of normal noise (F. R. Hampel, 1974)."""
    middle = statistics.median(times)
    return 1.4826 * statistics.median(abs(t - middle) for t in times)
