"""What XLA spends on shapes that it has not compiled yet, in the `tf.functions` that a script calls."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.model.facts import Recompiled
from bench.worker.script.running import Running
from bench.worker.tracing import Tracing

FEW = 5
"""Shapes up to which a function is not compiled again and again."""

Shapes = tuple[str, ...]


@dataclass
class _CompiledFunction:
    """The calls of a function that XLA compiles. Calls that traced a graph do not count.

    Attributes:
        shapes: the shapes of its arguments so far.
        new: seconds of calls with shapes that were new.
        known: seconds of the other calls.
        latest: repeats the latest call with new shapes.
        example: the shapes of the latest two such calls.
    """

    shapes: set[Shapes] = field(default_factory=set)
    new: list[float] = field(default_factory=list)
    known: list[float] = field(default_factory=list)
    latest: Callable[[], Any] = lambda: None
    example: tuple[Shapes, Shapes] = ((), ())


class CompiledShapes:
    """Times the calls of functions that XLA compiles. Create it before other observers of functions.

    Args:
        tf: TensorFlow.
        running: what runs in the current thread.
        tracing: counts traces.
    """

    def __init__(self, tf: Any, running: Running, tracing: Tracing) -> None:
        self._functions: dict[Any, _CompiledFunction] = {}  # by the code of the function
        kind = type(tf.function(lambda: None))
        original = kind.__call__

        @functools.wraps(original)
        def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not function._jit_compile or len(running.functions) > 1 or tracing.is_running:
                return original(function, *args, **kwargs)
            count, began = tracing.count, time.perf_counter()
            returned = original(function, *args, **kwargs)
            seconds = time.perf_counter() - began
            shapes = tuple(str(leaf.shape) for leaf in tf.nest.flatten((args, kwargs)) if hasattr(leaf, "shape"))
            calls = self._functions.setdefault(_code(function), _CompiledFunction())
            is_new = shapes not in calls.shapes
            calls.shapes.add(shapes)
            if tracing.count == count:
                (calls.new if is_new else calls.known).append(seconds)
                if is_new:
                    calls.latest = functools.partial(original, function, *args, **kwargs)
                    calls.example = calls.example[1], shapes
            return returned

        kind.__call__ = call

    def read(self, name_of: Callable[[str], str]) -> Recompiled | None:
        """Return what was compiled again most often. None if nothing was. This may call a function again.

        Args:
            name_of: returns the name of a file by its path.
        """
        code, calls = max(self._functions.items(), key=lambda item: len(item[1].new), default=(None, None))
        if code is None or calls is None or len(calls.new) <= FEW:
            return None
        if not calls.known:
            began = time.perf_counter()
            calls.latest()
            calls.known.append(time.perf_counter() - began)
        known, number = sum(calls.known) / len(calls.known), len(calls.new) + len(calls.known)
        before, after = next(((a, b) for a, b in zip(*calls.example, strict=False) if a != b), ("", ""))
        return Recompiled(
            function=code.co_name,
            file=name_of(code.co_filename),
            line=code.co_firstlineno,
            shapes=len(calls.new),
            calls=number,
            seconds=max(0.0, sum(calls.new) - len(calls.new) * known) / number,
            before=before,
            after=after,
        )


def _code(function: Any) -> Any:
    return getattr(inspect.unwrap(function.python_function), "__code__", None)
