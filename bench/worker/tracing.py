"""How often TensorFlow traced Python into graphs, and how long that took.

Keras 3 hides its train function in plain Python, so nobody can ask it for its traces. But every trace of every
`tf.function` calls one function of TensorFlow, in 2.10 as in 2.21. That function is wrapped here, and its outermost
calls are timed.
"""

from __future__ import annotations

import inspect
import time
from collections import Counter, deque
from typing import Any

LATEST_GRAPHS = 8
"""Number of graphs that are kept for inspection."""


class Tracing:
    """Counts and times outermost traces from its creation on.

    Attributes:
        seconds: time of all traces.
        count: number of traces.
        graphs: the latest graphs.
        by_function: number of traces of each Python function, by (name, file, line).
    """

    def __init__(self) -> None:
        from tensorflow.python.framework import func_graph

        self.seconds = 0.0
        self.count = 0
        self.graphs: deque[Any] = deque(maxlen=LATEST_GRAPHS)
        self.by_function: Counter[tuple[str, str, int]] = Counter()
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
            if not self._depth:
                self.graphs.append(graph)
            return graph

        func_graph.func_graph_from_py_func = func_graph_from_py_func

    def _count_function(self, args: Any, kwargs: Any) -> None:
        function = kwargs.get("python_func", args[1] if len(args) > 1 else None)
        code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
        if code is not None:
            self.by_function.update([(code.co_name, code.co_filename, code.co_firstlineno)])
