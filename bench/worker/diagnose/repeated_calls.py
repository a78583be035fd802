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

KNOWN_SECONDS = 2.0
"""Time limit for the steps of a restarted program whose graphs exist already."""


def measure(tf: Any, start: Callable[[], Iterator[Any]], tracing: Tracing) -> float | None:
    """Return the share of the step that new graphs take, over a few steps of the program's own generator.

    Args:
        tf: TensorFlow.
        start: starts the program's generator of steps.
        tracing: counts traces.

    Returns:
        The share, from 0 to 1. None if the program is too short, or if most steps traced nothing.
    """
    kind = type(tf.function(lambda: None))
    original, saved, repeated, traced, is_nested = kind.__call__, 0.0, 0.0, 0, False

    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal saved, repeated, traced, is_nested
        if is_nested or tf.inside_function():
            return original(function, *args, **kwargs)
        is_nested, traces, began = True, tracing.count, time.perf_counter()
        try:
            result = original(function, *args, **kwargs)
            first = time.perf_counter() - began
            if tracing.count > traces:
                began = time.perf_counter()
                original(function, *args, **kwargs)
                again = time.perf_counter() - began
                traced += 1
                saved, repeated = saved + max(0.0, first - again), repeated + again
        finally:
            is_nested = False
        return result

    steps = start()
    if not _pass_known(steps, tracing):
        return None
    count, began = 0, time.perf_counter()
    with patched(kind, __call__=call):
        for _ in islice(steps, MOST_STEPS):
            count += 1
            if count >= FEWEST_STEPS and time.perf_counter() - began > SECONDS:
                break
    elapsed = time.perf_counter() - began - repeated
    return saved / elapsed if count >= FEWEST_STEPS and 2 * traced > count and elapsed > 0 else None


def _pass_known(steps: Iterator[Any], tracing: Tracing) -> bool:
    """Run steps until one traces a new graph. Return whether there was one, or there may be one later.

    A program that starts again may repeat its numbers. Their graphs exist already, so these steps take little time.
    """
    began, traces = time.perf_counter(), tracing.count
    for number, _ in enumerate(steps, 1):
        if number >= WARM_UP and (tracing.count > traces or time.perf_counter() - began > KNOWN_SECONDS):
            return True
        traces = tracing.count
    return False
