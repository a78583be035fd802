"""The timed loop. Read this file first: everything devbench claims about time is measured here.

A loop, whatever its shape, calls `tick(value)` after each step that it has issued. Most calls only count.
When a block's steps are issued, the block is synchronised by reading a number that depends on all of it,
the clock is read, the block is reported, and the worker waits for its next order; the clock starts again
only after that. So a step costs one method call, and a block one synchronisation, of measuring. While
the worker waits for its turn the parent suspends it, so its input threads neither work nor fill buffers.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

from bench.errors import WorkloadError
from bench.model.result import Failure
from bench.worker.channel import Channel
from bench.worker.protocol import (
    BLOCK_SECONDS,
    Answer,
    Failed,
    Finish,
    Go,
    Latencies,
    Latency,
    PhaseDone,
    Ready,
    Timed,
    Trace,
    Traced,
)

ANSWERS = 5
"""How many first steps have their answer read."""


class Finished(BaseException):
    """Unwinds the program that drives the steps, when the parent wants no more of them.

    Not an `Exception`, so that a program's own `except Exception` can't swallow it.
    """


class Conductor:
    """Counts steps, times blocks, and obeys the parent's orders.

    Args:
        channel: the line to the parent.
        sync: waits until everything a value depends on is done; returns a number from it.
        answer: the number that must agree wherever this step is computed.
        kind: how exactly the answers may be expected to agree.

    Attributes:
        averaged: whether the answers are Keras' running mean.
        left: steps until the clock is read; a loop that issues several at once issues no more than these.
        current: the series that is timed.
        profiler: what traces steps (`profiling.Profiler`).
    """

    def __init__(
        self,
        channel: Channel,
        sync: Callable[[Any], float],
        answer: Callable[[Any], float],
        kind: Any = "exact",
    ) -> None:
        self.channel = channel
        self.sync = sync
        self.answer = answer
        self.kind = kind
        self.series: list[str] = ["step"]
        self.ready = Ready(series=self.series)
        self.traced: Callable[[], float] = lambda: 0.0
        self.averaged = False
        self.current = "step"
        self.left = 1
        self.profiler: Any = None
        self.stepped = self.restarts = 0
        self.last: Any = None
        self._answers: list[float] = []
        self._restarted = False
        self._from_the_top = False
        self._longest = 0
        self._end: Callable[[Any], None] = self._first_step
        self._steps = 1
        self._blocks = 0
        self._calibrating = False
        self._latencies: list[float] = []
        self._floors: list[float] = []
        self._latency_order: tuple[int, float] = (0, 0.0)
        self._to_trace = self._in_trace = 0
        self._traced_before = self._traced_elsewhere = 0.0
        self._cpu_start = time.process_time()
        self._start = time.perf_counter()

    def set_up(self) -> None:
        """What was traced until now belongs to the phases that are done."""
        self._traced_elsewhere = self.traced()

    def begin(self) -> None:
        """Starts the first step's clock: everything before it belongs to the phases of setting up."""
        self._to_trace = self._in_trace = 0
        self._traced_before = self.traced()
        self._start = time.perf_counter()

    def tick(self, value: Any, steps: int = 1) -> None:
        """`steps` steps were issued, the last of which gave `value`. Called for every step: keep it short."""
        self.left -= steps
        if self.left <= 0:
            self._end(value)
            self._cpu_start = time.process_time()
            self._start = time.perf_counter()

    def restart(self) -> None:
        """The program ended and is begun again: what is timed of the current block does not count.

        A block that began with the program and was not full when it ended is cut to what the program holds, so
        that the next one is.

        Raises:
            WorkloadError: the program is one step long, and the first step after each beginning does not count,
                since it may trace, compile or fill buffers.
        """
        if self._from_the_top:
            self._steps -= self.left
            if not self._steps:
                raise WorkloadError("the program ends after one step", "Let it do more, in a loop: `while True: …`.")
        self._restarted, self._from_the_top = True, False
        self.left = 1
        self.restarts += 1

    def _first_step(self, value: Any) -> None:
        number = self.sync(value)
        seconds = time.perf_counter() - self._start
        traced = self.traced()
        self.channel.send(PhaseDone(phase="trace", seconds=max(0.0, traced - self._traced_elsewhere)))
        self.channel.send(PhaseDone(phase="first_step", seconds=max(0.0, seconds - traced + self._traced_before)))
        self._check(number)
        self._take_answer(value)
        self._end, self.left = self._next_answer, 1
        if ANSWERS == 1 or self.series != ["step"]:
            self._say_ready()

    def _take_answer(self, value: Any) -> None:
        number = self.answer(value)
        self._check(number)  # `sync` looked at one element only
        self._answers.append(number)

    def _next_answer(self, value: Any) -> None:
        self._check(self.sync(value))
        self._take_answer(value)
        self._restarted, self.left = False, 1
        if len(self._answers) == ANSWERS:
            self._say_ready()

    def _say_ready(self) -> None:
        values = of_running_mean(self._answers) if self.averaged else self._answers
        self.channel.send(Answer(values=values, kind=self.kind))
        self.channel.send(self.ready)
        self._obey()

    def _block(self, value: Any) -> None:
        number = self.sync(value)
        seconds = time.perf_counter() - self._start
        cpu_seconds = time.process_time() - self._cpu_start
        self._check(number)
        if self._restarted:
            self._restarted, self._from_the_top, self.left = False, True, self._steps
            return
        self._from_the_top = False
        done = self._steps - self.left  # one call of several steps may overshoot the block
        self.channel.send(Timed(series=self.current, seconds=seconds, steps=done, cpu_seconds=cpu_seconds))
        self.stepped += done
        if self._calibrating and seconds < BLOCK_SECONDS and done > self._longest:
            self._longest = done
            guess = math.ceil(done * BLOCK_SECONDS * 1.1 / seconds)
            self._steps = self.left = max(done + 1, min(guess, done * 16))
            return
        self._blocks -= 1
        self.left = self._steps
        if self._blocks <= 0:
            self._obey()

    def _lead_in(self, value: Any) -> None:
        self._check(self.sync(value))
        self._restarted, self._from_the_top = False, self._restarted
        self._end, self.left = self._block, self._steps

    def _single(self, value: Any) -> None:
        number = self.sync(value)
        seconds = time.perf_counter() - self._start
        self._check(number)
        again = time.perf_counter()
        self.sync(value)  # nothing is left to wait for: this is what reading costs
        self._floors.append(time.perf_counter() - again)
        steps, budget = self._latency_order
        if self._restarted:
            self._restarted = False
        else:
            self._latencies.append(seconds)
        together, self.left = 1 - self.left, 1  # steps of one call
        if len(self._latencies) >= steps or sum(self._latencies) >= budget:
            floor = statistics.median(self._floors)
            self.channel.send(Latencies(seconds=[max(0.0, each - floor) / together for each in self._latencies]))
            self._obey()

    def _in_profile(self, value: Any) -> None:
        asked = 1 if self.profiler.marks else self._to_trace
        self._in_trace += asked - self.left
        self.left = 1
        if self._in_trace < self._to_trace:
            self.profiler.step(self._in_trace)
            return
        self._check(self.sync(value))
        self.channel.send(Traced(profile=self.profiler.stop(self._in_trace)))
        self._obey()

    def _obey(self) -> None:
        """Waits for an order and gets ready for it."""
        order = self.channel.receive()
        self._from_the_top = False
        if isinstance(order, Go):
            self.current = order.series
            self._calibrating, self._longest = order.steps is None, 0
            self._steps = order.steps or 1
            self._blocks = order.blocks
            self._end, self.left = (self._lead_in, order.lead) if order.lead else (self._block, self._steps)
        elif isinstance(order, Latency):
            self._latencies, self._floors, self._latency_order = [], [], (order.steps, order.seconds)
            self._end, self.left = self._single, 1
        elif isinstance(order, Trace):
            self._to_trace, self._in_trace = order.steps, 0
            self._end, self.left = self._in_profile, 1 if self.profiler.marks else order.steps
            self.profiler.start(order.folder)
        elif isinstance(order, Finish):
            raise Finished(order)
        else:
            raise TypeError(f"out of turn: {order}")

    def _check(self, number: float) -> None:
        if not math.isfinite(number):
            message = f"a step gave {number}: its time says nothing about a program that works"
            hint = "Look at the learning rate, the data and the dtype policy: --dtype float32 is the safest."
            self.channel.send(Failed(failure=Failure(kind="nan", message=message, hint=hint, phase="step")))
            raise Finished(None)


def of_running_mean(means: list[float]) -> list[float]:
    """The values behind a running mean: Keras' loss is one over the epoch so far, a step's own loss is not."""
    return [k * mean - (k - 1) * before for k, (mean, before) in enumerate(zip(means, [0.0, *means], strict=False), 1)]
