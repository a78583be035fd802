"""The timed loop. Read this file first: everything that devbench says about time is measured here.

The code that drives the steps calls `tick(value)` after each step that it issued. Most calls only count. After the last
step of a block, `tick` synchronizes by reading a number that depends on the whole block, reads the clock and reports
the block. After the last block of an order, it also waits for the next order. The clock of the next block starts after
that. So a step costs one method call, and a block one synchronization. While the other workers of a round run their
blocks, the parent suspends this one, so its input threads neither work nor fill buffers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from bench.errors import WorkloadError
from bench.model.failure import Failure
from bench.model.sample import LossPrecision
from bench.worker.block_clock import BlockClock
from bench.worker.channel import Channel
from bench.worker.latency_pass import LatencyPass
from bench.worker.losses import LOSSES, Losses
from bench.worker.protocol import (
    BLOCK_SECONDS,
    BlockTimed,
    Failed,
    Finish,
    FirstLosses,
    Go,
    Latencies,
    Latency,
    PhaseEnded,
    ProfileRead,
    ProgramEnded,
    Ready,
    Trace,
)

NEW_DATA = "devbench starts the program several times, so each start must read its data from the beginning."
"""What to do about a program that can run only once."""


class Finished(BaseException):
    """Unwinds the program that drives the steps when the parent wants no more steps.

    It is not an `Exception`, so that `except Exception` in a program cannot catch it.
    """


class TimedLoop:
    """Counts steps, times blocks, and carries out the parent's orders.

    Args:
        channel: the connection to the parent.
        sync: waits until all work that a value depends on is done, and returns a number from it.
        loss: returns the number that must agree on every device.
        precision: how exactly the losses are expected to agree.
        finite: whether each step must return finite numbers. An output may have others on purpose.

    Attributes:
        clock: times the current block.
        losses: the losses of the first steps.
        on_restart: is called each time the program has ended and starts again.
        announce: is called with the number of steps that will have been issued, before they are. Other workers that
            train with this one run only announced steps.
        steps_left: steps until the clock is read. A call that issues several steps issues at most this many.
        series: names of the series that can be timed.
        current: the series that is timed now.
        profiler: traces steps (`bench.worker.diagnose.profiler.Profiler`). None if nothing is traced.
        trace_seconds: returns the seconds that tracing has taken so far.
        steps_run: steps in blocks that were reported.
        seconds_run: seconds of these blocks.
        issued: all steps that were counted, including those in no block.
        step_seconds: seconds of a step in the latest block. 0 before the first block.
        restarts: how often the program ended and started again.
        finished: what unwound the program. None while it runs.
        last_value: the latest value, if steps are only counted (`step_counter`).
    """

    def __init__(
        self,
        channel: Channel,
        sync: Callable[[Any], float],
        loss: Callable[[Any], float],
        precision: LossPrecision = "exact",
        finite: bool = True,
    ) -> None:
        self.channel = channel
        self.sync = sync
        self.loss = loss
        self.precision = precision
        self.finite = finite
        self.series: list[str] = ["step"]
        self.ready = Ready(series=self.series)
        self.trace_seconds: Callable[[], float] = lambda: 0.0
        self.losses = Losses()
        self.on_restart: Callable[[], object] = lambda: None
        self.announce: Callable[[int], object] = lambda steps: None
        self.current = "step"
        self.steps_left = 1
        self.profiler: Any = None
        self.steps_run = self.restarts = self.issued = 0
        self.step_seconds = self.seconds_run = 0.0
        self.last_value: Any = None
        self.finished: Finished | None = None
        self._progress: tuple[object, ...] = ()
        self._issued_before = 0  # steps before the latest start of the program
        self._restarted = False
        self._from_start = False
        self._longest = 0
        self._end: Callable[[Any], None] = self._first_step
        self._after_lead: tuple[Callable[[Any], None], int] = (self._block, 1)
        self._steps = 1
        self._blocks = 0
        self._calibrating = False
        self._latency_pass = LatencyPass()
        self._steps_to_profile = self._steps_profiled = 0
        self._trace_seconds_at_start = self._trace_seconds_in_set_up = 0.0
        self.clock = BlockClock()

    @property
    def started(self) -> bool:
        """Whether the first step is done."""
        return self._end != self._first_step

    @property
    def in_block(self) -> bool:
        """Whether the steps now belong to a block that is timed."""
        return self._end == self._block and not self._restarted

    @property
    def counts_all(self) -> bool:
        """Whether every step is counted now: the first steps, or steps that are traced."""
        return self._end in (self._first_step, self._next_loss, self._profiled_step)

    @property
    def paused(self) -> bool:
        """Whether the clock stands still, between two epochs of `fit`."""
        return self.clock.paused

    def end_set_up(self) -> None:
        """Count the tracing so far as part of the phases of setting up."""
        self._trace_seconds_in_set_up = self.trace_seconds()

    def begin(self) -> None:
        """Start the clock of the first step. Everything before it belongs to the phases of setting up."""
        self._steps_to_profile = self._steps_profiled = 0
        self._trace_seconds_at_start = self.trace_seconds()
        if not self.paused:
            self.clock.start = time.perf_counter()

    def tick(self, value: Any, steps: int = 1) -> None:
        """Count `steps` issued steps, the last of which returned `value`. Every step calls this: keep it short."""
        self.steps_left -= steps
        self.issued += steps
        if self.steps_left <= 0:
            self._end(value)
            self.announce(self.issued + self.steps_left)
            self.clock.restart()

    def pause(self, value: Any) -> None:
        """Stop the clock once the step that returned `value` is done. What follows is not part of the block."""
        self._check(self.sync(value))
        self.clock.pause()

    def resume(self) -> None:
        """Let the clock run again."""
        self.clock.resume()

    def discard(self) -> None:
        """Drop the current block, and do not count the next step."""
        self._restarted, self._from_start = True, False
        self.steps_left = 1

    def restart(self) -> None:
        """Record that the program ended and starts again.

        If the clock is paused, the block continues. Otherwise, the block is dropped. If it also started with the
        program, the program is shorter than a block, and later blocks get the program's length. The first step after
        each start does not count, because it may trace, compile or fill buffers.

        Raises:
            WorkloadError: the program has only one step, so no step would count, or none when it started again.
        """
        if self.issued == self._issued_before and not self.paused:
            raise WorkloadError(f"the program ran no step{' when it started again' if self.issued else ''}", NEW_DATA)
        self._issued_before = self.issued
        self.restarts += 1
        self.on_restart()
        progress = (self.steps_run, self.steps_left, len(self._latency_pass), len(self.losses), self._end)
        if self.paused and progress != self._progress:
            self._progress = progress
            return
        if self._from_start:
            self._steps -= self.steps_left
        if self.paused or (self._from_start and not self._steps):
            message = "the program ends after one step"
            raise WorkloadError(message, f"Run several steps in a loop: `while True: …`. {NEW_DATA}")
        self.discard()

    def end(self, value: Any, at: float | None) -> Finish:
        """Report that the program ended by itself, with the block that it left unfinished. Return the last order.

        Args:
            value: what its last step returned.
            at: when its last step was done, by the clock of `time.perf_counter`. None if that is not known. The
                unfinished block is then dropped.

        Raises:
            WorkloadError: the program ended before a step could be timed.
        """
        self.resume()
        issued = self._steps - self.steps_left
        if self._end == self._block and not self._restarted and 0 < issued < self._steps and at is not None:
            self.clock.leave_out(time.perf_counter() - at)
            self._steps, self.steps_left, self._blocks, self._calibrating = issued, 0, 2, False
            self._block(value)
        if not self.steps_run:
            raise WorkloadError(
                f"the script ended after {self.issued} steps, which are too few to time",
                f"Let it run at least {LOSSES + 2} steps.",
            )
        self.channel.send(ProgramEnded())
        while True:
            order = self.channel.receive()
            if isinstance(order, Finish):
                return order

    def _first_step(self, value: Any) -> None:
        number = self.sync(value)
        seconds = self.clock.seconds()
        trace_seconds = self.trace_seconds()
        self.channel.send(PhaseEnded(phase="trace", seconds=max(0.0, trace_seconds - self._trace_seconds_in_set_up)))
        self.channel.send(
            PhaseEnded(phase="first_step", seconds=max(0.0, seconds - trace_seconds + self._trace_seconds_at_start))
        )
        self._check(number)
        self._read_loss(value)
        self._end, self.steps_left = self._next_loss, 1
        if LOSSES == 1 or self.series != ["step"]:
            self._get_ready()

    def _read_loss(self, value: Any) -> None:
        number = self.loss(value)
        self._check(number)  # `sync` reads only one element
        self.losses.add(number)

    def _next_loss(self, value: Any) -> None:
        self._check(self.sync(value))
        self._read_loss(value)
        self._restarted, self.steps_left = False, 1
        if len(self.losses) == LOSSES:
            self._get_ready()

    def _get_ready(self) -> None:
        self.channel.send(FirstLosses(values=self.losses.compared(), precision=self.precision))
        self.channel.send(self.ready)
        self._obey()

    def _block(self, value: Any) -> None:
        number = self.sync(value)
        seconds, cpu_seconds = self.clock.seconds(), self.clock.cpu_seconds()
        self._check(number)
        if self._restarted:
            self._restarted, self._from_start, self.steps_left = False, True, self._steps
            return
        self._from_start = False
        steps = self._steps - self.steps_left  # one call of several steps may overshoot the block
        aside = self.clock.paused_seconds
        self.channel.send(
            BlockTimed(
                series=self.current, seconds=seconds, steps=steps, cpu_seconds=cpu_seconds, epoch_end_seconds=aside
            )
        )
        self.steps_run += steps
        self.seconds_run += seconds
        self.step_seconds = seconds / steps
        if self._calibrating and seconds + aside < BLOCK_SECONDS and steps > self._longest:
            self._longest = steps
            estimate = math.ceil(steps * BLOCK_SECONDS * 1.1 / seconds)
            self._steps = self.steps_left = max(steps + 1, min(estimate, steps * 16))
            return
        self._blocks -= 1
        self.steps_left = self._steps
        if self._blocks <= 0:
            self._obey()

    def _lead_in(self, value: Any) -> None:
        self._check(self.sync(value))
        self._restarted, self._from_start = False, self._restarted
        self._end, self.steps_left = self._after_lead

    def _single_step(self, value: Any) -> None:
        number = self.sync(value)
        seconds = time.perf_counter() - self.clock.start
        self._check(number)
        read_start = time.perf_counter()
        self.sync(value)  # the step is done, so this is the cost of reading
        self._latency_pass.add(seconds, time.perf_counter() - read_start, counts=not self._restarted)
        self._restarted = False
        per_call, self.steps_left = 1 - self.steps_left, 1  # steps of one call
        if self._latency_pass.complete:
            self.channel.send(Latencies(seconds=self._latency_pass.latencies(per_call)))
            self._obey()

    def _profiled_step(self, value: Any) -> None:
        issued = 1 if self.profiler.marks else self._steps_to_profile
        self._steps_profiled += issued - self.steps_left
        self.steps_left = 1
        if self._steps_profiled < self._steps_to_profile:
            self.profiler.step(self._steps_profiled)
            return
        self._check(self.sync(value))
        self.channel.send(ProfileRead(profile=self.profiler.stop(self._steps_profiled)))
        self._obey()

    def _obey(self) -> None:
        """Wait for an order and prepare for it."""
        order = self.channel.receive()
        self._from_start = False
        if isinstance(order, Go):
            self.current = order.series
            self._calibrating, self._longest = order.steps is None, 0
            self._steps = order.steps or 1
            self._blocks = order.blocks
            self._lead(order.lead, self._block, self._steps)
            self.announce(self.issued + order.lead + self._blocks * self._steps)
        elif isinstance(order, Latency):
            self._latency_pass = LatencyPass(order.steps, order.seconds)
            self._lead(order.lead, self._single_step, 1)
            self.announce(self.issued + order.lead + order.steps)
        elif isinstance(order, Trace):
            self._steps_to_profile, self._steps_profiled = order.steps, 0
            self._end, self.steps_left = self._profiled_step, 1 if self.profiler.marks else order.steps
            self.profiler.start(order.folder)
        elif isinstance(order, Finish):
            self.finished = Finished(order)
            raise self.finished
        else:
            raise TypeError(f"unexpected order: {order}")

    def _lead(self, lead: int, end: Callable[[Any], None], steps: int) -> None:
        """Run untimed steps, if there are any, and then `steps` steps, after which `end` is called."""
        self._after_lead = end, steps
        self._end, self.steps_left = (self._lead_in, lead) if lead else self._after_lead

    def _check(self, number: float) -> None:
        if self.finite and not math.isfinite(number):
            message = f"a step returned {number}, so its time does not represent a working program"
            hint = "Check the learning rate, the data and the dtype policy. --dtype float32 is the safest policy."
            self.channel.send(Failed(failure=Failure(kind="nan", message=message, hint=hint, phase="step")))
            self.finished = Finished(None)
            raise self.finished
