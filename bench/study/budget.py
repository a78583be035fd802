"""Divides the time limit of an explanation among its parts, by the time that one worker takes.

The first process shows how long a worker takes. From then on, a part that does not fit into the time left is made
smaller or left out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.config.settings import RunSettings
from bench.model.phase import START_PHASES
from bench.model.plan import Planned
from bench.model.result import Result
from bench.model.sample import ProcessSample
from bench.model.spec import Loop
from bench.render import numbers

LIMIT = 300.0
"""Default time limit of an explanation, in seconds."""

PART = 300.0
"""Time limit of each of its parts, in seconds."""

OVERRUN = 1.15
"""Workers are stopped at this multiple of the limit. What follows takes a few seconds."""

LADDER_SHARE = 0.5
"""Share of the time left that the ladder may take if what-ifs follow."""

FEWEST_TRIALS = 2
"""Fewest trials that levels or what-ifs must have time for."""

FEW_LEVELS = 4
"""Number of levels that come before what-ifs if there is little time."""

FIRST: tuple[Loop, ...] = ("fused", "step", "fit", "resident", "host-batches")
"""The most useful loops. If there is no time for all, these come first."""


@dataclass(frozen=True)
class Ladder:
    """The levels that there is time for.

    Attributes:
        levels: Levels to measure, the program's own loop first.
        left_out: The other ones.
        share: The share of the time left that the levels may take.
    """

    levels: tuple[Planned, ...]
    left_out: tuple[Planned, ...]
    share: float


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
        """Time by the clock from which no further trial may start."""
        return self._start + self.limit

    @property
    def last_moment(self) -> float:
        """Time by the clock at which workers are stopped."""
        return self._start + OVERRUN * self.limit

    def observe(self, results: Sequence[Result]) -> None:
        """Learn from the results of a session how long a worker takes."""
        stop = results[0].stop
        if stop is not None and stop.seconds and stop.trials and any(result.failure is None for result in results):
            self.worker_seconds = stop.seconds / stop.trials / len(results)

    def expect_forked(self, sample: ProcessSample) -> None:
        """Estimate the time of forked workers from a fresh one: they import nothing, and their diagnosis is shorter."""
        phases = [phase for phase in START_PHASES if phase not in ("interpreter", "import")]
        start = sum(sample.phases.get(phase, 0.0) for phase in phases)
        blocks = [block for series in sample.series for block in (*series.warmup, *series.blocks)]
        self.worker_seconds = start + sum(block.wall_seconds for block in blocks)

    def fits(self, workers: int, trials: int = 1, share: float = 1.0) -> bool:
        """Return whether so many trials of so many workers fit into a share of the time left."""
        return trials * workers * self.worker_seconds <= share * self.left

    def share_of(self, workers: int, trials: int) -> float:
        """Return the share of the time left that so many trials of so many workers take, at most 1."""
        return min(1.0, trials * workers * self.worker_seconds / max(self.left, 1e-9))

    def part(self, share: float = 1.0) -> float:
        """Return the time limit in seconds of a part that gets a share of the time left."""
        return max(1.0, min(PART, share * self.left))

    def ladder(self, levels: Sequence[Planned], with_what_ifs: bool, suspects: int = 0) -> Ladder:
        """Return the ladder that fits into the time left. It is the program's own loop alone if two do not fit.

        Args:
            levels: All levels, the program's own loop first.
            with_what_ifs: Whether what-ifs follow. They get no time if fewer than `FEW_LEVELS` levels fit beside them.
            suspects: Number of what-ifs that test a suspect. They get time even then, up to half of it.
        """
        if len(levels) > 1 and not self.fits(2):
            return Ladder((levels[0],), tuple(levels[1:]), 1.0)
        share = LADDER_SHARE if with_what_ifs else 1.0
        count = self._levels_that_fit(len(levels), share)
        if count < min(FEW_LEVELS, len(levels)):
            share = 1.0
            if with_what_ifs and suspects:
                share -= min(LADDER_SHARE, self.share_of(1 + suspects, FEWEST_TRIALS))
            count = max(2, self._levels_that_fit(len(levels), share))
        others = sorted(levels[1:], key=lambda level: FIRST.index(level.spec.loop))
        kept = [levels[0], *others[: count - 1]]
        in_order = tuple(level for level in levels if level in kept)
        return Ladder(in_order, tuple(level for level in levels if level not in kept), share)

    def limit_for(self, levels: int) -> str:
        """Return a time limit that is long enough for so many levels and as much for what-ifs, such as "6m"."""
        return f"{max(1, math.ceil(2 * FEWEST_TRIALS * levels * self.worker_seconds / 60))}m"

    def _levels_that_fit(self, levels: int, share: float) -> int:
        return next((count for count in range(levels, 0, -1) if self.fits(count, FEWEST_TRIALS, share)), 0)

    def announcement(self) -> str:
        """Return how long the explanation takes, before anything is known of the program, in sentences."""
        limit = numbers.whole_seconds(self.limit).removesuffix(" 0 s")
        return (
            f"The explanation takes at most about {limit} (--max-time). It begins with one process, to see how long a "
            "process takes."
        )

    def estimate(self, levels: int) -> str:
        """Return how long a trial takes, in a sentence."""
        ladder = numbers.time(levels * self.worker_seconds)
        return (
            f"One process takes about {numbers.time(self.worker_seconds)}, so a trial of "
            f"{numbers.count(levels, 'loop')} takes about {ladder}."
        )
