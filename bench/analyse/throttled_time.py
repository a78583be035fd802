"""How long the CPU quota throttled a program's threads, in the words that a warning and a finding share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.model.result import Result
from bench.model.sample import ProcessSample

NEGLIGIBLE = 0.01
"""Share of the threads' time up to which throttling is not worth mentioning."""


class ThrottledTime(NamedTuple):
    """Throttled time of a program.

    Attributes:
        seconds: throttled time, summed over threads.
        available: time that the threads could have run, in seconds, summed over threads.
    """

    seconds: float
    available: float

    @property
    def share(self) -> float:
        """The share of the threads' time that was throttled, 0 to 1."""
        return self.seconds / self.available

    @property
    def message(self) -> str:
        """The text of a warning, without a full stop."""
        return f"the CPU quota throttled the program's threads for {self.share:.0%} of the time"


def throttled_time(result: Result, samples: Sequence[ProcessSample]) -> ThrottledTime | None:
    """Return how long the CPU quota throttled these processes; None if it is negligible or not known."""
    telemetry = [s.telemetry for s in samples if s.telemetry and s.telemetry.throttled_seconds is not None]
    available = sum(process.wall_seconds for process in telemetry) * result.spec.threads.intra
    # The kernel sums throttled time over CPUs and nested groups, so it can exceed the threads' time.
    seconds = min(available, sum(process.throttled_seconds or 0.0 for process in telemetry))
    return ThrottledTime(seconds, available) if seconds > NEGLIGIBLE * available else None
