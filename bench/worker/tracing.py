"""How often TensorFlow traced Python into graphs, and how long that took.

Keras 3 hides its train function in plain Python, so its count of traces cannot be read. But every trace of every
`tf.function` calls one function of TensorFlow, in 2.10 as in 2.21. devbench wraps this function and times its outermost
calls.
"""

from __future__ import annotations

import inspect
import sys
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any, NamedTuple

from bench.worker.frames import Sources, call_in, library_folders
from bench.worker.trace_reasons import TraceReasons

LATEST_GRAPHS = 8
"""Number of graphs that are kept for inspection."""

PIPELINES = str(Path("tensorflow", "python", "data"))
"""The folder of TensorFlow's input pipelines."""


def in_validation(keras: tuple[str, ...]) -> bool:
    """Whether the caller runs in an `evaluate` of Keras that its `fit` called.

    Args:
        keras: the folders of Keras.
    """
    frame, evaluates = sys._getframe(1), False
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_filename.startswith(keras):
            if evaluates and frame.f_code.co_name == "fit":
                return True
            evaluates |= frame.f_code.co_name == "evaluate"
    return False


class Traced(NamedTuple):
    """What TensorFlow traced: a function of the program, or functions of a library that a line of the program called.

    Attributes:
        function: name of the function, or of the method that the line called.
        file: file of the function or of the line.
        line: line of the function, or the line that called.
        is_call: whether a line of the program called the library.
        of_pipeline: whether the functions belong to an input pipeline, which is built with them.
    """

    function: str
    file: str
    line: int
    is_call: bool
    of_pipeline: bool = False


class Tracing:
    """Counts and times outermost traces from its creation on.

    Args:
        sources: the program's own files.

    Attributes:
        seconds: seconds of all traces.
        count: number of traces.
        graphs: the latest graphs, without those of a validation, which is no part of a step.
        by_function: number of traces, by what was traced.
        reasons: why the functions of the program were traced again.
    """

    def __init__(self, sources: Sources) -> None:
        from tensorflow.python.framework import func_graph

        self.seconds = 0.0
        self.count = 0
        self.graphs: deque[Any] = deque(maxlen=LATEST_GRAPHS)
        self.by_function: Counter[Traced] = Counter()
        self.reasons = TraceReasons()
        self._sources = sources
        self._libraries = library_folders()
        self._depth = 0
        original = func_graph.func_graph_from_py_func

        def func_graph_from_py_func(*args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            start = time.perf_counter()
            try:
                graph = original(*args, **kwargs)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.perf_counter() - start
                    self.count += 1
                    self._count_function(args, kwargs)
            if not self._depth and not in_validation(self._libraries[1:]):
                self.graphs.append(graph)
            return graph

        func_graph.func_graph_from_py_func = func_graph_from_py_func

    @property
    def is_running(self) -> bool:
        """Whether something is traced now."""
        return self._depth > 0

    def _count_function(self, args: Any, kwargs: Any) -> None:
        function = kwargs.get("python_func", args[1] if len(args) > 1 else None)
        code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
        if code is None:
            return
        if not code.co_filename.startswith(self._libraries):
            traced = Traced(code.co_name, code.co_filename, code.co_firstlineno, False)
            self.by_function.update([traced])
            values = [kwargs.get(name, args[n] if n < len(args) else ()) for n, name in ((2, "args"), (3, "kwargs"))]
            self.reasons.add(traced, code.co_varnames[: code.co_argcount], values[0] or (), values[1] or {})
            return
        source, called = call_in(self._sources)
        if source.line:
            of_pipeline = PIPELINES in code.co_filename
            self.by_function.update([Traced(called, source.file or self._sources.own, source.line, True, of_pipeline)])
