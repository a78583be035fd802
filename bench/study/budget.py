"""Divides the time limit of an explanation among its parts, by the time that one worker takes.

The first process shows how long a worker takes. From then on, a part that does not fit into the time left is made
smaller or left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from bench.config.settings import RunSettings
from bench.errors import RunFailed
from bench.model.plan import Planned
from bench.model.result import Result
from bench.model.spec import Loop
from bench.render import numbers

LIMIT = 900.0
"""Default time limit of an explanation, in seconds."""

PART = 300.0
"""Time limit of each of its parts, in seconds."""

OVERRUN = 1.15
"""Workers are ended at this multiple of the limit. Without them, the rest takes a few seconds."""

LADDER_SHARE = 0.5
"""Share of the time left that the ladder may take if what-ifs follow."""

FIRST: tuple[Loop, ...] = ("fused", "step", "fit", "resident", "host-batches")
"""The loops that tell most. Without time for all, these come first."""


class TimeBudget:
    """The time limit of an explanation.

    Args:
        settings: Their `max_time` is the limit, if the user set one.
        clock: Monotonic seconds.

    Attributes:
        limit: Seconds for the whole explanation.
        worker_seconds: Seconds of one worker in a trial, as measured last. 0 if nothing was measured.
    """

    def __init__(self, settings: RunSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = settings.max_time if "max_time" in settings.model_fields_set else LIMIT
        self.worker_seconds = 0.0
        self._clock = clock
        self._start = clock()

    @property
    def left(self) -> float:
        """Seconds left."""
        return max(0.0, self._start + self.limit - self._clock())

    @property
    def deadline(self) -> float:
        """When no further trial may start, by the clock."""
        return self._start + self.limit

    @property
    def last_moment(self) -> float:
        """When workers are ended, by the clock."""
        return self._start + OVERRUN * self.limit

    def observe(self, results: Sequence[Result]) -> None:
        """Learn from the results of a session how long a worker takes."""
        stop = results[0].stop
        if stop is not None and stop.seconds and stop.trials and any(result.failure is None for result in results):
            self.worker_seconds = stop.seconds / stop.trials / len(results)

    def fits(self, workers: int, trials: int = 1, share: float = 1.0) -> bool:
        """Return whether so many trials of so many workers fit into a share of the time left."""
        return trials * workers * self.worker_seconds <= share * self.left

    def part(self, share: float = 1.0) -> float:
        """Return the time limit in seconds of a part that gets a share of the time left."""
        return max(1.0, min(PART, share * self.left))

    def levels(self, levels: Sequence[Planned], share: float) -> tuple[list[Planned], list[Planned]]:
        """Return the levels of a ladder that fit into a share of the time left, in their order, and the others.

        Args:
            levels: All levels, the program's own loop first.
            share: What the ladder may take.

        Raises:
            RunFailed: There is no time for two of them.
        """
        if len(levels) > 1 and not self.fits(2):
            raise RunFailed(
                f"{numbers.whole_seconds(self.limit)} is too short to explain {levels[0].spec.label}: "
                f"one process takes about {numbers.time(self.worker_seconds)}",
                f"Use --max-time {max(1, round(len(levels) * self.worker_seconds / 30))}m.",
            )
        count = len(levels)
        while count > 2 and not self.fits(count, share=share):
            count -= 1
        others = sorted(levels[1:], key=lambda level: FIRST.index(level.spec.loop))
        kept = [levels[0], *others[: count - 1]]
        return [level for level in levels if level in kept], [level for level in levels if level not in kept]

    def estimate(self, levels: int) -> str:
        """Return how long the explanation takes, in a sentence."""
        ladder = numbers.time(levels * self.worker_seconds)
        return (
            f"One process takes about {numbers.time(self.worker_seconds)}, so a trial of {levels} loops takes about "
            f"{ladder}. The explanation takes at most about {numbers.whole_seconds(self.limit)} (--max-time)."
        )
