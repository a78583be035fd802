"""What tracing costs a step. Each call that traced a new graph is repeated: the second call only runs the graph.

The time of the trace alone is too short, because the first call of a new graph also optimizes and instantiates it.
Worker's side only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from bench.worker.patches import patched
from bench.worker.tracing import Tracing

WARM_UP = 2
MOST_STEPS = 50
SECONDS = 1.5
"""Time limit for the steps, once there are `FEWEST_STEPS`."""

FEWEST_STEPS = 3

KNOWN_SECONDS = 6.0
"""Time limit for the steps of a restarted program whose graphs exist already. On a busy machine, they take longer."""


class _RepeatedCalls:
    """The outermost calls of `tf.functions`, once `call` is in the place of their `__call__`.

    Args:
        tf: TensorFlow.
        tracing: counts traces.

    Attributes:
        repeats: whether calls that trace a new graph are repeated.
        traced: number of calls that traced a new graph.
        saved: seconds by which their repetitions were shorter.
        repeated: seconds of the repetitions.
    """

    def __init__(self, tf: Any, tracing: Tracing) -> None:
        self._tf = tf
        self._tracing = tracing
        self._is_nested = False
        self.original: Callable[..., Any] = type(tf.function(lambda: None)).__call__
        self.repeats = False
        self.traced = 0
        self.saved = self.repeated = 0.0

    def call(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function. If that traces a new graph, count it and perhaps repeat it."""
        if self._is_nested or self._tf.inside_function():
            return self.original(function, *args, **kwargs)
        self._is_nested, traces, began = True, self._tracing.count, time.perf_counter()
        try:
            result = self.original(function, *args, **kwargs)
            first = time.perf_counter() - began
            if self._tracing.count > traces:
                self.traced += 1
                if self.repeats:
                    began = time.perf_counter()
                    self.original(function, *args, **kwargs)
                    again = time.perf_counter() - began
                    self.saved += max(0.0, first - again)
                    self.repeated += again
        finally:
            self._is_nested = False
        return result


def measure(tf: Any, start: Callable[[], Iterator[Any]], tracing: Tracing) -> float | None:
    """Return the share of the step that new graphs take, over a few steps of the program's own generator.

    Args:
        tf: TensorFlow.
        start: starts the program's generator of steps.
        tracing: counts traces.

    Returns:
        The share, from 0 to 1. None if the program is too short, or if most steps traced nothing.
    """
    kind, calls, steps, count = type(tf.function(lambda: None)), _RepeatedCalls(tf, tracing), start(), 0
    with patched(kind, __call__=lambda function, *args, **kwargs: calls.call(function, *args, **kwargs)):
        if not _pass_known(steps, calls, tracing.count):
            return None
        calls.repeats, calls.traced, began = True, 0, time.perf_counter()
        for _ in islice(steps, MOST_STEPS):
            count += 1
            if count >= FEWEST_STEPS and time.perf_counter() - began > SECONDS:
                break
    elapsed = time.perf_counter() - began - calls.repeated
    return calls.saved / elapsed if count >= FEWEST_STEPS and 2 * calls.traced > count and elapsed > 0 else None


def _pass_known(steps: Iterator[Any], calls: _RepeatedCalls, known: int) -> bool:
    """Run steps until one traces a new graph. Return whether there was one, or there may be one later.

    A program that starts again may repeat its numbers. Their graphs exist already, so these steps take little time.

    Args:
        steps: the steps of the program.
        calls: counts its calls that trace.
        known: number of graphs that exist. After as many steps without a trace, there will be none.
    """
    began, traced = time.perf_counter(), calls.traced
    for number, _ in enumerate(steps, 1):
        is_over = number > known or time.perf_counter() - began > KNOWN_SECONDS
        if number >= WARM_UP and (calls.traced > traced or is_over):
            return True
        traced = calls.traced
    return False
