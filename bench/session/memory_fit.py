"""Whether workers fit into memory beside each other, as far as it is known before they start."""

from __future__ import annotations

from collections.abc import Sequence

from bench.backends import capabilities
from bench.machine.limits import memory_available
from bench.model.result import Result


def fits(size: float) -> bool:
    """Return whether `size` more bytes fit into memory, with a reserve of a fifth for growth."""
    return 1.2 * size <= memory_available()


def may_start_together(results: Sequence[Result]) -> bool:
    """Return whether workers may start at once.

    They may if all are known to fit into memory and at most one of them measures kernels while it starts.
    """
    peaks = [peak(result) for result in results]
    alone = sum(not capabilities(result.spec.backend).parallel_start for result in results)
    interleaved = all(result.interleaved for result in results)
    return len(results) > 1 and alone <= 1 and interleaved and all(peaks) and fits(sum(peaks))


def peak(result: Result) -> int:
    """Return the most memory of a result's workers in bytes. 0 if it is not known."""
    return max((s.telemetry.peak_rss_bytes or 0 for s in result.samples if s.telemetry), default=0)
