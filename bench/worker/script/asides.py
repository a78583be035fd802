"""Keeps work that passes between some steps of a script's own loop out of the steps, such as a validation.

In `fit`, Keras tells when an epoch ends. In a loop of the script, such work shows by the calls of other functions and
models that most steps go without.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

from bench.model.facts import Asides
from bench.worker.timed_loop import TimedLoop

RARE = 0.2
"""A call is no part of a step if at most this share of the steps has it."""

FEW = 5
"""Steps after which this is known."""

MOST_DROPPED = 3
"""Blocks in succession that are dropped. The work then counts as part of the steps, because blocks would never end."""


class AsideTimer:
    """Finds the work between steps, stops the clock meanwhile, and times it.

    If steps may still run when their call returns, the clock cannot be stopped in time, so the block is dropped.

    Args:
        timed_loop: times the steps.
        synchronous: whether a step is done when its call returns.

    Attributes:
        latest: when the latest step was counted, by the clock of `time.perf_counter`.
    """

    def __init__(self, timed_loop: TimedLoop, synchronous: bool) -> None:
        self._timed_loop = timed_loop
        self._synchronous = synchronous
        self._steps = 0
        self._with: Counter[str] = Counter()  # steps before which each other call was made
        self._between: set[str] = set()  # other calls since the latest step
        self._began: float | None = None  # when the work began, if some is under way
        self.latest = 0.0
        self._thread = 0
        self._seconds: list[float] = []
        self._dropped = self._steps_run = 0

    @property
    def found(self) -> Asides | None:
        """The work between steps that was found. None if there was none."""
        if not self._seconds:
            return None
        return Asides(count=len(self._seconds), seconds=sum(self._seconds) / len(self._seconds), steps=self._steps)

    def other(self, token: str) -> None:
        """Take note of a call that is no step of the loop.

        Args:
            token: names the line that called.
        """
        if token in self._between or threading.get_ident() != self._thread:
            return
        self._between.add(token)
        if self._began is not None or self._steps < FEW or self._with[token] > RARE * self._steps:
            return
        self._began = self.latest
        loop = self._timed_loop
        if loop.counts_all:
            return
        if self._synchronous:
            loop.clock.pause(self.latest)
            return
        self._dropped = self._dropped + 1 if loop.steps_run == self._steps_run else 1
        self._steps_run = loop.steps_run
        if self._dropped <= MOST_DROPPED:
            loop.discard()

    def counts(self, steps: int) -> bool:
        """Return whether steps that were just run count. Those that follow such work do not, as in `fit`."""
        self._thread = threading.get_ident()
        self._steps += steps
        if self._between:
            self._with.update(self._between)
            self._between.clear()
        if self._began is None:
            return True
        loop = self._timed_loop
        self._seconds.append(max(0.0, time.perf_counter() - self._began - loop.step_seconds))
        self._began = None
        if not loop.paused:
            return True
        loop.resume()
        loop.issued += steps
        return False
