"""What new graphs cost the measured steps of a script's own loop.

The time of a trace alone is too short, because the first call of a new graph also optimizes and instantiates it. So the
calls that traced a graph are compared with calls of a known graph of the same function.
"""

from __future__ import annotations

import functools
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from bench.worker.script.functions import name_of
from bench.worker.script.running import Running
from bench.worker.timed_loop import TimedLoop
from bench.worker.tracing import Tracing


@dataclass
class _Calls:
    """Calls of functions of one name.

    Attributes:
        count: number of calls.
        seconds: their time.
        trace_seconds: the time that they spent in tracing.
    """

    count: int = 0
    seconds: float = 0.0
    trace_seconds: float = 0.0

    def add(self, seconds: float, trace_seconds: float = 0.0) -> None:
        """Add a call."""
        self.count += 1
        self.seconds += seconds
        self.trace_seconds += trace_seconds


class TracedCalls:
    """Times the calls of `tf.functions` in the steps that are measured. Create it before other observers of functions.

    Args:
        tf: TensorFlow.
        running: what runs in the current thread.
        tracing: counts and times traces.
        timed_loop: times the steps.
    """

    def __init__(self, tf: Any, running: Running, tracing: Tracing, timed_loop: TimedLoop) -> None:
        self._tracing = tracing
        self._timed_loop = timed_loop
        self._new: defaultdict[str, _Calls] = defaultdict(_Calls)
        self._known: defaultdict[str, _Calls] = defaultdict(_Calls)
        self._latest: dict[str, tuple[Any, Any, Any]] = {}  # the latest call that traced, by the function's name
        self._pending: list[tuple[str, float, float]] = []  # the calls that traced since the latest step
        self._other_seconds = 0.0  # tracing outside of the calls
        self._steps = 0
        self._seen = 0.0  # seconds of all traces until the latest step
        kind = type(tf.function(lambda: None))
        self._original = original = kind.__call__

        @functools.wraps(original)
        def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
            if len(running.functions) > 1 or tracing.is_running or not timed_loop.in_block:
                return original(function, *args, **kwargs)
            count, trace_seconds, began = tracing.count, tracing.seconds, time.perf_counter()
            returned = original(function, *args, **kwargs)
            seconds, name = time.perf_counter() - began, name_of(function)
            if tracing.count == count:
                self._known[name].add(seconds)
            else:
                self._pending.append((name, seconds, tracing.seconds - trace_seconds))
                self._latest[name] = function, args, kwargs
            return returned

        kind.__call__ = call

    def step(self, steps: int, counts: bool) -> None:
        """Take note of steps, before the timed loop counts them.

        Args:
            steps: number of steps.
            counts: whether they count.
        """
        before, self._seen = self._seen, self._timed_loop.trace_seconds()
        if counts and self._timed_loop.in_block:
            self._steps += steps
            self._other_seconds += self._seen - before
            for name, seconds, trace_seconds in self._pending:
                self._new[name].add(seconds, trace_seconds)
                self._other_seconds -= trace_seconds
        self._pending.clear()

    def share(self) -> float | None:
        """Return the share of the measured steps that new graphs took, from 0 to 1. None if no step was measured.

        This may call the functions of the script again.
        """
        loop = self._timed_loop
        if not self._steps or not loop.seconds_run:
            return None
        seconds = max(0.0, self._other_seconds)
        for name, calls in self._new.items():
            known = self._known_seconds(name)
            longer = calls.seconds - calls.count * known if known is not None else 0.0
            seconds += max(longer, calls.trace_seconds)
        return min(1.0, seconds / self._steps / (loop.seconds_run / loop.steps_run))

    def _known_seconds(self, name: str) -> float | None:
        """Return the seconds of a call of a known graph. If all calls traced, the latest one is made again.

        None if that is not possible.
        """
        if name in self._known:
            return self._known[name].seconds / self._known[name].count
        function, args, kwargs = self._latest[name]
        if any(hasattr(each, "__next__") for each in (*args, *kwargs.values())):  # the call may wait for ever
            return None
        count, began = self._tracing.count, time.perf_counter()
        try:
            self._original(function, *args, **kwargs)
        except Exception:  # such as the end of an iterator
            return None
        return time.perf_counter() - began if self._tracing.count == count else None
