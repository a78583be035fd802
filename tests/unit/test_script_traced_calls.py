"""The share of a script's steps that new graphs take is that of the calls that traced them in the measured steps."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bench.worker.script import traced_calls
from bench.worker.script.running import Running
from bench.worker.script.traced_calls import TracedCalls

pytestmark = pytest.mark.once

RUN, TRACE, INSTANTIATE = 0.01, 0.1, 0.2
"""Seconds of a call of a known graph, of a trace, and of what else the first call of a graph does."""


class Script:
    """A script whose steps call a function. The clock, the function and the timed loop are scripted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.function = function = self._function()
        self.running = Running()
        self.tracing: Any = SimpleNamespace(count=0, seconds=5.0, is_running=False)
        self.loop: Any = SimpleNamespace(
            in_block=True, seconds_run=0.0, steps_run=0, trace_seconds=lambda: self.tracing.seconds
        )
        monkeypatch.setattr(traced_calls, "time", SimpleNamespace(perf_counter=lambda: self.now))
        tf: Any = SimpleNamespace(function=lambda python: function)
        stand_ins: list[Any] = [self.tracing, self.loop]
        self.traced_calls = TracedCalls(tf, self.running, *stand_ins)
        self.traced_calls.step(1, counts=False)

    def _function(self) -> Any:
        script, graphs = self, set()

        class Function:
            __name__ = "train"

            def __call__(self, value: int) -> None:
                if value not in graphs:
                    graphs.add(value)
                    script.trace()
                    script.now += INSTANTIATE
                script.now += RUN

        return Function()

    def trace(self) -> None:
        """Trace a graph."""
        self.tracing.count += 1
        self.tracing.seconds += TRACE
        self.now += TRACE

    def run(self, steps: int, *work: Callable[[int], object], counts: bool = True) -> None:
        """Run steps, each with some work."""
        for number in range(steps):
            began = self.now
            for part in work:
                part(number)
            self.traced_calls.step(1, counts)
            if counts and self.loop.in_block:
                self.loop.seconds_run += self.now - began
                self.loop.steps_run += 1


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    return Script(monkeypatch)


NEW = (TRACE + INSTANTIATE) / (TRACE + INSTANTIATE + RUN)


def test_a_step_that_traces_each_time_takes_what_another_call_of_its_graph_does_not(script: Script) -> None:
    script.run(20, script.function)
    assert script.traced_calls.share() == pytest.approx(NEW)


def test_a_step_that_does_other_work_has_a_smaller_share(script: Script) -> None:
    def work(number: int) -> None:
        script.now += 9 * (TRACE + INSTANTIATE + RUN)

    script.run(20, script.function, work)
    assert script.traced_calls.share() == pytest.approx(NEW / 10)


def test_graphs_are_compared_with_the_known_ones_of_the_measured_steps(script: Script) -> None:
    script.run(20, lambda number: script.function(number // 2))
    assert script.traced_calls.share() == pytest.approx((TRACE + INSTANTIATE) / (TRACE + INSTANTIATE + 2 * RUN))


def test_graphs_of_steps_that_are_not_measured_have_no_share(script: Script) -> None:
    script.loop.in_block = False
    script.run(20, script.function)
    script.loop.in_block = True
    script.run(20, lambda number: script.function(100 + number), counts=False)
    script.run(20, lambda number: script.function(0))
    assert script.traced_calls.share() == 0


def test_a_trace_outside_the_calls_counts_for_itself(script: Script) -> None:
    script.run(20, lambda number: script.function(0), lambda number: script.trace())
    script.run(20, lambda number: script.function(0))
    expected = (TRACE / 2 + (TRACE + INSTANTIATE) / 40) / (script.loop.seconds_run / 40)
    assert script.traced_calls.share() == pytest.approx(expected)


def test_a_function_that_cannot_be_called_again_counts_its_traces(script: Script) -> None:
    script.run(20, script.function)
    script.traced_calls._original = lambda *args: 1 / 0
    assert script.traced_calls.share() == pytest.approx(TRACE / (TRACE + INSTANTIATE + RUN))
