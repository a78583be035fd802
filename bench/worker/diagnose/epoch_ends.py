"""The cost of an epoch's end, measured by the program's own call of `fit` on a few batches. Worker's side only."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.analyse.epoch_waits import can_wait
from bench.model.facts import Epoch
from bench.worker.diagnose.iterator_waits import count_waits, iterator_ends
from bench.worker.diagnose.shortened_fit import shortened
from bench.worker.epoch_timer import EpochEnd, EpochTimer
from bench.worker.fit_hook import FitHook
from bench.worker.losses import Losses
from bench.worker.protocol import Finish, Note
from bench.worker.rig import Rig
from bench.worker.synchronize import Synchronizer
from bench.worker.timed_loop import Finished

BATCHES = 4
"""Full batches of a short epoch."""

EPOCHS = 3
"""Number of short epochs."""

FEWEST_ENDS = 2
"""Number of ends of epochs that are enough. The first end may trace, for example the validation."""

ENDS_SECONDS = 3.0
"""Time limit for timing ends, once there are enough."""


class StepTimes:
    """A `Clock` that synchronizes and times each call, in seconds per step.

    Args:
        sync: waits for a step.
        ends: the ends of epochs so far. The epoch timer adds to it.
    """

    counts_all = False

    def __init__(self, sync: Callable[[Any], float], ends: Sequence[EpochEnd]) -> None:
        self.seconds: list[float] = []
        self.paused = True
        self._sync = sync
        self._ends = ends
        self._enough = len(ends) + FEWEST_ENDS
        self._began = self._start = time.perf_counter()

    def tick(self, value: Any, steps: int = 1) -> None:
        """Time a call. Unwind `fit` once there are enough ends of epochs and they have taken long."""
        self._sync(value)
        self.seconds.append((time.perf_counter() - self._start) / steps)
        self.resume()
        if len(self._ends) >= self._enough and self._start - self._began > ENDS_SECONDS:
            raise Finished(None)

    def pause(self, value: Any) -> None:
        """Stop the clock once the step that returned `value` is done."""
        self._sync(value)
        self.paused = True

    def resume(self) -> None:
        """Start the clock of the next step."""
        self.paused, self._start = False, time.perf_counter()

    def discard(self) -> None:
        """Do nothing. There are no blocks."""


def measure(
    rig: Rig, hook: FitHook, timer: EpochTimer, step_seconds: float, synchronizer: Synchronizer, order: Finish
) -> None:
    """Report the phases of epochs. Then count waits (`iterator_waits`), if the parent ordered it.

    If enough epochs ended in the timed part, their phases are known. Otherwise, short epochs are run and timed.
    """
    waits, arguments = can_wait(rig.tf.__version__), hook.arguments
    if waits and len(timer.ends) >= FEWEST_ENDS:
        rig.facts.iterator_ends = iterator_ends(hook)
    if len(timer.ends) < FEWEST_ENDS or (rig.facts.validated_epochs and len(timer.validations) < FEWEST_ENDS):
        short_epochs = _time_short_epochs(rig, hook, timer, synchronizer)
        if short_epochs is None:
            return
        timer, step_seconds = short_epochs
    timer.send_phases(rig.send, step_seconds)
    if order.time_waits and waits and step_seconds:
        end = timer.ends[-1]
        count_waits(rig, hook, arguments, step_seconds, end.end + (end.validation or 0.0))


def _time_short_epochs(
    rig: Rig, hook: FitHook, timer: EpochTimer, synchronizer: Synchronizer
) -> tuple[EpochTimer, float] | None:
    """Run `EPOCHS` short epochs: the program's own call of `fit` on its first few batches.

    The callbacks of the call run too, and its validation after each epoch.

    Returns:
        A timer with the ends of all epochs so far, and the seconds of a step. None if no epoch ended, or if the data
        cannot be shortened.
    """
    epoch = hook.epochs.epoch
    remainder = epoch.remainder if epoch else 0
    short = shortened(rig, hook.arguments, BATCHES, remainder)
    if short is None:
        note = "The ends of epochs were not timed, because the input of fit cannot be shortened."
        rig.send(Note(text=f"{note} The projection leaves them out."))
        return None
    hook.iterator = None  # while this iterator exists, a generator cannot be read again
    ends, partials = list(timer.ends), list(timer.partials)
    times = StepTimes(synchronizer.sync, ends)
    with rig.scope(), hook.unobserved(), contextlib.suppress(Finished):
        observer = EpochTimer(times, hook.epochs, synchronizer.sync, Losses())
        observer.ends, observer.partials, observer.program = ends, partials, timer.program
        hook.observer = observer
        if epoch and remainder:  # Keras does not know the partial batch of a shortened dataset
            hook.epochs.length = Epoch(batches=min(BATCHES, epoch.batches), remainder=remainder)
        hook.model.fit(**{**short, "epochs": EPOCHS, "initial_epoch": 0, "validation_freq": 1, "verbose": 0})
    return (observer, statistics.median(times.seconds)) if ends and times.seconds else None
