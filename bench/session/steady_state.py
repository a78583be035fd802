"""Steady state: when has a process stopped warming up, and did it stay settled?

Judged on block times alone. A process counts as settled when the medians of two neighbouring windows of
blocks differ by no more than their own scatter allows, or by a few percent; the blocks before belong to
warm-up. It is a rule for when to start, not a proof: the drift of what follows is checked again.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

WINDOW = 4
"""Blocks in each of the two windows."""

TOLERANCE = 0.05
"""Difference of medians, relative, that counts as no difference on a machine with noise."""


def settled(times: Sequence[float], window: int = WINDOW, tolerance: float = TOLERANCE) -> bool:
    """Whether the last two windows of block times (seconds a step) agree."""
    if len(times) < 2 * window:
        return False
    return agree(times[-2 * window : -window], times[-window:], tolerance)


def agree(before: Sequence[float], after: Sequence[float], tolerance: float = TOLERANCE) -> bool:
    """Whether two stretches of block times have medians that differ by tolerance or their own scatter at most."""
    a, b = statistics.median(before), statistics.median(after)
    scatter = max(_scatter(before), _scatter(after))
    return abs(a - b) <= max(tolerance * min(a, b), scatter)


def stayed(times: Sequence[float], tolerance: float = TOLERANCE) -> bool:
    """Whether the first and the second half of the measured blocks agree."""
    half = len(times) // 2
    return half < 2 or agree(times[:half], times[half:], tolerance)


def _scatter(times: Sequence[float]) -> float:
    """Median absolute deviation, scaled to a standard deviation of normal noise (Hampel 1974)."""
    middle = statistics.median(times)
    return 1.4826 * statistics.median(abs(t - middle) for t in times)
