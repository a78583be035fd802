"""Keeps what happens between the epochs of `fit` out of the timed steps, and times it separately.

Validation, callbacks, new iterators, filling buffers and the partial batch belong to an epoch, not to a step. If blocks
contained them, the mean step would depend on how many epochs end in the timed part. So the timed loop's clock stops
after the last full step of an epoch, and continues after the first step of the next one. Worker's side only.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from bench.worker.fit_epochs import Call, FitEpochs
from bench.worker.losses import Losses
from bench.worker.protocol import PhaseEnded


class Clock(Protocol):
    """What times the steps: the timed loop, or a part of the diagnosis."""

    @property
    def counts_all(self) -> bool:
        """Whether every step is counted now, whatever it does."""

    @property
    def paused(self) -> bool:
        """Whether the clock stands still."""

    def tick(self, value: Any, steps: int = 1) -> None:
        """Count steps, the last of which returned `value`."""

    def pause(self, value: Any) -> None:
        """Stop the clock once the step that returned `value` is done."""

    def resume(self) -> None:
        """Let the clock continue."""

    def discard(self) -> None:
        """Leave out the current block."""


@dataclass
class EpochEnd:
    """What happens between the steps of two epochs, in seconds.

    Attributes:
        end: from the last step until the callbacks for the end of the epoch have returned, without the validation.
        start: from then until the first step of the next epoch begins or, if that step does not count, is done. Without
            `FitEpochs.iterator_gap`. None if no epoch followed.
        steps: steps in `start`: those of the first call if it does not count, otherwise 0.
        validation: the validation that `fit` ran. None if it ran none.
        program: how often the program had started again.
    """

    end: float
    start: float | None = None
    steps: int = 0
    validation: float | None = None
    program: int = 0


class EpochTimer:
    """Observes the calls of the train function between the hook into `fit` and the clock.

    Args:
        clock: times the steps.
        epochs: follows the epochs.
        sync: waits until all work that a value depends on is done.
        losses: the losses of the first steps.

    Attributes:
        ends: what happened between epochs so far, in order.
        partials: the steps on a partial batch so far, in order: how often the program had started again, and seconds.
        program: how often the program has started again. Each time, it traces again.
        value: what the latest call returned. None before the first.
    """

    def __init__(self, clock: Clock, epochs: FitEpochs, sync: Callable[[Any], float], losses: Losses) -> None:
        self.ends: list[EpochEnd] = []
        self.partials: list[tuple[int, float]] = []
        self.program = 0
        self._clock = clock
        self._epochs = epochs
        self._sync = sync
        self._losses = losses
        self.value: Any = None
        self._last_step = 0.0
        self._ended_unknown = False  # whether an epoch of unknown length has ended in a block
        self._open = False  # whether an epoch ended whose successor has not started yet
        self._ended = 0.0
        self._validation: float | None = None

    @property
    def validations(self) -> list[tuple[int, float]]:
        """The validations so far, in order: how often the program had started again, and seconds."""
        return [(end.program, end.validation) for end in self.ends if end.validation is not None]

    def before(self, call: Call) -> None:
        """Let the clock continue, if this call counts."""
        if call.counts and self._clock.paused:
            if call.first:
                self._begin(0)
            self._clock.resume()

    def after(self, call: Call, value: Any) -> None:
        """Count a call. If it does not count as steps, time it separately."""
        clock, self.value = self._clock, value
        if call.counts and not call.first:
            clock.tick(value, call.steps)
        elif call.counts:
            self._losses.begin_epoch()
            clock.tick(value, call.steps)
        else:
            self._aside(call, value)
        if call.last and call.counts and not clock.counts_all:
            clock.pause(value)
        self._last_step = time.perf_counter()

    def ran_out(self) -> None:
        """Stop the clock if it runs, because the data ended earlier than expected.

        If the length of the epoch was not known, its last step may have run on a partial batch, and compiled for it at
        the first time.
        """
        if self.value is not None and not (self._clock.counts_all or self._clock.paused):
            if self._epochs.epoch is None and not self._ended_unknown:
                self._clock.discard()
                self._ended_unknown = True
            self._clock.pause(self.value)
            self._last_step = time.perf_counter()

    def validated(self, seconds: float) -> None:
        """Record that `fit` ran its validation, which took this many seconds."""
        self._validation = seconds

    def end_epoch(self) -> None:
        """Record that the callbacks for the end of an epoch have returned."""
        self._ended = time.perf_counter()
        validation, self._validation = self._validation, None
        if not (self._clock.counts_all or self._clock.paused):  # the end was not foreseen
            self._clock.discard()
            self._open = False
            return
        seconds = self._ended - self._last_step - (validation or 0.0)
        self.ends.append(EpochEnd(seconds, validation=validation, program=self.program))
        self._open = True

    def end_program(self) -> None:
        """Record that the program ended by itself and starts again. No epoch follows the last one."""
        self._open = False
        self.program += 1
        self._epochs.fresh = self._clock.paused

    def send_phases(self, send: Callable[[PhaseEnded], None], step: float) -> None:
        """Report the phases of epochs.

        An epoch may start late because its iterator waits for the end of the one before. `analyse.epoch_waits` adds
        these waits, so they are not part of `epoch_start`.

        Args:
            send: sends an event to the parent.
            step: seconds of a step.
        """
        send(PhaseEnded(phase="first_epoch_end", seconds=self.ends[0].end))
        ends = _later([(end.program, end.end) for end in self.ends])
        send(PhaseEnded(phase="epoch_end", seconds=statistics.fmean(ends)))
        starts = [max(0.0, end.start - end.steps * step) for end in self.ends if end.start is not None]
        if starts:
            send(PhaseEnded(phase="epoch_start", seconds=statistics.median(starts)))
        if self.validations:
            send(PhaseEnded(phase="first_validation", seconds=self.validations[0][1]))
            send(PhaseEnded(phase="validation", seconds=statistics.fmean(_later(self.validations))))
        if self.partials:
            send(PhaseEnded(phase="partial_batch", seconds=self.partials[0][1]))
            send(PhaseEnded(phase="partial_batch_again", seconds=statistics.median(_later(self.partials))))

    def _aside(self, call: Call, value: Any) -> None:
        """Time a call that does not count as steps."""
        self._sync(value)
        if call.partial:
            self.partials.append((self.program, time.perf_counter() - self._last_step))
        if call.first:
            self._begin(call.steps)
        if not self._clock.counts_all:
            if not call.first:
                self.ran_out()
            elif not self._clock.paused:  # the clock ran while `fit` prepared
                self._clock.discard()
            elif not call.last:
                self._clock.resume()
            return
        if call.first:
            self._losses.begin_epoch()
        if call.partial:
            self._losses.end()
        self._clock.tick(value, call.steps)

    def _begin(self, steps: int) -> None:
        """Record that an epoch has started.

        Args:
            steps: steps of its first call, if that call does not count. Otherwise 0.
        """
        if self._open:
            seconds = time.perf_counter() - self._ended - self._epochs.iterator_gap
            self.ends[-1].start, self.ends[-1].steps = seconds, steps
        self._open = False


def _later(times: Sequence[tuple[int, float]]) -> list[float]:
    """Return the seconds of the times that are not the first of their program, which may trace.

    If there is none, return all but the first one, or that one.

    Args:
        times: how often the program had started again, and seconds, in order.
    """
    later = [seconds for (before, _), (program, seconds) in pairwise(times) if program == before]
    return later or [seconds for _, seconds in times[1:] or times]
