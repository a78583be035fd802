"""Keeps work that passes between some steps of a script's own loop out of the steps, such as a validation.

In `fit`, Keras tells when an epoch ends. In a loop of the script, such work shows by the calls of other functions and
models that most steps go without.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter

from bench.model.facts import Asides
from bench.worker.timed_loop import TimedLoop

RARE = 0.2
"""Such work precedes at most this share of the calls that run steps. More frequent work is a part of the steps."""

FEW = 5
"""Calls after which this is known."""

MOST_DROPPED = 3
"""Blocks in succession that are dropped. If blocks would never end, the work counts as part of the steps."""


class AsideTimer:
    """Finds the work between steps, stops the clock meanwhile, and times it.

    If steps may still run when their call returns, the clock cannot be stopped in time, so the block is dropped. The
    time of the work then contains that of the steps that still ran. The first such block is dropped in any case.

    Args:
        timed_loop: times the steps.
        synchronous: whether a step is done when its call returns.

    Attributes:
        latest: when the latest step was counted, by the clock of `time.perf_counter`.
        cpu: CPU seconds of this process at that time. None until they are needed.
    """

    def __init__(self, timed_loop: TimedLoop, synchronous: bool) -> None:
        self.latest = 0.0
        self.cpu: float | None = None
        self._timed_loop = timed_loop
        self._synchronous = synchronous
        self._is_part = False  # whether the work is so frequent that it is a part of the steps
        self._calls = self._steps = 0
        self._with: Counter[str] = Counter()  # calls that run steps before which each other call was made
        self._between: set[str] = set()  # other calls since the latest step
        self._before: set[str] = set()  # other calls before the latest step
        self._began: float | None = None  # when the work began, if some is under way
        self._first_calls: set[str] = set()  # the calls that such work began with
        self._thread = 0
        self._at: list[int] = []  # steps before each such work
        self._seconds: list[float] = []
        self._dropped = self._steps_run = 0

    @property
    def found(self) -> Asides | None:
        """The work between steps that was found. None if there was none."""
        if self._is_part or not self._seconds:
            return None
        first, *later = self._seconds
        every = (self._at[-1] - self._at[0]) / len(later) if later else float(self._steps)
        seconds = statistics.fmean(later or [first])
        return Asides(count=len(self._seconds), first_seconds=first, seconds=seconds, every=every)

    def other(self, token: str) -> None:
        """Take note of a call that is no step of the loop.

        Args:
            token: names the line that called.
        """
        if self._is_part or token in self._between or threading.get_ident() != self._thread:
            return
        self._between.add(token)
        if self._began is not None or self._calls < FEW or token in self._before:
            return
        if self._with[token] > RARE * self._calls:
            self._is_part = token in self._first_calls
            return
        if len(self._at) + 1 > RARE * self._calls:
            self._is_part = True
            return
        self._began = self.latest
        self._first_calls.add(token)
        loop = self._timed_loop
        if loop.counts_all:
            return
        if self._synchronous and self.cpu is not None:
            loop.clock.pause(self.latest, self.cpu)
            return
        self.cpu = time.process_time()
        self._dropped = self._dropped + 1 if loop.steps_run == self._steps_run else 1
        self._steps_run = loop.steps_run
        self._is_part = self._dropped > MOST_DROPPED
        if not self._is_part:
            loop.discard()

    def counts(self, steps: int) -> bool:
        """Return whether steps that were just run count. Those that follow such work do not, as in `fit`."""
        self._thread = threading.get_ident()
        if self._between or self._before:
            self._with.update(self._between)
            self._before, self._between = self._between, set()
        counts = True
        if self._began is not None:
            loop = self._timed_loop
            self._at.append(self._steps)
            self._seconds.append(max(0.0, time.perf_counter() - self._began - steps * loop.step_seconds))
            self._began = None
            if loop.paused:
                loop.resume()
                loop.issued += steps
                counts = False
        self._calls += 1
        self._steps += steps
        return counts
