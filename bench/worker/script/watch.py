"""Hands the steps of one loop of a script to the timed loop."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from bench.model.recognition import StepKind, StepSource
from bench.worker.script.asides import AsideTimer
from bench.worker.script.calls import ScriptCall, Updated
from bench.worker.script.traced_calls import TracedCalls
from bench.worker.step_counter import StepCounter
from bench.worker.timed_loop import Finished, TimedLoop

CHECKED_STEP = 3
"""The step, counted from 1, that is traced again for the placement check. No block contains it."""

MOST_MODELS = 20
"""Models that are waited for, one after the other. To prepare for one takes time."""

STARTS: dict[StepKind, tuple[str, ...]] = {
    "fit": (),
    "updates": ("tape", "function"),
    "single-fit": ("single-fit",),
    "train-on-batch": ("train-on-batch",),
    "session-training": ("session",),
    "gradients": ("tape",),
    "session": ("session",),
    "predict": ("predict",),
    "evaluate": ("evaluate",),
    "function": ("function",),
    "model": ("model",),
}
"""What may be the start of a step of each kind: values of `what` in `Sink.starting`."""


class Watch:
    """A sink that times the steps of one loop.

    Args:
        target: the loop.
        timed_loop: times its steps.
        on_first: is called after the first step, before it is counted, with what the step changes. It is not timed. If
            the calls of steps return early, it is called again once a step changes others, such as a new model.
        check: begins (True) and ends (False) the placement check. None if nothing is checked here.
        synchronous: whether a step is done when its call returns.
        on_caught: is called if the script goes on after it was unwound. It does not return.

    Attributes:
        asides: finds work between the steps. None if the whole training is measured.
        awaits_start: whether the first step has not ended yet.
        traced_calls: finds out what new graphs cost. None if nobody asks.
        closed: whether the steps have been reported. A script that goes on is then unwound.
        value: what the latest step returned.
        done: when the latest step was done, by the clock of `time.perf_counter`. None if that is not known.
    """

    def __init__(
        self,
        target: StepSource,
        timed_loop: TimedLoop,
        on_first: Callable[[Any], None],
        check: Callable[[bool], None] | None,
        synchronous: bool,
        on_caught: Callable[[], None],
    ) -> None:
        self._target = target
        self._token = target.token
        self._timed_loop = timed_loop
        self._on_first = on_first
        self._check = check
        self._synchronous = synchronous
        self._on_caught = on_caught
        self.asides = None if isinstance(timed_loop, StepCounter) else AsideTimer(timed_loop, synchronous)
        self._lock = threading.RLock()
        self._steps = 0
        self._model: Any = None  # what the latest step changes
        self._models = 1
        self._starts_in_main = False  # whether the main thread may make the steps
        self._is_open = False  # whether the start of the first step is known
        self.traced_calls: TracedCalls | None = None
        self.awaits_start = True
        self.closed = False
        self.value: Any = None
        self.done: float | None = None

    def starting(self, what: str) -> None:
        """Start the clock of the first step, and start it again if a later call may be the start.

        A step that ends with an update starts with its first tape or, without one, with the function that updates. A
        step with several calls of `fit` or `train_on_batch` starts with the first of them.
        """
        if not self.awaits_start or what not in STARTS[self._target.kind]:
            return
        if threading.current_thread() is threading.main_thread():
            self._starts_in_main = True
        elif self._starts_in_main:  # a thread that uses the model meanwhile
            return
        if not self._is_open:
            self._is_open = what in ("tape", "single-fit", "train-on-batch")
            self._timed_loop.end_set_up()
            self._timed_loop.begin()

    def step(self, call: ScriptCall, steps: int, value: Any, model: Any) -> None:
        """Count a step, if the call is the target. Several threads may make its steps."""
        if call.token != self._token:
            if call.kind == self._target.kind and call.token not in self._target.group and self.awaits_start:
                self._is_open = False  # such as a call that only tried the model
            if self.asides is not None:
                self.asides.other(call.token)
        elif steps:
            with self._lock:
                self._step(steps, value, model)

    def _step(self, steps: int, value: Any, model: Any) -> None:
        if self.closed or self._timed_loop.finished is not None:
            self._on_caught()
        self._steps += 1
        if self._steps == 1 or (not self._synchronous and self._changes_others(model)):
            self._begin(model)
        if self._check is not None and self._steps == CHECKED_STEP:
            self._check(False)
        self.value = value
        try:
            if self._counts(steps):
                self._timed_loop.tick(value, steps)
        except Finished:
            if threading.current_thread() is not threading.main_thread():
                self._on_caught()  # an exception would only end this thread
            raise
        now = time.perf_counter()
        self.done = now if self._synchronous else None
        if self.asides is not None:
            self.asides.latest = now
            if self.asides.cpu is not None:
                self.asides.cpu = time.process_time()
        if self._check is not None and self._steps == CHECKED_STEP - 1:
            self._check(True)
            self._timed_loop.begin()

    def _begin(self, model: Any) -> None:
        """Prepare for a model that the script has not used before, outside the timed steps."""
        self.awaits_start = False
        at = time.perf_counter()
        self._on_first(model)
        self._timed_loop.clock.leave_out(time.perf_counter() - at)
        if self._steps > 1 and self._timed_loop.in_block:
            self._timed_loop.discard()  # the device goes on working in the time that is left out

    def _changes_others(self, model: Any) -> bool:
        """Return whether a step changes other variables than the one before. Each eager step has a new `Updated`."""
        if model is None:
            return False
        first = self._model is None
        before = self._model() if isinstance(self._model, weakref.ref) else self._model
        # The script decides how long its models live. The ids in an `Updated` are valid as long as it lives.
        self._model = model if isinstance(model, Updated) else weakref.ref(model)
        if first or model is before or self._models == MOST_MODELS:
            return False
        if isinstance(model, Updated) and isinstance(before, Updated):
            latest = [*map(id, model.trainable_variables[-1:])]
            if latest == [*map(id, before.trainable_variables[-1:])]:
                return False
        self._models += 1
        return True

    def _counts(self, steps: int) -> bool:
        """Return whether steps that were just run count."""
        counts = self.asides is None or self.asides.counts(steps)
        if self.traced_calls is not None:
            self.traced_calls.step(steps, counts)
        return counts
