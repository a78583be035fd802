"""Takes the place of the timed loop while a whole training runs (`--full`): it counts steps and reports progress."""

from __future__ import annotations

import time
from typing import Any

from bench.worker.fit_epochs import Call
from bench.worker.protocol import PhaseStarted
from bench.worker.timed_loop import Finished, TimedLoop

PROGRESS_SECONDS = 5.0
"""Seconds between two reports of the progress of a whole training."""


class StepCounter(TimedLoop):
    """A timed loop that only counts, so that nothing slows the program down.

    It reports progress every few seconds, so that the parent does not take a long training for a hung worker.

    Attributes:
        limit: steps after which the program is unwound. None if the program ends by itself.
        expected: steps after which the training ends, as far as known. The last one is then waited for.
        latest_tick: when the latest step was counted, by the clock of `time.perf_counter`.
    """

    limit: int | None = None
    expected: int | None = None
    _next_report = 0.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._last_steps: list[float] = []
        self._first_steps: list[float] = []
        self._first_tick = self.latest_tick = 0.0

    def tick(self, value: Any, steps: int = 1) -> None:
        """Count steps. Nothing is timed, and only the last step is synchronized, if its number is known."""
        self.steps_run += steps
        self.issued += steps
        self.last_value = value
        self.steps_left = 1 if self.limit is None else self.limit - self.steps_run
        if self.steps_run == self.expected:
            self.sync(value)
        now = time.perf_counter()
        self._first_tick = self._first_tick or now
        self.latest_tick = now
        if self.steps_left <= 0:
            raise Finished(None)
        if now >= self._next_report:
            self._next_report = now + PROGRESS_SECONDS
            self.channel.send(PhaseStarted(phase="training", note=f"step {self.steps_run}"))

    def before(self, call: Call) -> None:
        """Do nothing."""

    def after(self, call: Call, value: Any) -> None:
        """Count a call of the train function."""
        self.tick(value, call.steps)
        if call.first and self._last_steps:
            self._first_steps.append(self.latest_tick)

    def ran_out(self) -> None:
        """Do nothing."""

    def validated(self, seconds: float) -> None:
        """Do nothing. A validation is part of the end of its epoch."""

    def end_epoch(self) -> None:
        """Remember when the last step of an epoch was issued."""
        self._last_steps.append(self.latest_tick)

    def epoch_ends(self, end: float) -> list[float]:
        """Return the seconds between the last step of each epoch and the next epoch's first step or the training's end.

        They are estimates, because nothing is synchronized.

        Args:
            end: when the training ended, by the clock of `time.perf_counter`.
        """
        if not self._last_steps:
            return []
        gaps = [first - last for last, first in zip(self._last_steps, self._first_steps, strict=False)]
        step = (self._last_steps[-1] - self._first_tick - sum(gaps)) / max(1, self.steps_run - 1 - len(gaps))
        return [*(max(0.0, gap - step) for gap in gaps), end - self._last_steps[-1]]
